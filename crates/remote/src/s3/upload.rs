//! An object that is being written: small ones at once, larger ones in parts, several at the same time. It
//! appears as a whole when it is synced or closed, and not before.
//!
//! ```text
//! write -> collected until a part is full --> part 1 ----.
//! write -> of 5 MiB or more: a part of its own -> part 2 --+-> sync or close: the last part, then all put together
//! ```
//!
//! A write that fills a part is done when that part has arrived. Other writes are done once they are in the
//! buffer.

use std::{cell::RefCell, rc::Rc};

use nilometer_storage::Errno;

use crate::{client::Flight, http::HttpBody};

/// The smallest part that stores accept, except for the last one.
const LEAST_PART: usize = 5 << 20;
/// Size of the parts that small writes are collected into.
pub(super) const PART: usize = 8 << 20;
/// Maximum number of parts of an object. Part sizes grow after each tenth of them, so that an object can have
/// 440 GiB.
const MOST_PARTS: usize = 10_000;

/// An upload, shared by the open file and its requests.
pub(super) type SharedUpload = Rc<RefCell<Upload>>;

/// The state of an object that is being written.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) key: String,
    collected: Vec<u8>,
    /// The offset at which the next write must begin.
    next: u64,
    id: UploadId,
    /// The store's tag of each part.
    tags: Vec<String>,
    under_way: usize,
    waiting: Vec<PartUpload>,
    /// Operations that wait for the whole object.
    ending: Vec<Flight>,
    outcome: Option<Result<(), Errno>>,
    /// True once no operation waits for it. An id that arrives later is discarded at once.
    is_abandoned: bool,
}

/// The store's id of an upload.
#[derive(Debug, PartialEq, Eq)]
enum UploadId {
    NotNeeded,
    Asked,
    Known(String),
}

/// A part being sent.
#[derive(Debug)]
pub(super) struct PartUpload {
    /// The part's number, from 1.
    pub(super) number: usize,
    pub(super) flight: Option<Flight>,
    pub(super) body: HttpBody,
}

/// The caller's next step.
#[derive(Debug)]
pub(super) enum UploadStep {
    /// The operation is complete.
    Over(Flight, Result<u32, Errno>),
    /// Ask the store for an upload id.
    AskId,
    /// Send a part.
    Send(PartUpload),
    /// Put the whole object at once.
    Put(Vec<u8>),
    /// Combine the parts.
    PutTogether(String),
    /// Discard the parts.
    Abandon(String),
}

impl Upload {
    pub(super) fn new(key: String) -> SharedUpload {
        Rc::new(RefCell::new(Upload {
            key,
            collected: Vec::new(),
            next: 0,
            id: UploadId::NotNeeded,
            tags: Vec::new(),
            under_way: 0,
            waiting: Vec::new(),
            ending: Vec::new(),
            outcome: None,
            is_abandoned: false,
        }))
    }

    /// Returns the size of the part that is being collected.
    fn part(&self) -> usize {
        PART * (1 + self.tags.len() / (MOST_PARTS / 10))
    }

    /// Writes the bytes in the flight's buffer.
    pub(super) fn write(&mut self, mut flight: Flight) -> Vec<UploadStep> {
        let memory = flight.memory();
        let length = memory.length as usize;
        if let Err(errno) = self.takes(memory.offset) {
            return vec![UploadStep::Over(flight, Err(errno))];
        }
        self.next += length as u64;
        if self.collected.is_empty() && length >= LEAST_PART.max(self.part() / 2) {
            return self.send(Some(flight), HttpBody::Buffer(length));
        }
        let full = self.part();
        if self.collected.capacity() == 0 && length < full {
            self.collected.reserve_exact(if self.tags.is_empty() { length } else { full });
        }
        self.collected.extend_from_slice(&flight.operation.buffer[..length]);
        if self.collected.len() < full {
            return vec![UploadStep::Over(flight, Ok(memory.length))];
        }
        let collected = std::mem::take(&mut self.collected);
        self.send(Some(flight), HttpBody::Bytes(collected))
    }

    /// Checks that a write at this offset is possible now.
    fn takes(&self, offset: u64) -> Result<(), Errno> {
        match self.outcome {
            Some(Err(errno)) => Err(errno),
            // The object is complete, so its bytes can't be changed.
            Some(Ok(())) => Err(Errno::EOPNOTSUPP),
            None if offset != self.next || !self.ending.is_empty() => Err(Errno::EOPNOTSUPP),
            None if self.tags.len() >= MOST_PARTS => Err(Errno(libc::EFBIG)),
            None => Ok(()),
        }
    }

    fn send(&mut self, flight: Option<Flight>, body: HttpBody) -> Vec<UploadStep> {
        self.tags.push(String::new());
        let part = PartUpload { number: self.tags.len(), flight, body };
        match self.id {
            UploadId::Known(_) => {
                self.under_way += 1;
                vec![UploadStep::Send(part)]
            }
            UploadId::Asked => {
                self.waiting.push(part);
                Vec::new()
            }
            UploadId::NotNeeded => {
                self.waiting.push(part);
                self.id = UploadId::Asked;
                vec![UploadStep::AskId]
            }
        }
    }

    /// Returns the upload id of the parts, if there is one.
    pub(super) fn id(&self) -> Option<&str> {
        match &self.id {
            UploadId::Known(id) => Some(id),
            _ => None,
        }
    }

    /// Returns true if a store still has parts that were not combined.
    pub(super) fn has_parts_left(&self) -> bool {
        self.id().is_some() && self.outcome != Some(Ok(()))
    }

    /// Takes the store's answer to [`UploadStep::AskId`].
    pub(super) fn named(&mut self, id: Result<String, Errno>) -> Vec<UploadStep> {
        let waiting = std::mem::take(&mut self.waiting);
        match id {
            Ok(id) if self.is_abandoned => {
                self.id = UploadId::NotNeeded;
                let flights = waiting.into_iter().filter_map(|part| part.flight);
                let over = |flight| UploadStep::Over(flight, Err(Errno(libc::ECANCELED)));
                flights.map(over).chain([UploadStep::Abandon(id)]).collect()
            }
            Ok(id) => {
                self.id = UploadId::Known(id);
                self.under_way += waiting.len();
                waiting.into_iter().map(UploadStep::Send).collect()
            }
            Err(errno) => {
                self.outcome.get_or_insert(Err(errno));
                let flights = waiting.into_iter().filter_map(|part| part.flight);
                let over = |flight| UploadStep::Over(flight, Err(errno));
                let mut steps: Vec<_> = flights.map(over).collect();
                steps.extend(self.go_on());
                steps
            }
        }
    }

    /// Takes the store's answer to a part.
    pub(super) fn sent(
        &mut self,
        number: usize,
        flight: Option<Flight>,
        tag: Result<String, Errno>,
    ) -> Vec<UploadStep> {
        self.under_way -= 1;
        let outcome = match tag {
            Ok(tag) => {
                self.tags[number - 1] = tag;
                Ok(())
            }
            Err(errno) => {
                self.outcome.get_or_insert(Err(errno));
                Err(errno)
            }
        };
        let over = flight.map(|flight| {
            let length = flight.operation.length;
            UploadStep::Over(flight, outcome.map(|()| length))
        });
        over.into_iter().chain(self.go_on()).collect()
    }

    /// Syncs or closes the object, which must then exist.
    pub(super) fn end(&mut self, flight: Flight) -> Vec<UploadStep> {
        if let Some(outcome) = self.outcome.filter(|_| self.under_way == 0 && self.waiting.is_empty()) {
            return vec![UploadStep::Over(flight, outcome.map(|()| 0))];
        }
        self.ending.push(flight);
        if self.ending.len() > 1 {
            return Vec::new();
        }
        let rest = std::mem::take(&mut self.collected);
        if self.id == UploadId::NotNeeded {
            return vec![UploadStep::Put(rest)];
        }
        let mut steps = if rest.is_empty() { Vec::new() } else { self.send(None, HttpBody::Bytes(rest)) };
        steps.extend(self.go_on());
        steps
    }

    /// Returns the next steps once no part is being sent.
    fn go_on(&mut self) -> Vec<UploadStep> {
        if self.under_way > 0
            || !self.waiting.is_empty()
            || self.id == UploadId::Asked && self.outcome.is_none()
        {
            return Vec::new();
        }
        match self.outcome {
            Some(Err(errno)) => {
                let mut steps = self.over(Err(errno));
                steps.extend(self.abandoned());
                steps
            }
            None if !self.ending.is_empty() => vec![UploadStep::PutTogether(self.in_order())],
            _ => Vec::new(),
        }
    }

    /// Takes the store's answer to the whole object.
    pub(super) fn put(&mut self, outcome: Result<(), Errno>) -> Vec<UploadStep> {
        self.outcome = Some(outcome);
        let mut steps = self.over(outcome);
        if outcome.is_err() {
            steps.extend(self.abandoned());
        }
        steps
    }

    fn over(&mut self, outcome: Result<(), Errno>) -> Vec<UploadStep> {
        let result = outcome.map(|()| 0);
        self.ending.drain(..).map(|flight| UploadStep::Over(flight, result)).collect()
    }

    /// Returns the step that discards unused parts, once. If the store has not sent the id yet, the id is
    /// discarded when it arrives.
    pub(super) fn abandoned(&mut self) -> Option<UploadStep> {
        self.is_abandoned = true;
        if !self.has_parts_left() {
            return None;
        }
        match std::mem::replace(&mut self.id, UploadId::NotNeeded) {
            UploadId::Known(id) => Some(UploadStep::Abandon(id)),
            _ => None,
        }
    }

    /// Lists the parts in order, in the form that the store requires.
    fn in_order(&self) -> String {
        let mut text = "<CompleteMultipartUpload>".to_owned();
        for (place, tag) in self.tags.iter().enumerate() {
            let tag = tag.replace('&', "&amp;").replace('<', "&lt;");
            let number = (place + 1).to_string();
            text.extend(["<Part><PartNumber>", &number, "</PartNumber><ETag>", &tag, "</ETag></Part>"]);
        }
        text + "</CompleteMultipartUpload>"
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;
    use nilometer_storage::{Buffer, OpKind, Operation, Slot};

    use super::*;

    fn flight(offset: u64, length: usize) -> Flight {
        let operation = Operation::write(Slot(1), offset, length as u32, Buffer::alone(length));
        Flight { operation, due: Nanos(0), issued: Nanos(0) }
    }

    fn closing() -> Flight {
        Flight {
            operation: Operation::on(OpKind::Close, Slot(1), Buffer::alone(1)),
            due: Nanos(0),
            issued: Nanos(0),
        }
    }

    fn results(steps: Vec<UploadStep>) -> Vec<Result<u32, Errno>> {
        let over = |step| match step {
            UploadStep::Over(_, result) => Some(result),
            _ => None,
        };
        steps.into_iter().filter_map(over).collect()
    }

    #[test]
    fn small_objects_are_put_at_once() {
        let upload = Upload::new("k".into());
        let mut upload = upload.borrow_mut();
        assert_eq!(results(upload.write(flight(0, 100))), [Ok(100)]);
        assert_eq!(results(upload.write(flight(300, 100))), [Err(Errno::EOPNOTSUPP)], "a hole");
        let steps = upload.end(closing());
        assert!(matches!(&steps[..], [UploadStep::Put(bytes)] if bytes.len() == 100), "{steps:?}");
        assert_eq!(results(upload.put(Ok(()))), [Ok(0)]);
        assert_eq!(results(upload.end(closing())), [Ok(0)], "it is there already");
        assert_eq!(results(upload.write(flight(100, 1))), [Err(Errno::EOPNOTSUPP)], "behind the end");
    }

    #[test]
    fn parts_wait_for_a_name_and_the_end_for_all_parts() {
        let upload = Upload::new("k".into());
        let mut upload = upload.borrow_mut();
        assert!(matches!(&upload.write(flight(0, PART))[..], [UploadStep::AskId]));
        assert!(upload.write(flight(PART as u64, PART)).is_empty(), "behind the first");
        assert_eq!(upload.named(Ok("id".into())).len(), 2, "both are sent");
        assert_eq!(results(upload.write(flight(2 * PART as u64, 3))), [Ok(3)]);
        let steps = upload.end(closing());
        assert!(matches!(&steps[..], [UploadStep::Send(part)] if part.number == 3), "{steps:?}");
        for number in [2, 3, 1] {
            let steps = upload.sent(number, None, Ok(format!("\"{number}\"")));
            assert_eq!(steps.len(), usize::from(number == 1), "the last to arrive");
            let ordered = |text: &str| text.find("\"1\"") < text.find("\"2\"");
            assert!(steps.iter().all(|step| matches!(step, UploadStep::PutTogether(text) if ordered(text))));
        }
        assert_eq!(results(upload.put(Ok(()))), [Ok(0)]);
    }

    #[test]
    fn a_part_that_fails_fails_the_object_and_parts_are_thrown_away() {
        let upload = Upload::new("k".into());
        let mut upload = upload.borrow_mut();
        upload.write(flight(0, PART));
        upload.named(Ok("id".into()));
        assert_eq!(results(upload.write(flight(PART as u64, 9))), [Ok(9)]);
        let steps = upload.sent(1, Some(flight(0, PART)), Err(Errno::EIO));
        assert!(
            matches!(&steps[..], [UploadStep::Over(_, Err(Errno::EIO)), UploadStep::Abandon(id)] if id == "id")
        );
        assert_eq!(results(upload.write(flight(PART as u64 + 9, 9))), [Err(Errno::EIO)]);
        assert_eq!(results(upload.end(closing())), [Err(Errno::EIO)], "and is said once more at its end");
    }

    #[test]
    fn no_name_is_a_fault_of_all_that_waited() {
        let upload = Upload::new("k".into());
        let mut upload = upload.borrow_mut();
        upload.write(flight(0, PART));
        assert!(upload.end(closing()).is_empty());
        assert_eq!(results(upload.named(Err(Errno::EACCES))), [Err(Errno::EACCES); 2]);
    }

    #[test]
    fn a_name_that_comes_when_nobody_waits_is_given_back() {
        let upload = Upload::new("k".into());
        let mut upload = upload.borrow_mut();
        assert!(matches!(&upload.write(flight(0, PART))[..], [UploadStep::AskId]));
        assert!(upload.abandoned().is_none(), "there is no name yet");
        let steps = upload.named(Ok("id".into()));
        assert!(
            matches!(&steps[..], [UploadStep::Over(_, Err(_)), UploadStep::Abandon(id)] if id == "id"),
            "{steps:?}"
        );
        assert!(!upload.has_parts_left());
    }
}
