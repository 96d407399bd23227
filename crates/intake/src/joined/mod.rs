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
mod message;
mod names;
mod reader;
mod tally;
#[cfg(test)]
mod tests;

pub use destination::NamedDataset;
pub use destination::{DatasetFrames, DatasetTally};
pub use reader::{MetadataReader, MetadataSource};
pub use tally::{JoinRefusal, JoinedTally};

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nilometer_hdf5::{ColumnValue, fitting_text, layout::FrameDatasets, tree::ColumnElement};
use nilometer_recording::Ranges;

use destination::DestinationState;
pub use message::values_of_user_data;
use message::{JoinedMessage, SaidValue};
pub use names::{JoinedColumn, NamedValue};
use names::{JoinedName, is_reserved};

/// Maximum number of values that wait for their frames. A value takes some 150 bytes for one frame, so these
/// are 150 MB.
const WAITING_MAX: usize = 1 << 20;
/// Maximum number of frame ranges remembered for all names, which take some 50 MB.
const RANGES_MAX: usize = 1 << 20;
/// Maximum number of names.
const NAMES_MAX: usize = 1000;
/// Maximum length of a name in bytes.
const NAME_BYTES_MAX: usize = 200;

/// How values are joined to the frames of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinPlan {
    /// Names with a column or another place from the start, and the type of their values.
    pub columns: Vec<(String, ColumnElement)>,
    /// Names among these whose values arrive with the images.
    pub of_images: Vec<String>,
    /// The group for values of other names, if they get a place.
    pub others: Option<String>,
    /// Frames of an image. A value of an image applies to all of them.
    pub channels: u64,
    /// Number of images, if known.
    pub images: Option<u64>,
    /// The datasets of frames, if there are several.
    pub datasets: Option<FrameDatasets>,
}

/// Values by the number of their frame.
type ByFrame = BTreeMap<u64, Vec<NamedValue>>;

#[derive(Debug, Default)]
struct JoinedState {
    names: Vec<JoinedName>,
    by_name: HashMap<String, usize>,
    /// Values with a column, by frame. Before the layout is known, all values by image.
    waiting: ByFrame,
    /// Values without a column, until their file is closed.
    kept: ByFrame,
    /// How much both maps use of [`WAITING_MAX`].
    waiting_room: usize,
    /// Number of first values, counted once for each name and frame.
    came_count: u64,
    /// Number of frame ranges remembered for all names.
    ranges: usize,
    plan: Option<JoinPlan>,
    destination: Option<DestinationState>,
    tally: JoinedTally,
    /// When the series began, according to its detector.
    series_date: Option<String>,
}

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

impl JoinedState {
    fn refuse(&mut self, why: JoinRefusal, fault: String) {
        self.tally.refuse(why, 1, fault);
    }

    fn put_said(&mut self, image: u64, name: &str, said: &SaidValue) {
        match said {
            SaidValue::Value(value) => {
                if let Some(place) = self.put(image, name, value.clone()) {
                    self.names[place].awaited = true;
                }
            }
            SaidValue::Nothing => {}
            SaidValue::Other => {
                self.refuse(
                    JoinRefusal::NoValue,
                    format!("`{name}` of frame {image} is no number and no text"),
                );
            }
        }
    }

    /// Stores a value and returns the place of its name. `None` if it was refused.
    fn put(&mut self, image: u64, name: &str, said: ColumnValue) -> Option<usize> {
        let plan = self.plan.as_ref();
        if plan.and_then(|plan| plan.images).is_some_and(|images| image >= images) {
            self.refuse(JoinRefusal::UnknownFrame, format!("there is no frame {image}"));
            return None;
        }
        let channels = plan.map_or(1, |plan| plan.channels.max(1));
        let Some(first) = image.checked_mul(channels).filter(|first| *first <= u64::MAX - channels) else {
            self.refuse(JoinRefusal::UnknownFrame, format!("there is no frame {image}"));
            return None;
        };
        let place = self.place_of(name, &said)?;
        let said = self.suited(place, image, said)?;
        let value = NamedValue { name: place, said };
        let room = (channels as usize).saturating_mul(value.room());
        if self.waiting_room.saturating_add(room) > WAITING_MAX {
            self.refuse(JoinRefusal::NoRoom, format!("{WAITING_MAX} values wait for their frames"));
            return None;
        }
        for frame in first..first + channels {
            self.keep(frame, value.clone());
            self.remember(place, frame);
        }
        Some(place)
    }

    /// Remembers that a frame has a value of this name. Beyond the memory limit it never counts as complete.
    fn remember(&mut self, place: usize, frame: u64) {
        let came = &mut self.names[place].came;
        if self.ranges < RANGES_MAX && !came.contains(frame) {
            self.came_count += 1;
            if let Some(destination) = &mut self.destination {
                destination.came(place, frame);
            }
            let before = came.pieces();
            came.add(frame);
            self.ranges = self.ranges + came.pieces() - before;
        }
    }

    /// Refuses a name that is reserved for the recorder or the detector.
    fn refuse_reserved(&mut self, image: u64, name: &str) -> bool {
        let is_reserved = is_reserved(name);
        if is_reserved {
            let fault = format!("`{name}` of frame {image} is reserved for the recorder or the detector");
            self.refuse(JoinRefusal::ReservedName, fault);
        }
        is_reserved
    }

    /// Keeps a value for a frame. The later of two values replaces the earlier.
    fn keep(&mut self, frame: u64, value: NamedValue) {
        let has_place = self.plan.is_none() || self.names[value.name].has_column;
        let some = if has_place { &mut self.waiting } else { &mut self.kept };
        let waiting = some.entry(frame).or_default();
        self.waiting_room += value.room();
        if let Some(there) = waiting.iter_mut().find(|there| there.name == value.name) {
            self.waiting_room -= there.room();
            *there = value;
        } else {
            waiting.push(value);
        }
    }

    /// The place of a name. A new name gets a place, if one is left, with the type of this first value.
    fn place_of(&mut self, name: &str, first: &ColumnValue) -> Option<usize> {
        if let Some(place) = self.by_name.get(name) {
            return Some(*place);
        }
        let taken = self.plan.as_ref().is_some_and(|plan| plan.others.is_none());
        let is_none = name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(['/', '\0']);
        if taken || is_none || matches!(name, "." | "..") || self.names.len() >= NAMES_MAX {
            let shown: String = name.chars().take(40).collect();
            self.refuse(JoinRefusal::UnknownName, format!("`{shown}` has no place in the file"));
            return None;
        }
        let is_text = matches!(first, ColumnValue::Text(_));
        let element = if is_text { ColumnElement::TEXT } else { ColumnElement::FLOAT };
        Some(self.add_name(name, element, false))
    }

    fn add_name(&mut self, name: &str, element: ColumnElement, has_column: bool) -> usize {
        let made = JoinedName {
            name: name.into(),
            element,
            has_column,
            awaited: false,
            of_detector: false,
            came: Ranges::default(),
        };
        self.names.push(made);
        self.by_name.insert(name.into(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// Converts a value to the type of its column. Before the layout is known, it only cuts values that no
    /// column can hold.
    fn suited(&mut self, place: usize, image: u64, said: ColumnValue) -> Option<ColumnValue> {
        let JoinedName { name, element, .. } = &self.names[place];
        let is_planned = self.plan.is_some();
        match said {
            ColumnValue::Text(text) if element.is_text() || !is_planned => Some(self.fitting(&text)),
            said if !is_planned => Some(said),
            ColumnValue::Text(_) => {
                let fault = format!("`{name}` of frame {image} is a text");
                self.refuse(JoinRefusal::NoNumber, fault);
                None
            }
            number if element.is_text() => Some(number.as_text()),
            ColumnValue::Fraction(number) if *element == ColumnElement::INT => {
                if number.fract() == 0.0 && number.abs() < 2_f64.powi(63) {
                    return Some(ColumnValue::Whole(number as i64));
                }
                let fault = format!("`{name}` of frame {image} is {number}");
                self.refuse(JoinRefusal::NoWholeNumber, fault);
                None
            }
            said => Some(said),
        }
    }

    /// The beginning of a text that fits into a column.
    fn fitting(&mut self, text: &str) -> ColumnValue {
        let fitting = fitting_text(text);
        self.tally.cut += u64::from(fitting.len() < text.len());
        fitting.into()
    }

    fn begin(&mut self, plan: JoinPlan) {
        for (name, element) in &plan.columns {
            let place = match self.by_name.get(name) {
                Some(place) => *place,
                None => self.add_name(name, *element, true),
            };
            self.names[place].element = *element;
            self.names[place].has_column = true;
            self.names[place].of_detector = plan.of_images.contains(name);
            self.names[place].awaited |= !self.names[place].of_detector;
        }
        self.destination = plan.datasets.clone().map(|datasets| {
            let name = datasets.destination.as_ref().and_then(|name| self.by_name.get(name));
            DestinationState::new(datasets, name.copied())
        });
        self.plan = Some(plan);
        // Earlier values are put once more, now that the layout is known.
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_room = 0;
        self.ranges = 0;
        for name in &mut self.names {
            name.came = Ranges::default();
        }
        for (image, values) in waiting {
            for NamedValue { name, said } in values {
                let has_place = self.names[name].has_column
                    || self.plan.as_ref().is_some_and(|plan| plan.others.is_some());
                let name = self.names[name].name.clone();
                if has_place {
                    self.put(image, &name, said);
                } else {
                    self.refuse(JoinRefusal::UnknownName, format!("`{name}` has no place in the file"));
                }
            }
        }
    }

    fn take(&mut self, frame: u64) -> Vec<NamedValue> {
        let taken = self.waiting.remove(&frame).unwrap_or_default();
        self.waiting_room -= taken.iter().map(NamedValue::room).sum::<usize>();
        self.joined(&taken);
        taken
    }

    fn joined(&mut self, values: &[NamedValue]) {
        for JoinedName { name, of_detector, .. } in values.iter().map(|value| &self.names[value.name]) {
            self.tally.joined += u64::from(!of_detector);
            if !of_detector && !self.tally.names.contains(name) {
                self.tally.names.push(name.clone());
            }
        }
    }
}

/// Removes and returns the values of these frames.
fn taken_out(some: &mut ByFrame, frames: Range<u64>) -> Vec<(u64, NamedValue)> {
    let those: Vec<u64> = some.range(frames).map(|(frame, _)| *frame).collect();
    let mut taken = Vec::new();
    for frame in those {
        let values = some.remove(&frame).unwrap_or_default();
        taken.extend(values.into_iter().map(|value| (frame, value)));
    }
    taken
}
