//! `nilometer plan`: what plans there are, and what they measure.

use clap::{Args, Subcommand};
use nilometer_model::plan::{Cells, parse};

use crate::{
    Blame, Outcome,
    catalogue::{PLANS, find},
};

/// Lists the built-in plans, or shows what one measures
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Names and titles
    List,
    /// Every cell of a plan
    Show {
        /// A built-in name, or the path of a .toml file
        name: String,
    },
}

impl Plan {
    pub(crate) fn execute(&self) -> Outcome {
        match &self.action {
            Action::List => {
                for (name, _) in PLANS {
                    println!("{name:<12} {}", load(name).input()?.title);
                }
            }
            Action::Show { name } => show(&load(name).input()?),
        }
        Ok(())
    }
}

/// A plan by its name or path.
pub(crate) fn load(name: &str) -> anyhow::Result<Cells> {
    let (file, text) = find(name, &PLANS, "plan")?;
    Ok(parse(&text, &file, 1.0)?)
}

fn show(plan: &Cells) {
    println!("{}\n{} repeats of {} cells\n", plan.title, plan.repeats, plan.cells.len());
    for cell in &plan.cells {
        println!("{:<24} {:<8} {cell}", cell.stage, cell.workload.name());
    }
}
