//! Files of `nilometer observe` for a report, and corrections of their times.

use std::{path::PathBuf, str::FromStr};

use anyhow::{Context, bail, ensure};
use clap::Args;
use nilometer_analysis::observed::{CorrectedLog, measured_range};
use nilometer_model::{
    Nanos,
    observed::{ObservedLog, ObservedRange},
};
use nilometer_plan::Results;
use nilometer_record::read_observed;

/// The arguments of a report about observed machines.
#[derive(Debug, Clone, Args)]
pub(crate) struct ObservedFiles {
    /// Files that `observe` wrote on servers during the measurement. The report shows them beside the results
    #[arg(value_name = "OBSERVED")]
    observed: Vec<PathBuf>,
    /// Add this time to the times of a machine with a wrong clock, such as oss1=+0.35s
    #[arg(long, value_name = "MACHINE=TIME", requires = "observed", allow_hyphen_values = true)]
    offset: Vec<MachineOffset>,
}

/// The correction of one machine's times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MachineOffset {
    host: String,
    nanos: i64,
}

impl FromStr for MachineOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let how =
            || format!("`{text}`: write a machine and a time to be added, such as oss1=+0.35s or oss1=-2s");
        let (host, time) = text.rsplit_once('=').filter(|(host, _)| !host.is_empty()).ok_or_else(how)?;
        let sign = if time.starts_with('-') { -1 } else { 1 };
        let length = time.strip_prefix(['-', '+']).unwrap_or(time);
        let length: Nanos = length.parse().map_err(|_| how())?;
        let nanos = i64::try_from(length.0).map_err(|_| how())?;
        Ok(MachineOffset { host: host.into(), nanos: sign * nanos })
    }
}

impl ObservedFiles {
    /// True if the command line has no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.observed.is_empty()
    }

    /// Reads the looks from the time of the measurements.
    pub(crate) fn logs(&self, results: &Results) -> anyhow::Result<Vec<CorrectedLog>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let run = measured_range(results)
            .context("the record has no times, so observations can't be placed beside it")?;
        let mut logs = Vec::new();
        for path in &self.observed {
            let log = self.corrected(read_observed(path, self.widened(run))?);
            check_range(&log, run)?;
            logs.push(log);
        }
        self.check_offsets(&logs)?;
        check_each_once(&logs)?;
        Ok(logs)
    }

    /// Widens the range by the largest offset: only the file itself names its machine.
    fn widened(&self, run: ObservedRange) -> ObservedRange {
        let most = self.offset.iter().map(|offset| offset.nanos.unsigned_abs()).max().unwrap_or(0);
        ObservedRange { from: run.from.since(Nanos(most)), to: run.to + Nanos(most) }
    }

    fn corrected(&self, log: ObservedLog) -> CorrectedLog {
        let of = self.offset.iter().find(|offset| offset.host == log.header.host);
        CorrectedLog { offset: of.map_or(0, |offset| offset.nanos), log }
    }

    fn check_offsets(&self, logs: &[CorrectedLog]) -> anyhow::Result<()> {
        for MachineOffset { host, .. } in &self.offset {
            let known: Vec<&str> = logs.iter().map(|of| of.log.header.host.as_str()).collect();
            let count = self.offset.iter().filter(|offset| offset.host == *host).count();
            ensure!(known.contains(&host.as_str()), "--offset {host}: observed were {}", known.join(", "));
            ensure!(count == 1, "--offset {host} is given {count} times: give it once");
        }
        Ok(())
    }
}

/// The range by the clock of the measuring machine, as far as offsets correct it. `None` if the log has no
/// look.
fn range_of(of: &CorrectedLog) -> Option<ObservedRange> {
    let moved = |time: Nanos| Nanos(time.0.saturating_add_signed(of.offset));
    of.log.range.map(|range| ObservedRange { from: moved(range.from), to: moved(range.to) })
}

fn check_range(of: &CorrectedLog, run: ObservedRange) -> anyhow::Result<()> {
    let name = &of.log.name;
    let range = range_of(of).with_context(|| format!("{name}: it has no look"))?;
    if range.meets(run) {
        return Ok(());
    }
    let host = &of.log.header.host;
    bail!(
        "{name}: {host} was observed from {range}, but the run lasted from {run}: if a clock was wrong, correct it \
         with --offset"
    )
}

/// Refuses overlapping logs of one machine. Several logs, one after the other, are fine.
fn check_each_once(logs: &[CorrectedLog]) -> anyhow::Result<()> {
    for (number, one) in logs.iter().enumerate() {
        for other in &logs[..number] {
            let is_same = one.log.header.host == other.log.header.host;
            let both = range_of(one).zip(range_of(other));
            ensure!(
                !is_same || !both.is_some_and(|(one, other)| one.meets(other)),
                "{} and {} are both of {} at the same time: give one of them",
                other.log.name,
                one.log.name,
                one.log.header.host
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nilometer_model::observed::ObservedHeader;

    use super::*;

    fn log(host: &str, from: u64, to: u64) -> CorrectedLog {
        let second = |second: u64| Nanos(second * 1_000_000_000);
        let header = ObservedHeader { host: host.into(), ..ObservedHeader::default() };
        let range = Some(ObservedRange { from: second(from), to: second(to) });
        CorrectedLog {
            log: ObservedLog { name: format!("{from}.jsonl"), header, range, ..ObservedLog::default() },
            offset: 0,
        }
    }

    #[test]
    fn an_offset_has_a_machine_a_sign_and_a_unit() {
        let of = |text: &str| text.parse::<MachineOffset>();
        let offset = |nanos| Ok(MachineOffset { host: "oss1".into(), nanos });
        assert_eq!(of("oss1=+0.35s"), offset(350_000_000));
        assert_eq!(of("oss1=-2 ms"), offset(-2_000_000));
        assert_eq!(of("oss1=1 h"), offset(3_600_000_000_000));
        for wrong in ["oss1", "=1s", "oss1=", "oss1=1", "oss1=fast", "oss1=+-1s"] {
            assert!(of(wrong).expect_err(wrong).contains("such as oss1=+0.35s"), "{wrong}");
        }
    }

    #[test]
    fn a_machine_is_given_once_for_each_time_and_at_the_time_of_the_run() {
        let run = log("", 10, 20).log.range.expect("given");
        check_range(&log("a", 15, 30), run).expect("it has ten seconds in common");
        let error = check_range(&log("a", 21, 30), run).expect_err("behind it").to_string();
        let both =
            "from 1970-01-01T00:00:21Z to 1970-01-01T00:00:30Z, but the run lasted from 1970-01-01T00:00:10Z";
        assert!(error.contains(both), "{error}");
        let moved = CorrectedLog { offset: -5_000_000_000, ..log("a", 21, 30) };
        check_range(&moved, run).expect("its clock was five seconds ahead");
        check_each_once(&[log("a", 1, 5), log("a", 6, 9), log("b", 1, 9)]).expect("one after the other");
        let error = check_each_once(&[log("a", 1, 5), log("a", 5, 9)]).expect_err("at once").to_string();
        assert!(error.starts_with("1.jsonl and 5.jsonl are both of a"), "{error}");
    }
}
