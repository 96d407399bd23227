//! Plans with criteria: the checksums by which others recognize plan and program, and the page for the files.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use nilometer_analysis::{AcceptanceAnswer, Study};
use nilometer_plan::{PLANS, ResolvedPlan, Results};
use nilometer_record::{SealState, concluded, file_digest};
use nilometer_report::{AcceptanceProof, acceptance_page};
use nilometer_storage::user_file::find;

use crate::{
    Failure, Outcome,
    page_file::{self, is_page_or_free, write_whole},
    plan::Scale,
    signature,
};

/// Refuses options that would change the measurement: its criteria would be other criteria then.
pub(crate) fn refuse_changes(plan: &ResolvedPlan, scale: Scale, repeats: Option<u32>) -> Result<()> {
    ensure!(
        plan.accept.is_empty() || repeats.is_none(),
        "--repeats: the plan's [accept] fixes its repeats: leave --repeats out, or write repeats into the plan"
    );
    ensure!(
        plan.accept.is_empty() || scale.given().is_none(),
        "--scale: the plan's [accept] fixes its sizes: leave --scale out, or write smaller sizes into the plan"
    );
    Ok(())
}

/// The key of the program's checksum in a record.
const PROGRAM: &str = "program, sha256";

/// The checksums of the program, of each plan, and of all measurements and criteria with their instruments.
/// They are facts for the record. Empty if the plan has no criteria.
pub(crate) fn sums(plan: &ResolvedPlan, plans: &[String]) -> Result<Vec<(String, String)>> {
    if plan.accept.is_empty() {
        return Ok(Vec::new());
    }
    let whole = serde_json::to_string(&(&plan.accept, &plan.cells, plan.repeats))?;
    let mut sums = vec![
        (PROGRAM.to_owned(), program_sum()?),
        ("measurements and criteria, sha256".to_owned(), nilometer_record::text_digest(&whole)),
    ];
    for name in plans {
        let text = find(name, &PLANS, "plan")?.text;
        sums.push((format!("plan {name}, sha256"), nilometer_record::text_digest(&text)));
    }
    Ok(sums)
}

/// Refuses to end the campaign of another program: the page has the checksum of one program.
pub(crate) fn refuse_another_program(results: &Results) -> Result<()> {
    let Some((_, begun)) = results.environment.iter().find(|(key, _)| key == PROGRAM) else { return Ok(()) };
    ensure!(
        *begun == program_sum()?,
        "the campaign was begun by another build of this program, and its plan has [accept]: go on with that one"
    );
    Ok(())
}

fn program_sum() -> Result<String> {
    let program = "/proc/self/exe";
    file_digest(Path::new(program)).with_context(|| format!("can't read the program itself at {program}"))
}

/// Turns PASS, FAIL and NOT DECIDED into an exit code.
pub(crate) fn outcome(study: &Study<'_>) -> Outcome {
    let failed = said(study, AcceptanceAnswer::Fail).map(Failure::NotCarried);
    let open = || said(study, AcceptanceAnswer::NotDecided).map(Failure::NotDecided);
    failed.or_else(open).map_or(Ok(()), Err)
}

/// The reason of the first target with this answer.
fn said(study: &Study<'_>, answer: AcceptanceAnswer) -> Option<anyhow::Error> {
    let verdict = study.acceptance.iter().find(|verdict| verdict.answer() == answer)?;
    let path = study.results.targets.get(verdict.target).map_or("", |target| &target.path);
    let reason = verdict.reason().map(|judged| format!(": {}: {}", judged.criterion, judged.found));
    Some(anyhow::anyhow!("{path}: {}{}", answer.name(), reason.unwrap_or_default()))
}

/// The page of a closed record.
pub(crate) fn page(study: &Study<'_>, record: &Path) -> Result<String> {
    let is_whole = match concluded(record)?.seal {
        SealState::None => None,
        SealState::Whole { .. } => Some(true),
        SealState::Broken { .. } => Some(false),
    };
    let sum = file_digest(record).with_context(|| format!("can't read {}", record.display()))?;
    let signature = signature::beside(record);
    let details = page_file::page_of(record);
    let proof = AcceptanceProof {
        record: sum,
        name: name_of(record),
        is_whole,
        signature: signature.is_file().then(|| name_of(&signature)),
        details: details.is_file().then(|| name_of(&details)),
    };
    Ok(acceptance_page(study, &proof))
}

/// The name of a file, without its directory.
fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// The path of a record's page: beside the record.
pub(crate) fn page_of(record: &Path) -> std::path::PathBuf {
    page_file::page_of(record).with_extension("acceptance.html")
}

/// Writes the page beside the record. It overwrites an earlier page, and nothing else.
pub(crate) fn write_page(study: &Study<'_>, record: &Path) -> Result<std::path::PathBuf> {
    let path = page_of(record);
    ensure!(
        is_page_or_free(&path),
        "{} exists and is no page of nilometer: `nilometer report --format acceptance` can write it elsewhere",
        path.display()
    );
    let page = page(study, record)?;
    write_whole(&path, &page).with_context(|| format!("can't write {}", path.display()))?;
    Ok(path)
}
