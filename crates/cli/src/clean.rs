//! `nilometer clean`: removes the remains of killed runs and exports. It frees the space that killed
//! recordings reserved, undoes the settings of killed campaigns, and touches nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Parser};
use nilometer_campaign::{notes_place, take_back_left_here};
use nilometer_cluster::node_name;
use nilometer_hdf5_recording::free_reserved;
use nilometer_model::{Bytes, TargetAddress};
use nilometer_plan::ResolvedPlan;
use nilometer_record::Record;
use nilometer_recording::reader::with_below;
use nilometer_remote::clean;
use nilometer_storage::{TargetError, new_file::remove_dead};

use crate::{
    Blame, Failure, Outcome, evaluate::Evaluate, resume::leave_all, tell, trusted::refuse_to_act_for_others,
};

/// Remove the remains of killed runs and exports: recordings stay. Also frees the space that killed
/// recordings reserved behind their ends. With --record or --settings, undoes the settings and conditions of
/// killed campaigns. Touches nothing else
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Directories or URLs that were evaluated or recorded to, or run directories and recordings themselves
    #[arg(required_unless_present_any = ["record", "settings"])]
    paths: Vec<PathBuf>,
    /// First undo the settings and conditions that this record's killed campaign left in force, by the
    /// commands of its plan
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// First undo the settings that killed campaigns of several processes left in force on this machine
    #[arg(long)]
    settings: bool,
    /// Allow the commands of this plan, which must be the campaign's
    #[arg(long = "plan", value_name = "NAME|FILE", requires = "record")]
    plans: Vec<String>,
    /// Run the commands of the record's plan without naming the plan again
    #[arg(long, requires = "record")]
    trust_record: bool,
}

/// The options of `evaluate` that allow commands.
#[derive(Debug, Parser)]
struct NamedAgain {
    #[command(flatten)]
    asked: Evaluate,
}

impl Clean {
    pub(crate) fn execute(&self) -> Outcome {
        let taken_back = self.record.as_ref().map_or(Ok(0), |record| self.take_back(record))?;
        let taken_back = taken_back + if self.settings { take_back_here()? } else { 0 };
        if self.paths.is_empty() {
            if taken_back == 0 {
                tell::result_line(nothing_taken_back(self.settings));
            }
            return Ok(());
        }
        let (mut removed, mut left, mut in_use, mut freed) = (0, 0, 0, 0);
        for path in &self.paths {
            let address = TargetAddress::of_named(path).input()?;
            let cleaned = clean(&address).input()?;
            for path in &cleaned.removed {
                tell::result_line(format_args!("removed {}", path.display()));
            }
            for error in &cleaned.left {
                tell::note(format_args!("nilometer: {error}"));
            }
            // A link names its directory, as it does in other commands.
            let path = &path.canonicalize().unwrap_or_else(|_| path.clone());
            let partials = remove_partials(path);
            removed += cleaned.removed.len() + partials;
            let held = |error: &&TargetError| matches!(error, TargetError::InUse { .. });
            in_use += cleaned.left.iter().filter(held).count();
            left += cleaned.left.len();
            // Servers have no reserved space.
            freed += if address.url().is_some() { 0 } else { free(path).run()? };
        }
        match (removed + freed, left - in_use) {
            (0, 0) if in_use == 0 && taken_back == 0 => tell::result_line("nothing to clean"),
            (_, 0) if in_use == 0 => {}
            (_, 0) => {
                return Err(Failure::Run(anyhow!(
                    "left {in_use} in use: run clean again when the campaign has ended"
                )));
            }
            (_, left) => {
                return Err(Failure::Run(anyhow!("left {left}: no proof that Nilometer made it")));
            }
        }
        Ok(())
    }
}

impl Clean {
    /// Undoes the settings and conditions that a record's campaign left in force, and returns their number.
    fn take_back(&self, path: &Path) -> Result<usize, Failure> {
        let asked = self.named_again().input()?;
        let (mut record, begun) = Record::resume(path).input()?;
        let results = nilometer_record::read(path).run()?;
        refuse_to_act_for_others(&asked, &begun.campaign, &results, path).input()?;
        if has_notes(&begun.campaign.plan) {
            tell::note(
                "nilometer: a campaign of several processes notes its settings on each machine: run `nilometer clean \
                 --settings` there",
            );
        }
        let left = leave_all(&mut record, &begun.campaign, &results).run()?;
        let stuck = left.stuck.iter().flatten().next().cloned();
        stuck.map_or(Ok(left.tried), |why| Err(Failure::Run(anyhow!("{why}"))))
    }

    fn named_again(&self) -> anyhow::Result<Evaluate> {
        let mut line = vec!["clean".to_owned(), "--resume".to_owned()];
        line.extend(self.plans.iter().flat_map(|plan| ["--plan".to_owned(), plan.clone()]));
        line.extend(self.trust_record.then(|| "--trust-record".to_owned()));
        Ok(NamedAgain::try_parse_from(line)?.asked)
    }
}

/// Returns true if the campaign of a plan noted its settings on each machine, and not in its record.
fn has_notes(plan: &ResolvedPlan) -> bool {
    plan.ranks > 1 && plan.cells.iter().any(|cell| !cell.settings().is_empty())
}

/// Undoes the settings that killed campaigns of several processes left in force on this machine, and returns their
/// number.
fn take_back_here() -> Result<usize, Failure> {
    let left = take_back_left_here(&node_name()).context("the notes of settings can't be read").run()?;
    for undone in &left.undone {
        tell::result_line(tell::visible(undone));
    }
    for held in &left.held {
        let held = tell::visible(held);
        tell::note(format_args!("nilometer: left {held}: a running campaign or its guard undoes it"));
    }
    if left.stuck.is_empty() {
        return Ok(left.undone.len());
    }
    Err(Failure::Run(anyhow!("{}", left.stuck.join("\n"))))
}

/// Names the place of the notes too: those of another place stay unseen.
fn nothing_taken_back(has_read_notes: bool) -> String {
    let nothing = "nothing to take back";
    if !has_read_notes {
        return nothing.into();
    }
    let place = tell::visible(&notes_place().to_string_lossy());
    format!("{nothing}: {place} has no note of a setting")
}

/// Removes the partial files of killed exports and reports at a path, and returns their number. Servers have
/// none.
fn remove_partials(path: &Path) -> usize {
    let dead = remove_dead(path, None);
    for path in &dead.removed {
        tell::result_line(format_args!("removed {}", tell::visible(&path.display().to_string())));
    }
    for (path, why) in &dead.left {
        tell::note(format_args!("nilometer: left {}: {why}", path.display()));
    }
    dead.removed.len()
}

/// Frees the space that recordings at a path reserved, and returns the number of files.
fn free(path: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    // A directory that was just removed is gone.
    for directory in with_below(&[path.to_path_buf()]).unwrap_or_default() {
        let freed = free_reserved(&directory);
        for (file, bytes) in freed
            .with_context(|| format!("can't free the space that {} had reserved", directory.display()))?
        {
            tell::result_line(format_args!(
                "freed {} behind the end of {}",
                Bytes(bytes),
                tell::visible(&file.display().to_string())
            ));
            count += 1;
        }
    }
    Ok(count)
}
