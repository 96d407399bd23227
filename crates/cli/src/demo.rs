//! `nilometer demo`: verdicts on simulated storage, without a disk.

use clap::{Args, ValueEnum};
use nilometer_analysis::Study;
use nilometer_rehearsal::{DEMO_STORAGE, demo_results};
use nilometer_report::{Detail, html, markdown, terminal};

use crate::{Outcome, report::layout, tell, version};

/// Show verdicts on three simulated storage systems, without touching a disk
///
/// The recorder records a simulated camera on a storage system that is fast, on one that is slow, and on one with
/// hardly any reserve. Everything happens in memory and in virtual time, so that minutes pass in seconds.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Print the report in this form
    #[arg(long, value_enum, default_value_t = DemoFormat::Text, value_name = "FORM")]
    format: DemoFormat,
}

/// The form of the demonstration's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoFormat {
    /// A text for the terminal
    Text,
    /// A table for a page in Markdown
    Markdown,
    /// A page with charts
    Html,
}

impl Demo {
    #[expect(clippy::unnecessary_wraps, reason = "every command is executed alike")]
    pub(crate) fn execute(&self) -> Outcome {
        let results = demo_results(version::SHORT);
        let study = Study::of(&results);
        match self.format {
            DemoFormat::Text => tell::result_unchanged(text(&study)),
            DemoFormat::Markdown => tell::result_to_copy(markdown(&study, Detail::Short)),
            DemoFormat::Html => tell::result_to_copy(html(&study)),
        }
        Ok(())
    }
}

/// The storage systems with their properties, the report, and the next steps.
fn text(study: &Study<'_>) -> String {
    let truths = DEMO_STORAGE.map(|storage| format!("  {:<16} {}", storage.path, storage.truth)).join("\n");
    let report = terminal(study, Detail::Short, layout());
    format!("{HEAD}{truths}\n\n{report}{NEXT}")
}

const HEAD: &str =
    "A camera delivers 100 frames a second of 64 KiB.\nThree simulated storage systems take them:\n\n";
const NEXT: &str = "
Nothing was written to a disk. To ask the same of your own storage:

  nilometer instrument list                    the instruments of the catalogue
  nilometer evaluate /data --for pilatus-6m    a verdict in about five minutes
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
