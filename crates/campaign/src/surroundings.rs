//! Observes the rest of the machine when a phase begins and when it ends. The record has these readings beside
//! every figure; they also give the idle level above which a figure's processor time stands.

use std::collections::VecDeque;

use nilometer_cluster::Cluster;
use nilometer_model::{Activity, Nanos, Sample};
use nilometer_storage::{
    Clock,
    process::{Machine, Served, Usage, throttled},
};

/// All counters at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    machine: Machine,
    pub(crate) ours: Usage,
    kernel: Served,
    /// The daemons of each target.
    daemons: Vec<Served>,
    /// The time for which a quota kept this process from running.
    throttled: Nanos,
}

/// The resources used between two moments.
#[derive(Debug, Clone)]
pub(crate) struct Spent {
    pub(crate) activity: Activity,
    /// Resources of this process.
    pub(crate) ours: Usage,
    /// Processor time of the kernel's threads.
    kernel: Nanos,
    /// Processor time of the daemons of each target.
    daemons: Vec<Nanos>,
    /// The time for which a quota on processor time kept this process from running.
    pub(crate) throttled: Nanos,
}

impl Moment {
    /// Reads all counters; `daemons` are those of each target.
    pub(crate) fn now(clock: &Clock, daemons: &[Vec<i32>]) -> Self {
        // Read this first: the other readings have a cost, which at the end of a phase must not count.
        let ours = Usage::of_process();
        Moment {
            ours,
            machine: Machine::now(clock),
            kernel: Served::by_kernel(),
            daemons: daemons.iter().map(|daemons| Served::by(daemons)).collect(),
            throttled: throttled(),
        }
    }

    pub(crate) fn since(&self, earlier: &Moment) -> Spent {
        let daemons = self.daemons.iter().zip(&earlier.daemons);
        Spent {
            activity: self.machine.since(&earlier.machine),
            ours: self.ours.since(earlier.ours),
            kernel: self.kernel.since(&earlier.kernel),
            daemons: daemons.map(|(is, was)| is.since(was)).collect(),
            throttled: self.throttled.since(earlier.throttled),
        }
    }
}

impl Spent {
    /// The processor time of all except this process and those that serve it.
    fn by_others(&self) -> Nanos {
        let served = self.daemons.iter().fold(self.kernel, |sum, &daemon| sum + daemon);
        self.activity.busy.since(self.ours.total() + served)
    }

    /// Puts the resources used during a phase on a target into its sample. If `sharing` targets were measured
    /// at once, each gets an even share of the whole machine's, so that their sum is right.
    pub(crate) fn put(&self, sample: &mut Sample, target: usize, sharing: u64, idle_cores: f64) {
        let idle = Nanos::from_seconds(idle_cores * self.activity.over.seconds());
        sample.during = self.activity;
        sample.machine = Nanos(self.activity.busy.since(idle).0 / sharing);
        sample.client = Nanos(self.kernel.0 / sharing) + self.daemons[target];
    }
}

/// The observations so far.
#[derive(Debug)]
pub(crate) struct Surroundings {
    daemons: Vec<Vec<i32>>,
    /// The counters when the last phase ended.
    last: Moment,
    idle: Idle,
}

/// The time to look at the machine before the first phase of a campaign that will take about `campaign`. It is
/// a tenth of that, at least the shortest gap that [`Idle`] counts, and at most its whole window. Longer gaps
/// between phases add to the idle level.
pub(crate) fn first_look(campaign: Nanos) -> Nanos {
    Nanos(campaign.0 / 10).clamp(Idle::GAP, Idle::WINDOW)
}

impl Surroundings {
    /// Looks at the machine for a time in which this program does nothing. `daemons` are those of each target.
    pub(crate) fn look(clock: &Clock, daemons: Vec<Vec<i32>>, time: Nanos) -> Self {
        let last = Moment::now(clock, &daemons);
        std::thread::sleep(time.duration());
        let spent = Moment::now(clock, &daemons).since(&last);
        let mut idle = Idle::default();
        idle.see(spent.by_others(), spent.activity.over);
        Surroundings { daemons, last, idle }
    }

    /// Begins a phase. Returns the moment, and the machine's activity since the last phase ended.
    pub(crate) fn begin(&mut self, clock: &Clock) -> (Moment, Activity) {
        let now = Moment::now(clock, &self.daemons);
        let spent = now.since(&self.last);
        self.idle.see(spent.by_others(), spent.activity.over);
        // The cost of this look does not belong to the phase: it may be more than all of a short one.
        (Moment { ours: Usage::of_process(), ..now }, spent.activity)
    }

    /// Ends a phase, on at least one target. Returns the resources used in it.
    pub(crate) fn end(&mut self, clock: &Clock, begun: &Moment) -> Spent {
        self.last = Moment::now(clock, &self.daemons);
        self.last.since(begun)
    }

    /// Skips the time since the last phase ended: it belongs to no phase, and does not count as a gap.
    pub(crate) fn pass(&mut self, clock: &Clock) {
        self.last = Moment::now(clock, &self.daemons);
    }

    /// Skips the time until all processes have ended a phase. The work of one that still measures, here or on
    /// another machine, is Nilometer's own, and no load of others. The only process of a campaign has no others to
    /// wait for.
    pub(crate) fn pass_together(&mut self, cluster: &dyn Cluster, clock: &Clock) {
        if cluster.size() > 1 {
            cluster.barrier();
            self.pass(clock);
        }
    }

    /// The processor time of others, as a number of cores.
    pub(crate) fn idle_cores(&self) -> f64 {
        self.idle.cores()
    }
}

/// The processor time of others in the latest gaps between phases, half a second of them at least. A single gap
/// is too short for the kernel's ticks of 10 ms.
#[derive(Debug, Clone, Default)]
struct Idle(VecDeque<(Nanos, Nanos)>);

impl Idle {
    /// Shorter gaps do not count.
    const GAP: Nanos = Nanos::from_millis(50);
    const WINDOW: Nanos = Nanos::from_millis(500);

    fn see(&mut self, spent: Nanos, over: Nanos) {
        if over < Self::GAP {
            return;
        }
        self.0.push_back((spent, over));
        while let Some(&(_, first)) = self.0.front()
            && self.over() >= first + Self::WINDOW
        {
            self.0.pop_front();
        }
    }

    fn over(&self) -> Nanos {
        self.0.iter().fold(Nanos(0), |sum, &(_, over)| sum + over)
    }

    fn cores(&self) -> f64 {
        let spent = self.0.iter().fold(Nanos(0), |sum, &(spent, _)| sum + spent);
        spent.seconds() / self.over().seconds().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(spent: u64, over: u64) -> (Nanos, Nanos) {
        (Nanos::from_millis(spent), Nanos::from_millis(over))
    }

    #[test]
    fn the_idle_level_follows_over_half_a_second() {
        let mut idle = Idle::default();
        assert!(idle.cores().abs() < 1e-9, "nothing was seen");
        for (gap, expected) in [
            (millis(500, 500), 1.0),
            // Too short to count.
            (millis(10, 10), 1.0),
            (millis(0, 100), 500.0 / 600.0),
            (millis(0, 300), 500.0 / 900.0),
            // Now the later ones are enough.
            (millis(50, 100), 0.1),
        ] {
            idle.see(gap.0, gap.1);
            assert!((idle.cores() - expected).abs() < 1e-9, "{} after {gap:?}, not {expected}", idle.cores());
        }
    }

    #[test]
    fn the_first_look_takes_a_tenth_of_the_campaign_within_limits() {
        let looks = [1, 2_000, 60_000].map(|millis| first_look(Nanos::from_millis(millis)));
        assert_eq!(looks, [50, 200, 500].map(Nanos::from_millis));
    }

    #[test]
    fn the_machine_is_counted_above_its_idle_level_and_once() {
        let activity = Activity { over: Nanos(1000), busy: Nanos(1500), ..Activity::default() };
        let (kernel, daemons) = (Nanos(100), vec![Nanos(0), Nanos(7)]);
        let spent = Spent { activity, ours: Usage::default(), kernel, daemons, throttled: Nanos(0) };
        let mut sample = Sample::new(Nanos(0));
        spent.put(&mut sample, 1, 2, 0.5);
        assert_eq!((sample.machine, sample.client), (Nanos(500), Nanos(57)));
        assert_eq!(sample.during, activity);
    }
}
