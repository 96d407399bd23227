//! Whether a recording is whole: every frame that should be there is read and compared, and what is missing or damaged is
//! named.

mod headers;

pub use headers::Headers;

use crate::{
    instrument::{Content, ContentError, Origin},
    reader::{Checksums, FrameLocation, FrameReader, Recording},
    view::RecordingView,
};

/// What to say of a recording that was overwritten before it was read.
pub const OVERWRITTEN: &str = "it is being recorded and only the latest of it is kept: some was overwritten before it was \
                               read; end the recording first";

/// So many damaged frames are named.
const NAMED_MAX: usize = 10_000;

/// What became of a recording.
#[derive(Debug, Default)]
pub struct Verified {
    /// Frames were made again from the seed, and compared with these.
    pub made_again: bool,
    /// Why they could not be made again, though the journal says what from.
    pub not_made_again: Option<ContentError>,
    /// Frames that are there and right.
    pub right: u64,
    /// Of these, frames that can be read but have nothing to be compared with.
    pub unchecked: u64,
    /// Frames that are not there though they should be, as ranges: first and count.
    pub missing: Vec<(u64, u64)>,
    /// Frames that are there in no place as they should be: the first 10,000 of them.
    pub damaged: Vec<Damaged>,
    /// How many there are in all.
    pub damaged_frames: u64,
    /// Frames that were there when it was begun, and were overwritten while they were read: what is said of others may be
    /// wrong for the same reason.
    pub overwritten: u64,
    /// What the headers of packets say, if frames are blocks of packets that have some.
    pub headers: Option<Headers>,
}

/// A frame that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The frame.
    pub number: u64,
    /// Where it should be.
    pub place: FrameLocation,
    /// What is wrong.
    pub why: String,
}

impl Verified {
    /// Frames that are missing.
    pub fn missing_frames(&self) -> u64 {
        self.missing.iter().map(|(_, count)| count).sum()
    }
}

/// Reads and compares every frame, and the headers in blocks of packets.
pub fn verify(whole: &RecordingView) -> Verified {
    verify_while(whole, &|| true).expect("it goes on to the end")
}

/// The same, as long as it is to go on, which is asked before each frame; none if it was not to.
pub fn verify_while(whole: &RecordingView, goes_on: &dyn Fn() -> bool) -> Option<Verified> {
    let headers = Headers::of(whole);
    let first = whole.recording(|recording| recording.index.first());
    let verified = whole.recording(|recording| compare(recording, headers, goes_on))?;
    if whole.recording(|recording| recording.head().storing.kind().overwrites) {
        whole.refresh();
    }
    let overwritten = whole.recording(|recording| recording.index.first()).saturating_sub(first);
    Some(Verified { overwritten, ..verified })
}

fn compare(recording: &Recording, headers: Option<Headers>, goes_on: &dyn Fn() -> bool) -> Option<Verified> {
    let index = &recording.index;
    let mut frames = recording.frames();
    let mut verified = Verified { missing: index.missing(), headers, ..Verified::default() };
    let content = match index.origin.as_ref().map(Origin::content) {
        Some(Err(why)) => {
            verified.not_made_again = Some(why);
            None
        }
        Some(Ok(content)) => Some(content),
        None => None,
    };
    verified.made_again = content.is_some();
    let mut checksums = recording.checksums();
    for number in index.frames.numbers(index.first()..u64::MAX) {
        if !goes_on() {
            return None;
        }
        // The frame counts if any of its copies is right; the complaint is about the first.
        let mut complaint = None;
        for place in index.places(number) {
            let proof = FrameProof::of(content.as_ref(), &mut checksums, number, place);
            let checked = proof.and_then(|proof| proof.check(&mut frames, number, place));
            let checked = checked.and_then(|(bytes, checked)| {
                let gaps = index.gaps.get(&number).map_or(&[][..], Vec::as_slice);
                let headers = verified.headers.as_mut();
                headers.map_or(Ok(()), |headers| headers.take(number, bytes, gaps)).map(|()| checked)
            });
            match checked {
                Ok(checked) => {
                    verified.right += 1;
                    verified.unchecked += u64::from(!checked);
                    complaint = None;
                    break;
                }
                Err(why) => complaint = complaint.or(Some(Damaged { number, place, why })),
            }
        }
        verified.damaged_frames += u64::from(complaint.is_some());
        verified.damaged.extend(complaint.filter(|_| verified.damaged.len() < NAMED_MAX));
    }
    Some(verified)
}

/// What a frame is compared with.
#[derive(Debug, Clone, Copy)]
pub enum FrameProof<'a> {
    /// The same frame, made again.
    Made(&'a Content),
    /// The CRC-32 (ISO-HDLC) of its bytes.
    Checksum(u32),
    /// Nothing: it can be read or not.
    Nothing,
}

impl<'a> FrameProof<'a> {
    fn of(
        content: Option<&'a Content>,
        checksums: &mut Checksums,
        number: u64,
        place: FrameLocation,
    ) -> Result<Self, String> {
        if let Some(content) = content {
            return Ok(FrameProof::Made(content));
        }
        let checksum = checksums.of(number, place).map_err(|error| format!("has no checksum: {error}"))?;
        Ok(checksum.map_or(FrameProof::Nothing, FrameProof::Checksum))
    }

    /// The frame, and whether there was something to compare it with.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn check<'b>(
        &self,
        frames: &'b mut FrameReader<'_>,
        number: u64,
        place: FrameLocation,
    ) -> Result<(&'b [u8], bool), String> {
        let bytes = frames.at(place).map_err(|error| format!("can't be read: {error}"))?;
        match self {
            FrameProof::Made(content) => match content.verify(number, bytes) {
                Ok(()) => Ok((bytes, true)),
                Err(page) => Err(format!("differs from byte {} on", page * 4096)),
            },
            FrameProof::Checksum(checksum) if crc32fast::hash(bytes) != *checksum => {
                Err("its checksum is another".into())
            }
            FrameProof::Checksum(_) => Ok((bytes, true)),
            FrameProof::Nothing => Ok((bytes, false)),
        }
    }
}
