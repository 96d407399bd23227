//! Numbers of frames that no journal has: values of the user's own, and times that a detector said. Who makes a file anew, or
//! another of the same frames, takes them from the files that are there, as far as these can be read.

use std::{collections::BTreeMap, fs::File, ops::Range, path::Path};

use nilometer_hdf5::{
    ColumnNumber, Hdf5Error, Hdf5File, NdArrayColumn, ReadDataset, ReadFile, SERIES_DATE,
    nexus::RecorderColumn,
    tree::{
        DatasetContent, FrameChoice, FrameColumn, FrameValue, NumberArray, NumberType, TreeAttribute,
        TreeDataset, TreeGroup, TreeNode, TreeValue, WriteTime,
    },
};
use nilometer_recording::reader::Recording;

use crate::{
    repair::{files_of, opened_own, path_of},
    sink::ND_ATTRIBUTES,
};

/// By which attribute a dataset is known as one that is said of each frame, as areaDetector has it.
pub(crate) const NAMED_BY: &str = "NDAttrName";

/// Numbers in the datasets of a file that are made when it is closed, at the most: 128 MiB of them.
pub(crate) const NUMBERS_AT_END_MAX: u64 = 16 << 20;

/// Numbers by their frames.
pub(crate) type NumbersOfFrames = BTreeMap<u64, ColumnNumber>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct KeptNumbers {
    /// By the keys of columns.
    columns: BTreeMap<String, NumbersOfFrames>,
    /// Of datasets that files were given when they were closed, and of which the tree knows nothing: by their group and name.
    others: BTreeMap<String, BTreeMap<String, NumbersOfFrames>>,
    /// When the series began, as its detector says.
    series_date: Option<String>,
}

impl KeptNumbers {
    /// Of a file with this tree and so many places, by the frame of the file. What can't be read is not kept.
    pub(crate) fn of(file: &File, tree: &TreeGroup, places: u64) -> Self {
        let mut kept = KeptNumbers::default();
        drop(kept.add(file, tree, 0..places));
        kept
    }

    /// Of all files of a recording, by frame; and what can't be read, and why, a line each.
    pub(crate) fn of_recording(recording: &Recording, tree: &TreeGroup) -> (Self, Vec<String>) {
        let mut kept = KeptNumbers::default();
        let files = match files_of(recording) {
            Ok(files) => files,
            Err(error) => return (kept, vec![lost_of(Path::new(recording.name()), &error.to_string())]),
        };
        let frames = recording.index.expected();
        let mut lost = Vec::new();
        for (path, first) in files {
            let opened = opened_own(&path).map_err(|error| error.to_string());
            let places = first..frames.max(first);
            let added =
                opened.and_then(|file| kept.add(&file, tree, places).map_err(|error| error.to_string()));
            match added {
                Ok(unread) => lost.extend(unread.iter().map(|what| format!("{}: {what}", path.display()))),
                Err(why) => lost.push(lost_of(&path, &why)),
            }
        }
        (kept, lost)
    }

    /// Adds those of a file, which has these frames at the most; and what of it can't be read.
    fn add(&mut self, file: &File, tree: &TreeGroup, frames: Range<u64>) -> Result<Vec<String>, Hdf5Error> {
        let read = ReadFile::open(&path_of(file))?;
        let mut unread = Vec::new();
        let places = frames.end - frames.start;
        for (path, column) in tree.columns() {
            // What the journals say is right.
            let is_of_journals = RecorderColumn::ALL.iter().any(|known| known.key() == column.key);
            if is_of_journals || column.key == NdArrayColumn::UniqueId.key() {
                continue;
            }
            match numbers(&read, &path, column, places) {
                Ok(numbers) => {
                    extend(self.columns.entry(column.key.clone()).or_default(), numbers, frames.start);
                }
                Err(error) => unread.push(not_taken(&path, &error)),
            }
        }
        self.add_others(&read, tree, &frames, &mut unread);
        if self.series_date.is_none() {
            self.series_date = series_date(&read, tree);
        }
        Ok(unread)
    }

    /// Whatever else is said of frames in groups of the tree, or where it is put if nobody said where.
    fn add_others(
        &mut self,
        read: &ReadFile,
        tree: &TreeGroup,
        frames: &Range<u64>,
        unread: &mut Vec<String>,
    ) {
        let places = frames.end - frames.start;
        let mut groups = tree.group_paths();
        if !groups.iter().any(|group| group == ND_ATTRIBUTES) {
            groups.push(ND_ATTRIBUTES.into());
        }
        for group in groups {
            // Where there is no such group there is nothing in it.
            for name in read.members(&group).unwrap_or_default() {
                let path = format!("{}/{name}", group.trim_end_matches('/'));
                if tree.find(&path).is_some() || self.are_others_too_many(places) {
                    continue;
                }
                match other_numbers(read, &path, places) {
                    Ok(Some(numbers)) => {
                        let others = self.others.entry(group.clone()).or_default();
                        extend(others.entry(name).or_default(), numbers, frames.start);
                    }
                    Ok(None) => {}
                    Err(error) => unread.push(not_taken(&path, &error)),
                }
            }
        }
    }

    /// Puts them into a file of these frames that is being made.
    pub(crate) fn put(&self, made: &mut Hdf5File, frames: Range<u64>) {
        let keys: Vec<_> = made.columns().map(|column| column.key.clone()).collect();
        for (column, key) in keys.iter().enumerate() {
            let numbers = self.columns.get(key).into_iter().flat_map(|numbers| numbers.range(frames.clone()));
            for (frame, number) in numbers {
                made.set(column, frame - frames.start, *number);
            }
        }
    }

    /// The keys of columns that are known.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, numbers)| !numbers.is_empty()).map(|(key, _)| key.as_str())
    }

    /// The number of a frame is known from the journal.
    pub(crate) fn is_number(&mut self, in_file: u64, number: u64) {
        let column = self.columns.entry(NdArrayColumn::UniqueId.key().into()).or_default();
        column.insert(in_file, ColumnNumber::Whole(number.cast_signed()));
    }

    /// What a tree wants behind the last frame, if it is kept.
    pub(crate) fn at_end(&self, wanted: &FrameValue) -> Option<TreeValue> {
        if wanted.key == SERIES_DATE {
            return self.series_date.as_deref().map(TreeValue::from);
        }
        let column = self.columns.get(&wanted.key)?;
        let (_, number) = match wanted.of {
            FrameChoice::First => column.first_key_value()?,
            FrameChoice::Last => column.last_key_value()?,
        };
        match number {
            ColumnNumber::Whole(number) => Some(NumberArray::int(*number).into()),
            ColumnNumber::Fraction(number) => Some(NumberArray::float(*number).into()),
            ColumnNumber::Unknown => None,
        }
    }

    /// The datasets that no tree describes, of the first so many frames, for a file with this tree that is closed. Those of more
    /// numbers than are put there at once are left out.
    pub(crate) fn at_end_others(&self, frames: u64, tree: &TreeGroup) -> TreeGroup {
        let mut made = TreeGroup::default();
        if self.are_others_too_many(frames) {
            return made;
        }
        for (group, others) in &self.others {
            let rows = others.iter().map(|(name, numbers)| (name.clone(), row_of_numbers(numbers, frames)));
            made.unite(datasets_at_end(group, rows.collect(), tree));
        }
        made
    }

    /// A file of so many frames is not given what no tree describes.
    pub(crate) fn are_others_too_many(&self, frames: u64) -> bool {
        let names: usize = self.others.values().map(BTreeMap::len).sum();
        frames.saturating_mul(names as u64) > NUMBERS_AT_END_MAX
    }
}

/// Of a file, that nothing of it is taken over that it alone has.
fn lost_of(path: &Path, why: &str) -> String {
    format!(
        "{}: what it alone says of frames (values of your own, times of a detector) is not taken over: {why}",
        path.display()
    )
}

fn extend(all: &mut NumbersOfFrames, numbers: NumbersOfFrames, first: u64) {
    all.extend(numbers.into_iter().map(|(frame, number)| (first.saturating_add(frame), number)));
}

/// Of a dataset, that it is not taken over.
fn not_taken(path: &str, error: &Hdf5Error) -> String {
    format!("{path}: what it says of frames is not taken over: {error}")
}

/// Those of a column of which something is known.
fn numbers(
    read: &ReadFile,
    path: &str,
    column: &FrameColumn,
    places: u64,
) -> Result<NumbersOfFrames, Hdf5Error> {
    let dataset = row(read, path, places)?;
    let whole = !matches!(column.element, NumberType::Float32 | NumberType::Float64);
    let known = (0..places).zip(all_numbers(&dataset, whole)?);
    Ok(known.filter(|(_, number)| number.bytes(column) != column.fill).collect())
}

/// A dataset of the file's own with a number for each frame: a file may be anybody's, and say that there are any number.
fn row(read: &ReadFile, path: &str, places: u64) -> Result<ReadDataset, Hdf5Error> {
    let dataset = read.own_dataset(path)?;
    match dataset.dimensions() {
        // Places are reserved in steps, and there may be more than frames.
        [length] if *length <= places.saturating_add(PLACES_MORE) => Ok(dataset),
        dimensions => {
            let what = format!("{path} has the dimensions {dimensions:?}, and there are {places} frames");
            Err(Hdf5Error::Description { what })
        }
    }
}

/// A column may have so many places more than there are frames.
const PLACES_MORE: u64 = 1 << 20;

fn all_numbers(dataset: &ReadDataset, whole: bool) -> Result<Vec<ColumnNumber>, Hdf5Error> {
    Ok(if whole {
        dataset.numbers()?.into_iter().map(ColumnNumber::from).collect()
    } else {
        dataset.floats()?.into_iter().map(ColumnNumber::from).collect()
    })
}

/// The numbers of a dataset that has one for each frame, if it is such a one.
fn other_numbers(read: &ReadFile, path: &str, places: u64) -> Result<Option<NumbersOfFrames>, Hdf5Error> {
    // A group, or a link to what is elsewhere, is none.
    let Ok(dataset) = read.own_dataset(path) else { return Ok(None) };
    if !read.has_attribute(path, NAMED_BY)? {
        return Ok(None);
    }
    let Some(whole) = dataset.is_whole_numbers()? else { return Ok(None) };
    let dataset = row(read, path, places)?;
    let known = (0..places).zip(all_numbers(&dataset, whole)?).filter(|(_, number)| match number {
        ColumnNumber::Whole(number) => *number != UNKNOWN,
        ColumnNumber::Fraction(number) => !number.is_nan(),
        ColumnNumber::Unknown => false,
    });
    Ok(Some(known.collect()))
}

fn series_date(read: &ReadFile, tree: &TreeGroup) -> Option<String> {
    let is_date = |value: &TreeValue| matches!(value, TreeValue::AtEnd(wanted) if wanted.key == SERIES_DATE);
    let wanting = tree.attributes_at_end().into_iter().filter(|(_, attribute)| is_date(&attribute.value));
    wanting
        .map(|(path, attribute)| read.text_attribute(&path, &attribute.name))
        .find_map(|text| text.ok().flatten())
}

/// What stands for a whole number that nobody said.
const UNKNOWN: i64 = -1;

/// A number for each of the first so many frames: whole ones, if all that came are.
pub(crate) fn row_of_numbers(values: &NumbersOfFrames, count: u64) -> TreeValue {
    let whole = values.values().all(|number| matches!(number, ColumnNumber::Whole(_)));
    let mut bytes = Vec::new();
    for place in 0..count {
        let number = values.get(&place).copied().unwrap_or(ColumnNumber::Unknown);
        match (number, whole) {
            (ColumnNumber::Whole(number), true) => bytes.extend(number.to_le_bytes()),
            (ColumnNumber::Whole(number), false) => bytes.extend((number as f64).to_le_bytes()),
            (ColumnNumber::Fraction(number), _) => bytes.extend(number.to_le_bytes()),
            (ColumnNumber::Unknown, true) => bytes.extend(UNKNOWN.to_le_bytes()),
            (ColumnNumber::Unknown, false) => bytes.extend(f64::NAN.to_le_bytes()),
        }
    }
    let element = if whole { NumberType::Int64 } else { NumberType::Float64 };
    NumberArray { element, shape: vec![count], bytes }.into()
}

/// Datasets that a group is given when the file with this tree is closed.
pub(crate) fn datasets_at_end(path: &str, rows: Vec<(String, TreeValue)>, tree: &TreeGroup) -> TreeGroup {
    let mut made = TreeGroup::default();
    if tree.find(path).is_none() && !path.is_empty() {
        let class = TreeAttribute::new("NX_class", "NXcollection");
        made.attributes.push(TreeAttribute { when: WriteTime::Closing, ..class });
    }
    for (name, row) in rows {
        let content = DatasetContent::Value(row, WriteTime::Closing);
        let dataset = TreeDataset::of(content).attribute(NAMED_BY, name.as_str());
        made = made.with(&name, TreeNode::Dataset(dataset));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.into_iter().rev().fold(made, |made, part| TreeGroup::default().group(part, made))
}
