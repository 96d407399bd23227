//! Contestants run in turn over several rounds; what they cost is compared pair by pair, round by round, so that a
//! drift of the machine hits all alike. A first round warms up and is not counted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_model::statistics::Summary;

/// Set by ctrl-C: the running contest ends with an error, and everything is cleaned up on the way out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let stop = Stop::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// An error once one came.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.0.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }
}

/// What one phase of one run cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    /// How much was done, in the contest's unit.
    pub(crate) amount: f64,
    /// Processor time, in seconds.
    pub(crate) cpu: f64,
    /// Wall time, in seconds.
    pub(crate) wall: f64,
}

impl Cost {
    /// What was done in a second.
    pub(crate) fn rate(self) -> f64 {
        self.amount / self.wall
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Processor nanoseconds an operation.
    CpuPerOperation,
    /// Processor milliseconds a GiB.
    CpuPerGib,
    /// Wall milliseconds a GiB.
    WallPerGib,
    /// Wall nanoseconds a frame.
    WallPerFrame,
    /// Wall microseconds a file of a tree.
    WallPerFile,
    /// Wall milliseconds a start of a program.
    WallPerStart,
    /// Wall milliseconds between two phases.
    WallPerGap,
}

impl Quantity {
    fn of(self, cost: Cost) -> f64 {
        match self {
            Quantity::CpuPerOperation => cost.cpu / cost.amount * 1e9,
            Quantity::CpuPerGib => cost.cpu / cost.amount * 1e3,
            Quantity::WallPerFrame => cost.wall / cost.amount * 1e9,
            Quantity::WallPerFile => cost.wall / cost.amount * 1e6,
            Quantity::WallPerGib | Quantity::WallPerStart | Quantity::WallPerGap => {
                cost.wall / cost.amount * 1e3
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Quantity::CpuPerOperation => "CPU ns/op",
            Quantity::CpuPerGib => "CPU ms/GiB",
            Quantity::WallPerGib => "wall ms/GiB",
            Quantity::WallPerFrame => "wall ns/frame",
            Quantity::WallPerFile => "wall us/file",
            Quantity::WallPerStart => "wall ms/start",
            Quantity::WallPerGap => "wall ms/gap",
        }
    }

    fn rate(self) -> &'static str {
        match self {
            Quantity::CpuPerOperation => "op/s",
            Quantity::CpuPerGib | Quantity::WallPerGib => "GiB/s",
            Quantity::WallPerFrame => "frames/s",
            Quantity::WallPerFile => "files/s",
            Quantity::WallPerStart => "starts/s",
            Quantity::WallPerGap => "gaps/s",
        }
    }
}

/// What the subject may cost beside its peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    /// At most so many times as much.
    Times(f64),
    /// Less than it.
    Below,
    /// At most so much more, in the contest's quantity.
    More(f64),
    /// At most so much, in the contest's quantity, whatever the peer costs.
    AtMost(f64),
}

impl Limit {
    /// The subject's figure against the peer's, of one round.
    fn compare(self, subject: f64, peer: f64) -> f64 {
        match self {
            Limit::Times(_) | Limit::Below => subject / peer,
            Limit::More(_) => subject - peer,
            Limit::AtMost(_) => subject,
        }
    }

    fn judge(self, compared: Summary) -> Verdict {
        let Summary { median, range: (least, greatest), .. } = compared;
        let allowed = match self {
            // Whichever round is believed, the bound is met.
            Limit::Times(most) if greatest <= most => true,
            Limit::Times(_) | Limit::Below if greatest > least * WIDEST => return Verdict::Undecided,
            Limit::Times(most) | Limit::More(most) | Limit::AtMost(most) => median <= most,
            Limit::Below => median < 1.0,
        };
        if allowed { Verdict::Met } else { Verdict::Missed }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Times(most) => write!(f, "{most:.2}"),
            Limit::Below => f.write_str("below 1"),
            Limit::More(most) => write!(f, "{most:.0} more"),
            Limit::AtMost(most) => write!(f, "{most:.0}"),
        }
    }
}

/// Where the pairs of a contest differ among themselves by more than this factor, their median says nothing.
const WIDEST: f64 = 4.0;

/// What the rounds say of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
    /// The rounds differ too much.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Undecided => "UNDECIDED, the rounds differ too much",
        })
    }
}

/// A bound that the contest decides, by the median of its rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) subject: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) limit: Limit,
}

/// Runs once and says what each phase cost.
type Run<'a> = Box<dyn FnMut() -> anyhow::Result<Vec<Cost>> + 'a>;

/// One that takes part.
pub(crate) struct Contestant<'a> {
    name: &'static str,
    run: Run<'a>,
}

impl<'a> Contestant<'a> {
    /// `run` prepares what it needs outside what it measures, and returns a cost for each phase.
    pub(crate) fn new(name: &'static str, run: impl FnMut() -> anyhow::Result<Vec<Cost>> + 'a) -> Self {
        Contestant { name, run: Box::new(run) }
    }
}

/// Who competes in what, and how often.
pub(crate) struct Contest<'a> {
    pub(crate) title: String,
    pub(crate) quantity: Quantity,
    pub(crate) phases: &'static [&'static str],
    pub(crate) rounds: usize,
    /// The first is the peer of the ratio that is printed for every other.
    pub(crate) contestants: Vec<Contestant<'a>>,
    pub(crate) bounds: Vec<Bound>,
}

impl Contest<'_> {
    /// Runs all rounds.
    pub(crate) fn run(mut self, stop: &Stop) -> anyhow::Result<Outcome> {
        let names: Vec<_> = self.contestants.iter().map(|contestant| contestant.name).collect();
        let mut costs = vec![vec![Vec::with_capacity(self.rounds); self.phases.len()]; names.len()];
        for round in 0..=self.rounds {
            for index in order(names.len(), round) {
                stop.check()?;
                let run = (self.contestants[index].run)()?;
                assert_eq!(run.len(), self.phases.len(), "a contestant measures each phase");
                if round > 0 {
                    run.into_iter().zip(&mut costs[index]).for_each(|(cost, phase)| phase.push(cost));
                }
            }
        }
        Ok(Outcome {
            title: self.title,
            phases: self.phases,
            names,
            costs,
            judged: vec![Judged { quantity: self.quantity, bounds: self.bounds }],
        })
    }
}

/// Each round begins with another contestant.
fn order(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    title: String,
    phases: &'static [&'static str],
    names: Vec<&'static str>,
    /// By contestant, phase and round.
    costs: Vec<Vec<Vec<Cost>>>,
    judged: Vec<Judged>,
}

/// A quantity by which the same runs are compared, and what is asked of it.
#[derive(Debug)]
struct Judged {
    quantity: Quantity,
    bounds: Vec<Bound>,
}

impl Outcome {
    /// The same runs, compared by another quantity too.
    pub(crate) fn also(mut self, quantity: Quantity, bounds: Vec<Bound>) -> Self {
        self.judged.push(Judged { quantity, bounds });
        self
    }

    /// Whether every bound is met in every phase.
    pub(crate) fn is_met(&self) -> bool {
        let met = |judged: &Judged, phase| {
            let Judged { quantity, bounds } = judged;
            bounds.iter().all(|bound| self.judge(*quantity, bound, phase).1 == Verdict::Met)
        };
        self.judged.iter().all(|judged| (0..self.phases.len()).all(|phase| met(judged, phase)))
    }

    /// The bound's comparison over the rounds, and what it says.
    fn judge(&self, quantity: Quantity, bound: &Bound, phase: usize) -> (Summary, Verdict) {
        let at =
            |name| self.names.iter().position(|&known| known == name).expect("a bound names contestants");
        let of = |name| self.figures(quantity, at(name), phase);
        let compared = compared(&of(bound.subject), &of(bound.peer), bound.limit);
        (compared, bound.limit.judge(compared))
    }

    fn figures(&self, quantity: Quantity, contestant: usize, phase: usize) -> Vec<f64> {
        self.costs[contestant][phase].iter().map(|&cost| quantity.of(cost)).collect()
    }

    fn table(&self, f: &mut fmt::Formatter<'_>, quantity: Quantity) -> fmt::Result {
        writeln!(
            f,
            "| phase | contestant | {} min | median | max | {} | ratio to {} | of the minima |",
            quantity.name(),
            quantity.rate(),
            self.names[0]
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for phase in 0..self.phases.len() {
            for contestant in 0..self.names.len() {
                self.row(f, quantity, phase, contestant)?;
            }
        }
        writeln!(f)
    }

    fn row(
        &self,
        f: &mut fmt::Formatter<'_>,
        quantity: Quantity,
        phase: usize,
        contestant: usize,
    ) -> fmt::Result {
        let (figures, peers) = (self.figures(quantity, contestant, phase), self.figures(quantity, 0, phase));
        let Summary { median, range: (least, greatest), .. } = summary(&figures);
        let costs = &self.costs[contestant][phase];
        let rate = summary(&costs.iter().map(|cost| cost.rate()).collect::<Vec<_>>()).median;
        writeln!(
            f,
            "| {} | {} | {least:.1} | {median:.1} | {greatest:.1} | {} | {} | {:.3} |",
            self.phases[phase],
            self.names[contestant],
            Rounded(rate),
            Spread(compared(&figures, &peers, Limit::Below), 3),
            least / summary(&peers).range.0,
        )
    }

    fn verdict(
        &self,
        f: &mut fmt::Formatter<'_>,
        quantity: Quantity,
        phase: usize,
        bound: &Bound,
    ) -> fmt::Result {
        let Bound { subject, peer, limit } = bound;
        let (compared, word) = self.judge(quantity, bound, phase);
        let unit = quantity.name();
        let (what, unit) = match limit {
            Limit::More(_) => (format!("{subject} - {peer}"), format!(" {unit}")),
            Limit::AtMost(_) => ((*subject).to_owned(), format!(" {unit}")),
            Limit::Times(_) | Limit::Below => (format!("{subject} / {peer}"), String::new()),
        };
        let phase = self.phases[phase];
        writeln!(f, "- {phase}: {what} = {}{unit}; bound {limit}: {word}", Spread(compared, 3))
    }
}

/// One's figures against another's, round by round.
fn compared(subject: &[f64], peer: &[f64], limit: Limit) -> Summary {
    let pairs = subject.iter().zip(peer);
    summary(&pairs.map(|(&subject, &peer)| limit.compare(subject, peer)).collect::<Vec<_>>())
}

fn summary(values: &[f64]) -> Summary {
    Summary::of(values).expect("a contest has at least one round")
}

/// Median, least and greatest.
struct Spread(Summary, usize);

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread(Summary { median, range: (least, greatest), .. }, digits) = self;
        write!(f, "{median:.digits$} ({least:.digits$}..{greatest:.digits$})")
    }
}

/// A rate with three digits or more.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 100.0 { write!(f, "{:.2}", self.0) } else { write!(f, "{:.0}", self.0) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n", self.title)?;
        for Judged { quantity, bounds } in &self.judged {
            self.table(f, *quantity)?;
            for phase in 0..self.phases.len() {
                for bound in bounds {
                    self.verdict(f, *quantity, phase, bound)?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs of one operation each, in nanoseconds of processor time.
    fn costs(cpu: &[f64]) -> Vec<Vec<Cost>> {
        vec![cpu.iter().map(|&nanos| Cost { amount: 1.0, cpu: nanos * 1e-9, wall: nanos * 1e-9 }).collect()]
    }

    fn outcome(limit: Limit) -> Outcome {
        Outcome {
            title: "a contest".into(),
            phases: &["read"],
            names: vec!["bare", "ours"],
            // The machine is twice as slow in the second round: pairs do not see it, medians of each would.
            costs: vec![costs(&[100.0, 200.0, 100.0]), costs(&[105.0, 220.0, 106.0])],
            judged: vec![Judged {
                quantity: Quantity::CpuPerOperation,
                bounds: vec![Bound { subject: "ours", peer: "bare", limit }],
            }],
        }
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let outcome = outcome(Limit::Times(1.08));
        let (compared, verdict) = outcome.judge(Quantity::CpuPerOperation, &outcome.judged[0].bounds[0], 0);
        assert!((compared.median - 1.06).abs() < 1e-9 && verdict == Verdict::Met);
        assert!((compared.range.0 - 1.05).abs() < 1e-9 && (compared.range.1 - 1.10).abs() < 1e-9);
    }

    #[test]
    fn the_median_decides() {
        assert!(outcome(Limit::Times(1.07)).is_met());
        assert!(!outcome(Limit::Times(1.05)).is_met());
        assert!(!outcome(Limit::Below).is_met());
        assert!(outcome(Limit::More(6.1)).is_met());
        assert!(!outcome(Limit::More(5.9)).is_met());
    }

    #[test]
    fn rounds_that_differ_too_much_decide_nothing() {
        let judge = |ratios: &[f64]| Limit::Times(1.05).judge(summary(ratios));
        assert_eq!(judge(&[0.5, 1.0, 1.9]), Verdict::Met);
        assert_eq!(judge(&[0.3, 0.5, 1.3]), Verdict::Undecided);
        assert_eq!(judge(&[0.2, 0.5, 1.0]), Verdict::Met);
    }

    #[test]
    fn the_table_says_what_was_decided() {
        let text = outcome(Limit::Times(1.05)).to_string();
        assert!(text.contains("| read | ours | 105.0 | 106.0 | 220.0 |"), "{text}");
        assert!(text.contains("- read: ours / bare = 1.060 (1.050..1.100); bound 1.05: MISSED"), "{text}");
    }

    #[test]
    fn every_quantity_has_its_bounds() {
        let also = |most| {
            let bound = Bound { subject: "ours", peer: "bare", limit: Limit::AtMost(most) };
            outcome(Limit::Times(1.07)).also(Quantity::WallPerGib, vec![bound])
        };
        // 106 ns are 0.000106 ms.
        assert!(also(0.000_107).is_met());
        assert!(!also(0.000_105).is_met());
        let text = also(1.0).to_string();
        assert!(text.contains("| CPU ns/op min |") && text.contains("| wall ms/GiB min |"), "{text}");
    }

    #[test]
    fn everyone_is_first_once() {
        let orders: Vec<Vec<usize>> = (0..3).map(|round| order(3, round).collect()).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }

    #[test]
    fn the_first_round_is_not_counted() {
        let mut runs = 0;
        let run = || {
            runs += 1;
            Ok(vec![Cost { amount: 1.0, cpu: f64::from(runs), wall: 1.0 }])
        };
        let contest = Contest {
            title: String::new(),
            quantity: Quantity::CpuPerOperation,
            phases: &[""],
            rounds: 2,
            contestants: vec![Contestant::new("one", run)],
            bounds: Vec::new(),
        };
        let outcome = contest.run(&Stop::default()).expect("it runs");
        assert_eq!(outcome.figures(Quantity::CpuPerOperation, 0, 0), [2e9, 3e9]);
    }

    #[test]
    fn a_stop_is_an_error() {
        let stop = Stop::default();
        stop.0.store(true, Ordering::Relaxed);
        assert!(stop.check().is_err());
    }
}
