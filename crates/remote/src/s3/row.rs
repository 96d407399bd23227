//! A growing file as a row of objects; see [`nilometer_storage::pieces`]. Each write replaces the last object.
//! After any failure either the earlier or the new one is there, and the rest of the row is untouched.

use std::{cell::RefCell, rc::Rc};

use nilometer_storage::{
    Errno,
    pieces::{PIECE, piece_name},
};

use crate::{
    client::Flight,
    growing::{GrowStep, Growing},
};

/// A row, shared by the open file and its requests.
pub(super) type SharedRow = Rc<RefCell<Row>>;

/// The state of a growing file.
#[derive(Debug)]
pub(super) struct Row {
    key: String,
    growing: Growing,
    /// The number of the last piece; `last` has its bytes.
    piece: u64,
    last: Vec<u8>,
    /// Bytes of the current write that pieces already contain.
    done: usize,
}

/// An object to put.
#[derive(Debug)]
pub(super) struct RowPiece {
    pub(super) key: String,
    pub(super) bytes: Vec<u8>,
    /// True if no object of this name may exist.
    pub(super) is_new: bool,
}

/// The next step after the answer to a piece.
#[derive(Debug)]
pub(super) enum RowStep {
    /// Put more of the same write.
    More(Flight),
    /// The write is complete, and these steps follow.
    Over(Vec<GrowStep>),
}

impl Row {
    pub(super) fn new(key: String) -> SharedRow {
        let row = Row { key, growing: Growing::default(), piece: 0, last: Vec::new(), done: 0 };
        Rc::new(RefCell::new(row))
    }

    /// Takes a write, a sync or a close.
    pub(super) fn take(&mut self, flight: Flight) -> Vec<GrowStep> {
        self.growing.take(flight)
    }

    /// Fills the last piece with bytes of the current write, and returns it.
    pub(super) fn next_piece(&mut self, flight: &Flight) -> RowPiece {
        let rest = &flight.operation.buffer[self.done..flight.operation.length as usize];
        let fits = rest.len().min(PIECE as usize - self.last.len());
        let is_new = self.last.is_empty();
        self.last.extend_from_slice(&rest[..fits]);
        self.done += fits;
        RowPiece { key: piece_name(&self.key, self.piece), bytes: self.last.clone(), is_new }
    }

    /// Takes the store's answer to a piece.
    pub(super) fn put(&mut self, flight: Flight, outcome: Result<(), Errno>) -> RowStep {
        if self.last.len() as u64 == PIECE {
            self.piece += 1;
            self.last.clear();
        }
        if outcome.is_ok() && self.done < flight.operation.length as usize {
            return RowStep::More(flight);
        }
        self.done = 0;
        RowStep::Over(self.growing.added(flight, outcome))
    }
}

/// The part of a read within one piece: the piece with the first byte, and the range in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PieceRange {
    pub(super) key: String,
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl PieceRange {
    /// Returns the range up to the end of that piece.
    pub(super) fn of(key: &str, offset: u64, length: u64) -> Self {
        let number = offset / PIECE;
        let within = offset % PIECE;
        PieceRange {
            key: piece_name(key, number),
            number,
            offset: within,
            length: length.min(PIECE - within),
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;
    use nilometer_storage::{Buffer, Operation, Slot};

    use super::*;

    fn write(offset: u64, length: usize) -> Flight {
        let operation = Operation::write(Slot(1), offset, length as u32, Buffer::alone(length));
        Flight { operation, due: Nanos(0), issued: Nanos(0) }
    }

    /// Returns the write to add now.
    fn begun(steps: Vec<GrowStep>) -> Flight {
        let add = |step| match step {
            GrowStep::Add(flight) => Some(flight),
            GrowStep::Over(..) => None,
        };
        steps.into_iter().find_map(add).expect("a write")
    }

    /// Adds `length` bytes, and returns the pieces put for them.
    fn pieces(row: &mut Row, offset: u64, length: usize) -> Vec<String> {
        let mut flight = begun(row.take(write(offset, length)));
        let mut pieces = Vec::new();
        loop {
            let piece = row.next_piece(&flight);
            pieces.push(format!("{} {} {}", piece.key, piece.bytes.len(), piece.is_new));
            match row.put(flight, Ok(())) {
                RowStep::More(more) => flight = more,
                RowStep::Over(_) => return pieces,
            }
        }
    }

    #[test]
    fn the_last_piece_is_put_again_until_it_is_full() {
        let row = Row::new("d/n.0.journal".into());
        let mut row = row.borrow_mut();
        assert_eq!(pieces(&mut row, 0, 64), ["d/n.0.journal 64 true"]);
        assert_eq!(pieces(&mut row, 64, 128), ["d/n.0.journal 192 false"]);
        let across = ["d/n.0.journal 65536 false", "d/n.0.journal.00000001 64 true"];
        assert_eq!(pieces(&mut row, 192, PIECE as usize - 128), across);
        let second = "d/n.0.journal.00000001 65536 false";
        assert_eq!(pieces(&mut row, PIECE + 64, PIECE as usize - 64), [second]);
        assert_eq!(pieces(&mut row, 2 * PIECE, 64), ["d/n.0.journal.00000002 64 true"]);
    }

    #[test]
    fn a_piece_that_is_not_taken_ends_the_row() {
        let row = Row::new("j".into());
        let mut row = row.borrow_mut();
        let flight = begun(row.take(write(0, PIECE as usize + 1)));
        row.next_piece(&flight);
        let RowStep::Over(steps) = row.put(flight, Err(Errno::EACCES)) else { panic!("nothing more is put") };
        assert!(matches!(&steps[..], [GrowStep::Over(_, Err(Errno::EACCES))]), "{steps:?}");
        assert!(matches!(&row.take(write(PIECE + 1, 1))[..], [GrowStep::Over(_, Err(Errno::EACCES))]));
    }

    #[test]
    fn a_read_ends_with_its_piece() {
        let of = |offset, length| PieceRange::of("j", offset, length);
        let range =
            |key: &str, number, offset, length| PieceRange { key: key.into(), number, offset, length };
        assert_eq!(of(0, 100), range("j", 0, 0, 100));
        assert_eq!(of(PIECE - 64, 100), range("j", 0, PIECE - 64, 64));
        assert_eq!(of(PIECE, 100), range("j.00000001", 1, 0, 100));
    }
}
