//! Files as `nilometer_hdf5::nexus` and `layout` describe them, against programs that no one here wrote: `pynx validate`, silx,
//! nxmx of Diamond, and h5py.

use std::{
    fs,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_hdf5::{
    FileWrite, Hdf5File, Hdf5FileOptions, StoredChunk,
    layout::{FrameAttribute, Hdf5Layout, LayoutContents},
    nexus::{
        BeamCenter, DetectorDescription, FrameCorrection, ModuleImage, PixelSize, RecordingTotals, closing,
        nexus_plain, nxmx,
    },
    tree::{FramesShape, MovedPart, NumberArray, NumberType, TreeGroup, TreeNode},
};
use nilometer_tests::{python, root};

const START: &str = "2026-06-30T23:50:00Z";
const END: &str = "2026-06-30T23:59:59Z";

/// The problems that the other side finds in these files. `None` if it is not here.
fn problems(check: &str, paths: &[PathBuf]) -> Option<String> {
    let script = root().join("tests/tests/recording/nexus.py");
    let mut command = python(&["h5py", "nxmx", "pynxtools", "silx"])?;
    let output = command.arg(script).arg(check).args(paths).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn carry_out(file: &File, mut next: impl FnMut() -> Option<FileWrite>) {
    while let Some(write) = next() {
        file.write_all_at(&write.bytes, write.offset).expect("room");
    }
}

/// A file of four frames, of which the third never came.
fn write(path: &Path, tree: &TreeGroup, last: &TreeGroup) {
    let file = File::create_new(path).expect("a new file");
    let mut frames =
        Hdf5File::create("a.h5", tree, Hdf5FileOptions::default()).expect("a tree that can be made");
    carry_out(&file, || frames.next_write());
    let sizes: Vec<u64> = frames.datasets().map(FramesShape::frame_size).collect();
    for number in [0_u64, 1, 3] {
        for (dataset, size) in sizes.iter().enumerate() {
            let offset = frames.allocate(*size, 4096);
            file.write_all_at(&vec![number as u8; *size as usize], offset).expect("room");
            frames.insert(StoredChunk {
                dataset,
                frame: number,
                tile: 0,
                offset,
                bytes: *size as u32,
                unfiltered: false,
            });
        }
    }
    frames.flush().expect("it is flushed");
    carry_out(&file, || frames.next_write());
    let mut closed = frames.close(4, last).expect("it is closed");
    carry_out(&file, || closed.next_write());
    file.set_len(closed.size()).expect("it is cut");
}

fn least() -> DetectorDescription {
    DetectorDescription::new("eiger", START, NumberType::Uint16, &[30, 40])
}

fn full() -> DetectorDescription {
    DetectorDescription {
        end_estimated: Some(END.into()),
        frames: Some(4),
        title: Some("a try".into()),
        description: Some("DECTRIS EIGER2 16M".into()),
        serial_number: Some("E-32-0123".into()),
        threshold_energy: Some(6350.0),
        instrument: Some("I04".into()),
        source: Some("Diamond Light Source".into()),
        sample: Some("lysozyme".into()),
        sensor_material: Some("Si".into()),
        sensor_thickness: Some(0.00045),
        pixel_size: Some(PixelSize { fast: 75e-6, slow: 172e-6 }),
        frame_time: Some(0.01),
        count_time: Some(0.0099),
        wavelength: Some(0.979),
        distance: Some(0.2),
        beam_center: Some(BeamCenter { x: 20.5, y: 15.25 }),
        bit_depth: Some(16),
        saturation: Some(60_000),
        corrections: FrameCorrection::ALL.map(|correction| (correction, true)).into(),
        flatfield: Some(vec![1.0; 1200]),
        pixel_mask: Some(vec![0; 1200]),
        metadata: vec![("beam/current".into(), NumberArray::float(0.3).into())],
        ..least()
    }
}

/// Two modules of 30 x 40 pixels, each of two chips of 30 x 20 pixels.
fn of_modules() -> DetectorDescription {
    let origins = [[0, 0], [35, 3]];
    let parts = [0, 1].into_iter().flat_map(|module: u64| {
        let [row, column] = origins[module as usize];
        [0, 1].map(|chip| {
            let from = vec![module..module + 1, 0..30, chip * 20..chip * 20 + 20];
            let to = vec![row..row + 30, column + chip * 22..column + chip * 22 + 20];
            MovedPart::upright(from, to)
        })
    });
    let parts = parts.collect();
    let image = ModuleImage { size: [65, 45], origins: origins.into(), module: [30, 42], parts };
    let detector = DetectorDescription { shape: vec![2, 30, 40], image: Some(image), ..full() };
    DetectorDescription { pixel_mask: None, flatfield: None, ..detector }
}

#[test]
fn a_detectors_file_is_nxmx_whatever_was_stated() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let totals =
        RecordingTotals { end_time: Some(END.into()), whole: 3, blank: 1, ..RecordingTotals::default() };
    let detectors = [("least.h5", least()), ("full.h5", full()), ("modules.h5", of_modules())];
    let paths = detectors.map(|(name, detector)| {
        let path = directory.path().join(name);
        write(&path, &nxmx(&detector), &closing(&totals));
        path
    });
    let Some(problems) = problems("nxmx", &paths) else { return };
    assert_eq!(problems, "");
}

#[test]
fn frames_of_any_dimensions_are_found_by_who_plots_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shapes = [vec![30, 40], vec![50], vec![4, 5, 6], vec![2, 3, 4, 5]];
    let paths = shapes.map(|shape| {
        let path = directory.path().join(format!("{}.h5", shape.len()));
        let detector = DetectorDescription { shape, ..least() };
        write(&path, &nexus_plain(&detector), &closing(&RecordingTotals::default()));
        path
    });
    let Some(problems) = problems("plot", &paths) else { return };
    assert_eq!(problems, "");
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.h5");
    let mut tree = nxmx(&full());
    let TreeNode::Group(entry) = &mut tree.members[0].1 else { panic!("no entry") };
    entry.members.retain(|(name, _)| name != "source" && name != "start_time");
    entry.attributes.retain(|attribute| attribute.name != "default");
    write(&path, &tree, &TreeGroup::default());
    let Some(problems) = problems("nxmx", &[path]) else { return };
    for problem in [
        "validated: The required field /entry/start_time hasn't been supplied.",
        "complete: /entry has no group NXsource",
        "complete: /entry has no field start_time",
        "plotted: /entry has neither @default nor @signal",
    ] {
        assert!(problems.contains(problem), "{problem}\n{problems}");
    }
}

/// What there is to record for the examples.
fn contents() -> LayoutContents {
    let frames = FramesShape {
        element: NumberType::Uint16,
        frame: vec![3, 4],
        scan: Vec::new(),
        first_max: None,
        chunk: Vec::new(),
        stack: 1,
        packed_12: false,
        filter: None,
        fill: None,
    };
    let mut attributes = FrameAttribute::of_every_frame();
    attributes.push(FrameAttribute::stated("ColorMode", NumberArray::int(0).into()));
    attributes.push(FrameAttribute::stated("Energy", NumberArray::float(12.5).into()));
    attributes.push(FrameAttribute::joined("SampleAngle", NumberType::Float64));
    attributes.push(FrameAttribute::joined("ImageKey", NumberType::Int64));
    LayoutContents { frames, attributes }
}

/// What h5py finds in the file of an example, and whether its links lead to one object; nothing if h5py is not here.
fn listing(name: &str) -> Option<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let written = fs::read_to_string(root().join("contrib/hdf5-layout").join(name)).expect("an example");
    let layout = match name.split_once('.') {
        Some((_, "xml")) => Hdf5Layout::from_xml(name, written.as_bytes()),
        _ => Hdf5Layout::from_toml(name, &written),
    };
    let tree = layout.unwrap_or_else(|error| panic!("{error}")).tree(&contents()).tree;
    let path = directory.path().join("a.h5");
    write(&path, &tree, &tree);
    let script = "import h5py, sys
f = h5py.File(sys.argv[1])
f.visititems(lambda name, object: print(name, getattr(object, 'shape', '')))
print(f['entry/data/data'] == f['entry/instrument/detector/data'] if 'entry' in f else '')";
    let output = python(&["h5py"])?.args(["-c", script]).arg(&path).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn the_example_layouts_make_the_files_that_they_show() {
    let Some(default) = listing("default.xml") else { return };
    assert!(default.ends_with("True\n"), "{default}");
    assert!(default.contains("entry/instrument/NDAttributes/NDArrayUniqueId (4,)\n"), "{default}");
    assert_eq!(Some(default), listing("default.toml"));
    let tomography = listing("tomography.xml").expect("h5py is here");
    for line in [
        "entry/data/data (4, 3, 4)\n",
        "entry/data/image_key (4,)\n",
        "entry/data/rotation_angle (4,)\n",
        "entry/instrument/detector/x_pixel_size ()\n",
    ] {
        assert!(tomography.contains(line), "{line}{tomography}");
    }
}
