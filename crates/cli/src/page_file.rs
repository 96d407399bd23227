//! The files of pages: the path of a record's page, the option `--html`, and the check that a page replaces no
//! other file.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use nilometer_storage::{
    new_file::{NewFile, remove_dead},
    user_file,
};

use crate::tell;

/// The path of a record's page: beside the record, with `.html` in place of `.sqlite`, or behind another
/// name.
pub(crate) fn page_of(record: &Path) -> PathBuf {
    let is_usual = record.extension().is_some_and(|extension| extension == "sqlite");
    if is_usual { record.with_extension("html") } else { record.with_added_extension("html") }
}

/// True if no file has this name, or the file is a page of this program.
pub(crate) fn is_page_or_free(page: &Path) -> bool {
    if page.symlink_metadata().is_err() {
        return true;
    }
    let begins = user_file::beginning(page).unwrap_or_default();
    let marks = ["content=\"Nilometer\"", "– Nilometer</title>"];
    begins.starts_with("<!DOCTYPE html>") && marks.iter().any(|mark| begins.contains(mark))
}

/// Refuses a file of `--html` that is no page, such as a record or a facility.
pub(crate) fn check_option(html: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = html else { return Ok(()) };
    ensure!(
        is_page_or_free(path),
        "--html {}: a file is there that is no page of Nilometer: name another one",
        path.display()
    );
    Ok(())
}

/// Writes the page of `--html` and prints its path. Does nothing without the option.
pub(crate) fn write_option(html: Option<&Path>, page: impl FnOnce() -> String) -> anyhow::Result<()> {
    let Some(path) = html else { return Ok(()) };
    write_whole(path, &page()).with_context(|| format!("can't write {}", path.display()))?;
    tell::note(format_args!("Page: {}", path.display()));
    Ok(())
}

/// Writes a file over an earlier one, whole or not at all. A device or a fifo gets the text as it is.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut growing = GrowingFile::create(path)?;
    growing.push(text)?;
    growing.finish()
}

/// A file that grows beside an earlier one and replaces it at the end. One that a killed process left is removed by
/// the next one of its name, or by `nilometer clean`.
#[derive(Debug)]
pub(crate) enum GrowingFile {
    /// A device or a fifo, which gets the text as it is.
    AsItIs(File),
    /// A file with a temporary name, and the name that it gets.
    Beside(NewFile, OsString),
}

impl GrowingFile {
    /// Creates an empty file beside `path`.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return File::options().write(true).open(path).map(GrowingFile::AsItIs);
        }
        // A link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default();
        let text = name.to_string_lossy();
        drop(remove_dead(directory, Some(text.as_ref())));
        Ok(GrowingFile::Beside(NewFile::create(directory, &text)?, name.to_owned()))
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        match self {
            GrowingFile::AsItIs(file) => file.write_all(text.as_bytes()),
            GrowingFile::Beside(new, _) => new.file().write_all(text.as_bytes()),
        }
    }

    /// Replaces the earlier file.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            GrowingFile::AsItIs(_) => Ok(()),
            GrowingFile::Beside(new, name) => new.finish_over(0o666, &name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_replaces_a_page_and_no_other_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let page = directory.path().join("page.html");
        check_option(Some(&page)).expect("nothing is there");
        for title in ["one", "two"] {
            let html = || format!("<!DOCTYPE html><title>{title} – Nilometer</title>");
            write_option(Some(&page), html).expect("space");
            assert_eq!(fs::read_to_string(&page).expect("a page"), html());
            check_option(Some(&page)).expect("it is a page");
        }
        fs::write(&page, "title = \"mine\"").expect("space");
        let refused = check_option(Some(&page)).expect_err("a facility").to_string();
        assert!(refused.starts_with("--html ") && refused.contains("no page of Nilometer"), "{refused}");
        let left: Vec<_> = fs::read_dir(directory.path()).expect("a directory").collect();
        assert_eq!(left.len(), 1, "no unfinished page stays");
    }
}
