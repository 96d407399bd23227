//! The layout of pictures: which instruments have frames that are pictures, and the positions of their pixels.

use nilometer_model::{Bytes, Instrument, PixelType};

/// The layout of a picture in a frame. Modules follow each other; each is stored row by row, and pixels are
/// little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureLayout {
    pub(super) pixel: PixelType,
    /// Columns and rows of a module.
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) modules: usize,
    /// The number of modules side by side in the picture.
    pub(super) across: usize,
}

/// Larger frames would take too much memory beside a recording.
const FRAME_MAX: Bytes = Bytes(256 << 20);

/// Refuses instruments whose frames nobody can show, with the reason.
pub(crate) fn check_frames(instrument: &Instrument) -> Result<(), String> {
    let frame = instrument.frame_size();
    if let Some(packets) = &instrument.packets {
        let detector = packets.detector(frame);
        let detector = detector.ok_or("its packets are samples of a stream, not pictures")?;
        if detector.subframes > 1 {
            return Err("its frames come in sub-frames, whose pixels have an unknown order".into());
        }
    }
    if matches!(instrument.pixel, PixelType::Uint2 | PixelType::Uint12) {
        let name = instrument.pixel.name();
        return Err(format!("pixels of type {name} are packed: they are not shown"));
    }
    if frame > FRAME_MAX {
        return Err(format!("its frames have {frame}: only those of at most {FRAME_MAX} are shown"));
    }
    Ok(())
}

impl PictureLayout {
    /// The layout for an instrument with packets or whole frames over a network, or the reason why it has no
    /// pictures.
    pub(crate) fn of(instrument: &Instrument) -> Result<Self, String> {
        check_frames(instrument)?;
        let name = instrument.pixel.name();
        match instrument.pixel {
            PixelType::Float32 | PixelType::Float64 | PixelType::Int64 | PixelType::Uint64 => {
                return Err(format!(
                    "pixels of type {name} are no counts of up to 32 bits: they are not shown"
                ));
            }
            _ => {}
        }
        let [modules @ .., rows, columns] = instrument.shape.as_slice() else {
            return Err("its frames have one dimension only".into());
        };
        let columns = *columns as usize;
        let rows = *rows as usize;
        let modules = modules.iter().product::<u64>() as usize;
        let across = across(columns, rows, modules);
        Ok(PictureLayout { pixel: instrument.pixel, columns, rows, modules, across })
    }

    /// Bytes of a frame.
    pub(super) fn frame_size(&self) -> usize {
        self.columns * self.rows * self.modules * self.pixel_bytes()
    }

    pub(super) fn pixel_bytes(&self) -> usize {
        self.pixel.bits() as usize / 8
    }

    /// The width of the whole picture in pixels.
    pub(super) fn width(&self) -> usize {
        self.columns * self.across
    }

    /// The height of the whole picture in pixels.
    pub(super) fn height(&self) -> usize {
        self.rows * self.modules.div_ceil(self.across)
    }
}

/// The number of modules side by side. Their true positions are unknown, so the picture shows them in the order
/// of their numbers. It chooses the number that brings the picture nearest to a square. Eight modules of
/// 1024 x 512 pixels, two side by side, are 2048 x 2048.
fn across(columns: usize, rows: usize, modules: usize) -> usize {
    let side_ratio = |across: usize| {
        let width = columns * across;
        let height = rows * modules.div_ceil(across);
        (width.max(height) as f64) / (width.min(height).max(1) as f64)
    };
    (1..=modules).min_by(|one, other| side_ratio(*one).total_cmp(&side_ratio(*other))).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &str, pixel: &str, packets: &str) -> Result<PictureLayout, String> {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = {shape}\npixel = \"{pixel}\"\nframe_rate = \"100 Hz\"\n\
             [packets]\nport = 5000\n[packets.format.{packets}\n"
        );
        PictureLayout::of(&Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn frames_of_detectors_are_pictures() {
        let jungfrau = layout("[8, 512, 1024]", "uint16", "jungfrau]\nmodules = 8").expect("a picture");
        let size = (jungfrau.width(), jungfrau.height(), jungfrau.modules, jungfrau.across);
        assert_eq!(size, (2048, 2048, 8, 2));
        assert_eq!(jungfrau.frame_size(), 8 << 20);
        let one = layout("[512, 1024]", "uint16", "jungfrau]\nmodules = 1").expect("a picture");
        assert_eq!((one.width(), one.height(), one.across), (1024, 512, 1));
    }

    #[test]
    fn what_is_none_says_why() {
        for (shape, pixel, packets, why) in [
            ("[1000]", "uint8", "raw]\npayload = \"1000 B\"", "not pictures"),
            ("[10, 100]", "uint8", "raw]\npayload = \"1000 B\"", "not pictures"),
            ("[1536, 2048]", "uint16", "excalibur]\nmodules = 6", "sub-frames"),
            ("[1048576]", "uint16", "jungfrau]\nmodules = 2", "one dimension"),
            ("[512, 2, 1024, 4]", "uint2", "jungfrau]\nmodules = 1", "packed"),
            ("[512, 512, 1024]", "uint16", "jungfrau]\nmodules = 512", "at most 256 MiB"),
        ] {
            let refused = layout(shape, pixel, packets).expect_err(shape);
            assert!(refused.contains(why), "{shape}: {refused}");
        }
    }
}
