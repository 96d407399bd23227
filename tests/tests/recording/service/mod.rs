//! The recorder as a program that runs for long: configured by a file, at given times, commanded from outside.

mod attacked;
mod clients;
mod commanded;
mod data_streams;
mod described;
mod doctor;
mod every_series;
mod killed;
mod page;
mod prometheus;
mod scheduled;
mod secured;
pub(crate) mod sender;
mod series;
mod stations;
mod unit;
mod watched;

use std::{fs, path::Path};

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
