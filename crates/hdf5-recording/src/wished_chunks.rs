//! Cuts existing frames into the chunks of an HDF5 file, or puts several into one chunk. The number of frames is
//! fixed beforehand.

use std::sync::Arc;

use nilometer_hdf5::tree::FramesShape;
use nilometer_model::{Bytes, ChunkShape, FrameCompression, FrameCut};
use nilometer_recording::tiles::TileGrid;

use crate::{Hdf5Contents, StackedFrames, frame_filter, settled_for};

/// The user's wishes for chunks.
#[derive(Debug, Clone, Copy)]
pub struct WishedChunks {
    /// The part of a frame, or the frames, in a chunk.
    pub chunk: ChunkShape,
    /// The compression, if the user chose one.
    pub compression: Option<FrameCompression>,
    /// Number of frames expected.
    pub due: u64,
}

impl Hdf5Contents {
    /// Changes the contents to such chunks.
    ///
    /// # Errors
    /// If such chunks are impossible; the message has the alternatives.
    pub fn cut(self, wished: WishedChunks) -> Result<Self, String> {
        let Hdf5Contents { mut tree, mut compression, element, .. } = self;
        if self.packed_12 {
            return Err(format!(
                "--chunk {}: samples of 12 bits go into a chunk a frame: leave it out",
                wished.chunk
            ));
        }
        let several = self.datasets.is_some();
        let shape = Arc::make_mut(&mut tree).frames_mut().ok_or("its files have no frames")?;
        let cut = wished.chunk.of_frames(&shape.frame, element.bytes() as u64);
        let cut = cut.map_err(|why| {
            let chunk = wished.chunk;
            why.replacen(&format!("chunk = \"{chunk}\""), &format!("--chunk {chunk}"), 1)
        })?;
        let FrameCut { frames, sides } = cut.clone();
        wished.check_stack(shape, &cut)?;
        if several && frames > 1 {
            return Err(format!(
                "--chunk {}: its frames are in several datasets: leave the number of frames out",
                wished.chunk
            ));
        }
        if let FrameCompression::Filter(_) = compression {
            compression = wished.settled(shape, &cut, compression)?;
        }
        let whole = sides == shape.frame;
        let frame_size = shape.frame_size();
        let grid = (!whole).then(|| match frames {
            1 => TileGrid::new(&shape.frame, &sides, element),
            _ => TileGrid::new(&with(frames, &shape.frame), &with(frames, &sides), element),
        });
        shape.chunk = if whole { Vec::new() } else { sides };
        shape.stack = frames;
        shape.filter = frame_filter(compression, element);
        if frames > 1 {
            // Missing parts of a stack are 0.
            shape.fill = None;
        }
        Arc::make_mut(&mut tree).make_frames_alike();
        let grid = match grid {
            Some(grid) => Some(Arc::new(grid.ok_or("--chunk: frames can't be cut so")?)),
            None => None,
        };
        let stack = (frames > 1).then_some(StackedFrames { frames, due: wished.due });
        let frame_size = frame_size * frames;
        let contents = Hdf5Contents { tree, compression, frame_size, grid, stack, ..self };
        let longest = contents.stored_max();
        if frames > 1 && longest > WRITE_MAX {
            let most = u128::from(frames) * u128::from(WRITE_MAX) / u128::from(longest);
            return Err(format!(
                "--chunk {}: such a chunk may take {}, but one write takes at most 2 GiB: put at most {most} frames \
                 into one",
                wished.chunk,
                Bytes(longest)
            ));
        }
        Ok(contents)
    }

    /// Number of frames per chunk, if more than one.
    pub fn stacked(&self) -> Option<u64> {
        self.stack.map(|stack| stack.frames)
    }
}

/// Bytes that Linux writes at once, at the most.
const WRITE_MAX: u64 = 0x7fff_f000;

/// The dimensions of `frames` frames with these sides.
fn with(frames: u64, sides: &[u64]) -> Vec<u64> {
    [frames].into_iter().chain(sides.iter().copied()).collect()
}

impl WishedChunks {
    /// Checks that the wished number of frames can be put together.
    fn check_stack(self, shape: &FramesShape, cut: &FrameCut) -> Result<(), String> {
        let WishedChunks { chunk, due, .. } = self;
        let frames = cut.frames;
        let sides: Vec<_> = cut.sides.iter().map(u64::to_string).collect();
        let sides = sides.join("x");
        if frames > 1 && !shape.scan.is_empty() {
            let scan: Vec<_> = shape.scan.iter().map(u64::to_string).collect();
            return Err(format!(
                "--chunk {chunk}: its frames form a scan with lines of {}, and only frames of one row can share a \
                 chunk: write --chunk {sides}",
                scan.join("x")
            ));
        }
        // No file is made of an empty recording.
        if frames > due && due > 0 {
            return Err(format!(
                "--chunk {chunk}: it has {due} frames, and a chunk at most as many: write --chunk {due}x{sides}, or less"
            ));
        }
        Ok(())
    }

    /// The compression, with a plug-in's numbers adapted to the chunks.
    fn settled(
        self,
        shape: &FramesShape,
        cut: &FrameCut,
        there: FrameCompression,
    ) -> Result<FrameCompression, String> {
        let WishedChunks { chunk, compression, .. } = self;
        let name = there.name();
        if cut.sides != shape.frame {
            return Err(format!(
                "--chunk {chunk}: {name} is the filter of a plug-in, which makes chunks of whole frames: write whole frames, or \
                 another --compression"
            ));
        }
        if cut.frames == 1 {
            return Ok(there);
        }
        let Some(wished) = compression else {
            return Err(format!(
                "--chunk {chunk}: {name} fits chunks of one frame: add --compression with its values"
            ));
        };
        settled_for(wished, shape.element, &with(cut.frames, &shape.frame))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::PixelType;

    use super::*;

    fn cut(chunk: &str, due: u64) -> Result<Hdf5Contents, String> {
        let contents = Hdf5Contents::of_frames(PixelType::Uint16, &[64, 96], FrameCompression::Bslz4);
        let chunk = chunk.parse().expect("a chunk");
        contents.expect("whole pixels").cut(WishedChunks { chunk, compression: None, due })
    }

    #[test]
    fn several_frames_are_one_of_the_recorder_and_one_chunk() {
        let contents = cut("8x64x96", 100).expect("it can be");
        assert_eq!((contents.frame_size, contents.stacked()), (8 * 64 * 96 * 2, Some(8)));
        assert!(contents.grid.is_none());
        let (_, shape) = contents.tree.frames().remove(0);
        assert_eq!((shape.stack, &shape.chunk[..]), (8, &[][..]));
        assert_eq!(shape.offset(21, 0), [16, 0, 0]);
        let contents = cut("8x64x50", 100).expect("it can be");
        assert_eq!(contents.grid.map(|grid| grid.tiles()), Some(2));
        let contents = cut("1x64x50", 1).expect("it can be");
        assert_eq!((contents.frame_size, contents.stacked()), (64 * 96 * 2, None));
    }

    #[test]
    fn what_journals_say_of_a_frame_a_chunk_stays_as_it_was() {
        for (chunk, is_said) in [("1x64x50", false), ("8x64x50", true)] {
            let tree = cut(chunk, 100).expect("it can be").tree;
            let (_, shape) = tree.frames().remove(0);
            let text = serde_json::to_string(shape).expect("text");
            assert_eq!(text.contains("\"stack\""), is_said, "{text}");
            assert_eq!(&serde_json::from_str::<FramesShape>(&text).expect("a shape"), shape);
        }
    }

    #[test]
    fn no_more_frames_are_in_a_chunk_than_there_are() {
        assert!(cut("100x64x96", 100).is_ok());
        let refused = cut("101x64x50", 100).expect_err("too many");
        assert!(refused.contains("write --chunk 100x64x50, or less"), "{refused}");
        let refused = cut("200000x64x96", 300_000).expect_err("more than one write takes");
        let most = refused.rsplit("at most ").next().and_then(|rest| rest.split(' ').next());
        let most = most.and_then(|most| most.parse::<u64>().ok()).expect("a number");
        assert!(
            cut(&format!("{most}x64x96"), 300_000).is_ok() && (150_000..175_000).contains(&most),
            "{refused}"
        );
    }
}
