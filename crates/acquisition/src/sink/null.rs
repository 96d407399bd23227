//! Acknowledges every frame without storing it: what the ring and the stages cost by themselves.

use nilometer_model::Nanos;
use nilometer_storage::{Completion, Errno, OpKind, Operation, ROOT};

use super::{Sink, Stored};
use crate::{Due, Frame, Packed};

/// See the module. Drive it with a null engine: its operations have no file.
#[derive(Debug, Default)]
pub struct NullSink {
    waiting: Option<Frame>,
    flying: Vec<(u64, Nanos, Option<Box<Packed>>)>,
    finished: bool,
}

impl Sink for NullSink {
    fn has_room(&self) -> bool {
        self.waiting.is_none()
    }

    fn submit(&mut self, frame: Frame) {
        self.waiting = Some(frame);
    }

    fn next(&mut self, _now: Nanos) -> Option<(Operation, Nanos)> {
        let Frame { number, due, data, packed } = self.waiting.take()?;
        self.flying.push((number, due, packed));
        let length = data.len() as u32;
        // The number travels as the offset.
        Some((
            Operation { kind: OpKind::Write, file: ROOT, dir: ROOT, length, offset: number, buffer: data },
            due,
        ))
    }

    fn completed(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno> {
        let Operation { offset, buffer, .. } = completion.operation;
        let at = self.flying.iter().position(|(number, ..)| *number == offset);
        let (number, due, packed) = self.flying.swap_remove(at.expect("what completes was issued"));
        stored.acknowledged.push(Frame { number, due, data: buffer, packed });
        Ok(())
    }

    fn is_full(&self) -> bool {
        false
    }

    fn finish(&mut self, _due: Option<Due>) {
        self.finished = true;
    }

    fn is_finished(&self) -> bool {
        self.finished && self.waiting.is_none() && self.flying.is_empty()
    }

    fn abandon(&mut self) -> Vec<Frame> {
        self.waiting.take().into_iter().collect()
    }
}
