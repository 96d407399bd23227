//! The word that replaces missing samples. VLBI readers take it for missing data.

const WORD: [u8; 4] = 0x1122_3344_u32.to_le_bytes();

/// Fills `bytes` with the word. They must begin at a word of their frame.
pub(super) fn fill(bytes: &mut [u8]) {
    let (words, rest) = bytes.as_chunks_mut();
    words.fill(WORD);
    rest.copy_from_slice(&WORD[..rest.len()]);
}

/// Returns true if `bytes` hold only the word. They must begin at a word of their frame.
pub(super) fn is_filled(bytes: &[u8]) -> bool {
    bytes.as_chunks().0.iter().all(|word| *word == WORD)
}
