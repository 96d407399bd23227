//! A target on the command line.

use std::ffi::OsStr;

use clap::builder::{OsStringValueParser, TypedValueParser};
use nilometer_model::{TargetAddress, TargetAddressError};

/// Reads an address. If the argument is none, the error names it and gives the reason.
pub(crate) fn target_argument() -> impl TypedValueParser<Value = TargetAddress> {
    OsStringValueParser::new().try_map(|argument| address(&argument))
}

fn address(argument: &OsStr) -> Result<TargetAddress, String> {
    let text = argument.to_str().ok_or(
        "its name is not UTF-8, which records are written in: name the directory by a link that has another name",
    )?;
    text.parse().map_err(|error: TargetAddressError| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_name_that_is_no_text_is_refused_with_what_can_be_done() {
        assert_eq!(address(OsStr::new("/data")), Ok(TargetAddress::Directory("/data".into())));
        let why = address(OsStr::from_bytes(b"/data/\xff")).expect_err("it is no text");
        assert!(why.contains("not UTF-8") && why.contains("by a link"), "{why}");
        assert!(address(OsStr::new("null:/data")).is_err());
    }
}
