//! The order that slots impose on operations which threads run at the same time. An operation submitted after
//! an open or a close of a slot waits for it, and a close waits for the running operations on the slot. All
//! others are free.

use std::collections::VecDeque;

use nilometer_model::Nanos;

use crate::operation::{OpKind, Operation, Slot};

/// An operation that no thread has begun.
#[derive(Debug)]
pub struct SubmittedOperation {
    /// The operation to run.
    pub operation: Operation,
    /// The time at which it should have been issued.
    pub due: Nanos,
}

/// The running operations of each slot, and the operations that wait for them.
#[derive(Debug)]
pub struct SlotOrder {
    places: Vec<Place>,
    held: VecDeque<SubmittedOperation>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    users: u32,
    changing: bool,
    use_held: bool,
    change_held: bool,
}

/// The effect of an operation on its slots: it changes one, or uses up to two.
struct Touch {
    changed: Option<Slot>,
    used: [Option<Slot>; 2],
}

fn touch(operation: &Operation) -> Touch {
    let Operation { kind, file, dir, .. } = *operation;
    match kind {
        OpKind::Open(_) | OpKind::OpenDir => {
            Touch { changed: Some(file), used: [(dir != file).then_some(dir), None] }
        }
        OpKind::Close => Touch { changed: Some(file), used: [None, None] },
        OpKind::Stat | OpKind::Unlink | OpKind::RemoveDir | OpKind::MakeDir => {
            Touch { changed: None, used: [Some(dir), None] }
        }
        OpKind::Rename => Touch { changed: None, used: [Some(dir), (dir != file).then_some(file)] },
        _ => Touch { changed: None, used: [Some(file), None] },
    }
}

impl SlotOrder {
    /// Creates the order of `slots` empty slots.
    pub fn new(slots: u32) -> Self {
        SlotOrder { places: vec![Place::default(); slots.max(1) as usize], held: VecDeque::new() }
    }

    /// Returns the job if it may run now; otherwise holds it.
    pub fn submit(&mut self, job: SubmittedOperation) -> Option<SubmittedOperation> {
        if self.admit(&job.operation) {
            return Some(job);
        }
        self.held.push_back(job);
        None
    }

    /// Marks an operation as finished and appends the jobs that it held up.
    pub fn finished(&mut self, operation: &Operation, ready: &mut Vec<SubmittedOperation>) {
        self.mark(&touch(operation), |place| place.changing = false, |place| place.users -= 1);
        if !self.held.is_empty() {
            self.review(ready);
        }
    }

    /// Submits all held jobs again, in the same order.
    fn review(&mut self, ready: &mut Vec<SubmittedOperation>) {
        for place in &mut self.places {
            (place.use_held, place.change_held) = (false, false);
        }
        for _ in 0..self.held.len() {
            let job = self.held.pop_front().expect("counted");
            ready.extend(self.submit(job));
        }
    }

    fn admit(&mut self, operation: &Operation) -> bool {
        let touch = touch(operation);
        let place = |slot: Slot| self.places.get(slot.0 as usize);
        let changeable = |p: &Place| p.users == 0 && !p.changing && !p.use_held && !p.change_held;
        let usable = |p: &Place| !p.changing && !p.change_held;
        let free = touch.changed.and_then(place).is_none_or(changeable)
            && touch.used.into_iter().flatten().filter_map(place).all(usable);
        if free {
            self.mark(&touch, |place| place.changing = true, |place| place.users += 1);
        } else {
            self.mark(&touch, |place| place.change_held = true, |place| place.use_held = true);
        }
        free
    }

    /// Marks the slots of an operation. A slot outside the table has no order: no operation on it can
    /// succeed.
    fn mark(&mut self, touch: &Touch, changed: fn(&mut Place), used: fn(&mut Place)) {
        let [first, second] = touch.used;
        for (slot, mark) in [(touch.changed, changed), (first, used), (second, used)] {
            if let Some(place) = slot.and_then(|slot| self.places.get_mut(slot.0 as usize)) {
                mark(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, ROOT, operation::Open};

    fn job(kind: OpKind, file: u32) -> SubmittedOperation {
        let operation = Operation { dir: ROOT, ..Operation::on(kind, Slot(file), Buffer::empty()) };
        SubmittedOperation { operation, due: Nanos(0) }
    }

    const OPEN: OpKind = OpKind::Open(Open::READ);

    #[test]
    fn slots_keep_order_and_others_do_not_wait_for_them() {
        let mut order = SlotOrder::new(4);
        let mut ready = Vec::new();
        let open = order.submit(job(OPEN, 1)).expect("nothing before it");
        assert!(order.submit(job(OpKind::Read, 1)).is_none(), "behind its open");
        assert!(order.submit(job(OpKind::Read, 1)).is_none());
        assert!(order.submit(job(OpKind::Close, 1)).is_none());
        assert!(order.submit(job(OPEN, 1)).is_none());
        assert!(order.submit(job(OPEN, 2)).is_some(), "another slot");
        assert!(order.submit(job(OpKind::Read, 9)).is_some(), "no such slot: the fault comes at once");
        order.finished(&open.operation, &mut ready);
        assert_eq!(ready.len(), 2, "both reads");
        let [first, second]: [SubmittedOperation; 2] = std::mem::take(&mut ready).try_into().expect("two");
        order.finished(&first.operation, &mut ready);
        assert!(ready.is_empty(), "the close waits for the second read");
        assert!(order.submit(job(OpKind::Read, 1)).is_none(), "behind the close and the open");
        order.finished(&second.operation, &mut ready);
        for expected in [OpKind::Close, OPEN, OpKind::Read] {
            assert_eq!(ready.len(), 1);
            let next = ready.remove(0);
            assert_eq!(next.operation.kind, expected);
            order.finished(&next.operation, &mut ready);
        }
        assert!(ready.is_empty());
    }

    #[test]
    fn a_directory_stays_open_while_names_are_looked_up_in_it() {
        let mut order = SlotOrder::new(4);
        let mut inside = job(OpKind::Stat, 0);
        inside.operation.dir = Slot(3);
        let inside = order.submit(inside).expect("free");
        assert!(order.submit(job(OpKind::Close, 3)).is_none());
        let mut ready = Vec::new();
        order.finished(&inside.operation, &mut ready);
        assert_eq!(ready.len(), 1);
    }
}
