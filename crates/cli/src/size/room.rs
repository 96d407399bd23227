//! `nilometer size NAME DIRECTORY`: for how long the storage of these directories has room for an instrument, or for
//! each of the catalogue.

use std::{fmt::Write, path::PathBuf};

use nilometer_model::{Bytes, Instrument, StorageRoom, TargetDescription, catalogue};
use serde_json::json;

use crate::describe::described_place;

/// Directories, and the instruments that could be recorded there.
#[derive(Debug)]
pub(super) struct Rooms {
    on: Vec<TargetDescription>,
    reserve: Bytes,
    instruments: Vec<Instrument>,
}

impl Rooms {
    /// Reads the free space of the directories. Without instruments it takes all of the catalogue.
    pub(super) fn find(to: &[PathBuf], reserve: Bytes, instruments: Vec<Instrument>) -> anyhow::Result<Self> {
        let on = to.iter().map(|path| described_place(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let instruments = if instruments.is_empty() { catalogue::instruments() } else { instruments };
        Ok(Rooms { on, reserve, instruments })
    }

    fn room(&self, instrument: &Instrument) -> StorageRoom {
        StorageRoom::on(&self.on, self.reserve, instrument.written_rate())
    }

    /// A line for each instrument.
    pub(super) fn text(&self) -> String {
        let names: Vec<_> = self.on.iter().map(|on| on.address.to_string()).collect();
        let widest = self.instruments.iter().map(|instrument| instrument.name.len()).max().unwrap_or(0);
        let mut text = format!("{}: {} of each storage stays free\n", names.join(", "), self.reserve);
        for instrument in &self.instruments {
            let room = self.room(instrument);
            writeln!(text, "  {:widest$}  {room}", instrument.name).expect("a string takes all");
        }
        text
    }

    /// The same for programs.
    pub(super) fn json(&self) -> String {
        let each = self.instruments.iter().map(|instrument| {
            let room = self.room(instrument);
            json!({
                "instrument": instrument.name,
                "written_bytes_per_second": room.rate.0,
                "usable_bytes": room.usable.0,
                "room_seconds": room.seconds(),
            })
        });
        let directories: Vec<_> = self.on.iter().map(|on| on.address.to_string()).collect();
        let reserve_bytes = self.reserve.0;
        let rooms: Vec<_> = each.collect();
        let all = json!({ "directories": directories, "reserve_bytes": reserve_bytes, "rooms": rooms });
        format!("{all:#}\n")
    }
}
