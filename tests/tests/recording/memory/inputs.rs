//! All that can come, and all that it can become: what records it, and what sends it.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    path::Path,
};

use nilometer_tests::{Ended, MemoryGroup, Running, start};

use super::{LIMIT, MEMORY};

/// What delivers frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Simulated,
    Packets,
    Series,
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
        match (self, input) {
            (Layout::Files, _) => vec!["--storing", "files", "--format", "raw"],
            (Layout::Growing, _) => vec!["--storing", "growing", "--format", "raw"],
            (Layout::Shared, Input::Simulated) => vec!["--storing", "shared", "--format", "raw"],
            (Layout::Scattered, Input::Simulated) => vec!["--storing", "scattered", "--format", "raw"],
            (Layout::Scattered, _) => vec!["--chunk-size", "32 MiB"],
            (Layout::Ring, _) => vec!["--keep", "64 MiB"],
            (Layout::Cbf, _) => vec!["--format", "cbf"],
            (Layout::Hdf5 | Layout::Hdf5Spread, Input::Simulated) => vec!["--format", "hdf5"],
            (Layout::Hdf5Tiles, Input::Simulated) => vec!["--format", "hdf5", "--chunk", size.tile()],
            (Layout::Hdf5Tiles, _) => vec!["--chunk", size.tile()],
            (Layout::Hdf5Compressed, Input::Simulated) => vec!["--format", "hdf5", "--compression", "zstd"],
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

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

fn free_udp_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("it is bound").port()
}

/// The instrument and the directories.
pub(super) fn prepare(home: &Path, input: Input, layout: Layout, size: Size) {
    for directory in ["to", "beside"] {
        fs::create_dir(home.join(directory)).expect("space");
    }
    let port = free_udp_port();
    let ([rows, columns], rate) = size.shape();
    // What CBF has is of 32 bit.
    let pixel = if layout == Layout::Cbf { "int32" } else { "uint16" };
    let text = match input {
        Input::Packets => {
            let payload = if size == Size::Large { 8000 } else { 1000 };
            format!(
                "name = \"it\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{}]\npixel = \"uint2\"\n\
                 frame_rate = \"4000 Hz\"\ndata = \"vlbi\"\n[packets]\nport = {port}\n[packets.format.vdif]\n\
                 payload = \"{payload} B\"\nthreads = [0]\nstations = [\"Ef\"]\n",
                4 * payload
            )
        }
        Input::Simulated | Input::Series => format!(
            "name = \"it\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{rows}, {columns}]\npixel = \"{pixel}\"\n\
             frame_rate = \"{rate} Hz\"\n[data]\nkind = \"diffraction\"\ndistinct = 2\n[recording]\nformat = \"hdf5\"\n"
        ),
    };
    fs::write(home.join("it.toml"), text).expect("space");
}

/// Sends so many images of a series to who connects there: it waits for that.
pub(super) fn sender(home: &Path, at: &str, frames: &str) -> Running {
    let mut sender = start(home, &["simulate", "it.toml", "--to", at, "--frames", frames]);
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
        Input::Simulated => {
            let all = [&["simulate", "it.toml", "--frames", frames][..], &arguments].concat();
            group.start(home, &all).end(LIMIT)
        }
        Input::Packets => {
            let all = [&["record", "it.toml", "--silence", "1 s"][..], &arguments].concat();
            let mut recorder = group.start(home, &all);
            recorder.await_said("recording scan");
            let text = fs::read_to_string(home.join("it.toml")).expect("it is there");
            let (_, port) = text.split_once("port = ").expect("it has one");
            let to = format!("udp://127.0.0.1:{}", port.lines().next().expect("a number"));
            start(home, &["simulate", "it.toml", "--to", &to, "--frames", "20000"]).end(LIMIT);
            recorder.end(LIMIT)
        }
        Input::Series => {
            let at = format!("tcp://127.0.0.1:{}", free_port());
            let sending = sender(home, &at, frames);
            let all = [&["record", "--from", &at, "--silence", "2 s"][..], &arguments].concat();
            let ended = group.start(home, &all).end(LIMIT);
            drop(sending);
            ended
        }
    }
}

/// Whether frames are there.
pub(super) fn has_recorded(home: &Path) -> bool {
    let bytes = |directory: &str| {
        let entries = fs::read_dir(home.join(directory).join("scan")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum::<u64>()
    };
    bytes("to") + bytes("beside") > 100_000
}
