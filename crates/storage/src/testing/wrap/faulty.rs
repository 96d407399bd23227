//! Deliberate faults: the behaviour of storage on bad days, chosen by rules and a seed, so that it can be
//! repeated.

use std::{mem::discriminant, sync::Arc};

use nilometer_model::{Nanos, RandomStream, Seed};

use super::sooner;
use crate::{
    Arena, Completion, Engine, EngineError, Wait, Wake,
    operation::{Errno, OpKind, Operation, Slot},
};

/// Selects failing operations and their fault. If several rules apply to an operation, the first decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The kind of operation, or `None` for all. For an open, its mode does not matter.
    pub on: Option<OpKind>,
    /// The selection among operations of that kind.
    pub when: When,
    /// The effect on a selected operation.
    pub effect: FaultEffect,
}

/// The operations that a rule selects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Every nth, counted from 1; `Every(1)` is each.
    Every(u64),
    /// Each with this probability.
    Chance(f64),
    /// The nth, counted from 1, and all after it.
    FromNth(u64),
    /// All that are submitted at this time or later.
    FromTime(Nanos),
}

/// The effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultEffect {
    /// Does nothing and reports this error at once.
    Error(Errno),
    /// Moves about half of the bytes of a read or write, never none. Other operations and those of one byte
    /// run normally.
    Short,
    /// Runs normally, but completes this much later.
    Delay(Nanos),
    /// Does nothing and never completes.
    Hang,
}

/// An engine that fails by rules.
pub struct Faulty {
    inner: Box<dyn Engine>,
    rules: Vec<Counted>,
    /// Operations inside the inner engine.
    flying: usize,
    /// Operations in flight whose completion must be changed.
    marked: Vec<(Mark, Change)>,
    failed: Vec<Completion>,
    /// Sorted by time.
    late: Vec<Completion>,
    hung: Vec<Operation>,
    found: Vec<Completion>,
}

struct Counted {
    rule: Rule,
    count: u64,
    chance: RandomStream,
}

/// Identifies an operation in flight by its values. Operations with equal marks are interchangeable.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    address: *const u8,
    kind: OpKind,
    file: Slot,
    offset: u64,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Length(u32),
    Delay(Nanos),
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty")
            .field("rules", &self.rules.len())
            .field("flying", &self.flying)
            .field("hung", &self.hung.len())
            .finish_non_exhaustive()
    }
}

impl Counted {
    fn applies(&mut self, operation: &Operation, now: Nanos) -> bool {
        if self.rule.on.is_some_and(|kind| discriminant(&kind) != discriminant(&operation.kind)) {
            return false;
        }
        self.count += 1;
        match self.rule.when {
            When::Every(nth) => self.count.is_multiple_of(nth),
            When::Chance(probability) => self.chance.unit() < probability,
            When::FromNth(nth) => self.count >= nth,
            When::FromTime(time) => now >= time,
        }
    }
}

impl Mark {
    fn of(operation: &Operation) -> Self {
        let Operation { kind, file, offset, ref buffer, .. } = *operation;
        Mark { address: buffer.as_ptr(), kind, file, offset }
    }
}

/// Returns about half, in whole blocks if possible, so that direct I/O accepts it.
fn half(length: u32) -> u32 {
    let block = [4096, 512, 1].into_iter().find(|block| length >= 2 * block).unwrap_or(1);
    (length / 2 / block * block).max(1)
}

impl Faulty {
    /// Wraps an engine. The seed drives rules with a chance.
    pub fn new(inner: Box<dyn Engine>, rules: &[Rule], seed: Seed) -> Self {
        let rules = rules.iter().zip(0..).map(|(&rule, index)| Counted {
            rule,
            count: 0,
            chance: seed.part(index).stream(),
        });
        Faulty {
            inner,
            rules: rules.collect(),
            flying: 0,
            marked: Vec::new(),
            failed: Vec::new(),
            late: Vec::new(),
            hung: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the effect of the first rule that applies; all rules count the operation.
    fn effect(&mut self, operation: &Operation) -> Option<FaultEffect> {
        let now = self.inner.now();
        let mut effect = None;
        for counted in &mut self.rules {
            if counted.applies(operation, now) {
                effect = effect.or(Some(counted.rule.effect));
            }
        }
        effect
    }

    fn pass(&mut self, operation: Operation, due: Nanos) {
        self.flying += 1;
        self.inner.submit(operation, due);
    }

    fn mark(&mut self, operation: &Operation, change: Change) {
        self.marked.push((Mark::of(operation), change));
    }

    fn fail(&mut self, operation: Operation, errno: Errno, due: Nanos) {
        let now = self.inner.now();
        let result = Err(errno);
        self.failed.push(Completion { operation, result, due, issued: now, finished: now });
    }

    /// Restores a shortened length, or holds a completion back.
    fn settle(&mut self, mut completion: Completion, done: &mut Vec<Completion>) {
        let mark = Mark::of(&completion.operation);
        match self.marked.iter().position(|(marked, _)| *marked == mark) {
            None => done.push(completion),
            Some(place) => match self.marked.swap_remove(place).1 {
                Change::Length(length) => {
                    completion.operation.length = length;
                    done.push(completion);
                }
                Change::Delay(delay) => {
                    completion.finished += delay;
                    let behind = self.late.partition_point(|late| late.finished <= completion.finished);
                    self.late.insert(behind, completion);
                }
            },
        }
    }

    fn wait(&self, wait: Wait) -> Wait {
        match sooner(wait, self.late.first().map(|late| late.finished)) {
            _ if !self.failed.is_empty() => Wait::Poll,
            // Wait for a hung operation for ever, but not in a busy loop.
            Wait::ForOne if self.flying == 0 && !self.hung.is_empty() => Wait::News,
            wait => wait,
        }
    }
}

impl Engine for Faulty {
    forward_depth_and_clock!();

    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        match self.effect(&operation) {
            Some(FaultEffect::Error(errno)) => return self.fail(operation, errno, due),
            Some(FaultEffect::Hang) => return self.hung.push(operation),
            Some(FaultEffect::Delay(delay)) => self.mark(&operation, Change::Delay(delay)),
            Some(FaultEffect::Short) if operation.kind.is_data() && operation.length > 1 => {
                self.mark(&operation, Change::Length(operation.length));
                operation.length = half(operation.length);
            }
            Some(FaultEffect::Short) | None => {}
        }
        self.pass(operation, due);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let mut found = std::mem::take(&mut self.found);
        self.inner.reap(self.wait(wait), &mut found);
        self.flying -= found.len();
        done.append(&mut self.failed);
        if self.marked.is_empty() {
            done.append(&mut found);
        }
        for completion in found.drain(..) {
            self.settle(completion, done);
        }
        self.found = found;
        if !self.late.is_empty() {
            let now = self.inner.tick();
            let due = self.late.partition_point(|late| late.finished <= now);
            done.extend(self.late.drain(..due));
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.inner.waker()
    }

    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.inner.register(arena)
    }

    fn next_event(&self) -> Option<Nanos> {
        let failed = (!self.failed.is_empty()).then(|| self.inner.now());
        let late = self.late.first().map(|late| late.finished);
        [self.inner.next_event(), failed, late].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::EngineKind;

    use super::*;
    use crate::{Buffer, Clock, clock::VirtualClock, engine::Null, operation::Open, testing::trial};

    const FILE: Slot = Slot(1);

    fn write(index: u64) -> Operation {
        Operation::write(FILE, index * 8192, 8192, Buffer::alone(8192))
    }

    fn results(rules: &[Rule], seed: Seed, count: u64) -> Vec<Result<u32, Errno>> {
        let mut engine = Faulty::new(Box::new(Null::new(1, Clock::start())), rules, seed);
        (0..count).map(|index| trial::once(&mut engine, write(index)).result).collect()
    }

    fn rule(when: When, effect: FaultEffect) -> Rule {
        Rule { on: Some(OpKind::Write), when, effect }
    }

    #[test]
    fn rules_choose_by_count_and_the_first_has_its_way() {
        let rules = [
            rule(When::Every(3), FaultEffect::Error(Errno::EIO)),
            rule(When::FromNth(5), FaultEffect::Error(Errno::ENOSPC)),
            Rule { on: Some(OpKind::Read), when: When::Every(1), effect: FaultEffect::Hang },
        ];
        let (fine, broken, full) = (Ok(8192), Err(Errno::EIO), Err(Errno::ENOSPC));
        assert_eq!(results(&rules, Seed(1), 7), [fine, fine, broken, fine, full, broken, full]);
    }

    #[test]
    fn chance_repeats_with_its_seed() {
        let rules = [rule(When::Chance(0.25), FaultEffect::Error(Errno::EIO))];
        let once = results(&rules, Seed(7), 4000);
        assert_eq!(once, results(&rules, Seed(7), 4000));
        assert_ne!(once, results(&rules, Seed(8), 4000));
        let failed = once.iter().filter(|result| result.is_err()).count();
        assert!((900..1100).contains(&failed), "{failed} of 4000");
    }

    #[test]
    fn a_short_write_leaves_the_rest_unwritten() {
        let (directory, root) = trial::directory();
        let inner = trial::on_directory(root, EngineKind::Sync, 1);
        let mut engine = Faulty::new(inner, &[rule(When::Every(1), FaultEffect::Short)], Seed(1));
        let open = trial::named(OpKind::Open(Open::CREATE), FILE, b"short");
        trial::once(&mut engine, open).result.expect("opens are not touched");
        let completion = trial::once(&mut engine, write(0));
        assert_eq!((completion.result, completion.operation.length), (Ok(4096), 8192));
        let size = std::fs::metadata(directory.path().join("short")).expect("written").len();
        assert_eq!(size, 4096);
        assert_eq!([1, 2, 3, 700, 5000, 1 << 20].map(half), [1, 1, 1, 350, 2048, 1 << 19]);
    }

    #[test]
    fn a_delay_is_reported_late_and_lets_others_pass() {
        let clock = VirtualClock::default();
        let inner = trial::in_virtual_time(4, clock.clone(), Nanos(100));
        let rules =
            [Rule { on: Some(OpKind::Sync), when: When::Every(1), effect: FaultEffect::Delay(Nanos(5000)) }];
        let mut engine = Faulty::new(inner, &rules, Seed(1));
        engine.submit(Operation::on(OpKind::Sync, FILE, Buffer::empty()), Nanos(0));
        engine.submit(write(0), Nanos(0));
        let mut done = Vec::new();
        engine.reap(Wait::ForOne, &mut done);
        assert_eq!((done.len(), done[0].operation.kind, clock.now()), (1, OpKind::Write, Nanos(100)));
        assert_eq!(engine.next_event(), Some(Nanos(5100)));
        done.clear();
        engine.reap(Wait::ForOne, &mut done);
        assert_eq!((done.len(), done[0].finished, clock.now()), (1, Nanos(5100), Nanos(5100)));
        assert_eq!(engine.next_event(), None);
    }

    #[test]
    fn what_hangs_never_completes_and_can_be_woken() {
        trial::within(std::time::Duration::from_secs(20), || {
            let hang = rule(When::FromTime(Nanos(0)), FaultEffect::Hang);
            let mut engine = Faulty::new(Box::new(Null::new(2, Clock::start())), &[hang], Seed(1));
            engine.submit(write(0), Nanos(0));
            let read = trial::once(&mut engine, Operation::read(FILE, 0, 8, Buffer::alone(8)));
            assert_eq!(read.result, Ok(8));
            trial::waits(&mut engine);
            assert_eq!((engine.hung.len(), engine.next_event()), (1, None));
        });
    }
}
