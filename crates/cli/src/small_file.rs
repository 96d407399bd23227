//! Reading what a user wrote for this program: plans, instruments, conditions, configurations.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use nilometer_model::Bytes;
use nilometer_storage::in_time;
use rustix::fs::OFlags;

use crate::describe::PATIENCE;

/// No such file is longer.
const LENGTH_MAX: Bytes = Bytes(1 << 20);

/// The text of a small file; `what` names its kind in messages. A path may be wrong, or come from somebody else: nothing but a plain file is opened, since a
/// fifo or a device may give nothing, or no end, for ever, and storage that does not answer is given up.
pub(crate) fn read(path: &Path, what: &str) -> Result<String> {
    let shown = path.display().to_string();
    let path: PathBuf = path.into();
    in_time(PATIENCE, path.clone(), move || text(&path))?
        .with_context(|| format!("can't read the {what} {shown}"))
}

/// The first kilobytes of a file, as far as it is text.
pub(crate) fn beginning(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(1 << 12).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn open_plain(path: &Path) -> Result<File> {
    // To open a device may already do something.
    ensure!(path.metadata()?.is_file(), "it is no plain file");
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    ensure!(file.metadata()?.is_file(), "it is no plain file");
    Ok(file)
}

fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    open_plain(path)?.take(LENGTH_MAX.0 + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= LENGTH_MAX.0, "it is longer than {LENGTH_MAX}");
    Ok(text)
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
}
