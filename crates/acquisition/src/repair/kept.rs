//! Numbers of frames that no journal has: values of the user's own, and times that a detector said. They are kept from the file as
//! it was, as far as it can be read.

use std::{collections::BTreeMap, fs::File};

use nilometer_hdf5::{
    ColumnNumber, Hdf5File, NdArrayColumn, ReadFile,
    nexus::RecorderColumn,
    tree::{FrameChoice, FrameColumn, FrameValue, NumberArray, NumberType, TreeGroup, TreeValue},
};

use super::held::path_of;

/// Numbers of a column, by the frame of the file.
type KeptColumn = BTreeMap<u64, ColumnNumber>;

/// See the module. By the keys of columns.
#[derive(Debug, Default)]
pub(super) struct KeptNumbers(BTreeMap<String, KeptColumn>);

impl KeptNumbers {
    /// Of a file with this tree.
    pub(super) fn of(file: &File, tree: &TreeGroup) -> Self {
        let mut kept = KeptNumbers::default();
        let Ok(read) = ReadFile::open(&path_of(file)) else { return kept };
        for (path, column) in tree.columns() {
            if RecorderColumn::ALL.iter().any(|known| known.key() == column.key) {
                continue;
            }
            if let Some(numbers) = numbers(&read, &path, column) {
                kept.0.insert(column.key.clone(), numbers);
            }
        }
        kept
    }

    /// Puts them into a file that is made anew, of the first so many frames.
    pub(super) fn put(&self, made: &mut Hdf5File, frames: u64) {
        let keys: Vec<_> = made.columns().map(|column| column.key.clone()).collect();
        for (column, key) in keys.iter().enumerate() {
            let numbers = self.0.get(key).into_iter().flat_map(|numbers| numbers.range(..frames));
            for (frame, number) in numbers {
                made.set(column, *frame, *number);
            }
        }
    }

    /// The number of a frame is known from the journal.
    pub(super) fn is_number(&mut self, in_file: u64, number: u64) {
        let column = self.0.entry(NdArrayColumn::UniqueId.key().into()).or_default();
        column.insert(in_file, ColumnNumber::Whole(number.cast_signed()));
    }

    /// What a tree wants behind the last frame, if it is kept.
    pub(super) fn at_end(&self, wanted: &FrameValue) -> Option<TreeValue> {
        let column = self.0.get(&wanted.key)?;
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
}

/// Those of a column of which something is known.
fn numbers(read: &ReadFile, path: &str, column: &FrameColumn) -> Option<KeptColumn> {
    let dataset = read.dataset(path).ok()?;
    let all: Vec<ColumnNumber> = match column.element {
        NumberType::Float32 | NumberType::Float64 => {
            dataset.floats().ok()?.into_iter().map(ColumnNumber::from).collect()
        }
        _ => dataset.numbers().ok()?.into_iter().map(ColumnNumber::from).collect(),
    };
    let known = (0..).zip(all).filter(|(_, number)| number.bytes(column) != column.fill);
    Some(known.collect())
}
