//! `nilometer check`: a record that somebody else sends, against what it says of itself.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nilometer_analysis::{Study, conclusions};
use nilometer_model::Conclusion;
use nilometer_record::{Concluded, SealState, concluded, file_digest};

use crate::{Blame, Failure, Outcome, evaluate::VERSION, tell};

/// Derives every word of a record's verdicts again from its samples, and says where it differs
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// The record that `evaluate` wrote
    record: PathBuf,
    /// The SHA-256 that the record is to have, as on the page of its acceptance
    #[arg(long, value_name = "DIGITS", value_parser = digits)]
    sha256: Option<String>,
}

/// What `check` says with its exit code.
const EXIT_CODES: &str = "\
Exit codes:
  0  every word is that of the record, and no byte was changed
  1  a fault
  2  asked wrongly: it is no record
  3  the record was changed, or says something else than its samples
  4  no seal, so not decided: the campaign has not ended, or `import` made the record";

fn digits(text: &str) -> Result<String, String> {
    let is_sum = text.len() == 64 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    if is_sum { Ok(text.to_ascii_lowercase()) } else { Err("write 64 hexadecimal digits".into()) }
}

impl Check {
    pub(crate) fn execute(&self) -> Outcome {
        let Concluded { seal, conclusions: said } = concluded(&self.record).input()?;
        let results = nilometer_record::read(&self.record).input()?;
        let sum = file_digest(&self.record).run()?;
        tell::result_line(format_args!("record   {}", tell::visible(&self.record.display().to_string())));
        tell::result_line(format_args!("sha256   {sum}"));
        let study = Study::of(&results);
        let differences = differences(&said, &conclusions(&study));
        tell::result_line(format_args!("seal     {}", in_words(&seal)));
        for line in &differences {
            tell::result_line(tell::visible(line));
        }
        for verdict in &study.acceptance {
            let path = results.targets.get(verdict.target).map_or("", |target| &target.path);
            tell::result_line(format_args!("{:<8} {}", verdict.answer().name(), tell::visible(path)));
        }
        let other_sum = self.sha256.as_ref().is_some_and(|asked| *asked != sum);
        let is_broken = matches!(seal, SealState::Broken { .. });
        if other_sum {
            return Err(Failure::NotCarried(anyhow!("its SHA-256 is not the one that was asked for")));
        }
        if is_broken {
            return Err(Failure::NotCarried(anyhow!("the record was changed after its campaign had ended")));
        }
        if seal == SealState::None {
            return Err(Failure::NotDecided(anyhow!(
                "the record has no seal: `nilometer report` shows what follows from its samples"
            )));
        }
        if !differences.is_empty() {
            let count = differences.len();
            let other = if results.version == VERSION {
                ""
            } else {
                " (this program has another version, and may have other words)"
            };
            return Err(Failure::NotCarried(anyhow!(
                "{count} conclusions differ from what the samples say{other}"
            )));
        }
        tell::result_line(format_args!(
            "agrees   {} conclusions, each derived again from the samples",
            said.len()
        ));
        Ok(())
    }
}

fn in_words(seal: &SealState) -> String {
    match seal {
        SealState::None => "none".into(),
        SealState::Whole { sealed } => format!("whole: no byte was changed since {sealed}"),
        SealState::Broken { sealed } => format!("BROKEN: changed since {sealed}"),
    }
}

/// What a record says and its samples don't, and the other way round.
fn differences(said: &[Conclusion], derived: &[Conclusion]) -> Vec<String> {
    let line =
        |word: &str, Conclusion { subject, words }: &Conclusion| format!("{word:<8} {subject}: {words}");
    let only_said = said.iter().filter(|one| !derived.contains(one)).map(|one| line("says", one));
    let only_derived = derived.iter().filter(|one| !said.contains(one)).map(|one| line("follows", one));
    only_said.chain(only_derived).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_and_does_not_follow_is_named_and_what_follows_instead() {
        let of = |words: &str| Conclusion { subject: "acceptance of /a".into(), words: words.into() };
        assert_eq!(differences(&[of("PASS")], &[of("PASS")]), Vec::<String>::new());
        let told = differences(&[of("PASS"), of("met")], &[of("FAIL"), of("met")]);
        assert_eq!(told, ["says     acceptance of /a: PASS", "follows  acceptance of /a: FAIL"]);
    }
}
