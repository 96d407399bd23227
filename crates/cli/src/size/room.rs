//! `nilometer size NAME DIRECTORY`: for how long the storage of these directories has room for an instrument, or for
//! each of the catalogue.

use std::path::PathBuf;

use nilometer_model::{Bytes, Instrument, StorageRoom, TargetDescription, catalogue};
use nilometer_report::InstrumentRooms;

use crate::describe::described_place;

/// Reads the free space of the directories. Without instruments it takes all of the catalogue.
pub(super) fn find(
    to: &[PathBuf],
    reserve: Bytes,
    instruments: Vec<Instrument>,
) -> anyhow::Result<InstrumentRooms> {
    let on = to.iter().map(|path| described_place(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let instruments = if instruments.is_empty() { catalogue::instruments() } else { instruments };
    let room = |instrument: Instrument| {
        let room = StorageRoom::for_instrument(&instrument, 1, &on, reserve);
        (instrument.name, room)
    };
    Ok(InstrumentRooms {
        directories: on.iter().map(|on: &TargetDescription| on.address.to_string()).collect(),
        reserve,
        rooms: instruments.into_iter().map(room).collect(),
    })
}
