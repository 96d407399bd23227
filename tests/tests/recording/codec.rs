//! Codecs and formats against programs that no one here wrote: HDF5 with its bitshuffle filter and with those of
//! hdf5plugin, and fabio.

use std::{fs, path::Path};

use nilometer_codec::{ChunkCodec, Compression, ElementSize, Method, ZstdLevel, byte_offset};
use nilometer_model::{Data, DataKind, Instrument, Picture, PixelType, Seed};
use nilometer_recording::{cbf, instrument::Content};
use nilometer_tests::{python, root};

/// Has the other side do its part in this directory; what it printed. Nothing if it is not here.
fn other_side(part: &str, modules: &[&str], directory: &Path) -> Option<String> {
    let script = root().join("tests/tests/recording/codec.py");
    let output = python(modules)?.arg(script).arg(part).arg(directory).output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("names"))
}

/// Elements as a detector counts them: small numbers, a few large ones, all ones in between as gaps.
fn elements(seed: u64, size: ElementSize, count: usize) -> Vec<u8> {
    let mut stream = Seed(seed).stream();
    let element = |_| match stream.below(40) {
        0 => u64::MAX,
        1 => stream.next(),
        _ => stream.below(4),
    };
    (0..count).map(element).flat_map(|value| value.to_le_bytes()[..size.bytes()].to_vec()).collect()
}

fn encoded(compression: Compression, size: ElementSize, elements: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0; compression.most_bytes(elements.len())];
    let length = ChunkCodec::new(compression, size).encode(elements, &mut chunk);
    chunk.truncate(length.expect("whole elements, and room for them"));
    chunk
}

#[test]
fn hdf5_reads_our_chunks_and_we_read_its() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |count: usize, size: ElementSize, suffix: &str| {
        directory.path().join(format!("{count}.{}.{suffix}", size.bytes()))
    };
    // Less than a group, one group, not quite and more than a block, several blocks with groups and elements over.
    let counts = [1, 7, 8, 9, 1023, 8192, 8195, 30_013];
    let cases = || ElementSize::ALL.into_iter().flat_map(|size| counts.map(|count| (count, size)));
    for (count, size) in cases() {
        let raw = elements(count as u64, size, count);
        let chunk = encoded(Compression::BitshuffleLz4, size, &raw);
        fs::write(path(count, size, "raw"), &raw).expect("room");
        fs::write(path(count, size, "ours"), chunk).expect("room");
    }
    let Some(read) = other_side("bitshuffle", &["h5py", "bitshuffle"], directory.path()) else { return };
    assert_eq!(read.lines().count(), cases().count(), "{read}");
    for (count, size) in cases() {
        let raw = fs::read(path(count, size, "raw")).expect("written above");
        let chunk = fs::read(path(count, size, "theirs")).expect("the other side wrote it");
        for method in Method::all() {
            let mut codec = ChunkCodec::with_method(Compression::BitshuffleLz4, size, method);
            let mut back = vec![0; raw.len()];
            assert_eq!(codec.decode(&chunk, &mut back), Ok(()), "{count} elements of {size:?}");
            assert!(back == raw, "{count} elements of {size:?} by {method:?}");
        }
    }
}

/// A frame that is compressed by us and by a filter of HDF5.
struct FilterCase {
    compression: Compression,
    /// As `NumPy` writes the type of an element.
    kind: &'static str,
    shape: &'static [usize],
}

impl FilterCase {
    /// Each compression, those with levels at two, with each type and shape: one element, not quite a group, odd edges,
    /// not quite and more than blocks of 8 and of 32 KiB.
    fn all() -> Vec<Self> {
        let kinds = ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "u8", "i8", "f8"];
        let shapes: [&[usize]; 7] = [&[1], &[7], &[1, 9], &[13, 31], &[3, 17, 41], &[128, 64], &[161, 257]];
        let fast = Compression::ALL.into_iter().filter_map(|known| known.at_level(ZstdLevel::FASTEST));
        let compressions: Vec<Compression> = Compression::ALL.into_iter().chain(fast).collect();
        let mut cases = Vec::new();
        for compression in compressions {
            for kind in kinds {
                cases.extend(shapes.iter().map(|shape| FilterCase { compression, kind, shape }));
            }
        }
        cases
    }

    fn name(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!("{}.{}.{}", self.compression, self.kind, shape.join("x"))
    }

    fn size(&self) -> ElementSize {
        let bytes = self.kind[1..].parse().expect("a digit");
        ElementSize::of(bytes).expect("there are codecs for it")
    }

    fn elements(&self) -> Vec<u8> {
        elements(1, self.size(), self.shape.iter().product())
    }

    fn line(&self) -> String {
        let case = serde_json::json!({
            "name": self.name(), "compression": self.compression.word(), "filter": self.compression.filter(),
            "level": self.compression.level().map(ZstdLevel::get),
            "cd_values": self.compression.cd_values(self.size()), "type": self.kind, "shape": self.shape,
        });
        format!("{case}\n")
    }
}

#[test]
fn hdf5plugin_reads_our_chunks_of_every_filter_and_we_read_its() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |case: &FilterCase, suffix: &str| directory.path().join(format!("{}.{suffix}", case.name()));
    let cases = FilterCase::all();
    for case in &cases {
        let raw = case.elements();
        fs::write(path(case, "ours"), encoded(case.compression, case.size(), &raw)).expect("room");
        fs::write(path(case, "raw"), raw).expect("room");
    }
    let lines: String = cases.iter().map(FilterCase::line).collect();
    fs::write(directory.path().join("cases.jsonl"), lines).expect("room");
    let Some(read) = other_side("filters", &["h5py", "hdf5plugin"], directory.path()) else { return };
    assert_eq!(read.lines().count(), cases.len(), "{read}");
    for case in &cases {
        let raw = case.elements();
        let chunk = fs::read(path(case, "theirs")).expect("the other side wrote it");
        for method in Method::all() {
            let mut codec = ChunkCodec::with_method(case.compression, case.size(), method);
            let mut back = vec![0; raw.len()];
            assert_eq!(codec.decode(&chunk, &mut back), Ok(()), "{}", case.name());
            assert!(back == raw, "{} by {method:?}", case.name());
        }
    }
}

/// A frame of a Pilatus 6M with spots, gaps and bad pixels, and its stamp.
fn pilatus() -> Vec<u8> {
    let data = Data { distinct: Some(1), ..DataKind::Diffraction.into() };
    let content = Content::prepare(&data, &[2527, 2463], PixelType::Int32, Seed(1)).expect("it can be made");
    let mut frame = vec![0; content.frame_size()];
    content.fill(123, &mut frame);
    frame
}

/// What the files of instruments say: of one that counts photons, and of one that gives random bytes.
fn picture(name: &str) -> Picture {
    let said = match name {
        "pilatus" => {
            "shape = [2527, 2463]\nframe_rate = \"25 Hz\"\ndata = \"diffraction\"\n[cbf]\ndetector_distance = \"200 mm\"\n\
             wavelength = \"1.0332 A\"\nexposure_time = \"38 ms\"\n"
        }
        _ => "shape = [33, 31]\nframe_rate = \"4 kHz\"\n",
    };
    let text = format!("name = \"x\"\ntitle = \"x\"\nsource = \"x\"\npixel = \"int32\"\n{said}");
    Instrument::parse(&text, name).expect("valid").picture().expect("it has rows and columns")
}

#[test]
fn fabio_reads_our_pictures_and_we_read_its() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str, suffix: &str| directory.path().join(format!("{name}.{suffix}"));
    let pixels = |raw: &[u8]| -> Vec<i32> {
        raw.as_chunks().0.iter().map(|pixel| i32::from_le_bytes(*pixel)).collect()
    };
    // The wildest steps, one pixel, and a frame as it is delivered.
    let wild = elements(1, ElementSize::Four, 31 * 33);
    let pictures =
        [("wild", [33, 31], wild), ("one", [1, 1], vec![1, 0, 0, 0]), ("pilatus", [2527, 2463], pilatus())];
    for (name, [height, width], raw) in &pictures {
        let mut file = Vec::new();
        if *name == "one" {
            cbf::Image { width: *width, height: *height, pixels: &pixels(raw) }.write(name, &mut file);
        } else {
            let mut packed = Vec::new();
            byte_offset::encode_bytes(raw, &mut packed);
            cbf::put(name, &picture(name), &packed, &mut file);
        }
        fs::write(path(name, "raw"), raw).expect("room");
        fs::write(path(name, "ours.cbf"), file).expect("room");
    }
    let Some(read) = other_side("cbf", &["fabio"], directory.path()) else { return };
    let detector = "Detector: PILATUS simulated, Pixel_size 0.000172 m x 0.000172 m";
    let expected = format!(
        "one.raw, 1, 1, {detector}, Count_cutoff 1048575 counts\n\
         pilatus.raw, 2527, 2463, {detector}, Exposure_time 0.038 s, Exposure_period 0.04 s, Count_cutoff 1048575 counts, \
         Wavelength 1.0332 A, Detector_distance 0.2 m\n\
         wild.raw, 33, 31, {detector}, Exposure_period 0.00025 s, Count_cutoff 2147483647 counts\n"
    );
    assert_eq!(read, expected);
    for (name, shape, raw) in &pictures {
        let file = fs::read(path(name, "theirs.cbf")).expect("the other side wrote it");
        let (found, read) = cbf::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found == *shape && read == pixels(raw), "{name}");
    }
}
