//! A write that takes longer than those behind it: what is acknowledged then, and what a reader finds after a kill.

use nilometer_acquisition::sink::Durability;
use nilometer_model::{Nanos, Storing};
use nilometer_recording::reader::Trust;
use nilometer_storage::{Completion, Engine, OpKind, Operation, Wait, testing::Simulated};

use crate::lab::{Lab, PAGE};

/// The frame whose write takes longer than the recorder lives.
const LATE: u64 = 3;
/// When it would be done.
const MUCH_LATER: Nanos = Nanos::from_millis(1000);

/// Keeps the completion of one write to itself. All others come back as they are done.
struct Withholding {
    engine: Box<dyn Engine>,
    kept: Vec<Completion>,
}

fn is_late(Completion { operation, .. }: &mut Completion) -> bool {
    let place = (operation.offset, u64::from(operation.length));
    operation.kind == OpKind::Write && place == (LATE * PAGE, PAGE)
}

impl Engine for Withholding {
    crate::forwards!(engine);

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.engine.submit(operation, due);
    }
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.engine.reap(wait, done);
        self.kept.extend(done.extract_if(before.., is_late));
    }
    fn next_event(&self) -> Option<Nanos> {
        let late = (!self.kept.is_empty()).then_some(MUCH_LATER);
        [self.engine.next_event(), late].into_iter().flatten().min()
    }
}

/// Each frame is acknowledged by itself, when it and its record are written: one behind a hole is as much there as any. What is
/// complete from the beginning is said by the mark.
#[test]
fn after_a_kill_there_is_a_hole_where_a_write_was_overtaken_and_nothing_acknowledged_is_missing() {
    // A file that grows is written in order: there is none.
    for storing in [Storing::Files, Storing::Shared] {
        let lab = Lab {
            frames: 100,
            depth: 4,
            storing,
            durability: Durability::Never,
            wrap: |engine| Box::new(Withholding { engine, kept: Vec::new() }),
            ..Lab::default()
        };
        let run = lab.run(Nanos(2 * lab.frames * lab.period.0));
        assert_eq!(run.mark, LATE, "{storing:?}: all before it are there, and it may still come");
        assert_eq!(run.lanes[0].stored, lab.frames - 1, "the others were acknowledged");
        run.targets.iter().for_each(Simulated::kill);
        let index = run.index(Trust::Acknowledged);
        assert_eq!((index.missing(), index.frames.len()), (vec![(LATE, 1)], 99), "{storing:?}");
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
    }
}
