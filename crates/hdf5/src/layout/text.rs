//! Decodes a layout's file: those encodings of such files that libxml2 reads.

use super::{Mistake, TextPlace};

/// Bytes of a layout, at the most. Steps of the XML reader that take quadratic time are then still fast.
pub(super) const SIZE_MAX: usize = 256 << 10;

/// Decodes UTF-8, UTF-16 with a byte order mark, or Latin-1 if the declaration says so.
pub(super) fn decoded(bytes: &[u8]) -> Result<String, Mistake> {
    let start = TextPlace { line: 1, column: 1 };
    if bytes.len() > SIZE_MAX {
        let why = format!("the layout has {} B; at most {SIZE_MAX} are taken", bytes.len());
        return Err(Mistake::new(start, why));
    }
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ if is_latin1(bytes) => Ok(bytes.iter().copied().map(char::from).collect()),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, Mistake> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let why = "these bytes are no UTF-8; declare encoding=\"ISO-8859-1\", or save the file as UTF-8";
            Err(Mistake::new(place_at(&before, before.len()), why))
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Mistake> {
    let units = bytes.chunks(2).map(|pair| unit([pair[0], *pair.get(1).unwrap_or(&0)]));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map_err(|_| Mistake::new(TextPlace { line: 1, column: 1 }, "the file begins as UTF-16, and is none"))
}

/// Returns true if the declaration names Latin-1; it is ASCII in both encodings.
fn is_latin1(bytes: &[u8]) -> bool {
    let declaration = bytes.split(|byte| *byte == b'>').next().unwrap_or_default();
    let declaration = String::from_utf8_lossy(declaration).to_ascii_lowercase();
    declaration.starts_with("<?xml") && (declaration.contains("iso-8859-1") || declaration.contains("latin1"))
}

/// The line and column of a byte in a text.
pub(super) fn place_at(text: &str, byte: usize) -> TextPlace {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    TextPlace { line: before.matches('\n').count() as u32 + 1, column: line.chars().count() as u32 + 1 }
}
