//! EIGER by packets over loopback: both ports of each half module make up one image, the bottom half with its rows turned, and
//! a half module that never came is named.

use std::{fs, path::PathBuf};

use nilometer_tests::{Ended, free_ports, start};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::hdf5::{lab::LIMIT, module_image::found_turned};

/// The first port of each recording, of a module with two halves.
struct Module {
    home: TempDir,
    port: u16,
}

/// Rows and columns of the image: two halves of 1 x 4 chips.
const IMAGE: [u64; 2] = [514, 1030];
const BOTTOM: [u64; 2] = [2, 3];

impl Module {
    /// A module whose pixels have this type, and whose packets have this many bytes of them.
    fn new(pixel: &str, payload: u64) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let port = free_ports(4);
        let head = |name: &str, halves: u64| {
            format!(
                "name = \"{name}\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{}, 256, 512]\n\
                 pixel = \"{pixel}\"\nframe_rate = \"20 Hz\"\n\
                 packets = {{ port = {port}, format = {{ eiger = {{ halves = {halves}, payload = \"{payload} B\" }} }} }}\n",
                halves * 2
            )
        };
        let places = "[cbf]\npixel_size = \"75 um\"\n\
                      [modules]\norigins = [[0, 0], [0, 516], [258, 0], [258, 516]]\nchip = [256, 256]\nchip_gap = 2\n\
                      upside_down = [2, 3]\n";
        fs::write(home.path().join("whole.toml"), head("whole", 2) + places).expect("space");
        fs::write(home.path().join("top.toml"), head("top", 1)).expect("space");
        fs::create_dir(home.path().join("to")).expect("space");
        Module { home, port }
    }

    /// Records ten frames that come from this instrument.
    fn recorded(&self, sender: &str, compression: &str) -> Ended {
        let record = [
            "record",
            "whole.toml",
            "--to",
            "to",
            "--name",
            "scan",
            "--format",
            "hdf5",
            "--compression",
            compression,
            "--reserve",
            "0 B",
            "--buffer",
            "64 MiB",
        ];
        let mut recording = start(self.home.path(), &record);
        recording.await_said("recording scan");
        let to = format!("udp://127.0.0.1:{}", self.port);
        let sent = start(self.home.path(), &["simulate", sender, "--to", &to, "--frames", "10"]).end(LIMIT);
        assert!(sent.has_sent_all(), "{sent:?}");
        recording.signal(Signal::TERM);
        recording.end(LIMIT)
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("to/scan/scan.h5")
    }
}

#[test]
fn both_halves_are_one_image_and_the_bottom_one_is_turned() {
    for (pixel, payload, compression) in
        [("uint16", 4096, "none"), ("uint8", 1024, "bslz4"), ("uint32", 1024, "none")]
    {
        let module = Module::new(pixel, payload);
        let recorded = module.recorded("whole.toml", compression);
        let Some(found) = found_turned(&module.file(), [256, 256], &BOTTOM) else { return };
        let [rows, columns] = IMAGE;
        let frames = found["flags"].as_array().expect("a list").len() as u64;
        assert_eq!(found["definition"], "NXmx");
        assert_eq!(found["shape"], serde_json::json!([frames, rows, columns]), "{recorded:?}");
        assert_eq!(found["right"], serde_json::json!((0..frames).collect::<Vec<_>>()), "{found}");
        assert_eq!(found["gaps"], rows * columns - 4 * 256 * 512);
        assert!(frames > 5, "{recorded:?}");
    }
}

#[test]
fn a_half_module_that_never_came_is_counted_and_named() {
    let module = Module::new("uint16", 4096);
    let recorded = module.recorded("top.toml", "none");
    assert_eq!(recorded.code, Some(1), "{recorded:?}");
    for side in ["left", "right"] {
        let named = format!("the {side} port of half module 1 never came");
        assert!(recorded.stderr.contains(&named) || recorded.stdout.contains(&named), "{recorded:?}");
    }
    let Some(found) = found_turned(&module.file(), [256, 256], &BOTTOM) else { return };
    let missing: Vec<u64> = serde_json::from_value(found["missing"].clone()).expect("numbers");
    assert!(
        missing.len() > 5 && missing.iter().all(|packets| *packets >= 128),
        "64 packets of each port: {found}"
    );
    let flags: Vec<u64> = serde_json::from_value(found["flags"].clone()).expect("numbers");
    assert!(flags.iter().all(|flag| *flag == 2), "{found}");
}
