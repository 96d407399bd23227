//! Values that belong to frames and arrive separately: motors, monitors, or user data of an image. They are
//! joined by the frame's number, whichever arrives first.
//!
//! ```text
//! image messages (times, user data) ---+
//! ZeroMQ, JSON a message --------------+-> JoinedValues -> sink: columns of the file, when the frame is there
//! a file or a pipe, JSON a line -------+        |               or when the file is closed
//!                                               +-------> put_late: into files that are closed, in place
//! ```
//!
//! A value that arrives before its frame waits here, within limits. The layout of the files decides which
//! names have a column. Values of other names are kept until their file is closed, and become datasets of
//! their own there.

mod destination;
mod join_plan;
mod message;
mod names;
mod reader;
mod state;
mod tally;
#[cfg(test)]
mod tests;

pub use destination::NamedDataset;
pub use destination::{DatasetFrames, DatasetTally};
pub use reader::{MetadataReader, MetadataSource};
pub use tally::{JoinRefusal, JoinedTally};

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nilometer_hdf5::{ColumnValue, tree::ColumnElement};
use nilometer_recording::Ranges;

pub use join_plan::JoinPlan;
use message::JoinedMessage;
pub use message::values_of_user_data;
pub use names::{JoinedColumn, NamedValue};
use state::{JoinedState, taken_out};

/// The values to be joined. Their sources and the writers of files share it.
#[derive(Debug, Default)]
pub struct JoinedValues {
    state: Mutex<JoinedState>,
    /// True if there is no source of values, so that writers do not wait for any.
    without_source: bool,
}

impl JoinedValues {
    /// Makes a store without sources: frames get no values from it.
    pub fn without_source() -> Self {
        JoinedValues { without_source: true, ..JoinedValues::default() }
    }

    /// Returns true if values may arrive.
    pub fn may_come(&self) -> bool {
        !self.without_source
    }

    fn lock(&self) -> MutexGuard<'_, JoinedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message that belongs to an image by its number: `{"frame": 12, "SampleAngle": 1.5}`.
    ///
    /// Returns false if it is invalid, and counts it as refused.
    pub fn put_message(&self, bytes: &[u8]) -> bool {
        let mut state = self.lock();
        match JoinedMessage::parse(bytes) {
            Ok(message) => {
                state.tally.messages += 1;
                for (name, said) in &message.values {
                    if !state.refuse_reserved(message.frame, name) {
                        state.put_said(message.frame, name, said);
                    }
                }
                true
            }
            Err(fault) => {
                state.refuse(JoinRefusal::Malformed, fault);
                false
            }
        }
    }

    /// Takes the user data of an image, as far as they are numbers and texts with names.
    pub fn put_user_data(&self, image: u64, values: &[(String, ColumnValue)]) {
        let mut state = self.lock();
        for (name, value) in values {
            if !state.refuse_reserved(image, name) {
                state.put(image, name, value.clone());
            }
        }
    }

    /// Takes the values of an image that its message contains. Values of names without a place are ignored.
    pub fn put_of_image(&self, image: u64, values: &[(&str, Option<f64>)]) {
        let mut state = self.lock();
        for (name, number) in values {
            if let (Some(number), true) = (number, state.by_name.contains_key(*name)) {
                state.put(image, name, ColumnValue::Fraction(*number));
            }
        }
    }

    /// Takes the time when the series began, from a message of its detector.
    pub fn put_series_date(&self, date: &str) {
        self.lock().series_date.get_or_insert_with(|| date.to_owned());
    }

    /// When the series began, if the detector sent it.
    pub fn series_date(&self) -> Option<String> {
        self.lock().series_date.clone()
    }

    /// Names so far, each with the type of its first value.
    pub fn names(&self) -> Vec<(String, ColumnElement)> {
        self.lock().names.iter().map(|name| (name.name.clone(), name.element)).collect()
    }

    /// Sets the layout of the files.
    pub fn begin(&self, plan: JoinPlan) {
        self.lock().begin(plan);
    }

    /// The place of each name that has a column.
    pub fn columns(&self) -> Vec<JoinedColumn> {
        let state = self.lock();
        let places = state.names.iter().enumerate().filter(|(_, name)| name.has_column);
        places.map(|(place, name)| JoinedColumn { key: name.name.clone(), name: place }).collect()
    }

    /// Takes the values of a frame for columns, which the caller writes.
    pub fn take(&self, frame: u64) -> Vec<NamedValue> {
        self.lock().take(frame)
    }

    /// The same for the chosen ones of these frames.
    pub fn take_those(&self, frames: Range<u64>, chosen: &Ranges) -> Vec<(u64, NamedValue)> {
        let mut state = self.lock();
        let those: Vec<u64> = state
            .waiting
            .range(frames)
            .map(|(frame, _)| *frame)
            .filter(|frame| chosen.contains(*frame))
            .collect();
        let mut taken = Vec::new();
        for frame in those {
            taken.extend(state.take(frame).into_iter().map(|value| (frame, value)));
        }
        taken
    }

    /// Takes all values of these frames, with or without columns, when their file is closed.
    pub fn take_all(&self, frames: Range<u64>) -> Vec<(u64, NamedValue)> {
        let mut state = self.lock();
        let JoinedState { waiting, kept, .. } = &mut *state;
        let taken: Vec<_> =
            [waiting, kept].into_iter().flat_map(|some| taken_out(some, frames.clone())).collect();
        state.waiting_room -= taken.iter().map(|(_, value)| value.room()).sum::<usize>();
        for (_, value) in &taken {
            state.joined(std::slice::from_ref(value));
        }
        taken
    }

    /// Takes all values that still wait.
    pub fn take_rest(&self) -> Vec<(u64, NamedValue)> {
        let mut state = self.lock();
        state.waiting_room = 0;
        let JoinedState { waiting, kept, .. } = &mut *state;
        [waiting, kept].into_iter().flat_map(|some| taken_out(some, 0..u64::MAX)).collect()
    }

    /// The name at this place.
    pub fn name(&self, place: usize) -> String {
        self.lock().names[place].name.clone()
    }

    /// Returns true if the name has a column.
    pub fn has_column(&self, place: usize) -> bool {
        self.lock().names[place].has_column
    }

    /// Returns true if values of the name may arrive after their frames.
    pub fn is_awaited(&self, place: usize) -> bool {
        self.lock().names[place].awaited
    }

    /// The group for values of names without a place, if they get one.
    pub fn others(&self) -> Option<String> {
        self.lock().plan.as_ref().and_then(|plan| plan.others.clone())
    }

    /// Counts values that were written after their file was closed.
    pub fn count_joined(&self, values: &[NamedValue]) {
        self.lock().joined(values);
    }

    /// Counts taken values of a name for which their file has no room.
    pub fn refuse_all(&self, place: usize, count: u64) {
        let mut state = self.lock();
        let fault =
            format!("`{}` of {count} frames: no room in a file that is closed", state.names[place].name);
        state.tally.refuse(JoinRefusal::NoRoom, count, fault);
        state.tally.joined -= count;
    }

    /// Counts values that are joined to no frame.
    pub fn refuse(&self, why: JoinRefusal, fault: String) {
        self.lock().refuse(why, fault);
    }

    /// Number of first values so far, counted once for each name and frame: senders may repeat all values.
    pub fn came_count(&self) -> u64 {
        self.lock().came_count
    }

    /// Returns true if each awaited name certainly has a value for each of the first `frames` frames.
    pub fn is_complete(&self, frames: u64) -> bool {
        let state = self.lock();
        let mut awaited = state.names.iter().filter(|name| name.awaited).peekable();
        awaited.peek().is_some() && awaited.all(|name| name.came.contains_all(0..frames))
    }

    /// The counters so far.
    pub fn tally(&self) -> JoinedTally {
        let state = self.lock();
        let mut tally = state.tally.clone();
        tally.datasets = state.destination.as_ref().map(|destination| destination.tally.clone());
        tally
    }
}
