//! Origin of simulated frames, as a recording's journal states it. A reader can make each frame again from it,
//! and needs neither a checksum nor the frames themselves.

use nilometer_model::{Data, DataKind, PixelType, Seed};
use serde::{Deserialize, Serialize};

use super::{
    Content, ContentError, POOL_MAX,
    stamp::{Stamp, StampHead},
};

/// The recipe of a recording's frames, with every choice made and every search done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Description of the data, with the intensity that the search found and the count of distinct frames.
    pub(super) data: Data,
    /// Pixels of a frame, slowest dimension first.
    pub(super) shape: Vec<u64>,
    /// Type of a pixel.
    pub(super) pixel: PixelType,
    /// Seed of all random numbers.
    pub(super) seed: u64,
    /// CRC-32 (ISO-HDLC) of the prepared frames. Another build of the mathematical functions may round
    /// otherwise.
    pub(super) checksum: u32,
    /// Layout of a frame's head. Journals without this field use the packed layout.
    #[serde(default, skip_serializing_if = "StampHead::is_packed")]
    pub(super) head: StampHead,
}

/// Limit on the size of frames that a reader makes again. A journal that claims larger ones would exhaust
/// memory.
const FRAME_MAX: u64 = 1 << 30;

impl Origin {
    /// Creates the origin of frames of random bytes.
    pub(super) fn of_pattern(seed: Seed, frame_size: usize, checksum: u32) -> Self {
        let data = DataKind::Incompressible.into();
        let shape = vec![frame_size as u64];
        let head = StampHead::default();
        Origin { data, shape, pixel: PixelType::Uint8, seed: seed.0, checksum, head }
    }

    /// Pixels of a frame, the slowest dimension first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Type of a pixel.
    pub fn pixel(&self) -> PixelType {
        self.pixel
    }

    /// Kind of the frames' data.
    pub fn kind(&self) -> &DataKind {
        &self.data.kind
    }

    /// Returns the origin as one line of text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and words can be written")
    }

    /// Reads an origin. `None` if the text is incomplete, its frames are not `frame_size` bytes long, or they
    /// do not fit in memory.
    pub fn read(text: &str, frame_size: u64) -> Option<Self> {
        let origin: Origin = serde_json::from_str(text).ok()?;
        let pixels = origin.shape.iter().try_fold(1_u64, |pixels, &side| pixels.checked_mul(side))?;
        let fits = pixels.checked_mul(origin.pixel.bits()) == frame_size.checked_mul(8);
        let distinct = origin.data.distinct.unwrap_or(1);
        let kept = distinct == 1 || distinct.checked_mul(frame_size).is_some_and(|bytes| bytes <= POOL_MAX);
        let fits = fits && frame_size <= FRAME_MAX;
        (fits && kept && frame_size > 0 && !origin.shape.is_empty()).then_some(origin)
    }

    /// Makes the content again, which takes as long as preparing it did. Reads no files, because a journal from
    /// another user could name any file.
    pub fn content(&self) -> Result<Content, ContentError> {
        if let DataKind::Files(pattern) = &self.data.kind {
            return Err(ContentError::NotNamed(pattern.clone()));
        }
        let stamp = Stamp::with_head(Seed(self.seed), self.pixel, self.head);
        let content = Content::prepare_stamped(&self.data, &self.shape, self.pixel, stamp)?;
        match content.origin() {
            Some(Origin { checksum, .. }) if checksum == self.checksum => Ok(content),
            _ => Err(ContentError::Otherwise),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn origin(data: &Data) -> (Content, Origin) {
        let shape = [30, 40];
        let content =
            Content::prepare(data, &shape, PixelType::Uint16, Seed(u64::MAX)).expect("it can be made");
        let origin = content.origin().expect("it follows from the seed");
        (content, origin)
    }

    #[test]
    fn frames_are_made_again_from_the_text_alone() {
        let wished = Data { compressibility: Some(3.0), ..DataKind::Tomography.into() };
        for data in
            [wished, DataKind::Diffraction.into(), DataKind::Vlbi.into(), DataKind::Incompressible.into()]
        {
            let (content, origin) = origin(&data);
            let again = Origin::read(&origin.text(), 2400).expect("it was written");
            assert_eq!(again, origin);
            assert_eq!(again.data.compressibility, None, "nothing is left to be searched");
            let again = again.content().expect("it can be made again");
            let mut slot = vec![0; 2400];
            content.prepare_slot(&mut slot);
            for number in [0, 7, 1_000_000] {
                content.fill(number, &mut slot);
                assert_eq!(again.verify(number, &slot), Ok(()), "frame {number} of {origin:?}");
            }
        }
    }

    #[test]
    fn frames_are_verified_by_the_head_that_their_journal_names() {
        let data = Data { distinct: Some(2), ..DataKind::Diffraction.into() };
        let shape = [30, 40];
        let content = Content::prepare(&data, &shape, PixelType::Int32, Seed(7)).expect("it can be made");
        let text = content.origin().expect("it follows from the seed").text();
        let earlier = text.replace(",\"head\":\"spread\"", "");
        assert_ne!(text, earlier, "new frames say so");
        let made = |text: &str| {
            let origin = Origin::read(text, 4800).expect("it was written");
            let content = origin.content().expect("it can be made again");
            let mut frame = vec![0; 4800];
            content.fill(5, &mut frame);
            (content, frame)
        };
        let (new, new_frame) = made(&text);
        let (old, old_frame) = made(&earlier);
        assert_eq!(old_frame[..16], [5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(new_frame[32..], old_frame[32..], "only the head is another");
        assert_eq!((new.verify(5, &new_frame), old.verify(5, &old_frame)), (Ok(()), Ok(())));
        assert_eq!((new.verify(5, &old_frame), old.verify(5, &new_frame)), (Err(0), Err(0)));
        for at in (0..4800).step_by(3) {
            let mut damaged = new_frame.clone();
            damaged[at] ^= 0x20;
            assert_eq!(new.verify(5, &damaged), Err(at / 4096), "byte {at}");
        }
    }

    #[test]
    fn what_would_be_made_otherwise_is_not_compared_with() {
        for data in [DataKind::LiquidArgon.into(), DataKind::Incompressible.into()] {
            let (_, mut origin) = origin(&data);
            origin.checksum ^= 1;
            assert!(matches!(origin.content(), Err(ContentError::Otherwise)), "{origin:?}");
        }
    }

    #[test]
    fn files_that_a_journal_names_are_not_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("frame");
        std::fs::write(&file, [0; 2400]).expect("space");
        let (_, mut origin) = origin(&DataKind::Incompressible.into());
        for named in [file.as_path(), Path::new("/dev/zero")] {
            origin.data = DataKind::Files(named.to_str().expect("a plain name").into()).into();
            let why = origin.content().expect_err("the journal names it, not the user");
            assert!(matches!(why, ContentError::NotNamed(_)), "{why}");
        }
    }

    #[test]
    fn texts_that_are_cut_or_do_not_fit_the_frames_are_none() {
        let text = origin(&DataKind::Diffraction.into()).1.text();
        assert!(Origin::read(&text, 2400).is_some());
        assert_eq!(Origin::read(&text, 2401), None);
        for end in 0..text.len() {
            assert_eq!(Origin::read(&text[..end], 2400), None);
        }
        for (from, to) in
            [("[30,40]", "[]"), ("[30,40]", "[0]"), ("[30,40]", "[18446744073709551615,2]"), ("0.5", "-0.5")]
        {
            assert!(text.contains(from));
            assert_eq!(Origin::read(&text.replace(from, to), 2400), None, "{to}");
        }
    }
}
