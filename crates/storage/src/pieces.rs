//! Growing files on storage that only has whole files. They are a row of files of [`PIECE`] bytes; each
//! append writes the last one again. The first has the name of the file, so that a directory listing shows
//! it.
//!
//! ```text
//! scan.0.journal  scan.0.journal.00000001  scan.0.journal.00000002
//! 65536 bytes     65536 bytes              640 bytes, 1280 bytes, ...
//! ```

/// The bytes of each piece except the last. It holds a thousand records of a journal: few enough to write
/// again with each batch. A journal of ten million records has ten thousand pieces.
pub const PIECE: u64 = 64 << 10;

/// Returns the name of piece `number`, from 0, of the file of this name or path.
pub fn piece_name(name: &str, number: u64) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}.{number:08}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_piece_has_the_name_of_the_file() {
        assert_eq!([0, 1, 123].map(|number| piece_name("a", number)), ["a", "a.00000001", "a.00000123"]);
    }
}
