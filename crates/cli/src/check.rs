//! `nilometer check`: checks a record from somebody else against its own samples.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use nilometer_analysis::{Study, conclusions, contradictory_starts};
use nilometer_plan::{Conclusion, Results};
use nilometer_record::{Concluded, SealState, concluded, file_digest};

use crate::{
    Blame, Failure, Outcome,
    signature::{AllowedSigners, SignatureFault, beside},
    tell, version,
};

/// Check that a record from somebody else is unchanged and consistent
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// The record that `evaluate` wrote
    record: PathBuf,
    /// Require this SHA-256 of the record, as printed on the page of its acceptance
    #[arg(long, value_name = "DIGITS", value_parser = digits)]
    sha256: Option<String>,
    /// Require a signature of the record (`evaluate --sign`) by this public SSH key, or by a file of allowed
    /// signers as `ssh-keygen -Y verify` takes it
    #[arg(long, value_name = "FILE")]
    signed_by: Option<PathBuf>,
}

/// The text that `check --help` prints about exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  consistent: every statement follows from the samples, and the seal fits; with --signed-by, the signature too
  1  a fault, also if ssh-keygen is missing or does not answer
  2  wrong input: the file is no record
  3  the record was changed, a statement does not follow from its samples, or somebody else signed it
  4  not decided: no seal, because the campaign has not ended or `import` made the record; or a required signature is missing";

fn digits(text: &str) -> Result<String, String> {
    let is_sum = text.len() == 64 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    if is_sum { Ok(text.to_ascii_lowercase()) } else { Err("write 64 hexadecimal digits".into()) }
}

impl Check {
    pub(crate) fn execute(&self) -> Outcome {
        let signers = self.signers().input()?;
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
        let contradictions = contradictory_starts(&results);
        for line in &contradictions {
            tell::result_line(tell::visible(&format!("{:<8} {line}", "differs")));
        }
        self.refuse_another_sum(&sum)?;
        refuse_unsealed(&seal)?;
        refuse_differences(&differences, &results)?;
        refuse_contradictions(contradictions.len())?;
        self.tell_signer(signers.as_ref())?;
        for verdict in &study.acceptance {
            let path = results.targets.get(verdict.target).map_or("", |target| &target.path);
            tell::result_line(format_args!("{:<8} {}", verdict.answer().name(), tell::visible(path)));
        }
        tell::result_line(agrees(said.len()));
        Ok(())
    }

    fn refuse_another_sum(&self, sum: &str) -> Outcome {
        if self.sha256.as_ref().is_some_and(|asked| asked != sum) {
            return Err(Failure::NotCarried(anyhow!("its SHA-256 is not the one of --sha256")));
        }
        Ok(())
    }

    /// The signers of `--signed-by`.
    fn signers(&self) -> anyhow::Result<Option<AllowedSigners>> {
        let signers = self.signed_by.as_deref().map(AllowedSigners::read).transpose();
        signers.context("--signed-by")
    }

    /// Prints the signer of the record, with `--signed-by`.
    fn tell_signer(&self, signers: Option<&AllowedSigners>) -> Outcome {
        let signature = beside(&self.record);
        let is_signed = signature.exists();
        let Some(signers) = signers else {
            let how = if is_signed { "not checked: give the signers with --signed-by FILE" } else { "no" };
            tell::result_line(format_args!("signed   {how}"));
            return Ok(());
        };
        if !is_signed {
            return Err(Failure::NotDecided(anyhow!(
                "the record is not signed: there is no {}",
                signature.display()
            )));
        }
        let name = signers.signer(&self.record).map_err(blamed)?;
        tell::result_line(format_args!("signed   by {}", tell::visible(&name)));
        Ok(())
    }
}

/// The number of conclusions that were derived again. Without any, none could differ.
fn agrees(count: usize) -> String {
    if count == 0 {
        "agrees   nothing: the record has no conclusions that could differ from its samples".into()
    } else {
        let conclusions = tell::counted(count as u64, "conclusion");
        format!("agrees   {conclusions}, each derived again from the samples")
    }
}

/// The failure by a signature: a wrong one is a changed record, and one that nobody could check is a fault.
fn blamed(fault: SignatureFault) -> Failure {
    match fault {
        SignatureFault::Invalid(why) => Failure::NotCarried(why),
        SignatureFault::NotChecked(why) => Failure::Run(why.context("the signature could not be checked")),
    }
}

fn refuse_unsealed(seal: &SealState) -> Outcome {
    match seal {
        SealState::Whole { .. } => Ok(()),
        SealState::Broken { .. } => {
            Err(Failure::NotCarried(anyhow!("the record was changed after its campaign had ended")))
        }
        SealState::None => Err(Failure::NotDecided(anyhow!(
            "the record has no seal: run `nilometer report` for the results of its samples"
        ))),
    }
}

fn refuse_differences(differences: &[String], results: &Results) -> Outcome {
    if differences.is_empty() {
        return Ok(());
    }
    let is_same = results.version == version::PACKAGE;
    let other = if is_same { "" } else { " (this program has another version, and may have other words)" };
    let count = differences.len();
    Err(Failure::NotCarried(anyhow!("{count} conclusions do not follow from the samples{other}")))
}

fn refuse_contradictions(count: usize) -> Outcome {
    if count == 0 {
        return Ok(());
    }
    Err(Failure::NotCarried(anyhow!("{count} samples contradict themselves: the record was changed")))
}

/// A seal has no key: anybody who changes a record can seal it again.
fn in_words(seal: &SealState) -> String {
    match seal {
        SealState::None => "none".into(),
        SealState::Whole { sealed } => {
            format!(
                "consistent: the seal of {sealed} fits, but it is no signature: anybody can seal a record again"
            )
        }
        SealState::Broken { sealed } => format!("BROKEN: changed since {sealed}"),
    }
}

/// The conclusions that the record and its samples do not share, in both directions.
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
