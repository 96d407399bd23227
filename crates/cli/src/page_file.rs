//! The file of a record's page: its path, and the check that nothing else is lost when it is written.

use std::path::{Path, PathBuf};

use nilometer_storage::user_file;

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
