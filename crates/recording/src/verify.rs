//! Verifies a recording: reads and compares every frame due, and lists missing and damaged ones.

mod headers;

pub use headers::Headers;

use crate::{
    instrument::{Content, ContentError, Origin},
    reader::{Checksums, FrameLocation, FrameReader, Recording},
    view::RecordingView,
};

/// The message for a recording that the recorder overwrote before the reader got to it.
pub const OVERWRITTEN: &str = "it is being recorded and only the latest of it is kept: some was overwritten before it was \
                               read; end the recording first";

/// Limit on the damaged frames listed.
const NAMED_MAX: usize = 10_000;

/// The result of a verification.
#[derive(Debug, Default)]
pub struct Verified {
    /// True if frames were made again from the seed, for comparison.
    pub made_again: bool,
    /// The reason why the frames could not be made again although the journal states their origin.
    pub not_made_again: Option<ContentError>,
    /// Number of intact frames.
    pub right: u64,
    /// Number of these that can be read but have no checksum or origin for comparison.
    pub unchecked: u64,
    /// Missing frames, as ranges: first and count.
    pub missing: Vec<(u64, u64)>,
    /// Frames without an intact copy: the first 10,000 of them.
    pub damaged: Vec<Damaged>,
    /// Number of all damaged frames.
    pub damaged_frames: u64,
    /// Number of frames overwritten since the start of the verification. Errors in other frames may have the
    /// same cause.
    pub overwritten: u64,
    /// Findings about the packet headers, if the frames are blocks of packets with headers.
    pub headers: Option<Headers>,
}

/// A damaged frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The frame's number.
    pub number: u64,
    /// Its location.
    pub place: FrameLocation,
    /// The damage.
    pub why: String,
}

impl Verified {
    /// Number of missing frames.
    pub fn missing_frames(&self) -> u64 {
        self.missing.iter().map(|(_, count)| count).sum()
    }
}

/// Reads and compares every frame, and the headers in blocks of packets.
pub fn verify(whole: &RecordingView) -> Verified {
    verify_while(whole, &|| true).expect("it goes on to the end")
}

/// Does the same while `goes_on` returns true, which it calls before each frame. `None` if it stopped early.
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
        // A frame with any intact copy counts as intact. Otherwise the error is that of the first copy.
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

/// The reference for a frame's content.
#[derive(Debug, Clone, Copy)]
pub enum FrameProof<'a> {
    /// The same frame, made again.
    Made(&'a Content),
    /// The CRC-32 (ISO-HDLC) of its bytes.
    Checksum(u32),
    /// Nothing: the check is only that the frame can be read.
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

    /// Returns the frame's bytes, and true if there was a reference for comparison.
    ///
    /// # Errors
    /// A description of the damage.
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
