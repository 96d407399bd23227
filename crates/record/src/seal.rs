//! The seal of a record: the SHA-256 of its file, stored in the file. It shows to the owner of a copy whether a
//! byte was changed since the campaign ended. It protects against accidents and changes by hand, but a program
//! can make another seal. Only a sum that both sides have on paper is binding (`report --format acceptance`).
//!
//! The sum can't include itself: the file is hashed with zeros in the place of the sum's 64 digits.

use std::{
    fmt::Write,
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_plan::Conclusion;
use rusqlite::{Connection, OptionalExtension, Transaction};
use sha2::{Digest, Sha256};

use super::{
    RecordError,
    connection::{open, to_read},
    place::Place,
};

/// The text before the digits.
const MARK: &str = "nilometer-sha256:";
/// Length of a SHA-256 in hexadecimal.
const DIGITS: usize = 64;
/// Number of bytes to read at once.
const PIECE: usize = 1 << 20;

/// The state of a record's seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealState {
    /// The record has no seal. Its campaign has not ended, or its results were imported.
    None,
    /// No byte was changed.
    Whole {
        /// Time of the seal: UTC, ISO 8601.
        sealed: String,
    },
    /// The record was changed after it was sealed.
    Broken {
        /// Time of the seal: UTC, ISO 8601.
        sealed: String,
    },
}

/// The conclusions stored when a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concluded {
    /// The state of the seal.
    pub seal: SealState,
    /// The conclusions in the order of their storage.
    pub conclusions: Vec<Conclusion>,
}

/// Reads the conclusions of a record and checks its seal.
///
/// # Errors
/// Returns an error if the file can't be read or is no record.
pub fn concluded(path: &Path) -> Result<Concluded, RecordError> {
    let connection = open(path, to_read)?;
    let failed = |source| RecordError::Sqlite { path: path.into(), action: "read", source };
    let conclusions = conclusions(&connection).map_err(failed)?;
    let noted = noted(&connection).map_err(failed)?;
    drop(connection);
    // A process that was killed before it wrote the sum has sealed nothing.
    let noted = noted.filter(|noted| noted.mark.strip_prefix(MARK) != Some(&"0".repeat(DIGITS)));
    let Some(Noted { sealed, mark }) = noted else {
        return Ok(Concluded { seal: SealState::None, conclusions });
    };
    let unreadable = |source| RecordError::Unreadable { path: path.into(), source };
    let is_whole = is_whole(&PathBuf::from(&Place::existing(path)?), &mark).map_err(unreadable)?;
    let seal = if is_whole { SealState::Whole { sealed } } else { SealState::Broken { sealed } };
    Ok(Concluded { seal, conclusions })
}

/// Returns the SHA-256 of a file in hexadecimal, the same as `sha256sum` prints.
///
/// # Errors
/// If it can't be read.
pub fn file_digest(path: &Path) -> io::Result<String> {
    digest(&File::open(path)?, None)
}

/// Returns the SHA-256 of a text in hexadecimal, the same as `sha256sum` prints for a file with that text.
pub fn text_digest(text: &str) -> String {
    in_digits(Sha256::digest(text))
}

fn in_digits(sum: impl AsRef<[u8]>) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in sum.as_ref() {
        write!(digits, "{byte:02x}").expect("writing to a string does not fail");
    }
    digits
}

struct Noted {
    sealed: String,
    mark: String,
}

fn noted(connection: &Connection) -> rusqlite::Result<Option<Noted>> {
    let row = connection.query_row("SELECT sealed, mark FROM seal", [], |row| {
        Ok(Noted { sealed: row.get(0)?, mark: row.get(1)? })
    });
    row.optional()
}

fn conclusions(connection: &Connection) -> rusqlite::Result<Vec<Conclusion>> {
    let mut statement = connection.prepare("SELECT subject, words FROM conclusion ORDER BY id")?;
    let rows = statement.query_map([], |row| Ok(Conclusion { subject: row.get(0)?, words: row.get(1)? }))?;
    rows.collect()
}

/// Adds the seal's row, with zeros for digits.
pub(super) fn note(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mark = format!("{MARK}{}", "0".repeat(DIGITS));
    let insert = "INSERT INTO seal (id, sealed, mark) VALUES (1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?1)";
    transaction.execute(insert, [mark]).map(drop)
}

/// Writes the sum into a file that is not open.
pub(super) fn put(path: &Path) -> Result<(), RecordError> {
    let real = PathBuf::from(&Place::existing(path)?);
    put_into(&real).map_err(|source| RecordError::Unreadable { path: path.into(), source })
}

fn put_into(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let digits = digits_of(&file, &format!("{MARK}{}", "0".repeat(DIGITS)))?;
    let digits = digits.ok_or_else(|| io::Error::other("its seal is not found"))?;
    file.write_all_at(digest(&file, None)?.as_bytes(), digits.start)?;
    file.sync_all()
}

fn is_whole(path: &Path, mark: &str) -> io::Result<bool> {
    let Some(claimed) = mark.strip_prefix(MARK).filter(|digits| digits.len() == DIGITS) else {
        return Ok(false);
    };
    let file = File::open(path)?;
    let Some(digits) = digits_of(&file, mark)? else { return Ok(false) };
    Ok(digest(&file, Some(&digits))? == claimed)
}

/// Returns the position of a mark's digits in a file, or `None` unless the mark occurs exactly once.
fn digits_of(file: &File, mark: &str) -> io::Result<Option<Range<u64>>> {
    let mark = mark.as_bytes();
    let mut found = None;
    let mut piece = vec![0; PIECE + mark.len()];
    let mut at = 0;
    loop {
        let length = read_at(file, &mut piece, at)?;
        // The next piece finds a mark that begins in the last bytes of this one.
        let begins = piece[..length].windows(mark.len()).take(PIECE).position(|part| part == mark);
        if let Some(begins) = begins {
            let start = at + (begins + MARK.len()) as u64;
            if found.replace(start..start + DIGITS as u64).is_some() {
                return Ok(None);
            }
            at += begins as u64 + 1;
            continue;
        }
        if length < piece.len() {
            return Ok(found);
        }
        at += PIECE as u64;
    }
}

fn read_at(file: &File, piece: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < piece.len() {
        match file.read_at(&mut piece[done..], at + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    Ok(done)
}

/// Returns the SHA-256 of a file, with this range replaced by zeros.
fn digest(file: &File, zeroed: Option<&Range<u64>>) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let length = read_at(file, &mut piece, at)?;
        if let Some(zeroed) = zeroed {
            let within = |end: u64| end.clamp(at, at + length as u64).saturating_sub(at) as usize;
            piece[within(zeroed.start)..within(zeroed.end)].fill(b'0');
        }
        sum.update(&piece[..length]);
        at += length as u64;
        if length < piece.len() {
            return Ok(in_digits(sum.finalize()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use nilometer_model::Nanos;
    use nilometer_plan::{Event, Results};

    fn sealed(directory: &Path) -> PathBuf {
        let path = directory.join("r.sqlite");
        let record = Record::create(&path, &Results::default(), 0).expect("a new record");
        let of = |subject: &str, words: &str| Conclusion { subject: subject.into(), words: words.into() };
        record.conclude(&[of("/a", "is fast"), of("/b", "is slow")]).expect("space");
        path
    }

    #[test]
    fn a_sealed_record_says_what_was_concluded() {
        let directory = tempfile::tempdir().expect("a directory");
        let found = concluded(&sealed(directory.path())).expect("a record");
        assert!(matches!(found.seal, SealState::Whole { .. }), "{:?}", found.seal);
        let words: Vec<&str> = found.conclusions.iter().map(|found| found.words.as_str()).collect();
        assert_eq!(words, ["is fast", "is slow"]);
    }

    #[test]
    fn any_byte_that_was_changed_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = sealed(directory.path());
        let whole = std::fs::read(&path).expect("a file");
        let mut refused = 0;
        for at in (0..whole.len()).step_by(whole.len() / 997) {
            let mut changed = whole.clone();
            changed[at] ^= 0x20;
            std::fs::write(&path, &changed).expect("space");
            match concluded(&path) {
                Ok(Concluded { seal: SealState::Broken { .. } | SealState::None, .. }) => {}
                // The change made the file unreadable as a record.
                Err(_) => refused += 1,
                Ok(found) => panic!("byte {at}: {:?}", found.seal),
            }
        }
        // An eighth of so small a record is the text of its schema.
        assert!(refused < 150, "most bytes are not those of its structure: {refused}");
        std::fs::write(&path, [&whole[..], b"x"].concat()).expect("space");
        assert!(!matches!(concluded(&path), Ok(Concluded { seal: SealState::Whole { .. }, .. })));
    }

    #[test]
    fn what_is_written_later_opens_it_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        let (campaign, plan) = (crate::read::tests::campaign(), crate::read::tests::plan());
        let head = Results { campaign: Some(campaign), cells: plan.cells, ..Results::default() };
        let words = Conclusion { subject: "/a".into(), words: "is fast".into() };
        Record::create(&path, &head, 0)
            .and_then(|record| record.conclude(std::slice::from_ref(&words)))
            .expect("space");
        let (mut record, _) = Record::resume(&path).expect("nobody writes");
        assert!(
            matches!(concluded(&path).expect("a record").seal, SealState::Whole { .. }),
            "nothing was written"
        );
        record.note(&Event { at: Nanos(1), what: "resumed".into() }).expect("space");
        let open = Concluded { seal: SealState::None, conclusions: Vec::new() };
        assert_eq!(concluded(&path).expect("a record"), open);
        record.conclude(&[words]).expect("space");
        assert!(matches!(concluded(&path).expect("a record").seal, SealState::Whole { .. }));
    }

    #[test]
    fn a_mark_is_found_wherever_it_lies_and_only_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let mark = format!("{MARK}{}", "7".repeat(DIGITS));
        let path = directory.path().join("file");
        let find = |before: usize, text: &str| {
            std::fs::write(&path, ["x".repeat(before).as_str(), text, "yz"].concat()).expect("space");
            digits_of(&File::open(&path).expect("a file"), &mark)
                .expect("readable")
                .map(|digits| digits.start)
        };
        for before in [0, 5, PIECE - 40, PIECE - 1, PIECE, PIECE + mark.len(), 2 * PIECE - 3] {
            assert_eq!(find(before, &mark), Some((before + MARK.len()) as u64), "{before}");
        }
        assert_eq!(find(7, "nothing"), None);
        assert_eq!(find(9, &format!("{mark}{mark}")), None, "nobody knows which it is");
    }

    #[test]
    fn the_sum_is_that_of_sha256sum() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "abc").expect("space");
        // FIPS 180-4, the example of one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (file_digest(&path).expect("a file").as_str(), text_digest("abc").as_str()),
            (expected, expected)
        );
    }
}
