//! Reads and writes of an open file: an object, or a growing row of objects.

use nilometer_storage::Errno;

use super::{
    super::{
        bucket::Asked,
        row::{PieceRange, RowPiece, RowStep, SharedRow},
    },
    Job, ObjectAccess, ObjectFile, S3Client, part_at,
};
use crate::{
    client::{Flight, Reply},
    growing::GrowStep,
    http::{HttpAnswer, HttpBody, HttpMethod},
};

impl S3Client {
    /// Reads from an object, or from a piece of a row.
    pub(super) fn read(&mut self, file: &ObjectFile, flight: Flight) {
        let offset = flight.operation.offset;
        let length = u64::from(flight.operation.length);
        if length == 0 {
            return self.over(flight, Ok(Reply::Done(0)));
        }
        if matches!(file.access, ObjectAccess::ReadRow) {
            let range = PieceRange::of(&file.key, offset, length);
            let key = range.key.clone();
            let asked = ranged(&key, range.offset, range.length);
            return self.ask(Job::ReadPiece(range), asked, Some(flight));
        }
        self.ask(Job::Read, ranged(&file.key, offset, length), Some(flight));
    }

    /// Carries out the next steps of a row of objects.
    fn take_grow_steps(&mut self, row: &SharedRow, steps: Vec<GrowStep>) {
        for step in steps {
            match step {
                GrowStep::Over(flight, result) => self.over(flight, result.map(Reply::Done)),
                GrowStep::Add(flight) => self.put_piece(row, flight),
            }
        }
    }

    fn put_piece(&mut self, row: &SharedRow, flight: Flight) {
        let RowPiece { key, bytes, is_new } = row.borrow_mut().next_piece(&flight);
        let mut asked = Asked::object(HttpMethod::Put, &key);
        asked.headers.extend(is_new.then(|| "If-None-Match: *".into()));
        asked.body = HttpBody::Bytes(bytes);
        self.ask(Job::Piece(row.clone()), asked, Some(flight));
    }

    pub(super) fn piece_put(&mut self, row: &SharedRow, flight: Flight, outcome: Result<(), Errno>) {
        let step = row.borrow_mut().put(flight, outcome);
        match step {
            RowStep::More(flight) => self.put_piece(row, flight),
            RowStep::Over(steps) => self.take_grow_steps(row, steps),
        }
    }

    /// Syncs or closes a file.
    pub(super) fn end(&mut self, access: &ObjectAccess, flight: Flight) {
        match access {
            ObjectAccess::Read | ObjectAccess::ReadRow => self.over(flight, Ok(Reply::Done(0))),
            ObjectAccess::Write(upload) => {
                let steps = upload.borrow_mut().end(flight);
                self.take_steps(upload, steps);
            }
            ObjectAccess::Grow(row) => {
                let steps = row.borrow_mut().take(flight);
                self.take_grow_steps(row, steps);
            }
        }
    }

    pub(super) fn write(&mut self, access: &ObjectAccess, flight: Flight) {
        match access {
            ObjectAccess::Read | ObjectAccess::ReadRow => self.over(flight, Err(Errno::EBADF)),
            ObjectAccess::Write(upload) => {
                let steps = upload.borrow_mut().write(flight);
                self.take_steps(upload, steps);
            }
            ObjectAccess::Grow(row) => {
                let steps = row.borrow_mut().take(flight);
                self.take_grow_steps(row, steps);
            }
        }
    }
}

/// Makes a request for `length` bytes of an object.
fn ranged(key: &str, offset: u64, length: u64) -> Asked<'_> {
    let mut asked = Asked::object(HttpMethod::Get, key);
    asked.headers.push(format!("Range: bytes={offset}-{}", offset.saturating_add(length - 1)));
    asked
}

/// Checks the bytes read from a piece: a part of it, or all of it if the read begins at its start.
pub(super) fn piece_of(range: &PieceRange, answer: &HttpAnswer) -> Result<Reply<ObjectFile>, Errno> {
    let read = Reply::Done(answer.moved as u32);
    match answer.status {
        206 => part_at(range.offset, answer).map(|()| read),
        _ if range.offset == 0 => Ok(read),
        _ => Err(Errno::EIO),
    }
}
