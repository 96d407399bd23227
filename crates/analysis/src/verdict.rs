//! Can this storage carry that instrument? One sentence a target, from what the recorder did.

use std::fmt;

use nilometer_model::{
    ByteRate, Bytes, Ingest, Measured, Nanos, Results, Sample, plan::Goal, statistics::poisson_upper,
};

/// The answer for one instrument on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The instrument's name.
    pub instrument: String,
    /// What it delivers.
    pub rate: ByteRate,
    /// What the target takes in the long run: the least over repeats of the rate in the last third of each.
    pub limit: Option<ByteRate>,
    /// What the recording at the instrument's pace came to.
    pub finding: Finding,
}

/// What a recording at the instrument's pace came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// No frame was lost.
    Carried(Trial),
    /// Frames were lost.
    Lost(Trial),
    /// Nothing follows from it.
    Undecided(String),
}

/// A recording at the instrument's pace.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// How long frames came.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// The longest time from due until acknowledged.
    pub longest_stall: Nanos,
    /// The most memory that was in use at once.
    pub buffer_used: Bytes,
    /// The memory there was.
    pub buffer: Bytes,
    /// Processors that the recorder kept busy, the simulated instrument apart.
    pub cores: f64,
}

/// A verdict for each instrument on each target that was recorded, in the order of instruments, then targets.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (target, instrument) in recorded(results) {
        let of = |goal: Goal| {
            let same = move |ingest: &Ingest| ingest.instrument == instrument && ingest.goal == goal;
            let here = results.samples.iter().filter(move |measured| measured.key.target == target);
            here.filter_map(move |measured| {
                Some((&measured.sample, measured.sample.ingest.as_ref().filter(|i| same(i))?))
            })
        };
        let Some((sample, ingest)) = of(Goal::Pace).next_back() else { continue };
        let limits = of(Goal::Limit).filter(|(sample, _)| sample.invalid.is_none());
        let limit =
            limits.filter_map(|(sample, _)| sample.series.last_third()).min_by(|a, b| a.0.total_cmp(&b.0));
        verdicts.push(Verdict {
            target,
            instrument: instrument.into(),
            rate: ByteRate::of(ingest.frame_size.0, ingest.period),
            limit,
            finding: finding(sample, ingest),
        });
    }
    verdicts
}

/// Every target with every instrument that was recorded there.
fn recorded(results: &Results) -> Vec<(usize, &str)> {
    let pair = |measured: &'_ Measured| Some((measured.key.cell, measured.key.target));
    let mut pairs = Vec::new();
    let mut keys: Vec<_> =
        results.samples.iter().filter(|m| m.sample.ingest.is_some()).filter_map(pair).collect();
    keys.sort_unstable();
    for (cell, target) in keys {
        let sample = results.samples.iter().find(|m| (m.key.cell, m.key.target) == (cell, target));
        let name = sample.and_then(|m| m.sample.ingest.as_ref()).map(|ingest| ingest.instrument.as_str());
        if let Some(pair) = name.map(|name| (target, name)).filter(|pair| !pairs.contains(pair)) {
            pairs.push(pair);
        }
    }
    pairs
}

fn finding(sample: &Sample, ingest: &Ingest) -> Finding {
    if let Some(why) = &sample.invalid {
        return Finding::Undecided(why.to_string());
    }
    let trial = Trial {
        duration: Nanos(ingest.due * ingest.period.0),
        due: ingest.due,
        lost: ingest.lost,
        longest_stall: ingest.longest_stall,
        buffer_used: Bytes(ingest.slots_high * ingest.frame_size.0),
        buffer: Bytes(ingest.slots * ingest.frame_size.0),
        cores: (sample.user + sample.system).seconds() / sample.wall.seconds().max(1e-9),
    };
    if ingest.lost > 0 { Finding::Lost(trial) } else { Finding::Carried(trial) }
}

impl Verdict {
    /// How many times its rate the target takes in the long run.
    pub fn margin(&self) -> Option<f64> {
        self.limit.map(|limit| limit.0 / self.rate.0)
    }

    /// It carries the instrument, and has shown that it can do so in the long run.
    pub fn is_carried(&self) -> bool {
        matches!(self.finding, Finding::Carried(_)) && self.margin().is_none_or(|margin| margin >= 1.0)
    }

    fn carried(&self, f: &mut fmt::Formatter<'_>, trial: &Trial) -> fmt::Result {
        let Trial { duration, longest_stall, buffer_used, cores, .. } = trial;
        let rarer = Nanos::from_seconds(duration.seconds() / poisson_upper(0));
        match self.margin() {
            Some(margin) if margin < 1.0 => {
                write!(f, "not decided: it took {margin:.2} times its rate in the long run, and yet")?;
            }
            Some(margin) => write!(f, "carries {margin:.1} times its rate;")?,
            None => write!(f, "carries it;")?,
        }
        write!(
            f,
            " in {duration} no frame was lost, so losses are rarer than one in {rarer} (95 %); the longest stall was \
             {longest_stall}, which a buffer of {} covers; the recorder spent {cores:.2} cores",
            decimal(*buffer_used)
        )
    }

    fn lost(&self, f: &mut fmt::Formatter<'_>, trial: &Trial) -> fmt::Result {
        let percent = 100.0 * trial.lost as f64 / trial.due.max(1) as f64;
        write!(
            f,
            "does not carry it: at {} {percent:.2} % of frames ({} of {}) found no room in a buffer of {}; the longest \
             stall was {}",
            self.rate,
            trial.lost,
            trial.due,
            decimal(trial.buffer),
            trial.longest_stall
        )?;
        match self.limit {
            None => Ok(()),
            Some(limit) if limit.0 < self.rate.0 => write!(f, "; it carries {limit}"),
            Some(limit) => write!(f, "; by itself it takes {limit}, so it is the stalls that lose frames"),
        }
    }
}

/// In powers of 1000, as rates are.
fn decimal(bytes: Bytes) -> String {
    ByteRate(bytes.0 as f64).to_string().replace("/s", "")
}

impl fmt::Display for Verdict {
    /// The sentence, without its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding {
            Finding::Carried(trial) => self.carried(f, trial),
            Finding::Lost(trial) => self.lost(f, trial),
            Finding::Undecided(why) => write!(f, "not decided: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Invalid, Key, Series, plan::Phase};

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn measured(cell: usize, paced: bool, rate: u64, lost: u64) -> Measured {
        let ingest = Ingest {
            instrument: "camera".into(),
            goal: if paced { Goal::Pace } else { Goal::Limit },
            frame_size: Bytes(1_000_000),
            period: Nanos::from_millis(10),
            duration: Nanos(60 * SECOND.0),
            due: 6000,
            stored: 6000 - lost,
            lost,
            slots: 100,
            slots_high: 50,
            longest_stall: Nanos::from_millis(310),
            ..Ingest::default()
        };
        let mut series = Series::new(Nanos(0));
        for hundredth in 0..6000 {
            series.add(Nanos::from_millis(10 * hundredth), rate / 100);
        }
        let sample = Sample {
            wall: Nanos(60 * SECOND.0),
            user: SECOND,
            series,
            ingest: Some(ingest),
            ..Sample::new(Nanos(0))
        };
        Measured { key: Key { target: 0, cell, repeat: 0, phase: Phase::Ingest }, sample }
    }

    fn sentence(samples: Vec<Measured>) -> (String, bool) {
        let verdicts = verdicts(&Results { samples, ..Results::default() });
        assert_eq!(verdicts.len(), 1);
        (verdicts[0].to_string(), verdicts[0].is_carried())
    }

    #[test]
    fn no_loss_is_carried_with_its_uncertainty() {
        let (text, carried) =
            sentence(vec![measured(0, false, 240_000_000, 0), measured(1, true, 100_000_000, 0)]);
        assert!(carried);
        for part in
            ["carries 2.4 times its rate", "in 60 s no frame", "one in 20 s (95 %)", "310 ms", "50 MB covers"]
        {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }

    #[test]
    fn loss_is_not_carried_and_says_how_much() {
        let (text, carried) =
            sentence(vec![measured(0, false, 48_000_000, 0), measured(1, true, 48_000_000, 72)]);
        assert!(!carried);
        for part in
            ["does not carry it: at 100 MB/s 1.20 %", "72 of 6000", "buffer of 100 MB", "it carries 48 MB/s"]
        {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }

    #[test]
    fn loss_in_spite_of_a_higher_limit_is_put_down_to_stalls() {
        let (text, carried) =
            sentence(vec![measured(0, false, 200_000_000, 0), measured(1, true, 99_000_000, 9)]);
        assert!(!carried && text.contains("by itself it takes 200 MB/s, so it is the stalls"), "{text}");
    }

    #[test]
    fn a_limit_below_the_rate_or_an_invalid_trial_decides_nothing() {
        let (text, carried) =
            sentence(vec![measured(0, false, 90_000_000, 0), measured(1, true, 100_000_000, 0)]);
        assert!(!carried && text.starts_with("not decided: it took 0.9"), "{text}");
        let mut starved = measured(1, true, 100_000_000, 5);
        starved.sample.invalid = Some(Invalid::Starved);
        let (text, carried) = sentence(vec![starved]);
        assert!(!carried && text.contains("waited for a processor"), "{text}");
    }
}
