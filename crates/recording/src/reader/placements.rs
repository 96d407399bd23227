//! Where each frame of a recording is, in little memory: a lane puts frames one behind the other, so that
//! where the next one is follows from where the last one is. Kept are the lane of each frame, and the places
//! that do not follow. For example, two lanes A and B whose files have 4 frames, 100 B apart:
//!
//! ```text
//! frame         0     1     2     3     4     5     6     7
//! lane          A     B     A     A     B     A     A     B       a label for each number, or runs of them
//! file:offset   0:0   0:0   0:100 0:200 0:100 0:300 1:0   0:300
//! kept          0:0   0:0   -     -     -     -     -     0:300
//! ```
//!
//! Frames 0 and 1 are the first of their lanes in this page (1024 frames). Frame 6 is the fourth of A behind
//! 0:0: one more than the rest of the file takes, so that it begins file 1. Frame 7 would be at 0:200 if B
//! had no hole, and is kept.
//!
//! Frames are noted as they were acknowledged, not always in order. If 3 comes before 2, it is taken for the
//! first of A behind 0, which would be at 0:100, and 0:200 is kept. When 2 comes, 3 follows from it, and is
//! kept no more.
//!
//! Of one lane that is 0.3 B a frame, of several between 1 and 2 B.

use std::ops::Range;

use nilometer_model::Storing;

use super::{
    FrameLocation,
    labels::{Label, Labels, Page},
};
use crate::journal::{Encoding, FrameExtent, Head};

/// The lanes and extents of all frames of a recording, by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Placements {
    /// The label of a frame is its lane + 1; with each page of labels go the places in it that do not follow.
    lanes: Labels<Exceptions>,
    /// How places follow from each other in each lane.
    courses: Vec<Course>,
}

/// The places and forms of frames in a page of 1024 numbers that do not follow from others.
#[derive(Debug, Clone, Default)]
struct Exceptions {
    /// Offset in the page, label and place, in the order of offsets.
    spots: Vec<(u16, Label, Spot)>,
    /// The form of the first frame that was put into the page, which most others have.
    form: Option<Form>,
    /// The forms of those that have another, in the order of offsets.
    forms: Vec<(u16, Form)>,
}

/// The place of a frame in its lane: a file, and an offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    file: u64,
    offset: u64,
}

/// The stored length and the size of a frame, in bytes, and how it is encoded.
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

/// How places follow from each other in a lane.
#[derive(Debug, Clone, Copy)]
struct Course {
    frames_per_file: u64,
    /// From the beginning of a frame to the begin of the next, in bytes.
    stride: u64,
    storing: Storing,
}

impl Course {
    /// The place of a frame that was stored so many `frames` of the lane behind another, and has a number so
    /// many `numbers` higher.
    fn advance(self, Spot { file, offset }: Spot, frames: u64, numbers: u64) -> Spot {
        // A guess, which is compared with the place before it is relied on: it may be wrong, but must not
        // overflow.
        let ahead = |count: u64| offset.saturating_add(count.saturating_mul(self.stride));
        // In the shared file each frame is at its number, whichever lane wrote it.
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
        // Where a lane has one file, `file` counts parts of it and the offset goes on.
        let offset = if self.storing.is_many_files() { own } else { ahead(frames) };
        Spot { file: file + files, offset }
    }
}

impl Placements {
    /// Adds a lane, whose journal begins with this head.
    pub(super) fn add_lane(&mut self, head: &Head) {
        let Head { frames_per_file, stride, storing, .. } = *head;
        let frames_per_file = frames_per_file.max(1);
        let stride = stride.max(1);
        self.courses.push(Course { frames_per_file, stride, storing });
    }

    /// How many frames are there.
    pub fn len(&self) -> usize {
        self.lanes.count() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lanes.count() == 0
    }

    /// Whether a frame is there.
    pub fn contains(&self, number: u64) -> bool {
        self.lanes.get(number) > 0
    }

    /// The first frame from this number on.
    pub fn next(&self, from: u64) -> Option<u64> {
        self.lanes.next(from)
    }

    /// The last frame below this number.
    pub fn previous(&self, below: u64) -> Option<u64> {
        self.lanes.previous(below)
    }

    /// The last frame.
    pub fn last(&self) -> Option<u64> {
        self.previous(u64::MAX)
    }

    /// The numbers of all frames among these, in order.
    pub fn numbers(&self, among: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.lanes.numbers(among)
    }

    /// All frames among these numbers and where they are, in order.
    pub fn range(&self, among: Range<u64>) -> impl Iterator<Item = (u64, FrameLocation)> + '_ {
        self.lanes.pages(among).flat_map(|(begin, page, exceptions, offsets)| {
            let mut walk = Walk { page, exceptions, courses: &self.courses, last: Vec::new() };
            page.offsets(offsets).filter_map(move |at| Some((begin + u64::from(at), walk.place(at)?)))
        })
    }

    /// All frames and where they are, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, FrameLocation)> + '_ {
        self.range(0..u64::MAX)
    }

    /// The lane and extent of a frame, if it is there.
    pub fn get(&self, number: u64) -> Option<FrameLocation> {
        let (page, exceptions, at) = self.lanes.page(number)?;
        exceptions.place(page, &self.courses, at)
    }

    /// Notes the place of a frame; returns the place that it had before.
    pub(super) fn insert(&mut self, number: u64, place: FrameLocation) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.insert(page, courses, at, place))
    }

    /// Forgets a frame; returns the place that it had.
    pub(super) fn remove(&mut self, number: u64) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.remove(page, courses, at))
    }
}

impl Exceptions {
    /// The place of the frame at an offset in the page.
    fn place(&self, page: &Page, courses: &[Course], at: u16) -> Option<FrameLocation> {
        let label = page.get(at);
        let lane = usize::from(label.checked_sub(1)?);
        let spot = self.spot(page, courses, at, label)?;
        Some(FrameLocation { lane, extent: put_together(spot, self.form_at(at)?) })
    }

    /// Notes the place of the frame at an offset in the page; returns the one that it had.
    fn insert(
        &mut self,
        page: &mut Page,
        courses: &[Course],
        at: u16,
        place: FrameLocation,
    ) -> Option<FrameLocation> {
        // It may have been in another lane, in which others followed from it.
        let before = self.remove(page, courses, at);
        let (spot, form) = taken_apart(place.extent);
        let label = place.lane as Label + 1;
        // Asked before the frame is there: with it, the place of the next one of its lane would come out
        // another.
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

    /// Forgets the frame at an offset in the page; returns its place.
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

    /// The next frame of a lane in the page, and its place: it stays there, whatever becomes of those before
    /// it. Those behind it follow from it as before.
    fn behind(&self, page: &Page, courses: &[Course], at: u16, label: Label) -> Option<(u16, Spot)> {
        let behind = page.next(at + 1, |other| other == label)?;
        Some((behind, self.spot(page, courses, behind, label)?))
    }

    /// Keeps the place of a frame, unless it follows from the frames before it.
    fn settle(&mut self, page: &Page, courses: &[Course], label: Label, at: u16, spot: Spot) {
        // Without what is kept of it: what follows is compared with the place.
        self.set_spot(at, label, None);
        if self.spot(page, courses, at, label) != Some(spot) {
            self.set_spot(at, label, Some(spot));
        }
    }

    /// The place of a frame with this label: from the last one before it in its lane that is kept, counting
    /// the frames of the lane in between.
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
                // A page of one lane keeps one place: the usual room for four would be three for nothing.
                self.spots.reserve_exact(usize::from(self.spots.is_empty()));
                self.spots.insert(here, (at, label, spot));
            }
            (Err(_), None) => {}
        }
    }

    /// The form of the frame at an offset.
    fn form_at(&self, at: u16) -> Option<Form> {
        let found = self.forms.binary_search_by_key(&at, |(other, _)| *other);
        found.map_or(self.form, |here| Some(self.forms[here].1))
    }

    /// Keeps the form of the frame at an offset, unless most have it. None forgets it.
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

/// The places of frames of a page, asked for in order: each follows from the one before in its lane, so that
/// nothing is counted or looked for again.
struct Walk<'a> {
    page: &'a Page,
    exceptions: &'a Exceptions,
    courses: &'a [Course],
    /// The last frame of each lane that was met.
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
            // The first of its lane in the range that is asked for: others may stand before it in the page.
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

    use nilometer_model::Format;
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
        }
    }

    fn placements(storing: Storing) -> Placements {
        let mut placements = Placements::default();
        for _ in 0..3 {
            placements.add_lane(&head(storing));
        }
        placements
    }

    /// The place of the nth frame of a lane.
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
        /// Frames that come out of order, are in the wrong place, are of odd lengths, are put elsewhere and
        /// forgotten.
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

    /// Places that are kept of frames that lanes take in turns or at random, their completions somewhat out
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
