//! `visibility`: what is published is found whole, and whatever is not as it should be is told.

use nilometer_campaign::workload::{LookFor, Looked, Publish, PublishedFile};
use nilometer_model::{FilesSeen, Nanos, Seed};
use nilometer_storage::{
    Completion, Drive, Errno, Open, Step, Wait, Workload,
    clock::VirtualClock,
    interleave,
    testing::{Cost, Device, Simulated},
};

use crate::buffers;

const LENGTH: u32 = 10_000;
const INTERVAL: Nanos = Nanos(1000);
const PATIENCE: Nanos = Nanos(100_000);

fn target_at(clock: &VirtualClock) -> Simulated {
    Simulated::new(Device::with_cost(Cost::fixed(Nanos(100))), clock.clone())
}

fn target() -> Simulated {
    target_at(&VirtualClock::default())
}

fn file(name: &str, open: Open, content: u64) -> PublishedFile {
    PublishedFile { name: name.into(), open, content: Seed(content) }
}

fn both() -> Vec<PublishedFile> {
    vec![file("n_data", Open::CREATE, 1), file("n_flag", Open::CREATE, 2)]
}

fn publish(target: &Simulated, files: Vec<PublishedFile>, length: u32) -> Result<Nanos, Errno> {
    let mut publish = Publish::new(files, length, buffers(1).remove(0));
    Drive::new(&mut publish, &mut target.attach(1, 2)).run(|_| {});
    publish.closed()
}

/// What is seen of these files by who was told that they are closed since then.
fn look(target: &Simulated, files: Vec<PublishedFile>, closed: Nanos) -> Looked {
    let mut look = LookFor::new(files, LENGTH, INTERVAL, PATIENCE, buffers(1).remove(0));
    Drive::new(&mut look, &mut target.attach(1, 2)).run(|_| {});
    look.looked(closed, Nanos(0), true)
}

#[test]
fn what_was_published_is_seen_whole_at_once_and_what_is_written_over_anew() {
    let target = target();
    let closed = publish(&target, both(), LENGTH).expect("it is written");
    let looked = look(&target, both(), closed);
    // An open, a read and a close of each, of 100 ns.
    let after = [Nanos(200), Nanos(500)];
    let seen = FilesSeen { files: 2, longest: Nanos(500), ..FilesSeen::default() };
    assert!(looked.seen == seen && looked.after.iter().all(|time| after.contains(time)), "{looked:?}");
    let again = vec![file("n_data", Open::WRITE, 3)];
    let closed = publish(&target, again.clone(), LENGTH).expect("it is written over");
    assert!(look(&target, again, closed).seen.kept_close_to_open());
    assert_eq!(publish(&target, both(), LENGTH), Err(Errno::EEXIST), "a new file is a new one");
}

#[test]
fn what_is_missing_short_or_stale_after_its_close_is_counted_and_given_up_in_the_end() {
    let one = |open, content| vec![file("n_data", open, content)];
    let faults = |look: &Looked| {
        let FilesSeen { missing, short, stale, never, .. } = look.seen;
        [missing, short, stale, never]
    };
    let clock = VirtualClock::default();
    let target = target_at(&clock);
    let begun = clock.now();
    let looked = look(&target, one(Open::CREATE, 1), Nanos(0));
    assert_eq!(faults(&looked), [1, 0, 0, 1], "{looked:?}");
    let took = clock.now().since(begun);
    assert!(took >= PATIENCE && took < PATIENCE + INTERVAL, "it is given up in time: {took}");
    publish(&target, one(Open::CREATE, 1), LENGTH / 2).expect("it is written");
    assert_eq!(faults(&look(&target, one(Open::CREATE, 1), Nanos(0))), [0, 1, 0, 1]);
    publish(&target, one(Open::WRITE, 1), LENGTH).expect("it is written");
    assert_eq!(faults(&look(&target, one(Open::CREATE, 1), Nanos(0))), [0, 0, 0, 0]);
    let stale = look(&target, one(Open::WRITE, 2), Nanos(0));
    assert_eq!(faults(&stale), [0, 0, 1, 1]);
    assert!(!stale.seen.kept_close_to_open() && stale.errors.is_empty());
}

#[test]
fn the_second_of_two_without_the_first_is_out_of_order() {
    let target = target();
    publish(&target, vec![file("n_flag", Open::CREATE, 2)], LENGTH).expect("it is written");
    let seen = look(&target, both(), Nanos(0)).seen;
    assert_eq!((seen.out_of_order, seen.missing, seen.never), (1, 1, 1), "{seen:?}");
}

/// Who polls sees nothing amiss in what it saw before the close.
#[test]
fn what_is_looked_for_while_it_is_written_counts_from_its_close_on() {
    for (late, kept) in [(Nanos(0), true), (PATIENCE, false)] {
        let clock = VirtualClock::default();
        let target = target_at(&clock);
        let mut looks = LookFor::new(both(), LENGTH, INTERVAL, PATIENCE, buffers(1).remove(0));
        let mut writes = Late { due: late, publish: Publish::new(both(), LENGTH, buffers(1).remove(0)) };
        let (mut of_reader, mut of_writer) = (target.attach(1, 2), target.attach(1, 2));
        let mut drives = [Drive::new(&mut looks, &mut of_reader), Drive::new(&mut writes, &mut of_writer)];
        interleave(&clock, &mut drives, Nanos::MAX, &mut |_, _| {});
        let closed = writes.publish.closed().expect("it is written");
        let looked = looks.looked(closed, Nanos(10), false);
        assert_eq!(looked.seen.out_of_order, 0);
        assert_eq!(looked.seen.kept_close_to_open(), kept, "written after {late}: {looked:?}");
        assert!(looked.after.iter().all(|after| *after < INTERVAL + Nanos(600)), "{looked:?}");
    }
}

/// Begins later.
struct Late {
    due: Nanos,
    publish: Publish,
}

impl Workload for Late {
    fn next(&mut self, now: Nanos) -> Step {
        if now < self.due {
            return Step::Wait(Wait::Until(self.due));
        }
        self.publish.next(now)
    }

    fn completed(&mut self, completion: Completion) {
        self.publish.completed(completion);
    }
}
