//! `nilometer demo`: verdicts on simulated storage, without a disk.

use clap::Args;
use nilometer_analysis::Study;
use nilometer_rehearsal::{DEMO_STORAGE, demo_results};
use nilometer_report::{Detail, terminal};

use crate::{Outcome, report::layout, tell, version};

/// Show verdicts on three simulated storage systems, without touching a disk
///
/// The recorder records a simulated camera on a storage system that is fast, on one that is slow, and on one with hardly any
/// reserve. Everything happens in memory and in virtual time, so that minutes pass in seconds.
#[derive(Debug, Args)]
pub(crate) struct Demo {}

impl Demo {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "every command is executed alike")]
    pub(crate) fn execute(&self) -> Outcome {
        tell::result(
            "A camera delivers 100 frames a second of 64 KiB. Three simulated storage systems take them:\n",
        );
        for storage in DEMO_STORAGE {
            tell::result_line(format_args!("  {:<16} {}", storage.path, storage.truth));
        }
        let results = demo_results(version::SHORT);
        tell::result_unchanged(format!("\n{}", terminal(&Study::of(&results), Detail::Short, layout())));
        tell::result(NEXT);
        Ok(())
    }
}

const NEXT: &str = "
Nothing was written to a disk. To ask the same of your own storage:

  nilometer instrument list                         the instruments of the catalogue
  nilometer evaluate /data --for pilatus-6m         a verdict on the storage of /data, in about three minutes
";

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_analysis::{Decision, Verdict, verdicts};

    #[test]
    fn a_verdict_of_each_kind_is_shown() {
        let results = demo_results("0");
        let decisions: Vec<_> = verdicts(&results).iter().map(Verdict::decision).collect();
        assert_eq!(decisions, [Decision::Carries, Decision::DoesNotCarry, Decision::NotDecided]);
    }
}
