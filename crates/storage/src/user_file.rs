//! Reads files that a user wrote for this program: plans, instruments, conditions, configurations.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use nilometer_model::{
    Bytes, FileNames, Instrument, InstrumentError,
    catalogue::{self, BuiltIn, UnknownName},
};
use rustix::fs::OFlags;

use crate::{PATIENCE, TargetError, in_time};

/// The longest file that is read.
const LENGTH_MAX: Bytes = Bytes(1 << 20);

/// A text that a user named, with its name for messages: a built-in name, or the path as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// A name of the catalogue, or a path.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Why a text that a user named can't be read.
#[derive(Debug, thiserror::Error)]
pub enum UserFileError {
    /// It is neither built in nor a path.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// It is missing, no plain file, too long or no text.
    #[error("can't read the {what} {path}")]
    Unreadable {
        /// The kind of file expected, such as a plan.
        what: String,
        /// The path as the user gave it.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The storage of the file does not answer.
    #[error(transparent)]
    Hung(#[from] TargetError),
    /// The file was read, but is no instrument.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
}

/// Returns the text of a small file; `what` names its kind in messages. The path may be wrong, or from
/// another user. Therefore the function opens only a plain file of at most a mebibyte: a fifo or a device may
/// deliver nothing, or never end. Storage that does not answer is given up after [`PATIENCE`].
pub fn read(path: &Path, what: &str) -> Result<String, UserFileError> {
    let unreadable = |source| UserFileError::Unreadable { what: what.into(), path: path.into(), source };
    let text = String::from_utf8(bytes(path, what)?);
    text.map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))
}

/// Does the same for any bytes: a text may have another encoding than UTF-8.
pub fn bytes(path: &Path, what: &str) -> Result<Vec<u8>, UserFileError> {
    let place = path.to_owned();
    let bytes = in_time(PATIENCE, path.into(), move || small(&place))?;
    bytes.map_err(|source| UserFileError::Unreadable { what: what.into(), path: path.into(), source })
}

/// Returns a text by its built-in name among these, or by the path of a small file.
pub fn find(name: &str, among: &[BuiltIn], what: &str) -> Result<NamedText, UserFileError> {
    let found = catalogue::look_up(name, among, what)?;
    let text = match found {
        Some(built_in) => built_in.text.to_owned(),
        None => read(Path::new(name), what)?,
    };
    Ok(NamedText { name: name.to_owned(), text })
}

/// Returns an instrument by its name in the catalogue, or by the path of its file.
pub fn instrument(name: &str) -> Result<Instrument, UserFileError> {
    let NamedText { name, text } = find(name, &catalogue::INSTRUMENTS, "instrument")?;
    let mut instrument = Instrument::parse(&text, &name)?;
    let is_file = instrument.recording.names() == FileNames::Recorder;
    let layout = instrument.recording.layout.as_mut().filter(|_| is_file);
    if let (Some(layout), Some(directory)) = (layout, Path::new(&name).parent()) {
        *layout = directory.join(&layout);
    }
    Ok(instrument)
}

/// Returns the first kilobytes of a file, as far as they are text.
pub fn beginning(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(1 << 12).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn open_plain(path: &Path) -> io::Result<File> {
    let no_plain_file = || io::Error::other("it is no plain file");
    // Opening a device may already have effects.
    if !path.metadata()?.is_file() {
        return Err(no_plain_file());
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_plain_file()) }
}

fn small(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(LENGTH_MAX.0 + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LENGTH_MAX.0 {
        return Err(io::Error::other(format!("it is longer than {LENGTH_MAX}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_small_file_is_refused_and_never_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("plan.toml"), "title = \"t\"\n").expect("space");
        assert_eq!(read(&path("plan.toml"), "plan").expect("it can be read"), "title = \"t\"\n");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), mode).expect("a fifo");
        std::fs::write(path("long"), vec![b' '; LENGTH_MAX.0 as usize + 1]).expect("space");
        std::fs::write(path("binary"), [0xff; 9]).expect("space");
        for name in ["fifo", "long", "binary", ".", "none"] {
            let error = read(&path(name), "plan").expect_err(name).to_string();
            assert!(error.starts_with("can't read the plan "), "{error}");
        }
        for device in ["/dev/zero", "/dev/tty", "/proc/self/mem"] {
            read(Path::new(device), "plan").expect_err(device);
        }
    }

    #[test]
    fn an_instrument_is_found_by_its_name_and_by_its_path() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("fila10g-1g.toml");
        let built_in = find("fila10g-1g", &catalogue::INSTRUMENTS, "instrument").expect("built in");
        std::fs::write(&path, &built_in.text).expect("space");
        let own = instrument(path.to_str().expect("a plain name")).expect("valid");
        assert_eq!(own.name, instrument("fila10g-1g").expect("built in").name);
        assert!(matches!(instrument("fila10g"), Err(UserFileError::Unknown(_))));
    }
}
