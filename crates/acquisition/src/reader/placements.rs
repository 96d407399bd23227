//! Where each frame of a recording is, in little memory: a writer puts frames one behind the other, so that where the next one
//! is follows from where the last one is. Kept are the writers, and the places that do not follow.
//!
//! ```text
//! frame        0  1  2  3  4  5  6  7 ..
//! writer       0  1  0  0  1  1  0  1 ..         a label for each number, or runs of them
//! place        a  b  .  .  .  .  c  .            a, b: the first of each writer in a page; c: one that does not follow
//! ```
//!
//! Of one writer that is 0.3 B a frame, of several between 1 and 2 B.

use std::ops::Range;

use nilometer_model::Storing;

use super::{
    FrameLocation,
    labels::{Label, Labels, Page},
};
use crate::journal::{Encoding, FrameExtent, Head};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Placements {
    /// Lane + 1, and what does not follow in a page.
    lanes: Labels<Exceptions>,
    courses: Vec<Course>,
}

/// What does not follow, in a page.
#[derive(Debug, Clone, Default)]
struct Exceptions {
    /// In the order of offsets.
    spots: Vec<(u16, Label, Spot)>,
    /// The form of the first frame that was put here, which most others have.
    form: Option<Form>,
    /// Those that have not, in the order of offsets.
    forms: Vec<(u16, Form)>,
}

/// Where a frame is in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    file: u64,
    offset: u64,
}

/// Of what size a frame is, and how it is stored.
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

/// How a lane goes on.
#[derive(Debug, Clone, Copy)]
struct Course {
    frames_per_file: u64,
    stride: u64,
    storing: Storing,
}

impl Course {
    /// Where a frame is that was stored so many frames behind another, and has a number so much higher.
    fn advance(self, Spot { file, offset }: Spot, frames: u64, numbers: u64) -> Spot {
        // Guesses: a number that can't be is not that of a frame, and none wraps around.
        let ahead = |count: u64| offset.saturating_add(count.saturating_mul(self.stride));
        if self.storing.kind().one_for_all {
            return Spot { file, offset: ahead(numbers) };
        }
        let within = offset / self.stride % self.frames_per_file + frames;
        if within < self.frames_per_file {
            return Spot { file, offset: ahead(frames) };
        }
        let (files, rest) = (within / self.frames_per_file, within % self.frames_per_file);
        let own = rest.saturating_mul(self.stride);
        let offset = if self.storing.is_many_files() { own } else { ahead(frames) };
        Spot { file: file + files, offset }
    }
}

impl Placements {
    /// One more lane comes, whose journal begins like this.
    pub(super) fn add_lane(&mut self, head: &Head) {
        let Head { frames_per_file, stride, storing, .. } = *head;
        let (frames_per_file, stride) = (frames_per_file.max(1), stride.max(1));
        self.courses.push(Course { frames_per_file, stride, storing });
    }

    /// How many frames there are.
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

    /// Where a frame is.
    pub fn get(&self, number: u64) -> Option<FrameLocation> {
        let (page, exceptions, at) = self.lanes.page(number)?;
        exceptions.place(page, &self.courses, at)
    }

    /// Puts a frame into a place: where it was before.
    pub(super) fn insert(&mut self, number: u64, place: FrameLocation) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.insert(page, courses, at, place))
    }

    /// Forgets a frame: where it was.
    pub(super) fn remove(&mut self, number: u64) -> Option<FrameLocation> {
        let courses = &self.courses;
        self.lanes.change(number, |page, exceptions, at| exceptions.remove(page, courses, at))
    }
}

impl Exceptions {
    fn place(&self, page: &Page, courses: &[Course], at: u16) -> Option<FrameLocation> {
        let label = page.get(at);
        let lane = usize::from(label.checked_sub(1)?);
        let spot = self.spot(page, courses, at, label)?;
        Some(FrameLocation { lane, extent: put_together(spot, self.form_at(at)?) })
    }

    fn insert(
        &mut self,
        page: &mut Page,
        courses: &[Course],
        at: u16,
        place: FrameLocation,
    ) -> Option<FrameLocation> {
        let before = self.remove(page, courses, at);
        let (spot, form) = taken_apart(place.extent);
        let label = place.lane as Label + 1;
        let behind = self.behind(page, courses, at, label);
        if page.end() == 0 {
            self.form = Some(form);
        }
        self.set_form(at, Some(form));
        page.set(at, label);
        self.settle(page, courses, label, (at, spot));
        if let Some(behind) = behind {
            self.settle(page, courses, label, behind);
        }
        before
    }

    fn remove(&mut self, page: &mut Page, courses: &[Course], at: u16) -> Option<FrameLocation> {
        let place = self.place(page, courses, at)?;
        let label = page.get(at);
        let behind = self.behind(page, courses, at, label);
        page.set(at, 0);
        self.set_spot(at, label, None);
        self.set_form(at, self.form);
        if let Some(behind) = behind {
            self.settle(page, courses, label, behind);
        }
        Some(place)
    }

    /// The frame of a lane that follows in the page, and where it is: it stays there, whatever becomes of those before it.
    fn behind(&self, page: &Page, courses: &[Course], at: u16, label: Label) -> Option<(u16, Spot)> {
        let behind = page.next(at + 1, |other| other == label)?;
        Some((behind, self.spot(page, courses, behind, label)?))
    }

    /// Notes where a frame is, unless that follows from the frames before it.
    fn settle(&mut self, page: &Page, courses: &[Course], label: Label, (at, spot): (u16, Spot)) {
        self.set_spot(at, label, None);
        if self.spot(page, courses, at, label) != Some(spot) {
            self.set_spot(at, label, Some(spot));
        }
    }

    /// Where a frame is that has this label.
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
                self.spots.reserve_exact(usize::from(self.spots.is_empty()));
                self.spots.insert(here, (at, label, spot));
            }
            (Err(_), None) => {}
        }
    }

    fn form_at(&self, at: u16) -> Option<Form> {
        let found = self.forms.binary_search_by_key(&at, |(other, _)| *other);
        found.map_or(self.form, |here| Some(self.forms[here].1))
    }

    /// None forgets it.
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

/// The places of frames of a page, asked for in order: each follows from that before.
struct Walk<'a> {
    page: &'a Page,
    exceptions: &'a Exceptions,
    courses: &'a [Course],
    /// Of each lane that was met: its last frame.
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
        /// Frames that come out of order, are in the wrong place, are of odd lengths, are put elsewhere and forgotten.
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

    /// Places that are kept of frames that lanes take in turns or at random, their completions somewhat out of order.
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
