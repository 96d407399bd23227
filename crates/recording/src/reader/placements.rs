//! Locations of all frames of a recording, in little memory. A lane stores its frames one after the other, so
//! the location of the next follows from the last. This keeps the lane of each frame, and only those locations
//! that do not follow. For example, two lanes A and B whose files have 4 frames, 100 B apart:
//!
//! ```text
//! frame         0     1     2     3     4     5     6     7
//! lane          A     B     A     A     B     A     A     B       a label for each number, or runs of them
//! file:offset   0:0   0:0   0:100 0:200 0:100 0:300 1:0   0:300
//! kept          0:0   0:0   -     -     -     -     -     0:300
//! ```
//!
//! Frames 0 and 1 are the first of their lanes in this page (1024 frames). Frame 6 is the fourth of A after
//! 0:0, one more than the rest of the file takes, so it begins file 1. Without a hole in B, frame 7 would be at
//! 0:200, so its location is kept.
//!
//! Frames arrive in the order of their acknowledgement, not always by number. If 3 arrives before 2, it counts
//! as the first of A after 0. Since 0:100 would follow, 0:200 is kept. When 2 arrives, 3 follows from it and
//! its location is dropped.
//!
//! A frame takes 0.3 B with one lane, and 1 to 2 B with several.

use std::ops::Range;

use nilometer_model::Storing;

use super::{
    frame_location::FrameLocation,
    labels::{Label, Labels, Page},
};
use crate::journal::{Encoding, FrameExtent, Head};

/// The lanes and extents of all frames of a recording, by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Placements {
    /// The label of a frame is its lane + 1. Each page of labels has the locations that do not follow.
    lanes: Labels<Exceptions>,
    /// Rules by which locations follow from each other in each lane.
    courses: Vec<Course>,
}

/// Positions and forms of the frames in a page of 1024 numbers that do not follow from others.
#[derive(Debug, Clone, Default)]
struct Exceptions {
    /// Offset in the page, label and position, sorted by offset.
    spots: Vec<(u16, Label, Spot)>,
    /// The form of the first frame in the page, which most others share.
    form: Option<Form>,
    /// Forms that differ, sorted by offset.
    forms: Vec<(u16, Form)>,
}

/// The position of a frame in its lane: file, and offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    file: u64,
    offset: u64,
}

/// Stored length, size in bytes, and encoding of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    length: u32,
    size: u32,
    encoding: Encoding,
}

fn taken_apart(FrameExtent { file, offset, length, encoding, size }: FrameExtent) -> (Spot, Form) {
    (Spot { file, offset }, Form { length, size, encoding })
}

fn put_together(spot: Spot, form: Form) -> FrameExtent {
    let (Spot { file, offset }, Form { length, size, encoding }) = (spot, form);
    FrameExtent { file, offset, length, encoding, size }
}

/// The rule by which positions follow from each other in a lane.
#[derive(Debug, Clone, Copy)]
struct Course {
    frames_per_file: u64,
    /// Distance in bytes between the starts of two consecutive frames.
    stride: u64,
    storing: Storing,
}

impl Course {
    /// Returns the position of a frame that the lane stored `frames` frames after another, and whose number is
    /// `numbers` higher.
    fn advance(self, Spot { file, offset }: Spot, frames: u64, numbers: u64) -> Spot {
        // This is a guess, which the caller compares with the real position. It may be wrong but must not
        // overflow.
        let ahead = |count: u64| offset.saturating_add(count.saturating_mul(self.stride));
        // In a shared file each frame's position depends on its number, independent of the lane.
        if self.storing.kind().one_for_all {
            return Spot { file, offset: ahead(numbers) };
        }
        let within = offset / self.stride % self.frames_per_file + frames;
        if within < self.frames_per_file {
            return Spot { file, offset: ahead(frames) };
        }
        let files = within / self.frames_per_file;
        let rest = within % self.frames_per_file;
        let own = rest.saturating_mul(self.stride);
        // If a lane has one file, `file` counts its parts and the offset continues.
        let offset = if self.storing.is_many_files() { own } else { ahead(frames) };
        Spot { file: file + files, offset }
    }
}

impl Placements {
    /// Adds a lane with this head.
    pub(super) fn add_lane(&mut self, head: &Head) {
        let Head { frames_per_file, stride, .. } = *head;
        // In a shared file with an index, each lane packs its frames into parts of its own.
        let storing = if head.is_one_dataset() { Storing::Growing } else { head.storing };
        let frames_per_file = frames_per_file.max(1);
        let stride = stride.max(1);
        self.courses.push(Course { frames_per_file, stride, storing });
    }

    /// Returns the bytes of memory that the locations take, without those of the tree around them.
    pub fn memory(&self) -> u64 {
        let of = |exceptions: &Exceptions| {
            let spots = exceptions.spots.capacity() * size_of::<(u16, Label, Spot)>();
            spots + exceptions.forms.capacity() * size_of::<(u16, Form)>()
        };
        let page = size_of::<Page>() + size_of::<Exceptions>();
        self.lanes.pages(0..u64::MAX).map(|(_, _, exceptions, _)| (page + of(exceptions)) as u64).sum()
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.lanes.count() as usize
    }

    /// Returns true if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.lanes.count() == 0
    }

    /// Returns true if the frame exists.
    pub fn contains(&self, number: u64) -> bool {
        self.lanes.get(number) > 0
    }

    /// Returns the first frame at or after `from`.
    pub fn next(&self, from: u64) -> Option<u64> {
        self.lanes.next(from)
    }

    /// Returns the last frame below `below`.
    pub fn previous(&self, below: u64) -> Option<u64> {
        self.lanes.previous(below)
    }

    /// Returns the last frame.
    pub fn last(&self) -> Option<u64> {
        self.previous(u64::MAX)
    }

    /// Returns the numbers of all frames in a range, in order.
    pub fn numbers(&self, among: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.lanes.numbers(among)
    }

    /// Returns all frames in a range with their locations, in order.
    pub fn range(&self, among: Range<u64>) -> impl Iterator<Item = (u64, FrameLocation)> + '_ {
        self.lanes.pages(among).flat_map(|(begin, page, exceptions, offsets)| {
            let mut walk = Walk { page, exceptions, courses: &self.courses, last: Vec::new() };
            page.offsets(offsets).filter_map(move |at| Some((begin + u64::from(at), walk.place(at)?)))
        })
    }

    /// Returns all frames with their locations, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, FrameLocation)> + '_ {
        self.range(0..u64::MAX)
    }

    /// Returns the location of a frame, if it exists.
    pub fn get(&self, number: u64) -> Option<FrameLocation> {
        let (page, exceptions, at) = self.lanes.page(number)?;
        exceptions.place(page, &self.courses, at)
    }

    /// Stores the location of a frame. Returns its previous location.
    pub(super) fn insert(&mut self, number: u64, place: FrameLocation) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.insert(page, courses, at, place))
    }

    /// Forgets a frame. Returns its location.
    pub(super) fn remove(&mut self, number: u64) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.remove(page, courses, at))
    }
}

impl Exceptions {
    /// Returns the location of the frame at an offset in the page.
    fn place(&self, page: &Page, courses: &[Course], at: u16) -> Option<FrameLocation> {
        let label = page.get(at);
        let lane = usize::from(label.checked_sub(1)?);
        let spot = self.spot(page, courses, at, label)?;
        Some(FrameLocation { lane, extent: put_together(spot, self.form_at(at)?) })
    }

    /// Stores the location of the frame at an offset in the page. Returns its previous location.
    fn insert(
        &mut self,
        page: &mut Page,
        courses: &[Course],
        at: u16,
        place: FrameLocation,
    ) -> Option<FrameLocation> {
        // It may have been in another lane, in which others follow from it.
        let before = self.remove(page, courses, at);
        let (spot, form) = taken_apart(place.extent);
        let label = place.lane as Label + 1;
        // Look this up before adding the frame, which would change the computed position of the next one in its
        // lane.
        let behind = self.behind(page, courses, at, label);
        if page.end() == 0 {
            self.form = Some(form);
        }
        self.set_form(at, Some(form));
        page.set(at, label);
        self.settle(page, courses, label, at, spot);
        if let Some((behind, spot)) = behind {
            self.settle(page, courses, label, behind, spot);
        }
        before
    }

    /// Forgets the frame at an offset in the page. Returns its location.
    fn remove(&mut self, page: &mut Page, courses: &[Course], at: u16) -> Option<FrameLocation> {
        let place = self.place(page, courses, at)?;
        let label = page.get(at);
        let behind = self.behind(page, courses, at, label);
        page.set(at, 0);
        self.set_spot(at, label, None);
        self.set_form(at, self.form);
        if let Some((behind, spot)) = behind {
            self.settle(page, courses, label, behind, spot);
        }
        Some(place)
    }

    /// Returns the next frame of a lane in the page, and its position. Changes to frames before it must not
    /// move it. Frames after it follow from it as before.
    fn behind(&self, page: &Page, courses: &[Course], at: u16, label: Label) -> Option<(u16, Spot)> {
        let behind = page.next(at + 1, |other| other == label)?;
        Some((behind, self.spot(page, courses, behind, label)?))
    }

    /// Keeps the position of a frame, unless it follows from the frames before it.
    fn settle(&mut self, page: &Page, courses: &[Course], label: Label, at: u16, spot: Spot) {
        // Drop the kept position first, to compare the computed one with `spot`.
        self.set_spot(at, label, None);
        if self.spot(page, courses, at, label) != Some(spot) {
            self.set_spot(at, label, Some(spot));
        }
    }

    /// Returns the position of a frame with this label. Starts from the last kept position of its lane and
    /// counts the lane's frames in between.
    fn spot(&self, page: &Page, courses: &[Course], at: u16, label: Label) -> Option<Spot> {
        let before = &self.spots[..self.spots.partition_point(|(other, ..)| *other <= at)];
        let &(from, _, spot) = before.iter().rev().find(|(_, of, _)| *of == label)?;
        if from == at {
            return Some(spot);
        }
        let frames = page.count(from + 1..at + 1, |other| other == label);
        let course = courses.get(usize::from(label) - 1)?;
        Some(course.advance(spot, frames, u64::from(at - from)))
    }

    fn set_spot(&mut self, at: u16, label: Label, spot: Option<Spot>) {
        let found = self.spots.binary_search_by_key(&at, |(other, ..)| *other);
        match (found, spot) {
            (Ok(here), None) => _ = self.spots.remove(here),
            (Ok(here), Some(spot)) => self.spots[here] = (at, label, spot),
            (Err(here), Some(spot)) => {
                // A page of one lane keeps one position. The default capacity of four would waste three.
                self.spots.reserve_exact(usize::from(self.spots.is_empty()));
                self.spots.insert(here, (at, label, spot));
            }
            (Err(_), None) => {}
        }
    }

    /// Returns the form of the frame at an offset.
    fn form_at(&self, at: u16) -> Option<Form> {
        let found = self.forms.binary_search_by_key(&at, |(other, _)| *other);
        found.map_or(self.form, |here| Some(self.forms[here].1))
    }

    /// Keeps the form of the frame at an offset, unless it is the common one. `None` forgets it.
    fn set_form(&mut self, at: u16, form: Option<Form>) {
        let found = self.forms.binary_search_by_key(&at, |(other, _)| *other);
        let other = form.filter(|_| form != self.form);
        match (found, other) {
            (Ok(here), None) => _ = self.forms.remove(here),
            (Ok(here), Some(form)) => self.forms[here].1 = form,
            (Err(_), None) => {}
            (Err(here), Some(form)) => self.forms.insert(here, (at, form)),
        }
    }
}

/// Iterates over the positions of a page's frames in order. Each follows from the one before in its lane, so
/// this counts and searches nothing twice.
struct Walk<'a> {
    page: &'a Page,
    exceptions: &'a Exceptions,
    courses: &'a [Course],
    /// The last frame of each lane so far.
    last: Vec<(Label, u16, Spot)>,
}

impl Walk<'_> {
    fn place(&mut self, at: u16) -> Option<FrameLocation> {
        let Walk { page, exceptions, courses, last } = self;
        let label = page.get(at);
        let lane = usize::from(label.checked_sub(1)?);
        let kept = exceptions.spots.binary_search_by_key(&at, |(other, ..)| *other);
        let known = last.iter_mut().find(|(of, ..)| *of == label);
        let spot = match (kept, &known) {
            (Ok(here), _) => exceptions.spots[here].2,
            (Err(_), Some((_, before, spot))) => {
                courses.get(lane)?.advance(*spot, 1, u64::from(at - *before))
            }
            // The first of its lane in the range. The page may have others before it.
            (Err(_), None) => exceptions.spot(page, courses, at, label)?,
        };
        match known {
            Some(known) => *known = (label, at, spot),
            None => last.push((label, at, spot)),
        }
        Some(FrameLocation { lane, extent: put_together(spot, exceptions.form_at(at)?) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nilometer_model::{FileNames, Format};
    use proptest::prelude::*;

    use super::*;

    fn head(storing: Storing) -> Head {
        Head {
            recording: 1,
            lane: 0,
            lanes: 3,
            frame_size: 8,
            stride: 8,
            frames_per_file: 7,
            storing,
            format: Format::Raw,
            names: FileNames::default(),
        }
    }

    fn placements(storing: Storing) -> Placements {
        let mut placements = Placements::default();
        for _ in 0..3 {
            placements.add_lane(&head(storing));
        }
        placements
    }

    /// Returns the location of the nth frame of a lane.
    fn place(storing: Storing, lane: usize, nth: u64, number: u64) -> FrameLocation {
        let position = match storing {
            Storing::Files | Storing::Scattered | Storing::Positions => nth % 7,
            Storing::Growing => nth,
            Storing::Ring => nth % 70,
            Storing::Shared => number,
        };
        FrameLocation { lane, extent: head(storing).extent(nth / 7, 8 * position, 8) }
    }

    proptest! {
        /// Frames that arrive out of order, at wrong positions, with odd lengths, move or vanish.
        #[test]
        fn they_are_what_a_plain_map_says(
            storing in prop::sample::select(vec![Storing::Files, Storing::Growing, Storing::Ring, Storing::Shared]),
            lanes in prop::collection::vec(0..3_usize, 1..2500),
            odd in prop::collection::vec((0..2500_u64, 0..3_usize, 0..9_u64, 0..99_u64, 1..9_u32, any::<bool>()), 0..20),
            swapped in prop::collection::vec(0..2500_usize, 0..40),
            gone in prop::collection::vec(0..2500_u64, 0..40),
            from in 0..2600_u64,
        ) {
            let (mut placements, mut map) = (placements(storing), BTreeMap::new());
            let mut counts = [0; 3];
            let mut all: Vec<(u64, FrameLocation)> = (0..).zip(lanes).map(|(number, lane)| {
                counts[lane] += 1;
                (number, place(storing, lane, counts[lane] - 1, number))
            }).collect();
            for at in swapped {
                let last = all.len() - 1;
                all.swap(at.min(last), (at + 3).min(last));
            }
            let odd = odd.into_iter().map(|(number, lane, file, offset, length, raw)| {
                let encoding = if raw { Encoding::Raw } else { Encoding::Cbf };
                let extent = FrameExtent { file, offset, length, encoding, size: 8 };
                (number, FrameLocation { lane, extent })
            });
            for (number, place) in all.into_iter().chain(odd) {
                prop_assert_eq!(placements.insert(number, place), map.insert(number, place));
            }
            for number in gone {
                prop_assert_eq!(placements.remove(number), map.remove(&number));
            }
            prop_assert_eq!(placements.len(), map.len());
            prop_assert_eq!(placements.iter().collect::<Vec<_>>(), map.iter().map(|(n, p)| (*n, *p)).collect::<Vec<_>>());
            let some = map.range(from..from + 50).map(|(number, place)| (*number, *place));
            prop_assert_eq!(placements.range(from..from + 50).collect::<Vec<_>>(), some.collect::<Vec<_>>());
            prop_assert!(map.iter().all(|(number, place)| placements.get(*number) == Some(*place)));
            prop_assert_eq!(placements.previous(from), map.range(..from).next_back().map(|(number, _)| *number));
            for number in map.keys() {
                placements.remove(*number);
            }
            prop_assert!(placements.is_empty() && placements.lanes.pages(0..u64::MAX).next().is_none());
        }
    }

    /// Number of positions kept for frames that lanes take in turns or at random, with completions somewhat out
    /// of order.
    fn kept(storing: Storing) -> usize {
        let (mut placements, mut counts) = (placements(storing), [0; 3]);
        let frames = (0..100 * 1024_u64).map(|number| {
            let lane = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as usize % 3;
            counts[lane] += 1;
            (number, place(storing, lane, counts[lane] - 1, number))
        });
        let mut frames: Vec<_> = frames.collect();
        frames.chunks_exact_mut(4).for_each(<[_]>::reverse);
        for (number, place) in &frames {
            placements.insert(*number, *place);
        }
        assert!(frames.iter().all(|(number, place)| placements.get(*number) == Some(*place)));
        placements.lanes.pages(0..u64::MAX).map(|(_, _, exceptions, _)| exceptions.spots.len()).sum()
    }

    #[test]
    fn a_place_that_follows_is_not_kept() {
        assert_eq!(kept(Storing::Files), 300, "the first of each lane in each page");
        assert_eq!(kept(Storing::Growing), 300);
        let ring = kept(Storing::Ring);
        assert!(
            (300..300 + 102_400 / 70 + 3).contains(&ring),
            "and those at the beginning of a ring: {ring}"
        );
    }
}
