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
    /// The processor time of this process and of those that serve it.
    fn by_us(&self) -> Nanos {
        self.daemons.iter().fold(self.ours.total() + self.kernel, |sum, &daemon| sum + daemon)
    }

    /// The processor time of all others.
    fn by_others(&self) -> Nanos {
        self.activity.busy.since(self.by_us())
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
    overdraft: Overdraft,
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
        Surroundings { daemons, last, idle, overdraft: Overdraft::default() }
    }

    /// Begins a phase. Returns the moment, and the machine's activity since the last phase ended, without the
    /// activity of this process.
    pub(crate) fn begin(&mut self, clock: &Clock) -> (Moment, Activity) {
        let now = Moment::now(clock, &self.daemons);
        let spent = now.since(&self.last);
        self.idle.see(spent.by_others(), spent.activity.over);
        // The cost of this look does not belong to the phase: it may be more than all of a short one.
        (Moment { ours: Usage::of_process(), ..now }, self.overdraft.without_ours(&spent))
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

/// The processor time of this process that the machine's counters have not shown yet. The kernel gives whole ticks
/// of 10 ms to whoever runs at their end, and knows to the nanosecond how long a process ran. A gap of 2 ms therefore
/// shows either nothing or much more than this process used; over many gaps both agree.
#[derive(Debug, Default)]
struct Overdraft(Nanos);

impl Overdraft {
    /// The most that later gaps make up for. Work of others up to this may stay hidden.
    const MOST: Nanos = Nanos::from_millis(100);

    /// Returns the machine's activity without this process and those that serve it.
    fn without_ours(&mut self, spent: &Spent) -> Activity {
        let Activity { busy, disk_read, disk_written, .. } = spent.activity;
        let ours = spent.by_us() + self.0;
        self.0 = ours.since(busy).min(Self::MOST);
        Activity {
            busy: busy.since(ours),
            disk_read: disk_read.saturating_sub(spent.ours.fetched),
            disk_written: disk_written.saturating_sub(spent.ours.stored),
            ..spent.activity
        }
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

    /// A gap of `over` in which this process used `ours`, and the counters of the machine show `busy`.
    fn gap(busy: Nanos, ours: Nanos, over: Nanos) -> Spent {
        Spent {
            activity: Activity { over, busy, ..Activity::default() },
            ours: Usage { user: ours, ..Usage::default() },
            kernel: Nanos(0),
            daemons: Vec::new(),
            throttled: Nanos(0),
        }
    }

    #[test]
    fn gaps_of_this_process_alone_are_idle_although_ticks_are_longer() {
        let mut overdraft = Overdraft::default();
        let (ours, tick) = (Nanos::from_millis(2), Nanos::from_millis(10));
        let busy = |number: u64| if number % 5 == 4 { tick } else { Nanos(0) };
        let others = (0..50).map(|number| overdraft.without_ours(&gap(busy(number), ours, ours)).busy);
        assert_eq!(others.max(), Some(Nanos(0)));
        // A program that keeps one processor busy is seen to do that.
        let beside = |number| overdraft.without_ours(&gap(busy(number) + ours, ours, ours)).busy.0;
        assert_eq!((0..50).map(beside).sum::<u64>(), 50 * ours.0);
    }

    #[test]
    fn work_that_the_counters_never_show_hides_a_tenth_of_a_second_of_others_at_most() {
        let mut overdraft = Overdraft::default();
        let second = Nanos::from_seconds(1.0);
        overdraft.without_ours(&gap(Nanos(0), second, second));
        let others = overdraft.without_ours(&gap(second, Nanos(0), second)).busy;
        assert_eq!(others, Nanos::from_millis(900));
    }

    #[test]
    fn what_this_process_reads_and_writes_is_no_traffic_of_others() {
        let mut spent = gap(Nanos(0), Nanos(0), Nanos(1000));
        spent.activity = Activity { disk_read: 700, disk_written: 5000, ..spent.activity };
        spent.ours = Usage { fetched: 500, stored: 6000, ..spent.ours };
        let others = Overdraft::default().without_ours(&spent);
        assert_eq!((others.disk_read, others.disk_written), (200, 0));
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
