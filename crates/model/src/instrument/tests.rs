//! Tests of valid instrument files, and of refused ones.

use super::*;

const PILATUS: &str = r#"
name = "pilatus-6m"
title = "a test"
source = "a test"
shape = [2527, 2463]
pixel = "int32"
frame_rate = "25 Hz"
"#;

fn with(more: &str) -> Result<Instrument, InstrumentError> {
    Instrument::parse(&format!("{PILATUS}{more}\n"), "p.toml")
}

#[test]
fn rates_follow_from_the_frame() {
    let pilatus = with("").expect("valid");
    assert_eq!(pilatus.frame_size(), Bytes(2463 * 2527 * 4));
    assert_eq!(pilatus.period(), Nanos::from_millis(40));
    assert_eq!(pilatus.rate().to_string(), "622 MB/s");
    assert_eq!(pilatus.mean_rate(), pilatus.rate());
    assert_eq!(pilatus.schedule(), Schedule::every(Nanos::from_millis(40)));
}

#[test]
fn a_picture_has_what_its_header_says() {
    let said =
        "cbf = { detector_distance = \"0.2 m\", wavelength = \"1.0332 A\", exposure_time = \"38 ms\" }";
    let pilatus = with(&format!("{said}\ndata = \"diffraction\"")).expect("valid");
    let picture = pilatus.picture().expect("it has rows and columns");
    assert_eq!((picture.rows, picture.columns, picture.count_cutoff), (2527, 2463, COUNT_CUTOFF));
    assert_eq!(picture.header.exposure_period, Some(Nanos::from_millis(40)), "it follows from the rate");
    let said = "cbf.exposure_period = \"1 s\"\ncbf.exposure_time = \"1 s\"";
    let noise = with(said).expect("valid").picture().expect("it has rows and columns");
    assert_eq!(
        (noise.header.exposure_period, noise.count_cutoff),
        (Some(Nanos::from_millis(1000)), 0x7fff_ffff)
    );
    let again: Instrument =
        serde_json::from_str(&serde_json::to_string(&pilatus).expect("JSON")).expect("written above");
    assert_eq!(again, pilatus);
}

#[test]
fn streams_multiply_and_pauses_divide() {
    let four = with("streams = 4\nburst = { frames = 50, pause = \"6 s\" }").expect("valid");
    assert_eq!(four.period(), Nanos::from_millis(10));
    assert_eq!(four.rate().to_string(), "2.49 GB/s");
    assert_eq!(four.mean_rate().to_string(), "622 MB/s");
    assert_eq!(four.schedule().due(200), Nanos::from_millis(8000));
}

#[test]
fn packed_pixels_fill_whole_bytes() {
    let text = PILATUS.replace("[2527, 2463]", "[7680, 10000]").replace("int32", "uint12");
    let event = Instrument::parse(&text, "p.toml").expect("valid");
    assert_eq!(event.frame_size(), Bytes(115_200_000));
}

#[test]
fn nonsense_is_refused() {
    for (from, to, part) in [
        ("25 Hz", "0 Hz", "more than 0 Hz"),
        ("25 Hz", "25", "Hz, kHz, MHz"),
        ("25 Hz", "25 fps", "the unit `fps`"),
        ("2527", "0", "1 B to 2 GiB"),
        ("2527", "18446744073", "1 B to 2 GiB"),
        ("int32", "int33", "`uint16`"),
        ("int32", "uint12", "is 74688012 bits: a frame must be a whole number of bytes"),
        ("shape", "shap", "`shape`"),
        (
            "pixel = \"int32\"",
            "pixel = \"uint32\"\nrecording.format = \"cbf\"",
            "[2527, 2463] of uint32; write format = \"raw\"",
        ),
    ] {
        let error = Instrument::parse(&PILATUS.replace(from, to), "p.toml").expect_err(to).to_string();
        assert!(error.contains(part) && error.contains("p.toml"), "{error}");
    }
    for (more, part) in [
        ("streams = 0", "write 1 to 1000"),
        ("recording.frames_per_file = 0", "at least 1"),
        ("recording.frames_per_file = 9000000000000000000", "at most 1 TiB"),
        ("burst = { frames = 0, pause = \"1 s\" }", "at least 1"),
        ("burst = { frames = 1, pause = \"1\" }", "no unit"),
        ("burst = { frames = 1, rest = \"1 s\" }", "`pause`"),
        ("assumed = [\"colour\"]", "shape, pixel, frame_rate"),
        ("compression = 3", "`recording`"),
        ("recording.format = \"tiff\"", "`raw`, `cbf`, `hdf5`"),
        (
            "recording.format = \"cbf\"\nrecording.frames_per_file = 3",
            "recording: format = \"cbf\": a file holds one frame: write frames_per_file = 1",
        ),
        ("recording.format = \"cbf\"\nrecording.storing = \"shared\"", "leave storing out"),
        ("recording.format = \"cbf\"\nrecording.storing = \"scattered\"", "leave storing out"),
        ("recording.encoders = 2", "frames are written as they are"),
        ("recording.compression = \"bslz4\"", "only HDF5 has one to choose"),
        ("recording = { format = \"hdf5\", storing = \"scattered\" }", "write \"growing\" for one file"),
        ("recording = { format = \"hdf5\", compression = \"gzip\" }", "`bslz4`, `bszstd`, `lz4`, `zstd`"),
        ("recording.scan = [2, 3]", "scan: only HDF5 has one"),
        ("recording.chunk = [2, 3]", "chunk: only HDF5 has one"),
        ("recording = { format = \"hdf5\", chunk = [3000, 10] }", "write at most 2527x2463"),
        ("recording = { format = \"hdf5\", chunk = \"1x1\" }", "a frame has 6224001 of them"),
        ("recording = { format = \"hdf5\", chunk = [2, 0] }", "at least 1"),
        (
            "recording = { format = \"hdf5\", chunk = [8, 512, 512] }",
            "`nilometer export --format hdf5 --chunk 8x512x512` puts several into one",
        ),
        ("recording = { format = \"hdf5\", chunk = [1000, 2527, 2463] }", "less than 4 GiB"),
        ("recording = { format = \"hdf5\", scan = [\"?\", 7], frames_per_file = 8 }", "a multiple of 7"),
        ("recording = { format = \"hdf5\", scan = [\"all\", 7] }", "20x30, or ?x30"),
        ("recording = { format = \"cbf\", encoders = 0 }", "encoders = 0: write 1 to 1024"),
        ("recording.storing = \"one\"", "`files`, `growing`, `shared`, `scattered`"),
        ("recording.storing = \"growing\"\nrecording.frames_per_file = 3", "leave it out"),
        ("cbf.detector_distance = \"0 m\"", "cbf: detector_distance: write more than 0 m"),
        ("cbf.wavelength = \"1 mm\"", "cbf: wavelength: write more than 0 A"),
        ("cbf.wavelength = \"1\"", "A (ångström)"),
        ("cbf.exposure_time = \"0 s\"", "write more than 0 s"),
        ("cbf.exposure_time = \"41 ms\"", "write at most 40 ms, the time between two pictures"),
        ("cbf.beam = 1", "`detector_distance`"),
        ("data = \"diffraktion\"", "write one of `incompressible`, `diffraction`"),
        ("[data]\nkind = \"vlbi\"\nintensity = 1.0", "vlbi has none"),
    ] {
        let error = with(more).expect_err(more).to_string();
        assert!(error.contains(part) && error.contains("p.toml"), "{error}");
    }
}

#[test]
fn the_chunks_of_a_frame_have_a_length_that_journals_can_say() {
    let large = |chunk: &str| {
        let file = PILATUS.replace("[2527, 2463]", "[32768, 32768]").replace("int32", "uint16");
        let recording = format!("recording = {{ format = \"hdf5\", chunk = \"{chunk}\" }}");
        Instrument::parse(&format!("{file}{recording}\n"), "p.toml").map(drop).map_err(|why| why.to_string())
    };
    assert_eq!(large("32768x2"), Ok(()));
    // Padded, its pixels have 4 GiB less 132 kB, and the table of tiles makes it more.
    let refused = large("32767x2").expect_err("too long");
    assert!(refused.contains("more than 4 GiB when they are stored"), "{refused}");
}
