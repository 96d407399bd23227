//! The account of the recorder's memory: in a control group that has little more than the bound, nothing is killed, whatever comes and
//! wherever it goes; and a bound that does not suffice is refused.

mod inputs;

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use nilometer_model::Bytes;
use nilometer_tests::{
    Ended, MemoryGroup, Mpi, ask, await_some, free_port, nilometer, pairs, peak_memory, run, start, status,
};
use tempfile::TempDir;

use inputs::{Input, Layout, Size};

/// What takes longer waits for something that never comes.
const LIMIT: Duration = Duration::from_mins(3);
/// The group has so much more than the bound: the kernel's own memory for it, and pages of the program's file.
const SPARE: u64 = 64 << 20;
/// As little as all of these recordings work with.
const MEMORY: &str = "256 MiB";
const MEMORY_BYTES: u64 = 256 << 20;

/// Records in a group with the bound, and what came of it.
fn recorded_within(input: Input, layout: Layout, size: Size) -> Option<Ended> {
    let group = MemoryGroup::with_limit(Bytes(MEMORY_BYTES + SPARE))?;
    let home = tempfile::tempdir().expect("a temporary directory");
    inputs::prepare(home.path(), input, layout, size);
    let ended = inputs::record(&group, home.path(), input, layout, size);
    let peak = group.peak().unwrap_or(Bytes(0));
    let what = format!("{input:?} of {size:?} frames as {layout:?}, at most {peak} in use");
    assert_eq!(group.kills(), 0, "{what}: killed for want of memory: {ended:?}");
    // On a busy machine, and at these rates, frames are lost: that is said, and is no matter of memory.
    assert!(matches!(ended.code, Some(0 | 1)), "{what}: {ended:?}");
    assert!(inputs::has_recorded(home.path()), "{what}: {ended:?}");
    Some(ended)
}

/// All sizes of frames.
const SIZES: [Size; 3] = [Size::Tiny, Size::Small, Size::Large];

/// Records every input in every layout, with frames of these sizes. In an ordinary run of the tests, each value stands
/// in a recording at least once; with `NILOMETER_LONG`, in one with each other value.
fn all_stay_within(inputs: &[Input], layouts: &[Layout], sizes: &[Size]) {
    for (layout, (input, size)) in pairs(layouts, &pairs(inputs, sizes)) {
        recorded_within(input, layout, size);
    }
}

#[test]
fn simulated_frames_stay_within_the_bound_in_every_layout() {
    all_stay_within(&[Input::Simulated], &Layout::OF_FRAMES, &SIZES);
}

#[test]
fn frames_of_files_stay_within_the_bound_in_every_layout() {
    all_stay_within(&[Input::Files], &Layout::OF_FRAMES, &[Size::Small]);
    // Large ones as CBF need a larger bound, which the recorder names.
    let layouts = [Layout::Shared, Layout::Hdf5, Layout::Hdf5Compressed];
    all_stay_within(&[Input::Files], &layouts, &[Size::Large]);
}

#[test]
fn packets_stay_within_the_bound_in_every_layout() {
    all_stay_within(&Input::PACKETS, &Layout::OF_PACKETS, &[Size::Small, Size::Large]);
}

#[test]
fn series_stay_within_the_bound_in_every_layout() {
    all_stay_within(&Input::SERIES, &Layout::OF_SERIES, &SIZES);
}

fn camera(shape: &str) -> (TempDir, String) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let camera = home.path().join("camera.toml");
    let text = format!(
        "name = \"camera\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = {shape}\npixel = \"uint16\"\nframe_rate = \"100 Hz\"\n"
    );
    fs::write(&camera, text).expect("space");
    (home, camera.to_str().expect("plain names").to_owned())
}

/// A recording of a few frames with this bound.
fn bounded(camera: &str, to: &Path, memory: &str) -> Ended {
    let to = to.to_str().expect("plain names");
    let frames = ["--frames", "5", "--reserve", "0 B", "--name", "scan"];
    run(&[&["simulate", camera, "--to", to, "--memory", memory], &frames[..]].concat())
}

#[test]
fn a_bound_that_does_not_suffice_is_refused_with_the_smallest_that_does() {
    let (home, camera) = camera("[1000, 2000]");
    let refused = bounded(&camera, home.path(), "40 MiB");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(!home.path().join("scan").exists(), "nothing was made: {refused:?}");
    let (_, least) = refused.stderr.split_once("write --memory \"").expect("it says how much");
    let (least, _) = least.split_once('"').expect("a value");
    let mebibytes: u64 = least.strip_suffix(" MiB").expect("MiB").parse().expect("a number");
    let below = bounded(&camera, home.path(), &format!("{} MiB", mebibytes - 1));
    assert_eq!(below.code, Some(2), "{least} is the smallest: {below:?}");
    let ended = bounded(&camera, home.path(), least);
    // In two slots there is no room for all of them.
    assert!(matches!(ended.code, Some(0 | 1)), "{least} suffices: {ended:?}");
    assert!(home.path().join("scan").exists(), "{least} suffices: {ended:?}");
}

#[test]
fn a_bound_in_which_no_series_fits_is_refused_before_one_begins() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let to = home.path().to_str().expect("plain names");
    let ended = run(&["record", "--from", "tcp://127.0.0.1:9", "--to", to, "--memory", "10 MiB"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--memory 10 MiB: it takes"), "{ended:?}");
}

#[test]
fn a_buffer_larger_than_the_bound_is_refused() {
    let (home, camera) = camera("[100, 100]");
    let to = home.path().to_str().expect("plain names");
    let both = ["--memory", "128 MiB", "--buffer", "128 MiB"];
    let ended = run(&[&["simulate", &camera, "--to", to, "--frames", "5"][..], &both].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("with --buffer 128 MiB it takes"), "{ended:?}");
}

#[test]
fn a_container_with_little_memory_gets_a_buffer_that_fits() {
    // Half of it is less than the usual buffer.
    let Some(group) = MemoryGroup::with_limit(Bytes(512 << 20)) else { return };
    let (home, camera) = camera("[1000, 1000]");
    let frames = ["--frames", "50", "--reserve", "0 B", "--name", "scan"];
    let to = home.path().to_str().expect("plain names");
    let ended =
        group.start(home.path(), &[&["simulate", &camera, "--to", to], &frames[..]].concat()).end(LIMIT);
    assert_eq!((ended.code, group.kills()), (Some(0), 0), "{ended:?}");
    let verified = run(&["verify", &format!("{to}/scan")]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn processes_that_record_together_share_the_memory_of_their_machine() {
    for mpi in Mpi::all() {
        // Three usual buffers are three times as much.
        let Some(group) = MemoryGroup::with_limit(Bytes(1 << 30)) else { return };
        let (home, camera) = camera("[1000, 1000]");
        let program = nilometer().to_str().expect("a plain name");
        let frames = ["--frames", "30", "--reserve", "0 B", "--name", "scan", "--to", "."];
        let command = mpi.command(3, home.path(), &[&[program, "simulate", &camera][..], &frames].concat());
        let ended = group.start_command(&command).end(LIMIT);
        assert_eq!((ended.code, group.kills()), (Some(0), 0), "{:?}: {ended:?}", mpi.kind());
        assert!(ended.stdout.contains("scan.2: 10 frames"), "{:?}: {ended:?}", mpi.kind());
    }
}

#[test]
fn images_of_a_few_pixels_have_as_many_slots_as_the_buffer_has_room_for() {
    let (home, port) = (tempfile::tempdir().expect("a temporary directory"), free_port());
    let at = format!("tcp://127.0.0.1:{port}");
    inputs::prepare(home.path(), Input::Series, Layout::Hdf5, Size::Tiny);
    let http = format!("127.0.0.1:{}", free_port());
    let sender = inputs::sender(home.path(), &at, "4000");
    let arguments = ["record", "--from", &at, "--to", "to", "--name", "scan", "--buffer", "64 MiB"];
    let more = ["--reserve", "0 B", "--silence", "60 s", "--http", &http];
    let mut recorder = start(home.path(), &[&arguments[..], &more].concat());
    recorder.await_said("waiting for a series");
    let asked: SocketAddr = http.parse().expect("an address");
    let status = await_some("the account", || {
        let status = status(asked);
        (status["recording"]["memory"]["bound_bytes"].as_u64()? > 0).then_some(status)
    });
    let memory = &status["recording"]["memory"];
    let parts = memory["parts"].as_array().expect("a list");
    let bound = |part: &str| {
        let found = parts.iter().find(|one| one["part"] == part).expect("each part is there");
        found["bound_bytes"].as_u64().expect("a number")
    };
    let in_ring = bound("ring") + bound("slot_headers");
    assert!(in_ring <= 68 << 20 && in_ring > 60 << 20, "{memory}");
    let sum: u64 = parts.iter().map(|one| one["bound_bytes"].as_u64().expect("a number")).sum();
    assert_eq!(memory["bound_bytes"], sum, "{memory}");
    let (_, page) = ask(asked, "GET", "/metrics", "");
    for line in
        ["nilometer_memory_bytes{part=\"ring\"} ", "nilometer_memory_bound_bytes{part=\"slot_headers\"} "]
    {
        assert!(page.contains(line), "{page}");
    }
    let peak = peak_memory(recorder.process()).expect("it runs");
    assert!(peak.0 < 300 << 20, "{peak} in use");
    assert!(sender.end(LIMIT).has_sent_all());
    let ended = recorder.end(LIMIT);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
}
