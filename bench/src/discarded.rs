//! A lane that gives each frame back as it takes it: what the ring and its source cost, without a recorder behind them.

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::Nanos;
use nilometer_ring::{Frame, Ring, Taken};
use nilometer_storage::{Clock, Completion, Step, Wait, Workload};

/// Takes all frames of a ring with one writer, and stores none.
pub(crate) struct DiscardingLane {
    ring: Arc<Ring>,
    clock: Clock,
    taken: VecDeque<Frame>,
    given_back: Vec<Frame>,
    /// Frames that it has given back.
    pub(crate) count: u64,
}

impl DiscardingLane {
    pub(crate) fn new(ring: Arc<Ring>, clock: Clock) -> Self {
        DiscardingLane { ring, clock, taken: VecDeque::new(), given_back: Vec::new(), count: 0 }
    }
}

impl Workload for DiscardingLane {
    fn next(&mut self, mut now: Nanos) -> Step {
        loop {
            match self.ring.take(now, 0, &mut self.taken) {
                Taken::Frames => {
                    self.count += self.taken.len() as u64;
                    self.given_back.extend(self.taken.drain(..));
                    now = self.clock.now();
                    self.ring.release(now, &mut self.given_back);
                }
                Taken::Nothing => return Step::Wait(Wait::News),
                Taken::Later(time) => return Step::Wait(Wait::Until(time)),
                Taken::Closed(_) => return Step::Done,
                Taken::Chunk | Taken::Over => unreachable!("this ring gives no leases"),
            }
        }
    }

    fn completed(&mut self, _: Completion) {
        unreachable!("it issues no operation")
    }
}
