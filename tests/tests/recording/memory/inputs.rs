//! All that can come, and all that it can become: what records it, and what sends it.

use std::{fs, path::Path};

use nilometer_tests::{
    Ended, MemoryGroup, Running, address, ask, await_some, free_port, start, status as status_of,
};
use rustix::process::Signal;

use super::{LIMIT, MEMORY};

/// What delivers frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Simulated,
    /// Frames of the user's own files, as if an instrument delivered them.
    Files,
    Packets,
    /// Packets that two threads receive.
    PacketThreads,
    Series,
    /// The DECTRIS stream before CBOR: JSON and blobs.
    SeriesVersion1,
    /// Series that a service records.
    Service,
}

impl Input {
    pub(super) const PACKETS: [Input; 2] = [Input::Packets, Input::PacketThreads];
    pub(super) const SERIES: [Input; 3] = [Input::Series, Input::SeriesVersion1, Input::Service];

    /// Returns true if `simulate` writes the frames itself.
    fn is_generated(self) -> bool {
        matches!(self, Input::Simulated | Input::Files)
    }

    /// The content of frames, as the instrument's file names it.
    fn data(self) -> &'static str {
        match self {
            Input::Files => "data = \"files:frames/*.raw\"\n",
            _ => "[data]\nkind = \"diffraction\"\ndistinct = 2\n",
        }
    }
}

/// How large frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Of 4 x 4 pixels.
    Tiny,
    /// Of some kilobytes.
    Small,
    /// Of some megabytes.
    Large,
}

/// What frames become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Files,
    Growing,
    Shared,
    /// Chunks in two directories.
    Scattered,
    /// Only the latest.
    Ring,
    Cbf,
    Hdf5,
    /// Over two directories.
    Hdf5Spread,
    /// In tiles.
    Hdf5Tiles,
    /// Compressed here.
    Hdf5Compressed,
}

impl Layout {
    pub(super) const OF_FRAMES: [Layout; 9] = [
        Layout::Files,
        Layout::Growing,
        Layout::Shared,
        Layout::Scattered,
        Layout::Cbf,
        Layout::Hdf5,
        Layout::Hdf5Spread,
        Layout::Hdf5Tiles,
        Layout::Hdf5Compressed,
    ];
    pub(super) const OF_PACKETS: [Layout; 3] = [Layout::Shared, Layout::Scattered, Layout::Ring];
    pub(super) const OF_SERIES: [Layout; 4] =
        [Layout::Hdf5, Layout::Hdf5Spread, Layout::Hdf5Tiles, Layout::Hdf5Compressed];

    /// Directories that it goes to.
    fn directories(self) -> &'static [&'static str] {
        match self {
            Layout::Scattered | Layout::Hdf5Spread => &["to", "beside"],
            _ => &["to"],
        }
    }

    /// What is asked for.
    fn options(self, input: Input, size: Size) -> Vec<&'static str> {
        match (self, input.is_generated()) {
            (Layout::Files, _) => vec!["--storing", "files", "--format", "raw"],
            (Layout::Growing, _) => vec!["--storing", "growing", "--format", "raw"],
            (Layout::Shared, true) => vec!["--storing", "shared", "--format", "raw"],
            (Layout::Scattered, true) => vec!["--storing", "scattered", "--format", "raw"],
            (Layout::Scattered, _) => vec!["--chunk-size", "32 MiB"],
            (Layout::Ring, _) => vec!["--keep", "64 MiB"],
            (Layout::Cbf, _) => vec!["--format", "cbf"],
            (Layout::Hdf5 | Layout::Hdf5Spread, true) => vec!["--format", "hdf5"],
            (Layout::Hdf5Tiles, true) => vec!["--format", "hdf5", "--chunk", size.tile()],
            (Layout::Hdf5Tiles, _) => vec!["--chunk", size.tile()],
            (Layout::Hdf5Compressed, true) => vec!["--format", "hdf5", "--compression", "zstd"],
            (Layout::Hdf5Compressed, _) => vec!["--compression", "zstd"],
            _ => Vec::new(),
        }
    }
}

impl Size {
    /// Rows and columns, and frames in a second.
    fn shape(self) -> ([u64; 2], u64) {
        match self {
            Size::Tiny => ([4, 4], 1000),
            Size::Small => ([16, 16], 2000),
            Size::Large => ([1000, 700], 30),
        }
    }

    /// A part of it.
    fn tile(self) -> &'static str {
        match self {
            Size::Tiny | Size::Small => "4x4",
            Size::Large => "250x175",
        }
    }

    fn frames(self) -> &'static str {
        match self {
            Size::Tiny | Size::Small => "4000",
            Size::Large => "60",
        }
    }
}

/// The instrument and the directories.
pub(super) fn prepare(home: &Path, input: Input, layout: Layout, size: Size) {
    for directory in ["to", "beside"] {
        fs::create_dir(home.join(directory)).expect("space");
    }
    let port = free_port();
    let ([rows, columns], rate) = size.shape();
    // What CBF has is of 32 bit.
    let pixel = if layout == Layout::Cbf { "int32" } else { "uint16" };
    let text = match input {
        Input::Packets | Input::PacketThreads => {
            let payload = if size == Size::Large { 8000 } else { 1000 };
            format!(
                "name = \"it\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{}]\npixel = \"uint2\"\n\
                 frame_rate = \"4000 Hz\"\ndata = \"vlbi\"\n[packets]\nport = {port}\n[packets.format.vdif]\n\
                 payload = \"{payload} B\"\nthreads = [0]\nstations = [\"Ef\"]\n",
                4 * payload
            )
        }
        _ => format!(
            "name = \"it\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{rows}, {columns}]\npixel = \"{pixel}\"\n\
             frame_rate = \"{rate} Hz\"\n{}[recording]\nformat = \"hdf5\"\n",
            input.data()
        ),
    };
    fs::write(home.join("it.toml"), text).expect("space");
    if input == Input::Files {
        let pixel_size = if layout == Layout::Cbf { 4 } else { 2 };
        write_frames(home, (rows * columns * pixel_size) as usize);
    }
}

/// Writes three files of a frame each.
fn write_frames(home: &Path, frame_size: usize) {
    fs::create_dir(home.join("frames")).expect("space");
    for number in 0..3 {
        let frame: Vec<u8> = (0..frame_size).map(|at| ((at + number) % 7) as u8).collect();
        fs::write(home.join(format!("frames/{number}.raw")), frame).expect("space");
    }
}

/// Sends so many images of a series to who connects there: it waits for that.
pub(super) fn sender(home: &Path, at: &str, frames: &str) -> Running {
    sender_of(home, at, frames, "2")
}

/// The same by a version of the stream.
fn sender_of(home: &Path, at: &str, frames: &str, version: &str) -> Running {
    let stream = ["--stream-version", version];
    let arguments = ["simulate", "it.toml", "--to", at, "--frames", frames];
    let mut sender = start(home, &[&arguments[..], &stream].concat());
    sender.await_said("waiting for a receiver");
    sender
}

/// Records what comes with the bound of memory, in the group.
pub(super) fn record(group: &MemoryGroup, home: &Path, input: Input, layout: Layout, size: Size) -> Ended {
    let mut arguments = vec!["--name", "scan", "--reserve", "0 B", "--memory", MEMORY];
    for directory in layout.directories() {
        arguments.extend(["--to", directory]);
    }
    let options = layout.options(input, size);
    arguments.extend(&options);
    let frames = size.frames();
    match input {
        Input::Simulated | Input::Files => {
            let all = [&["simulate", "it.toml", "--frames", frames][..], &arguments].concat();
            group.start(home, &all).end(LIMIT)
        }
        Input::Packets => record_packets(group, home, &arguments),
        Input::PacketThreads => {
            record_packets(group, home, &[&arguments[..], &["--receive-threads", "2"]].concat())
        }
        Input::Series | Input::SeriesVersion1 => {
            let version = if input == Input::Series { "2" } else { "1" };
            let at = format!("tcp://127.0.0.1:{}", free_port());
            let sending = sender_of(home, &at, frames, version);
            let all = [&["record", "--from", &at, "--silence", "2 s"][..], &arguments].concat();
            let ended = group.start(home, &all).end(LIMIT);
            drop(sending);
            ended
        }
        Input::Service => serve(group, home, layout, size),
    }
}

fn record_packets(group: &MemoryGroup, home: &Path, arguments: &[&str]) -> Ended {
    let all = [&["record", "it.toml"][..], arguments].concat();
    let mut recorder = group.start(home, &all);
    recorder.await_said("recording scan");
    let text = fs::read_to_string(home.join("it.toml")).expect("it is there");
    let (_, port) = text.split_once("port = ").expect("it has one");
    let to = format!("udp://127.0.0.1:{}", port.lines().next().expect("a number"));
    start(home, &["simulate", "it.toml", "--to", &to, "--frames", "20000"]).end(LIMIT);
    recorder.signal(Signal::TERM);
    recorder.end(LIMIT)
}

/// Has a service in the group record a series, with the same bound.
fn serve(group: &MemoryGroup, home: &Path, layout: Layout, size: Size) -> Ended {
    let at = format!("tcp://127.0.0.1:{}", free_port());
    let directories = layout.directories().iter().map(|name| format!("\"{}\"", home.join(name).display()));
    let directories: Vec<_> = directories.collect();
    let mut text = format!(
        "[service]\nhttp = \"127.0.0.1:0\"\nmark5 = \"off\"\n[record]\nto = [{}]\nreserve = \"0 B\"\n\
         memory = \"{MEMORY}\"\nfrom = \"{at}\"\nsilence = \"2 s\"\n",
        directories.join(", ")
    );
    for option in layout.options(Input::Service, size).chunks(2) {
        let [name, value] = [option[0].trim_start_matches('-'), option[1]];
        text += &[name, " = \"", value, "\"\n"].concat();
    }
    fs::write(home.join("service.toml"), text).expect("space");
    let mut service = group.start(home, &["serve", "--config", "service.toml"]);
    service.await_said("ready");
    let http = address(&service, "http");
    let sending = sender(home, &at, size.frames());
    let (status, answer) = ask(http, "POST", "/arm", "{\"name\": \"scan\"}");
    assert_eq!(status, 200, "{answer}");
    await_some("the end of a series", || (status_of(http)["last"]["name"] == "scan").then_some(()));
    drop(sending);
    service.signal(Signal::TERM);
    service.end(LIMIT)
}

/// Whether frames are there.
pub(super) fn has_recorded(home: &Path) -> bool {
    let bytes = |directory: &str| {
        let entries = fs::read_dir(home.join(directory).join("scan")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum::<u64>()
    };
    bytes("to") + bytes("beside") > 50_000
}
