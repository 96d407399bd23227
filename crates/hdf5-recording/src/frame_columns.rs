//! The values of each frame in a file with an index: from the recorder, from the instrument, and from streams
//! joined by frame number.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nilometer_hdf5::{
    ColumnValue, Hdf5File, NdArrayColumn, PlacedColumn, SERIES_DATE,
    nexus::{AngleColumn, RecorderColumn, RecordingTotals, ending},
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

/// The flag of an incomplete frame.
const INCOMPLETE: i64 = 2;

/// Places behind the last frame that get angles, at the most: a series may end long before the announced number.
pub(crate) const BLANK_ANGLES_MAX: u64 = 1 << 20;

/// The source of a value of each frame.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ColumnSource {
    Recorder(RecorderColumn),
    Array(NdArrayColumn),
    /// The angle of an axis, which frames that never come have too.
    Angle(AngleColumn),
    /// The position of the frame, if there are several datasets.
    Placed(PlacedColumn),
    /// A joined stream, by the index of its name.
    Joined(usize),
}

/// A value of each frame, and its columns and attributes.
#[derive(Debug)]
struct SaidOfFrames {
    source: ColumnSource,
    key: String,
    /// Index of the file's column.
    column: Option<usize>,
    /// The values of the first and last frame received, if the tree wants them.
    ends: Option<EndFrames>,
}

#[derive(Debug, Default)]
struct EndFrames {
    first: Option<(u64, ColumnValue)>,
    last: Option<(u64, ColumnValue)>,
}

/// Fills the columns of one file with the values of its frames.
#[derive(Debug)]
pub(crate) struct FrameColumns {
    said: Vec<SaidOfFrames>,
    /// Index into `said` by the index of a joined name.
    by_name: BTreeMap<usize, usize>,
    joined: Option<Arc<JoinedValues>>,
    /// Values from existing files of these frames.
    kept: Option<Arc<KeptValues>>,
    start: Moment,
    /// Numbers of the frames received.
    came: Ranges,
    /// Number of places in the file, from the first, that have the angles of all axes.
    angles: u64,
}

/// A frame to be put into a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertedFrame {
    pub(crate) number: u64,
    pub due: Nanos,
    pub(crate) arrived: Nanos,
    /// Time of its compression, if it was compressed.
    pub(crate) encoded: Option<Nanos>,
    /// Packets missing from it.
    pub(crate) missing: u64,
    /// It arrived with bytes that can't be unpacked.
    pub(crate) is_damaged: bool,
    /// Its position, if there are several datasets.
    pub(crate) placed: Option<DatasetPlace>,
}

impl InsertedFrame {
    /// Returns true if all packets arrived and can be unpacked.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing == 0 && !self.is_damaged
    }

    /// The frames stored together with this one: only itself if it is not a stack.
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

/// The frames of a closed file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedFrames {
    /// Number of the first frame.
    pub(crate) first: u64,
    /// Number of places for frames.
    pub(crate) count: u64,
    /// Number of places up to the last frame received.
    pub(crate) length: u64,
}

impl FrameColumns {
    /// The columns of a new file.
    pub(crate) fn of(file: &Hdf5File, contents: &Hdf5Contents) -> Self {
        let columns: Vec<String> = file.columns().map(|column| column.key.clone()).collect();
        let wanted = contents.tree.wanted_at_end();
        let joined = contents.joined.iter().flat_map(|joined| joined.columns());
        // For frames recorded earlier, nobody observes their arrival or their fate now.
        let arrays = NdArrayColumn::ALL.into_iter();
        let arrays = arrays.filter(|column| contents.live || *column == NdArrayColumn::UniqueId);
        let angles = columns.iter().filter_map(|key| {
            let column = AngleColumn::of_key(key).filter(AngleColumn::differs)?;
            Some((key.clone(), ColumnSource::Angle(column)))
        });
        let known = RecorderColumn::ALL
            .into_iter()
            .filter(|column| contents.live || column.is_of_journals())
            .map(|column| (column.key().to_owned(), ColumnSource::Recorder(column)))
            .chain(arrays.map(|array| (array.key().into(), ColumnSource::Array(array))))
            .chain(angles)
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
            angles: 0,
        }
    }

    /// Sets the known values of a frame that is at `place` in its file.
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
                ColumnSource::Angle(_) | ColumnSource::Joined(_) => None,
            };
            if let Some(value) = value {
                said.say(file, place, value);
            }
        }
        self.turn(file, frame - place, place + 1);
        let joined = self.joined.as_ref().map(|joined| joined.take(frame));
        for value in joined.into_iter().flatten() {
            self.join(file, place, value);
        }
    }

    /// Sets the angles of all axes in the first `places` places of a file whose first frame has the number `first`.
    fn turn(&mut self, file: &mut Hdf5File, first: u64, places: u64) {
        for place in self.angles..places {
            for said in &mut self.said {
                if let ColumnSource::Angle(column) = said.source {
                    said.say(file, place, column.angle(first + place).into());
                }
            }
        }
        self.angles = self.angles.max(places);
    }

    /// Sets values that arrived for earlier frames, in a file whose first frame has this number.
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

    /// Marks these frames of the file as durable.
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

    /// Ends the file after the last frame. Sets the remaining values of its frames, received or not, and returns
    /// the part of the tree that is written at the end.
    pub(crate) fn close(
        &mut self,
        file: &mut Hdf5File,
        frames: ClosedFrames,
        tree: &TreeGroup,
        totals: &RecordingTotals,
    ) -> TreeGroup {
        let turned = frames.count.min(frames.length.max(BLANK_ANGLES_MAX));
        self.turn(file, frames.first, turned);
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

    /// Reserves places for the user's values that may still come, up to the last frame received. Frames behind it
    /// never come: a series may end long before the announced number.
    fn place_late(&self, file: &mut Hdf5File, frames: ClosedFrames) {
        let Some(joined) = &self.joined else { return };
        for (name, at) in &self.by_name {
            if let (Some(column), true) = (self.said[*at].column, joined.is_awaited(*name)) {
                file.place_column(column, frames.length);
            }
        }
    }

    /// Joins the remaining values, and returns those of names without a column, by name and place.
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

    /// Datasets for names that were unknown when the file was made.
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

/// The length of these datasets: one place per frame. If there is no room for that many, up to the last value.
/// Values that find no room then are counted as refused.
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

/// Values by place in the file, by the index of a name.
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
