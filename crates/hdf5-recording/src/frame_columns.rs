//! What is said of each frame in a file with an index: by the recorder, by the instrument, and by what is joined by frame number.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nilometer_hdf5::{
    ColumnValue, Hdf5File, NdArrayColumn, PlacedColumn, SERIES_DATE,
    nexus::{RecorderColumn, RecordingTotals, ending},
    tree::{FrameChoice, FrameValue, TreeGroup, TreeValue},
};
use nilometer_intake::joined::{JoinedValues, NamedValue};
use nilometer_model::{Moment, Nanos};
use nilometer_recording::{Ranges, journal::DatasetPlace};
use nilometer_ring::{Frame, StackedFrame};

use crate::{
    Hdf5Contents,
    kept_values::{
        KeptValues, VALUES_AT_END_MAX, ValuesOfFrames, datasets_at_end, element_of, room_of, row_of_values,
    },
};

/// The flag of a frame that is there and not whole.
const INCOMPLETE: i64 = 2;

/// Who says a value of each frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnSource {
    Recorder(RecorderColumn),
    Array(NdArrayColumn),
    /// Where it stands, if there are several datasets.
    Placed(PlacedColumn),
    /// What is joined, by the place of its name.
    Joined(usize),
}

/// Something that is said of each frame: where it is written.
#[derive(Debug)]
struct SaidOfFrames {
    source: ColumnSource,
    key: String,
    /// Of the file.
    column: Option<usize>,
    /// The values of the first frame that is there, and of the last, if the tree wants them.
    ends: Option<EndFrames>,
}

#[derive(Debug, Default)]
struct EndFrames {
    first: Option<(u64, ColumnValue)>,
    last: Option<(u64, ColumnValue)>,
}

/// See the module. Of one file.
#[derive(Debug)]
pub(crate) struct FrameColumns {
    said: Vec<SaidOfFrames>,
    /// By the place of a name that is joined, which of them it is.
    by_name: BTreeMap<usize, usize>,
    joined: Option<Arc<JoinedValues>>,
    /// What files said of these frames before.
    kept: Option<Arc<KeptValues>>,
    start: Moment,
    /// Frames that are there, by their numbers.
    came: Ranges,
}

/// A frame that is put into a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertedFrame {
    pub(crate) number: u64,
    pub due: Nanos,
    pub(crate) arrived: Nanos,
    /// When it was compressed, if it was.
    pub(crate) encoded: Option<Nanos>,
    /// Packets of it that never came.
    pub(crate) missing: u64,
    /// It came with bytes that can't be unpacked.
    pub(crate) is_damaged: bool,
    /// Where it stands, if there are several datasets.
    pub(crate) placed: Option<DatasetPlace>,
}

impl InsertedFrame {
    /// Whether it is as its sender made it, with all its packets.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing == 0 && !self.is_damaged
    }

    /// Those that are stored as this one: itself, if it is one.
    pub(crate) fn all_of(frame: &Frame) -> impl Iterator<Item = InsertedFrame> {
        let arrived = frame.arrived;
        let is_damaged = frame.is_damaged();
        let encoded = frame.encoded.as_deref().map(|encoded| encoded.finished);
        let alone = StackedFrame { number: frame.number, due: frame.due, missing: frame.missing() };
        let stacked = frame.stack.as_deref().unwrap_or_default().iter().copied();
        let alone = frame.stack.is_none().then_some(alone);
        alone.into_iter().chain(stacked).map(move |StackedFrame { number, due, missing }| InsertedFrame {
            number,
            due,
            arrived,
            encoded,
            missing,
            is_damaged,
            placed: None,
        })
    }
}

/// The frames of a file that is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedFrames {
    /// The number of the first.
    pub(crate) first: u64,
    /// How many places there are.
    pub(crate) count: u64,
    /// How many there are up to the last frame that came.
    pub(crate) length: u64,
}

impl FrameColumns {
    /// Of a file that was made.
    pub(crate) fn of(file: &Hdf5File, contents: &Hdf5Contents) -> Self {
        let columns: Vec<String> = file.columns().map(|column| column.key.clone()).collect();
        let wanted = contents.tree.wanted_at_end();
        let joined = contents.joined.iter().flat_map(|joined| joined.columns());
        // What was recorded before is not seen now: when it came, and what became of it.
        let arrays = NdArrayColumn::ALL.into_iter();
        let arrays = arrays.filter(|column| contents.live || *column == NdArrayColumn::UniqueId);
        let known = RecorderColumn::ALL
            .into_iter()
            .filter(|column| contents.live || column.is_of_journals())
            .map(|column| (column.key().to_owned(), ColumnSource::Recorder(column)))
            .chain(arrays.map(|array| (array.key().into(), ColumnSource::Array(array))))
            .chain(PlacedColumn::ALL.map(|column| (column.key().into(), ColumnSource::Placed(column))))
            .chain(joined.map(|column| (column.key, ColumnSource::Joined(column.name))));
        let said = known.filter_map(|(key, source)| {
            let column = columns.iter().position(|column| *column == key);
            let ends = wanted.iter().any(|wanted| wanted.key == key).then(EndFrames::default);
            (column.is_some() || ends.is_some()).then_some(SaidOfFrames { source, key, column, ends })
        });
        let said: Vec<_> = said.collect();
        let by_name = said.iter().enumerate().filter_map(|(at, said)| match said.source {
            ColumnSource::Joined(name) => Some((name, at)),
            _ => None,
        });
        FrameColumns {
            by_name: by_name.collect(),
            said,
            joined: contents.joined.clone(),
            kept: contents.kept.clone(),
            start: contents.start,
            came: Ranges::default(),
        }
    }

    /// Says what is known of a frame, which is the one of this place in its file.
    pub(crate) fn insert(&mut self, file: &mut Hdf5File, place: u64, inserted: InsertedFrame) {
        let InsertedFrame { number: frame, due, .. } = inserted;
        self.came.add(frame);
        let since_1970 = Duration::from_nanos((self.start.0 + due).0);
        for said in &mut self.said {
            let value = match said.source {
                ColumnSource::Recorder(column) => said_by_recorder(column, inserted),
                ColumnSource::Array(column) => Some(column.number(frame, since_1970)),
                ColumnSource::Placed(column) => {
                    inserted.placed.map(|place| column.number(place.dataset, place.index))
                }
                ColumnSource::Joined(_) => None,
            };
            if let Some(value) = value {
                said.say(file, place, value);
            }
        }
        let joined = self.joined.as_ref().map(|joined| joined.take(frame));
        for value in joined.into_iter().flatten() {
            self.join(file, place, value);
        }
    }

    /// Says what came of frames that were there before, in a file whose first frame has this number.
    pub(crate) fn insert_late(&mut self, file: &mut Hdf5File, first: u64) {
        let Some(joined) = &self.joined else { return };
        let Some(last) = self.came.last() else { return };
        for (frame, value) in joined.take_those(first..last + 1, &self.came) {
            self.join(file, frame - first, value);
        }
    }

    fn join(&mut self, file: &mut Hdf5File, place: u64, value: NamedValue) {
        if let Some(at) = self.by_name.get(&value.name) {
            self.said[*at].say(file, place, value.said);
        }
    }

    /// These frames of the file are durable.
    pub(crate) fn durable(&self, file: &mut Hdf5File, frames: Vec<u64>, now: Nanos) {
        let durable = ColumnSource::Recorder(RecorderColumn::Durable);
        let Some(column) = self.said.iter().find(|said| said.source == durable).and_then(|said| said.column)
        else {
            return;
        };
        for frame in frames {
            file.set(column, frame, now.0.cast_signed());
        }
    }

    /// No frame comes any more: says what is left to be said of those that are there, and of those that did not come; and what
    /// the file ends with.
    pub(crate) fn close(
        &mut self,
        file: &mut Hdf5File,
        frames: ClosedFrames,
        tree: &TreeGroup,
        totals: &RecordingTotals,
    ) -> TreeGroup {
        let others = self.join_rest(file, frames);
        self.place_late(file, frames);
        let kept = self.kept.clone().unwrap_or_default();
        kept.put(file, frames.first..frames.first.saturating_add(frames.count));
        let at_end = |wanted: &FrameValue| self.at_end(wanted).or_else(|| kept.at_end(wanted));
        let mut end = ending(tree, totals, &at_end);
        end.unite(kept.at_end_others(frames.count, tree));
        if let Some(others) = self.datasets_of(others, frames.count, tree) {
            end.unite(others);
        }
        end
    }

    /// Values of the user's may still come of frames that are there: these have places. Others never come, and a series may end
    /// long before the last frame that was announced.
    fn place_late(&self, file: &mut Hdf5File, frames: ClosedFrames) {
        let Some(joined) = &self.joined else { return };
        for (name, at) in &self.by_name {
            if let (Some(column), true) = (self.said[*at].column, joined.is_awaited(*name)) {
                file.place_column(column, frames.length);
            }
        }
    }

    /// Values of names without a column, by name and place.
    fn join_rest(&mut self, file: &mut Hdf5File, frames: ClosedFrames) -> OtherValues {
        let ClosedFrames { first, count, .. } = frames;
        let mut others = OtherValues::new();
        let Some(joined) = self.joined.clone() else { return others };
        for (frame, value) in joined.take_all(first..first.saturating_add(count)) {
            let place = frame - first;
            if self.by_name.contains_key(&value.name) {
                self.join(file, place, value);
            } else {
                others.entry(value.name).or_default().insert(place, value.said);
            }
        }
        others
    }

    fn at_end(&self, wanted: &FrameValue) -> Option<TreeValue> {
        if wanted.key == SERIES_DATE {
            return self.joined.as_ref()?.series_date().as_deref().map(TreeValue::from);
        }
        let said = self.said.iter().find(|said| said.key == wanted.key)?;
        let ends = said.ends.as_ref()?;
        let (_, value) = match wanted.of {
            FrameChoice::First => ends.first.as_ref()?,
            FrameChoice::Last => ends.last.as_ref()?,
        };
        value.alone()
    }

    /// Datasets of names that nobody knew when the file was made.
    fn datasets_of(&self, mut others: OtherValues, count: u64, tree: &TreeGroup) -> Option<TreeGroup> {
        let joined = self.joined.as_ref()?;
        let path = joined.others()?;
        let count = shortened(joined, &mut others, count);
        if others.is_empty() {
            return None;
        }
        let rows = others.iter().map(|(name, values)| (joined.name(*name), row_of_values(values, count)));
        Some(datasets_at_end(&path, rows.collect(), tree))
    }
}

/// How many places these datasets have: as many as there are frames, or, where this is more than there is room for, up to the last
/// value. What finds no room then is counted.
fn shortened(joined: &JoinedValues, others: &mut OtherValues, count: u64) -> u64 {
    let room: u64 = others.values().map(|values| room_of(element_of(values))).sum();
    if count.saturating_mul(room) <= VALUES_AT_END_MAX {
        return count;
    }
    let most = VALUES_AT_END_MAX / room.max(1);
    let last = others.values().filter_map(|values| values.last_key_value()).map(|(place, _)| place + 1).max();
    for (name, values) in others.iter_mut() {
        let beyond = values.split_off(&most);
        if !beyond.is_empty() {
            joined.refuse_all(*name, beyond.len() as u64);
        }
    }
    others.retain(|_, values| !values.is_empty());
    last.unwrap_or(0).min(most)
}

/// By the place of a name: by the place in the file.
type OtherValues = BTreeMap<usize, ValuesOfFrames>;

fn said_by_recorder(column: RecorderColumn, frame: InsertedFrame) -> Option<ColumnValue> {
    let number = match column {
        RecorderColumn::Flag => i64::from(!frame.is_whole()) * INCOMPLETE,
        RecorderColumn::Missing => frame.missing.cast_signed(),
        RecorderColumn::Due => frame.due.0.cast_signed(),
        RecorderColumn::Arrived => frame.arrived.0.cast_signed(),
        RecorderColumn::Encoded => frame.encoded?.0.cast_signed(),
        RecorderColumn::Durable => return None,
    };
    Some(number.into())
}

impl SaidOfFrames {
    fn say(&mut self, file: &mut Hdf5File, place: u64, value: ColumnValue) {
        if let Some(ends) = &mut self.ends {
            if ends.first.as_ref().is_none_or(|(first, _)| place <= *first) {
                ends.first = Some((place, value.clone()));
            }
            if ends.last.as_ref().is_none_or(|(last, _)| place >= *last) {
                ends.last = Some((place, value.clone()));
            }
        }
        if let Some(column) = self.column {
            file.set(column, place, value);
        }
    }
}
