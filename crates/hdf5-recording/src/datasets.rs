//! Selects the dataset of each frame, and its index there, if a file has several datasets of frames.
//!
//! Each dataset counts its own frames. They get consecutive indices in the order in which the lane received them,
//! which is that of their numbers. A written frame therefore waits for those before it, and for the value that
//! names its dataset. If that takes too long or too many frames wait, the frame goes into the default dataset.
//!
//! ```text
//! frame 5     write        value: dark     dark[0]
//! frame 6     write ..........................  value: data    data[5]
//! frame 7       write    value: dark .........................  dark[1]
//! ```

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use nilometer_hdf5::layout::FrameDatasets;
use nilometer_intake::joined::{JoinedValues, NamedDataset};
use nilometer_model::Nanos;
use nilometer_recording::journal::DatasetPlace;
use nilometer_ring::{Frame, WrittenFrame};

/// The longest time that a frame waits for the value that names its dataset.
const WAITING_FOR: Nanos = Nanos::from_millis(1000);
/// Interval between checks for that value.
const LOOK: Nanos = Nanos::from_millis(5);
/// Number of recent images whose position is kept, so that all channels of an image go to the same dataset.
const RECENT: usize = 4096;

/// Several datasets of frames in a file, and the selection among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeveralDatasets {
    /// The datasets, and the rule that selects one by a value.
    pub frames: FrameDatasets,
    /// Number of frames that belong together: the channels of an image.
    pub(crate) together: u64,
    /// The position of each frame, if it was recorded earlier.
    pub(crate) known: Option<BTreeMap<u64, DatasetPlace>>,
}

/// Assigns the frames of one file to its datasets.
#[derive(Debug)]
pub(crate) struct DatasetPlaces {
    datasets: Arc<SeveralDatasets>,
    joined: Option<Arc<JoinedValues>>,
    /// Frames being written and waiting frames, by their offsets in the file, in the order of their arrival.
    order: VecDeque<u64>,
    /// The written ones among them.
    written: BTreeMap<u64, WrittenFrame>,
    /// Number of images in each dataset.
    next: Vec<u64>,
    /// The positions of recent images, if images have several channels.
    recent: BTreeMap<u64, ImagePlace>,
    /// Number of frames that may wait, at the most.
    most: u64,
    /// Time of the last check.
    looked: Nanos,
}

/// The position of an image.
#[derive(Debug, Clone, Copy)]
struct ImagePlace {
    dataset: usize,
    /// Its index in the dataset.
    index: u64,
    /// The reason for this dataset.
    said: NamedDataset,
}

impl DatasetPlaces {
    /// Creates an assignment for a file in which `most` frames may wait.
    pub(crate) fn new(datasets: Arc<SeveralDatasets>, joined: Option<Arc<JoinedValues>>, most: u64) -> Self {
        DatasetPlaces {
            next: vec![0; datasets.frames.paths.len()],
            datasets,
            joined,
            order: VecDeque::new(),
            written: BTreeMap::new(),
            recent: BTreeMap::new(),
            most,
            looked: Nanos(0),
        }
    }

    /// Records that the next frame is being written at this offset.
    pub(crate) fn issue(&mut self, offset: u64) {
        self.order.push_back(offset);
    }

    /// Records that a frame is written.
    pub(crate) fn land(&mut self, written: WrittenFrame) {
        self.written.insert(written.begin.offset, written);
    }

    /// Releases the frames that have their position now, in order. Once the recording is over, no more values
    /// come.
    pub(crate) fn release(&mut self, now: Nanos, over: bool) -> Vec<WrittenFrame> {
        self.looked = now;
        let mut placed = Vec::new();
        while let Some(offset) = self.order.front().copied() {
            let Some(WrittenFrame { frame, .. }) = self.written.get(&offset) else { break };
            let number = frame.number;
            let is_due = now.since(frame.arrived) >= WAITING_FOR || self.written.len() as u64 > self.most;
            let Some(place) = self.place(number, !over && !is_due) else { break };
            self.order.pop_front();
            placed.extend(
                self.written.remove(&offset).map(|frame| WrittenFrame { place: Some(place), ..frame }),
            );
        }
        placed
    }

    /// The time of the next check, if a frame waits.
    pub(crate) fn look_at(&self) -> Option<Nanos> {
        let first = self.order.front()?;
        self.written.contains_key(first).then_some(self.looked + LOOK)
    }

    /// Returns true if no written frame waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.written.is_empty()
    }

    /// Gives up after a failure, and returns the written frames.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Frame> + use<> {
        self.order.clear();
        std::mem::take(&mut self.written).into_values().map(|written| written.frame)
    }

    /// The position of the next frame; `None` if it waits.
    fn place(&mut self, number: u64, may_wait: bool) -> Option<DatasetPlace> {
        if let Some(known) = &self.datasets.known {
            // Each frame has a position: that was checked before.
            return Some(known.get(&number).copied().unwrap_or_default());
        }
        let together = self.datasets.together.max(1);
        let image = match self.recent.get(&(number / together)) {
            Some(image) => *image,
            None => self.image(number, may_wait)?,
        };
        let ImagePlace { dataset, index, said } = image;
        if together > 1 {
            self.recent.insert(number / together, image);
            if self.recent.len() > RECENT {
                self.recent.pop_first();
            }
        }
        if let Some(joined) = &self.joined {
            joined.count_placed(number, dataset, said);
        }
        let index = index * together + number % together;
        Some(DatasetPlace { dataset: dataset as u32, index })
    }

    /// The position of a new image.
    fn image(&mut self, number: u64, may_wait: bool) -> Option<ImagePlace> {
        let joined = self.joined.as_ref().filter(|joined| joined.may_come());
        let joined = joined.filter(|_| self.datasets.frames.destination.is_some());
        let said = joined.map_or(NamedDataset::Nothing, |joined| joined.named_dataset(number));
        let dataset = match said {
            NamedDataset::One(dataset) => dataset,
            NamedDataset::Nothing if may_wait && joined.is_some() => return None,
            NamedDataset::Unknown | NamedDataset::Nothing => self.datasets.frames.default,
        };
        let index = self.next[dataset];
        self.next[dataset] += 1;
        Some(ImagePlace { dataset, index, said })
    }
}

#[cfg(test)]
mod tests {
    use nilometer_hdf5::{layout::FrameDatasets, tree::ColumnElement};
    use nilometer_storage::Arena;

    use super::*;
    use nilometer_intake::joined::JoinPlan;
    use nilometer_ring::FileOffset;

    struct PlacesLab {
        places: DatasetPlaces,
        joined: Arc<JoinedValues>,
    }

    impl PlacesLab {
        fn new(together: u64, most: u64) -> Self {
            let frames = FrameDatasets {
                paths: vec!["/data".into(), "/dark".into()],
                default: 0,
                destination: Some("Kind".into()),
            };
            let joined = Arc::new(JoinedValues::default());
            joined.begin(JoinPlan {
                columns: vec![("Kind".into(), ColumnElement::TEXT)],
                channels: together,
                datasets: Some(frames.clone()),
                ..JoinPlan::default()
            });
            let datasets = Arc::new(SeveralDatasets { frames, together, known: None });
            PlacesLab { places: DatasetPlaces::new(datasets, Some(joined.clone()), most), joined }
        }

        fn say(&self, image: u64, path: &str) {
            self.joined.put_message(format!(r#"{{"frame": {image}, "Kind": "{path}"}}"#).as_bytes());
        }

        fn issue(&mut self, numbers: &[u64]) {
            for number in numbers {
                self.places.issue(number * 10);
            }
        }

        /// Lands a frame that arrived at this time.
        fn land(&mut self, number: u64, arrived: Nanos) {
            let (_, mut buffers) = Arena::shared_out(1, 16);
            let frame = Frame::new(number, arrived, arrived, buffers.pop().expect("one"));
            let begin = FileOffset { file: 0, offset: number * 10 };
            self.places.land(WrittenFrame { begin, frame, length: 16, place: None });
        }

        fn placed(&mut self, now: Nanos) -> Vec<(u64, u32, u64)> {
            let placed = self.places.release(now, false).into_iter();
            let place = |written: WrittenFrame| {
                let DatasetPlace { dataset, index } = written.place.expect("it has one");
                (written.frame.number, dataset, index)
            };
            placed.map(place).collect()
        }
    }

    const NOW: Nanos = Nanos::from_millis(10);

    #[test]
    fn each_dataset_counts_its_frames_in_the_order_in_which_they_came() {
        let mut lab = PlacesLab::new(1, 10);
        for (frame, path) in [(0, "/data"), (1, "/dark"), (2, "/data"), (5, "/dark"), (6, "/grey")] {
            lab.say(frame, path);
        }
        lab.issue(&[0, 1, 2, 5, 6]);
        for number in [2, 1] {
            lab.land(number, NOW);
        }
        assert_eq!(lab.placed(NOW), [], "frame 0 is still being written");
        assert_eq!(lab.places.look_at(), None, "and wakes the lane when it is");
        for number in [0, 6, 5] {
            lab.land(number, NOW);
        }
        assert_eq!(lab.placed(NOW), [(0, 0, 0), (1, 1, 0), (2, 0, 1), (5, 1, 1), (6, 0, 2)]);
        assert!(lab.places.is_quiet());
    }

    #[test]
    fn a_frame_waits_for_its_value_a_second_and_those_behind_it_wait_with_it() {
        let mut lab = PlacesLab::new(1, 10);
        lab.issue(&[0, 1]);
        (0..2).for_each(|number| lab.land(number, NOW));
        lab.say(1, "/dark");
        assert_eq!(lab.placed(NOW), []);
        assert_eq!(lab.places.look_at(), Some(NOW + LOOK));
        lab.say(0, "/dark");
        assert_eq!(lab.placed(NOW), [(0, 1, 0), (1, 1, 1)]);
        lab.issue(&[2]);
        lab.land(2, NOW);
        assert_eq!(lab.placed(NOW + WAITING_FOR - Nanos(1)), []);
        assert_eq!(lab.placed(NOW + WAITING_FOR), [(2, 0, 0)]);
        lab.say(2, "/dark");
        let tally = lab.joined.tally().datasets.expect("there are several");
        assert_eq!((tally.unnamed, tally.late), (0, 1));
    }

    #[test]
    fn no_more_wait_than_may_and_none_when_it_is_over_or_nobody_says_anything() {
        let mut lab = PlacesLab::new(1, 2);
        lab.issue(&[0, 1, 2]);
        (0..3).for_each(|number| lab.land(number, NOW));
        assert_eq!(lab.placed(NOW), [(0, 0, 0)]);
        let rest = lab.places.release(NOW, true);
        assert_eq!(rest.iter().map(|written| written.frame.number).collect::<Vec<_>>(), [1, 2]);
        let mut silent = PlacesLab::new(1, 2);
        silent.places.joined = Some(Arc::new(JoinedValues::without_source()));
        silent.issue(&[0]);
        silent.land(0, NOW);
        assert_eq!(silent.placed(NOW), [(0, 0, 0)]);
    }

    #[test]
    fn the_channels_of_an_image_stay_together_though_one_never_came() {
        let mut lab = PlacesLab::new(2, 10);
        lab.say(0, "/dark");
        lab.say(1, "/data");
        lab.say(2, "/dark");
        let numbers = [0, 1, 3, 4, 5];
        lab.issue(&numbers);
        for number in numbers {
            lab.land(number, NOW);
        }
        assert_eq!(lab.placed(NOW), [(0, 1, 0), (1, 1, 1), (3, 0, 1), (4, 1, 2), (5, 1, 3)]);
    }
}
