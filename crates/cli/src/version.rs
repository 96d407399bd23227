//! `nilometer version`: prints the text of `nilometer --version`. The build script provides the commit, the
//! features and the target.

use clap::Args;

use crate::tell;

/// The version of the package alone.
pub(crate) const PACKAGE: &str = env!("CARGO_PKG_VERSION");

/// The day of the commit, such as 2026-11-24.
pub(crate) const DAY: &str = env!("NILOMETER_DATE");

/// The text of `-V`.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NILOMETER_COMMIT"), ")");

/// The text of `--version`. `docs/install.md` explains the least kernel.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit    ",
    env!("NILOMETER_COMMIT"),
    " of ",
    env!("NILOMETER_DATE"),
    "\nfeatures  ",
    env!("NILOMETER_FEATURES"),
    "\ntarget    ",
    env!("NILOMETER_TARGET"),
    "\nkernel    Linux 3.10 or newer; 5.11 for io_uring",
);

/// Print the version, the commit and the features
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Version {}

/// Prints the version.
pub(crate) fn tell() {
    tell::result_line(format_args!("nilometer {LONG}"));
}
