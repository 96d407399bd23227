//! `nilometer version`: what `nilometer --version` says, for those who spell it so. The build script gives the commit, the
//! features and the target.

use clap::Args;

use crate::tell;

/// The version of the package by itself.
pub(crate) const PACKAGE: &str = env!("CARGO_PKG_VERSION");

/// The day of the commit, as 2026-11-24.
pub(crate) const DAY: &str = env!("NILOMETER_DATE");

/// What `-V` says.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NILOMETER_COMMIT"), ")");

/// What `--version` says. The least kernel is explained in `docs/install.md`.
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

/// Says the version, the commit and the features
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Version {}

/// Says it.
pub(crate) fn tell() {
    tell::result_line(format_args!("nilometer {LONG}"));
}
