//! The size of an instrument's frames on their way. The detector compresses them, packets add headers, the
//! recorder compresses them again. Predictions and sizing use these rates.

use std::borrow::Cow;

use crate::{ByteRate, Bytes, DataKind, Format, Instrument, PixelType, RecordingLayout};

/// Header and padding of a CBF file, about.
const CBF_FRAME: f64 = 5000.0;

/// The share of packed samples of 12 bits in the same as numbers of 16 bits.
const PACKED_12: f64 = 0.75;

/// Keys of an instrument's file that determine its rate.
const RATE_KEYS: [&str; 4] = ["shape", "pixel", "frame_rate", "streams"];

/// How many times smaller bit transposition and LZ4 make such data by default, measured on simulated data.
const fn bit_transposed(kind: &DataKind) -> f64 {
    match kind {
        DataKind::Diffraction => 10.0,
        DataKind::Tomography => 2.0,
        DataKind::LiquidArgon => 3.0,
        DataKind::Files(_) | DataKind::Vlbi | DataKind::Incompressible => 1.0,
    }
}

impl Instrument {
    /// The instrument with its frames as they leave it. If the detector compresses, they are that many
    /// incompressible bytes.
    pub fn delivered(&self) -> Cow<'_, Instrument> {
        let Some(ratio) = self.data.compressibility.filter(|_| self.compressed) else {
            return Cow::Borrowed(self);
        };
        #[expect(clippy::cast_sign_loss, reason = "a ratio is above zero")]
        let bytes = (self.frame_size().0 as f64 / ratio).ceil() as u64;
        Cow::Owned(Instrument {
            shape: vec![bytes.max(1)],
            pixel: PixelType::Uint8,
            data: DataKind::Incompressible.into(),
            compressed: false,
            // A compressed frame is a chunk as it arrives.
            recording: RecordingLayout { compression: None, chunk: None, ..self.recording.clone() },
            ..self.clone()
        })
    }

    /// The instrument as its simulation makes it. A detector's compressed frames are raw files of as many bytes;
    /// in HDF5 files each is a compressed chunk.
    #[must_use]
    pub fn simulated(self) -> Instrument {
        let is_raw = self.compressed && self.recording.format == Format::Raw;
        if is_raw { self.delivered().into_owned() } else { self }
    }

    /// The data that the recorder receives: frames, or blocks of packets with the headers that it keeps.
    pub fn received(&self) -> Cow<'_, Instrument> {
        self.in_blocks().map_or_else(|| self.delivered(), Cow::Owned)
    }

    /// How many times smaller the recorder makes a frame, as far as the instrument's file tells: 1 if it does
    /// not compress. A frame that the detector has compressed becomes no smaller.
    ///
    /// Byte offset takes one byte for a pixel that differs by less than 128 from the one before. Other pixels
    /// take 3, 5 or 7 bytes. In an image with few photons nearly all take one, which is the minimum.
    pub fn packing(&self) -> f64 {
        let is_delivered_packed = self.compressed && self.data.compressibility.is_some();
        if is_delivered_packed || !self.recording.packs() {
            return 1.0;
        }
        if self.recording.format == Format::Hdf5 {
            let unpacked = if self.pixel == PixelType::Uint12 { PACKED_12 } else { 1.0 };
            return self.data.compressibility.unwrap_or(unpacked * bit_transposed(&self.data.kind));
        }
        let of_pixel = match self.data.kind {
            DataKind::Diffraction | DataKind::Vlbi | DataKind::Files(_) => 1.0,
            DataKind::Tomography | DataKind::LiquidArgon => 3.0,
            DataKind::Incompressible => 7.0,
        };
        let Bytes(frame) = self.frame_size();
        let pixels = frame as f64 / (self.pixel.bits() as f64 / 8.0);
        frame as f64 / (pixels * of_pixel + CBF_FRAME)
    }

    /// The rate written, over all streams, without pauses; compressed as far as the instrument's file tells.
    pub fn written_rate(&self) -> ByteRate {
        ByteRate(self.received().rate().0 / self.packing())
    }

    /// Keys of its file that [`Instrument::written_rate`] depends on and that no source gives. If the rate
    /// itself was published, the keys behind it don't matter.
    pub fn assumed_of_rate(&self) -> Vec<&str> {
        let made_from = RATE_KEYS.iter().filter(|_| self.published.is_none()).copied();
        let data = (self.compressed || self.recording.packs()).then_some("data");
        made_from.chain(data).filter(|key| self.assumed.iter().any(|assumed| assumed == key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera(more: &str) -> Instrument {
        let text =
            "name = \"c\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\nframe_rate = \"100 Hz\"\n";
        Instrument::parse(&format!("{text}{more}\n"), "c.toml").expect("valid")
    }

    fn megabytes(rate: ByteRate) -> String {
        format!("{:.1}", rate.0 / 1e6)
    }

    #[test]
    fn cbf_takes_a_byte_a_pixel() {
        let raw = camera("pixel = \"int32\"\ndata = \"diffraction\"");
        let cbf = camera("pixel = \"int32\"\ndata = \"diffraction\"\nrecording.format = \"cbf\"");
        assert_eq!(
            (megabytes(raw.written_rate()), megabytes(cbf.written_rate())),
            ("400.0".into(), "100.5".into())
        );
        let noise = camera("pixel = \"int32\"\nrecording.format = \"cbf\"");
        assert!(noise.packing() < 1.0, "random pixels become larger: {}", noise.packing());
    }

    #[test]
    fn what_a_detector_compresses_comes_compressed() {
        let text =
            "pixel = \"uint16\"\ncompressed = true\n[data]\nkind = \"diffraction\"\ncompressibility = 10.0";
        let compressed = camera(text);
        assert_eq!(
            (compressed.frame_size(), compressed.delivered().frame_size()),
            (Bytes(2_000_000), Bytes(200_000))
        );
        assert_eq!(megabytes(compressed.written_rate()), "20.0");
        let delivered = compressed.delivered().into_owned();
        assert_eq!(
            (delivered.delivered().frame_size(), delivered.check()),
            (Bytes(200_000), Ok(())),
            "only once"
        );
    }

    #[test]
    fn compressed_frames_are_simulated_at_the_rate_that_is_written() {
        let text =
            "pixel = \"uint16\"\ncompressed = true\n[data]\nkind = \"diffraction\"\ncompressibility = 10.0";
        let hdf5 = camera(text);
        assert_eq!(hdf5.recording.format, Format::Hdf5, "without a format of its own");
        let raw = camera(&format!("{text}\n[recording]\nformat = \"raw\""));
        assert_eq!(raw.recording.format, Format::Raw);
        let (written, simulated) = (raw.written_rate(), raw.simulated());
        assert_eq!((simulated.frame_size(), simulated.rate()), (Bytes(200_000), written));
        assert_eq!(hdf5.clone().simulated(), hdf5, "the recorder compresses each chunk");
        let layout = "[recording]\nformat = \"hdf5\"\ncompression = \"bslz4\"";
        let chunks = camera(&format!("{text}\n{layout}"));
        assert!(chunks.recording.packs(), "{chunks:?}");
        assert_eq!(chunks.written_rate(), written, "no chunk becomes smaller twice");
    }

    #[test]
    fn headers_that_are_kept_are_written() {
        let camera = camera("pixel = \"uint8\"");
        assert_eq!(camera.received().frame_size(), camera.frame_size(), "it sends no packets");
        let text = include_str!("../../../instruments/fila10g-1g.toml");
        let telescope = Instrument::parse(text, "f.toml").expect("valid");
        assert_eq!(
            (megabytes(telescope.rate()), megabytes(telescope.written_rate())),
            ("128.0".into(), "128.5".into())
        );
    }

    #[test]
    fn what_no_source_gives_is_named_where_the_rate_rests_on_it() {
        let assumed = |more: &str| {
            let keys = "assumed = [\"shape\", \"data\", \"readers\"]";
            let camera = camera(&format!("pixel = \"int32\"\n{keys}\n{more}"));
            camera.assumed_of_rate().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(assumed(""), ["shape"]);
        assert_eq!(assumed("published = \"400 MB/s\""), [""; 0]);
        assert_eq!(
            assumed("published = \"400 MB/s\"\nrecording.format = \"cbf\"\ndata = \"diffraction\""),
            ["data"]
        );
    }
}
