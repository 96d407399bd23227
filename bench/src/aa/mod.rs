//! A/A tests: storage under two names or on two days, so that every difference that Nilometer finds is none.
//! `nilometer-bench aa` holds the intervals and the words to this by simulated campaigns, then by the real program.

mod across;
mod campaign;
mod levels;
mod precise;
mod real;
mod tally;
mod within;

use crate::contest::Stop;
use tally::Missed;

/// The name on the command line of the simulation and the real program.
pub(crate) const NAME: &str = "aa";
/// The name of the simulation alone, which needs no quiet machine.
pub(crate) const SIMULATED: &str = "aa-simulated";

/// Simulated campaigns of each kind and shape.
const CAMPAIGNS: u64 = 1000;

/// Prints all tables and returns whether all goals are met.
pub(crate) fn check(stop: &Stop) -> anyhow::Result<bool> {
    let simulated = check_simulated(stop)?;
    Ok(real::check(stop)? && simulated)
}

/// Prints the tables of the simulation and returns whether its goals are met.
pub(crate) fn check_simulated(stop: &Stop) -> anyhow::Result<bool> {
    let missed = simulated(CAMPAIGNS, stop)?;
    for goal in &missed {
        println!("missed: {goal}");
    }
    println!();
    Ok(missed.is_empty())
}

/// Prints the tables of the simulation and returns the goals that it misses.
fn simulated(campaigns: u64, stop: &Stop) -> anyhow::Result<Vec<Missed>> {
    println!("### {SIMULATED}: simulated campaigns, in all of which nothing differs\n");
    let tables: [fn(u64) -> Vec<Missed>; 5] =
        [within::print, levels::print, across::print, across::print_baselines, precise::print];
    let mut missed = Vec::new();
    for table in tables {
        stop.check()?;
        missed.extend(table(campaigns));
        println!();
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_truth_and_words_are_rarely_false() {
        let campaigns = if std::env::var_os("NILOMETER_LONG").is_some() { CAMPAIGNS } else { 25 };
        let missed = simulated(campaigns, &Stop::default()).expect("nobody stops it");
        assert!(missed.is_empty(), "{missed:#?}");
    }
}
