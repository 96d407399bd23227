//! Values of frames that are in existing files but in no journal: the user's own values, and times from a
//! detector. A rebuilt file, or another file of the same frames, takes them over as far as they can be read.

use std::{collections::BTreeMap, fs::File, ops::Range, sync::Arc};

use crate::{ND_ATTRIBUTES, repair::path_of};
use nilometer_hdf5::{
    ColumnValue, Hdf5Error, Hdf5File, NdArrayColumn, PlacedColumn, ReadDataset, ReadFile, SERIES_DATE,
    TEXT_BYTES,
    nexus::{AngleColumn, RecorderColumn},
    tree::{
        ColumnElement, DatasetContent, FrameChoice, FrameColumn, FrameValue, NumberArray, NumberType,
        TreeAttribute, TreeDataset, TreeGroup, TreeNode, TreeValue, WriteTime,
    },
};

/// The attribute that marks a dataset with a value for each frame, as in areaDetector.
pub(crate) const NAMED_BY: &str = "NDAttrName";

/// Numbers in the datasets added when a file is closed, at the most: 128 MiB. A text counts as several.
pub(crate) const VALUES_AT_END_MAX: u64 = 16 << 20;

/// Values by their frames.
pub(crate) type ValuesOfFrames = BTreeMap<u64, ColumnValue>;

/// The values taken over from existing files.
#[derive(Debug, Default)]
pub(crate) struct KeptValues {
    /// Values of columns, by key.
    columns: BTreeMap<String, ValuesOfFrames>,
    /// Values of datasets that were added when files were closed, and are not in the tree: by group and name.
    others: BTreeMap<String, BTreeMap<String, ValuesOfFrames>>,
    /// Share of [`VALUES_AT_END_MAX`] that these datasets take per frame.
    others_room: u64,
    /// The start of the series, according to its detector.
    series_date: Option<String>,
}

impl KeptValues {
    /// Reads the values of one file with this tree and `places` places, by index in the file. Also returns a line
    /// for each value that is not kept, with the reason.
    pub(crate) fn of(file: &File, tree: &TreeGroup, places: u64) -> (Self, Vec<String>) {
        let mut kept = KeptValues::default();
        let added = kept.add(file, tree, 0..places);
        let lost = added.unwrap_or_else(|error| vec![format!("{LOST}: {error}")]);
        (kept, lost)
    }

    /// Adds the values of one file. `frames` are its numbers in the new file, of which they may be the last.
    /// Returns a line for each value that is not kept.
    pub(crate) fn add(
        &mut self,
        file: &File,
        tree: &TreeGroup,
        frames: Range<u64>,
    ) -> Result<Vec<String>, Hdf5Error> {
        let read = ReadFile::open(&path_of(file))?;
        let mut unread = Vec::new();
        let places = frames.end - frames.start;
        for (path, column) in tree.columns() {
            // For these, the journals are right. Angles follow from the number of a frame.
            let is_of_journals = RecorderColumn::ALL.iter().any(|known| known.key() == column.key);
            let is_place = PlacedColumn::ALL.into_iter().any(|of_place| of_place.key() == column.key);
            let is_angle = AngleColumn::of_key(&column.key).is_some();
            if is_of_journals || is_place || is_angle || column.key == NdArrayColumn::UniqueId.key() {
                continue;
            }
            match values(&read, &path, column, places) {
                Ok(values) => {
                    extend(self.columns.entry(column.key.clone()).or_default(), values, frames.start);
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

    /// Adds other values of frames in the tree's groups, and in the default group for values without a place.
    fn add_others(
        &mut self,
        read: &ReadFile,
        tree: &TreeGroup,
        frames: &Range<u64>,
        unread: &mut Vec<String>,
    ) {
        let mut groups = tree.group_paths();
        if !groups.iter().any(|group| group == ND_ATTRIBUTES) {
            groups.push(ND_ATTRIBUTES.into());
        }
        for group in groups {
            // A missing group has no members.
            for name in read.members(&group).unwrap_or_default() {
                let path = format!("{}/{name}", group.trim_end_matches('/'));
                if tree.find(&path).is_some() {
                    continue;
                }
                let added = self.add_other(read, &group, &name, frames);
                unread.extend(added.err().map(|error| not_taken(&path, &error)));
            }
        }
    }

    /// Adds a dataset that is not in the tree, if it has a value for each frame and fits into a file of all
    /// frames.
    fn add_other(
        &mut self,
        read: &ReadFile,
        group: &str,
        name: &str,
        frames: &Range<u64>,
    ) -> Result<(), Hdf5Error> {
        let path = format!("{}/{name}", group.trim_end_matches('/'));
        let Some(OtherDataset { dataset, element }) = other_dataset(read, &path)? else { return Ok(()) };
        if self.others.get(group).is_none_or(|others| !others.contains_key(name)) {
            let room = self.others_room + room_of(element);
            if frames.end.saturating_mul(room) > VALUES_AT_END_MAX {
                let what = format!(
                    "with it there would be more than {VALUES_AT_END_MAX} undeclared values (a text counts as {}) \
                     for {} frames",
                    room_of(ColumnElement::TEXT),
                    frames.end
                );
                return Err(Hdf5Error::Description { what });
            }
            self.others_room = room;
        }
        let values = known_of_other(&dataset, &path, element, frames.end - frames.start)?;
        let others = self.others.entry(group.to_owned()).or_default();
        extend(others.entry(name.to_owned()).or_default(), values, frames.start);
        Ok(())
    }

    /// Puts the values into a new file of these frames.
    pub(crate) fn put(&self, made: &mut Hdf5File, frames: Range<u64>) {
        let keys: Vec<_> = made.columns().map(|column| column.key.clone()).collect();
        for (column, key) in keys.iter().enumerate() {
            let values = self.columns.get(key).into_iter().flat_map(|values| values.range(frames.clone()));
            for (frame, value) in values {
                made.set(column, frame - frames.start, value.clone());
            }
        }
    }

    /// The keys of columns with values.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, values)| !values.is_empty()).map(|(key, _)| key.as_str())
    }

    /// Adds the number of a frame, which the journal has.
    pub(crate) fn is_number(&mut self, in_file: u64, number: u64) {
        let column = self.columns.entry(NdArrayColumn::UniqueId.key().into()).or_default();
        column.insert(in_file, ColumnValue::Whole(number.cast_signed()));
    }

    /// A value that a tree needs after the last frame, if it was kept.
    pub(crate) fn at_end(&self, wanted: &FrameValue) -> Option<TreeValue> {
        if wanted.key == SERIES_DATE {
            return self.series_date.as_deref().map(TreeValue::from);
        }
        let column = self.columns.get(&wanted.key)?;
        let (_, value) = match wanted.of {
            FrameChoice::First => column.first_key_value()?,
            FrameChoice::Last => column.last_key_value()?,
        };
        value.alone()
    }

    /// The datasets that are not in the tree, with their first `frames` values, for closing a file with this
    /// tree.
    pub(crate) fn at_end_others(&self, frames: u64, tree: &TreeGroup) -> TreeGroup {
        let mut made = TreeGroup::default();
        for (group, others) in &self.others {
            let rows = others.iter().map(|(name, values)| (name.clone(), row_of_values(values, frames)));
            made.unite(datasets_at_end(group, rows.collect(), tree));
        }
        made
    }
}

/// Reported if nothing of a file can be taken over.
pub(crate) const LOST: &str =
    "values that only this file has (your own, times of a detector) are not taken over";

/// Share of [`VALUES_AT_END_MAX`] that a dataset takes per frame.
pub(crate) const fn room_of(element: ColumnElement) -> u64 {
    if element.is_text() { TEXT_BYTES as u64 / 8 } else { 1 }
}

/// The common type of values: texts, or whole numbers if all are whole.
pub(crate) fn element_of(values: &ValuesOfFrames) -> ColumnElement {
    if values.values().any(|value| matches!(value, ColumnValue::Text(_))) {
        ColumnElement::TEXT
    } else if values.values().all(|value| matches!(value, ColumnValue::Whole(_))) {
        ColumnElement::INT
    } else {
        ColumnElement::FLOAT
    }
}

fn extend(all: &mut ValuesOfFrames, values: ValuesOfFrames, first: u64) {
    all.extend(values.into_iter().map(|(frame, value)| (first.saturating_add(frame), value)));
}

/// A message about a dataset that is not taken over.
fn not_taken(path: &str, error: &Hdf5Error) -> String {
    format!("{path}: its values are not taken over: {error}")
}

/// The known values of a column.
fn values(
    read: &ReadFile,
    path: &str,
    column: &FrameColumn,
    places: u64,
) -> Result<ValuesOfFrames, Hdf5Error> {
    let dataset = read.own_dataset(path)?;
    check_row(&dataset, path, places)?;
    let is_known = |value: &ColumnValue| value.bytes(column) != column.unknown();
    Ok(known_values(&dataset, column.element, places)?.filter(|(_, value)| is_known(value)).collect())
}

/// Checks that a dataset has a value for each frame: a foreign file may claim any length.
fn check_row(dataset: &ReadDataset, path: &str, places: u64) -> Result<(), Hdf5Error> {
    match dataset.dimensions() {
        // Places are reserved in steps, so there may be more than frames.
        [length] if *length <= places.saturating_add(PLACES_MORE) => Ok(()),
        dimensions => {
            let what = format!("{path} has the dimensions {dimensions:?}, and there are {places} frames");
            Err(Hdf5Error::Description { what })
        }
    }
}

/// Places that a column may have beyond the number of frames.
const PLACES_MORE: u64 = 1 << 20;

/// The values of the first `places` frames, without empty texts.
fn known_values(
    dataset: &ReadDataset,
    element: ColumnElement,
    places: u64,
) -> Result<impl Iterator<Item = (u64, ColumnValue)>, Hdf5Error> {
    let mut values = Vec::new();
    match element {
        ColumnElement::Text(_) => {
            let mut last: Arc<str> = "".into();
            dataset.each_text(&mut |place, text| {
                if *text != *last {
                    last = text.into();
                }
                values.push((place, ColumnValue::Text(last.clone())));
            })?;
        }
        ColumnElement::Number(NumberType::Float32 | NumberType::Float64) => {
            values.extend((0..).zip(dataset.floats()?.into_iter().map(ColumnValue::from)));
        }
        ColumnElement::Number(_) => {
            values.extend((0..).zip(dataset.numbers()?.into_iter().map(ColumnValue::from)));
        }
    }
    Ok(values.into_iter().take_while(move |(place, _)| *place < places))
}

/// A dataset with a value for each frame that is not in the tree.
struct OtherDataset {
    dataset: ReadDataset,
    element: ColumnElement,
}

/// Opens such a dataset; `None` for a group, or a link that leads elsewhere.
fn other_dataset(read: &ReadFile, path: &str) -> Result<Option<OtherDataset>, Hdf5Error> {
    let Ok(dataset) = read.own_dataset(path) else { return Ok(None) };
    if !read.has_attribute(path, NAMED_BY)? {
        return Ok(None);
    }
    let element = dataset.column_element()?;
    Ok(element.map(|element| OtherDataset { dataset, element }))
}

fn known_of_other(
    dataset: &ReadDataset,
    path: &str,
    element: ColumnElement,
    places: u64,
) -> Result<ValuesOfFrames, Hdf5Error> {
    check_row(dataset, path, places)?;
    let known = known_values(dataset, element, places)?.filter(|(_, value)| match value {
        ColumnValue::Whole(number) => *number != UNKNOWN,
        ColumnValue::Fraction(number) => !number.is_nan(),
        ColumnValue::Text(_) => true,
        ColumnValue::Unknown => false,
    });
    Ok(known.collect())
}

fn series_date(read: &ReadFile, tree: &TreeGroup) -> Option<String> {
    let is_date = |value: &TreeValue| matches!(value, TreeValue::AtEnd(wanted) if wanted.key == SERIES_DATE);
    let wanting = tree.attributes_at_end().into_iter().filter(|(_, attribute)| is_date(&attribute.value));
    wanting
        .map(|(path, attribute)| read.text_attribute(&path, &attribute.name))
        .find_map(|text| text.ok().flatten())
}

/// Stands for an unknown whole number.
const UNKNOWN: i64 = -1;

/// A value for each of the first `count` frames: texts, or whole numbers if all values are whole.
pub(crate) fn row_of_values(values: &ValuesOfFrames, count: u64) -> TreeValue {
    let element = match element_of(values) {
        ColumnElement::Number(element) => element,
        ColumnElement::Text(_) => {
            let text = |place: u64| match values.get(&place) {
                Some(ColumnValue::Text(text)) => text.to_string(),
                _ => String::new(),
            };
            return TreeValue::ColumnTexts((0..count).map(text).collect());
        }
    };
    let fill = if element == NumberType::Int64 { UNKNOWN.to_le_bytes() } else { f64::NAN.to_le_bytes() };
    let column = FrameColumn { key: String::new(), element: element.into(), fill: fill.into() };
    let number = |place: u64| values.get(&place).unwrap_or(&ColumnValue::Unknown).bytes(&column);
    let bytes = (0..count).flat_map(number).collect();
    NumberArray { element, shape: vec![count], bytes }.into()
}

/// The datasets added to a group when a file with this tree is closed.
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use nilometer_hdf5::Hdf5FileOptions;
    use tempfile::NamedTempFile;

    use super::*;

    /// A file with a column, and with datasets that are not in its tree.
    fn file_of(frames: u64, others: &[&str]) -> NamedTempFile {
        let rows = others.iter().map(|name| {
            let row = TreeValue::from(NumberArray::ints(&[3, 4]));
            ((*name).to_owned(), row)
        });
        let file =
            Hdf5File::create("f", &TreeGroup::default(), Hdf5FileOptions::default()).expect("it can be");
        let end = datasets_at_end("/g", rows.collect(), &TreeGroup::default());
        let mut closed = file.close(frames, &end).expect("it can be");
        let mut bytes = vec![0; closed.size() as usize];
        while let Some(write) = closed.next_write() {
            let begin = write.offset as usize;
            bytes[begin..begin + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let mut file = NamedTempFile::new().expect("space");
        file.write_all(&bytes).expect("space");
        file
    }

    #[test]
    fn what_nobody_announced_is_kept_as_far_as_there_is_room_and_the_rest_is_named() {
        let tree = TreeGroup::default().group("g", TreeGroup::default());
        let names = ["a", "b", "c"];
        for (places, kept_count) in
            [(2, 3), (VALUES_AT_END_MAX / 3, 3), (VALUES_AT_END_MAX / 2, 2), (VALUES_AT_END_MAX + 1, 0)]
        {
            let file = file_of(2, &names);
            let (kept, lost) = KeptValues::of(file.as_file(), &tree, places);
            let there: Vec<_> = kept.others.values().flat_map(BTreeMap::keys).collect();
            assert_eq!(there, names[..kept_count].iter().collect::<Vec<_>>(), "{places}: {lost:?}");
            let begins =
                names[kept_count..].iter().map(|name| format!("/g/{name}: its values are not taken over:"));
            for (line, begin) in lost.iter().zip(begins) {
                assert!(line.starts_with(&begin) && line.contains(&places.to_string()), "{line}");
            }
            assert_eq!(lost.len(), names.len() - kept_count, "{lost:?}");
        }
        let torn = tempfile::tempfile().expect("space");
        let (_, lost) = KeptValues::of(&torn, &tree, 2);
        assert!(lost.len() == 1 && lost[0].starts_with(LOST), "{lost:?}");
    }

    #[test]
    fn a_column_of_a_journal_says_its_numbers_or_texts() {
        let said = r#"{"key":"Angle","element":"Float64","fill":[0,0,0,0,0,0,248,127]}"#;
        let read: FrameColumn = serde_json::from_str(said).expect("it is one");
        assert_eq!(read.element, NumberType::Float64.into());
        assert_eq!(serde_json::to_string(&read).expect("it is text"), said);
        let text = FrameColumn { key: "k".into(), element: ColumnElement::TEXT, fill: Vec::new() };
        let said = serde_json::to_string(&text).expect("it is text");
        assert_eq!(said, r#"{"key":"k","element":"Utf8Of256","fill":[]}"#);
        assert_eq!(serde_json::from_str::<FrameColumn>(&said).expect("it is one"), text);
    }
}
