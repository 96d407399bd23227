//! The state of values that wait for their frames: their names, their places and the limits of their memory.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use nilometer_hdf5::{ColumnValue, fitting_text, tree::ColumnElement};
use nilometer_recording::Ranges;

use super::{
    destination::{DestinationState, NamedDataset},
    join_plan::JoinPlan,
    message::SaidValue,
    names::{JoinedName, NAME_BYTES_MAX, NAMES_MAX, NamedValue, RANGES_MAX, WAITING_MAX, is_reserved},
    tally::{JoinRefusal, JoinedTally},
};

/// Values by the number of their frame.
type ByFrame = BTreeMap<u64, Vec<NamedValue>>;

#[derive(Debug, Default)]
pub(super) struct JoinedState {
    pub(super) names: Vec<JoinedName>,
    pub(super) by_name: HashMap<String, usize>,
    /// Values with a column, by frame. Before the layout is known, all values by image.
    pub(super) waiting: ByFrame,
    /// Values without a column, until their file is closed.
    pub(super) kept: ByFrame,
    /// How much both maps use of [`WAITING_MAX`].
    pub(super) waiting_room: usize,
    /// Number of first values, counted once for each name and frame.
    pub(super) came_count: u64,
    /// Number of frame ranges remembered for all names.
    ranges: usize,
    pub(super) plan: Option<JoinPlan>,
    pub(super) destination: Option<DestinationState>,
    pub(super) tally: JoinedTally,
    /// When the series began, according to its detector.
    pub(super) series_date: Option<String>,
}

impl JoinedState {
    pub(super) fn refuse(&mut self, why: JoinRefusal, fault: String) {
        self.tally.refuse(why, 1, fault);
    }

    pub(super) fn put_said(&mut self, image: u64, name: &str, said: &SaidValue) {
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
    pub(super) fn put(&mut self, image: u64, name: &str, said: ColumnValue) -> Option<usize> {
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
    pub(super) fn refuse_reserved(&mut self, image: u64, name: &str) -> bool {
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

    pub(super) fn begin(&mut self, plan: JoinPlan) {
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

    pub(super) fn take(&mut self, frame: u64) -> Vec<NamedValue> {
        let taken = self.waiting.remove(&frame).unwrap_or_default();
        self.waiting_room -= taken.iter().map(NamedValue::room).sum::<usize>();
        self.joined(&taken);
        taken
    }

    pub(super) fn joined(&mut self, values: &[NamedValue]) {
        for JoinedName { name, of_detector, .. } in values.iter().map(|value| &self.names[value.name]) {
            self.tally.joined += u64::from(!of_detector);
            if !of_detector && !self.tally.names.contains(name) {
                self.tally.names.push(name.clone());
            }
        }
    }

    /// The dataset for a frame, according to its value if that has arrived.
    pub(super) fn named_dataset(&self, frame: u64) -> NamedDataset {
        let Some(destination) = &self.destination else { return NamedDataset::Nothing };
        let mut values = self.waiting.get(&frame).into_iter().flatten();
        let said = values.rfind(|value| Some(value.name) == destination.name);
        said.map_or(NamedDataset::Nothing, |value| destination.named(&value.said))
    }
}

/// Removes and returns the values of these frames.
pub(super) fn taken_out(some: &mut ByFrame, frames: Range<u64>) -> Vec<(u64, NamedValue)> {
    let those: Vec<u64> = some.range(frames).map(|(frame, _)| *frame).collect();
    let mut taken = Vec::new();
    for frame in those {
        let values = some.remove(&frame).unwrap_or_default();
        taken.extend(values.into_iter().map(|value| (frame, value)));
    }
    taken
}
