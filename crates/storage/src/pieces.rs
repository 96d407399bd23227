//! Files that grow, where storage has whole files only: a row of files of [`PIECE`] bytes, the last of which is written anew
//! whenever something is added. The first has the name of the file, so that who lists a directory finds it.
//!
//! ```text
//! scan.0.journal  scan.0.journal.00000001  scan.0.journal.00000002
//! 65536 bytes     65536 bytes              640 bytes, 1280 bytes, ...
//! ```

/// Bytes of each piece but the last. A thousand records of a journal: few enough to be put again with each batch of them, and
/// so many that a journal of ten million has ten thousand pieces.
pub const PIECE: u64 = 64 << 10;

/// The name of a piece, from 0, of the file of this name or path.
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
