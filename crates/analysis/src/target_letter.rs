//! The names of targets in tables and sentences.

/// The name of a target in tables: A to Z, then A1 to Z1, A2 to Z2.
pub fn letter(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_never_end() {
        assert_eq!([0, 25, 26, 52].map(letter), ["A", "Z", "A1", "A2"]);
    }
}
