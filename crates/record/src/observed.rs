//! Reads the files of `nilometer observe`. They come from other machines and may contain anything. Each line is
//! parsed alone and is at most [`LINE_MAX`] long. At most [`COUNTERS_MAX`] counters of the requested samples
//! are kept.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use nilometer_model::observed::{
    OBSERVED_FORMAT, OBSERVED_VERSION, ObservedHeader, ObservedLine, ObservedLog, ObservedLook, ObservedRange,
};

/// Longest line in bytes. A machine with a thousand disks and a thousand processors needs a fifth of it.
pub const LINE_MAX: u64 = 1 << 20;
/// Limit on the devices and processors in all samples together: one day at one sample per second and fifty of
/// them.
pub const COUNTERS_MAX: usize = 5_000_000;

/// Error from reading a file of observations.
#[derive(Debug, thiserror::Error)]
pub enum ObservedError {
    /// The file is missing, is no regular file, or its storage fails.
    #[error("can't read the observations {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The first line is not that of an observer.
    #[error("{path}: not a file of `nilometer observe`{hint}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A guess at the kind of file, if there is one.
        hint: &'static str,
    },
    /// Another version of the program wrote the file.
    #[error(
        "{path}: observed by nilometer {by} as version {found} of the format; this program reads {OBSERVED_VERSION}"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The format's version.
        found: u32,
        /// The program that wrote the file.
        by: String,
    },
    /// A line is invalid.
    #[error("{path}, line {line}: {why}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// The error in the line.
        why: String,
    },
    /// The requested range has more counters than can be kept.
    #[error(
        "{path}, line {line}: more than {COUNTERS_MAX} counters until here: observe with a longer --interval"
    )]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
    },
}

/// Reads a file of observations. It checks all samples and keeps those that are in `wanted` by the machine's
/// clock, with one before and one after.
///
/// # Errors
/// Returns an error if the file is no file of observations or a line is invalid. An incomplete last line is
/// ignored.
pub fn read_observed(path: &Path, wanted: ObservedRange) -> Result<ObservedLog, ObservedError> {
    let unreadable = |source| ObservedError::Unreadable { path: path.into(), source };
    // Opening a device or a FIFO may have effects, or block forever.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is no plain file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    read_from(ObservedLines { path, input: BufReader::new(file), number: 0 }, wanted)
}

fn read_from(
    mut lines: ObservedLines<'_, impl BufRead>,
    wanted: ObservedRange,
) -> Result<ObservedLog, ObservedError> {
    let header = lines.header()?;
    let name = lines.path.display().to_string();
    let log = ObservedLog { name, header, ..ObservedLog::default() };
    let mut kept = KeptLooks { wanted, before: None, running_us: None, counters: 0, log };
    loop {
        match lines.next()? {
            NextLine::None => break,
            NextLine::Torn => {
                kept.log.is_torn = true;
                break;
            }
            NextLine::Whole(ObservedLine::Look(look)) => {
                kept.take(*look).map_err(|refused| lines.refused(refused))?;
            }
            NextLine::Whole(ObservedLine::Ended(end)) => kept.log.end = Some(end),
        }
    }
    Ok(kept.log)
}

/// A file that is read line by line.
struct ObservedLines<'a, R> {
    path: &'a Path,
    input: R,
    /// Number of the last line read, from 1.
    number: u64,
}

enum NextLine {
    None,
    /// The line has no newline at its end.
    Torn,
    Whole(ObservedLine),
}

impl<R: BufRead> ObservedLines<'_, R> {
    fn header(&mut self) -> Result<ObservedHeader, ObservedError> {
        let bytes = self.bytes()?;
        let foreign = |hint| ObservedError::Foreign { path: self.path.into(), hint };
        if bytes.starts_with(b"SQLite format 3") {
            return Err(foreign(
                ": it is a record or another SQLite file: a report takes one record, as its first file",
            ));
        }
        let said: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| foreign(""))?;
        if said.get("format").and_then(serde_json::Value::as_str) != Some(OBSERVED_FORMAT) {
            return Err(foreign(""));
        }
        let version = said.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if version != u64::from(OBSERVED_VERSION) {
            let by = said.get("nilometer").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
            let found = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(ObservedError::Version { path: self.path.into(), found, by });
        }
        serde_json::from_value(said).map_err(|error| self.broken(error.to_string()))
    }

    fn next(&mut self) -> Result<NextLine, ObservedError> {
        let bytes = self.bytes()?;
        match bytes.last() {
            None => Ok(NextLine::None),
            Some(b'\n') => {
                let line = serde_json::from_slice(&bytes).map_err(|error| self.broken(error.to_string()))?;
                Ok(NextLine::Whole(line))
            }
            Some(_) => Ok(NextLine::Torn),
        }
    }

    /// Returns the next line with its newline, if it has one; empty at the end of the file.
    fn bytes(&mut self) -> Result<Vec<u8>, ObservedError> {
        let mut bytes = Vec::new();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut bytes);
        read.map_err(|source| ObservedError::Unreadable { path: self.path.into(), source })?;
        if bytes.len() as u64 > LINE_MAX {
            return Err(self.broken(format!("it is longer than {LINE_MAX} bytes")));
        }
        Ok(bytes)
    }

    fn broken(&self, why: String) -> ObservedError {
        ObservedError::Broken { path: self.path.into(), line: self.number, why }
    }

    fn refused(&self, refused: RefusedLook) -> ObservedError {
        match refused {
            RefusedLook::Earlier => self.broken("it is of an earlier time than the line before".into()),
            RefusedLook::TooMany => ObservedError::TooMany { path: self.path.into(), line: self.number },
        }
    }
}

/// The reason why a sample is rejected.
#[derive(Clone, Copy)]
enum RefusedLook {
    Earlier,
    TooMany,
}

/// The samples kept.
struct KeptLooks {
    wanted: ObservedRange,
    /// The last sample that was not kept.
    before: Option<ObservedLook>,
    /// Running time of the last sample read.
    running_us: Option<u64>,
    counters: usize,
    log: ObservedLog,
}

impl KeptLooks {
    fn take(&mut self, look: ObservedLook) -> Result<(), RefusedLook> {
        let time = look.time();
        if self.running_us.replace(look.running_us).is_some_and(|before| before >= look.running_us) {
            return Err(RefusedLook::Earlier);
        }
        let here = ObservedRange { from: time, to: time };
        self.log.range = Some(self.log.range.map_or(here, |range| range.and(here)));
        let is_behind = self.log.looks.last().is_some_and(|last| last.time() > self.wanted.to);
        if time < self.wanted.from || is_behind {
            self.before = Some(look);
            return Ok(());
        }
        if self.log.looks.is_empty() {
            self.log.looks.extend(self.before.take());
        }
        self.counters += counters_of(&look);
        self.log.looks.push(look);
        if self.counters > COUNTERS_MAX { Err(RefusedLook::TooMany) } else { Ok(()) }
    }
}

fn counters_of(look: &ObservedLook) -> usize {
    1 + look.links.len()
        + look.disks.len()
        + look.processors.each_busy_ms.len()
        + look.temperatures_celsius.len()
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, observed::ObserverEnd};

    use super::*;

    const ALL: ObservedRange = ObservedRange { from: Nanos(0), to: Nanos::MAX };

    fn header() -> ObservedHeader {
        ObservedHeader {
            format: OBSERVED_FORMAT.into(),
            version: OBSERVED_VERSION,
            host: "node1".into(),
            ..ObservedHeader::default()
        }
    }

    fn look(second: u64) -> ObservedLook {
        ObservedLook {
            time_us: second * 1_000_000,
            running_us: second * 1_000_000,
            ..ObservedLook::default()
        }
    }

    fn json(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).expect("JSON") + "\n"
    }

    /// Makes a file with samples at these seconds.
    fn text(seconds: impl IntoIterator<Item = u64>) -> String {
        let lines = seconds.into_iter().map(|second| json(&ObservedLine::Look(Box::new(look(second)))));
        json(&header()) + &lines.collect::<String>()
    }

    fn read(bytes: impl AsRef<[u8]>, wanted: ObservedRange) -> Result<ObservedLog, ObservedError> {
        let path = Path::new("node1.jsonl");
        read_from(ObservedLines { path, input: bytes.as_ref(), number: 0 }, wanted)
    }

    fn seconds(log: &ObservedLog) -> Vec<u64> {
        log.looks.iter().map(|look| look.time_us / 1_000_000).collect()
    }

    #[test]
    fn what_was_observed_comes_back_with_its_neighbours() {
        let end = ObserverEnd { looks: 9, ..ObserverEnd::default() };
        let whole = text(1..10) + &json(&ObservedLine::Ended(end));
        let log = read(&whole, ALL).expect("whole");
        assert_eq!((log.header.host.as_str(), log.looks.len(), log.end), ("node1", 9, Some(end)));
        assert!(!log.is_torn && log.name.ends_with("node1.jsonl"));
        let second = |second: u64| Nanos(second * 1_000_000_000);
        let wanted = ObservedRange { from: second(4), to: second(6) };
        let log = read(&whole, wanted).expect("whole");
        assert_eq!(seconds(&log), [3, 4, 5, 6, 7], "one before and one behind");
        assert_eq!(log.range, Some(ObservedRange { from: second(1), to: second(9) }));
        let log = read(&whole, ObservedRange { from: second(20), to: second(30) }).expect("whole");
        assert_eq!((seconds(&log), log.range.is_some()), (vec![], true));
    }

    #[test]
    fn a_torn_last_line_is_left_out_wherever_it_is_torn() {
        let whole = text(1..4);
        let torn_from = text(1..3).len();
        for cut in torn_from..whole.len() {
            let log = read(&whole[..cut], ALL).expect("all before is whole");
            assert_eq!((seconds(&log), log.is_torn), (vec![1, 2], cut > torn_from), "{cut} bytes");
        }
    }

    #[test]
    fn what_is_foreign_or_broken_is_refused_with_its_line() {
        let refused = |bytes: &[u8]| read(bytes, ALL).expect_err("refused").to_string();
        for foreign in
            [&b""[..], b"\x89PNG", b"{}", b"{\"format\":\"other\"}\n", b"[1]\n", b"SQLite format 3\0"]
        {
            assert!(refused(foreign).contains("not a file of `nilometer observe`"), "{foreign:?}");
        }
        let newer = json(&ObservedHeader { version: 7, nilometer: "9.1".into(), ..header() });
        assert!(refused(newer.as_bytes()).contains("by nilometer 9.1 as version 7"), "{newer}");
        let broken = text(1..3) + "{\"look\":{\"time_us\":-1}}\n";
        assert!(refused(broken.as_bytes()).contains("node1.jsonl, line 4: invalid value: integer `-1`"));
        let unknown = text(1..3) + "{\"wish\":1}\n";
        assert!(
            refused(unknown.as_bytes())
                .contains("line 4: unknown variant `wish`, expected `look` or `ended`")
        );
        assert!(refused(text([1, 5, 4]).as_bytes()).contains("line 4: it is of an earlier time"));
        let long = text(1..2) + &" ".repeat(LINE_MAX as usize + 1);
        assert!(refused(long.as_bytes()).contains("line 3: it is longer than"));
        assert!(read_observed(Path::new("/dev/zero"), ALL).is_err());
        assert!(read_observed(Path::new("/no/such"), ALL).is_err());
    }

    #[test]
    fn no_bytes_panic() {
        let valid = vec![text(1..4).into_bytes(), text([]).into_bytes()];
        nilometer_fuzz::fuzz("observed", valid, |bytes| drop(read(bytes, ALL)));
    }
}
