//! The recorder as a program that runs for long: configured by a file, at given times, commanded from outside.

mod attacked;
mod clients;
mod commanded;
mod copier;
mod copies;
mod copies_of_chunks;
mod data_streams;
mod described;
mod doctor;
mod ended_streams;
mod every_series;
mod killed;
pub(crate) mod page;
mod prometheus;
mod scheduled;
mod secured;
pub(crate) mod sender;
mod series;
mod soak;
mod stations;
mod unit;
mod watched;

use std::{fs, net::SocketAddr, path::Path};

use nilometer_tests::{Running, address, start};
use sender::Sender;
use tempfile::TempDir;

/// An instrument of packets of 1000 bytes behind a serial number, that come to this port.
pub(crate) fn instrument(directory: &Path, port: u16) -> String {
    let path = directory.join("raw.toml");
    let text = format!(
        "name = \"raw\"\ntitle = \"t\"\nsource = \"t\"\nshape = [1000]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
         [packets]\nport = {port}\n[packets.format.raw]\npayload = \"1000 B\"\n"
    );
    fs::write(&path, text).expect("space");
    path.display().to_string()
}

/// `nilometer record` of packets into `scan`, which programs can watch.
pub(crate) struct WatchedRecording {
    pub(crate) directory: TempDir,
    pub(crate) sender: Sender,
    pub(crate) running: Running,
    pub(crate) http: SocketAddr,
}

impl WatchedRecording {
    pub(crate) fn begin() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let sender = Sender::new();
        let raw = instrument(directory.path(), sender.port());
        let to = directory.path().to_str().expect("plain");
        let options = ["--name", "scan", "--buffer", "64 MiB", "--reserve", "0 B", "--http", "127.0.0.1:0"];
        let mut running = start(directory.path(), &[&["record", &raw, "--to", to][..], &options].concat());
        running.await_said("recording scan");
        let http = address(&running, "http");
        WatchedRecording { directory, sender, running, http }
    }

    pub(crate) fn below(&self) -> &Path {
        self.directory.path()
    }
}
