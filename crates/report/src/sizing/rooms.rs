//! How long directories have room for instruments, as a document and as JSON.

use nilometer_model::{Bytes, StorageRoom};
use serde_json::{Value, json};

use crate::document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Table};

/// The room of directories for instruments.
#[derive(Debug, Clone)]
pub struct InstrumentRooms {
    /// The paths of the directories.
    pub directories: Vec<String>,
    /// Bytes that stay free on each storage.
    pub reserve: Bytes,
    /// The room for each instrument, by its name.
    pub rooms: Vec<(String, StorageRoom)>,
}

/// The document: a row for each instrument.
pub(crate) fn rooms_document(all: &InstrumentRooms) -> Document {
    let columns = vec![Column::new(Role::Name, "instrument"), Column::new(Role::Sentence, "room")];
    let row = |(name, room): &(String, StorageRoom)| Row::of([name.clone(), room.to_string()].map(Cell::new));
    let table = Table { columns, rows: all.rooms.iter().map(row).collect() };
    Document {
        title: all.directories.join(", "),
        origin: format!("{} of each storage stays free.", all.reserve),
        sections: vec![Section::new(Heading::of("Room for instruments"), vec![Block::Table(table)])],
        ..Document::default()
    }
}

/// The same as JSON, in bytes, bytes per second and seconds.
pub fn rooms_json(all: &InstrumentRooms) -> Value {
    let rooms: Vec<Value> = all.rooms.iter().map(|(name, room)| room_json(name, room)).collect();
    json!({ "directories": all.directories, "reserve_bytes": all.reserve.0, "rooms": rooms })
}

fn room_json(name: &str, room: &StorageRoom) -> Value {
    json!({
        "instrument": name,
        "written_bytes_per_second": room.rate.0,
        "usable_bytes": room.usable.0,
        "room_seconds": room.seconds(),
    })
}

#[cfg(test)]
mod tests {
    use nilometer_model::ByteRate;

    use super::*;
    use crate::{TextLayout, rooms_markdown, rooms_text};

    #[test]
    fn each_instrument_has_its_room_in_every_form() {
        let room = |rate| StorageRoom { usable: Bytes(60_000_000_000), rate: ByteRate(rate) };
        let rooms = vec![("fast".to_owned(), room(2e9)), ("slow".to_owned(), room(2e8))];
        let all =
            InstrumentRooms { directories: vec!["/a".into(), "/b".into()], reserve: Bytes(1 << 30), rooms };
        let text = rooms_text(&all, TextLayout::plain());
        assert!(text.starts_with("/a, /b\n1 GiB of each storage stays free."), "{text}");
        assert!(text.contains("fast        room for 30 s at 2 GB/s"), "{text}");
        assert!(
            rooms_markdown(&all).contains("| slow | room for 5 min at 200 MB/s"),
            "{}",
            rooms_markdown(&all)
        );
        let json = rooms_json(&all);
        assert_eq!(
            (&json["rooms"][1]["room_seconds"], &json["reserve_bytes"]),
            (&json!(300.0), &json!(1 << 30))
        );
    }
}
