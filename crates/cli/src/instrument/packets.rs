//! The rows about an instrument's frames on the network.

use nilometer_model::{
    Bytes, Frequency, Instrument, Packets,
    packets::{
        BitField, Cut, Detector, HeaderKind, KeptHeader, Marks, Module, NumberedPackets, PacketFormat, Vdif,
    },
};

/// The rows; empty if the catalogue has no packets of the instrument.
pub(super) fn rows(instrument: &Instrument) -> Vec<(&'static str, String)> {
    let Some(packets) = &instrument.packets else { return Vec::new() };
    let frame = instrument.frame_size();
    let kept = packets.kept(frame);
    let brought = instrument.stream_rate().0 / packets.brought(frame).0 as f64;
    let of_frame = packets.of_frame(frame);
    let rate = Frequency(brought * of_frame as f64);
    let mut rows = vec![
        (
            "packets",
            format!(
                "{}, at most {} each, {rate} of each stream",
                what(packets, instrument),
                bytes(packets.longest(frame))
            ),
        ),
        ("in front", in_front(packets, instrument)),
        ("ports", ports(packets, instrument)),
        (
            "recorded",
            format!(
                "frames of {}, {of_frame} packet{} each, {} in all",
                bytes(kept),
                if of_frame == 1 { "" } else { "s" },
                recorded(instrument)
            ),
        ),
    ];
    rows.retain(|(_, text)| !text.is_empty());
    rows
}

/// A size with every byte.
fn bytes(size: Bytes) -> String {
    format!("{} B", size.0)
}

fn recorded(instrument: &Instrument) -> String {
    instrument.in_blocks().map_or_else(String::new, |blocks| blocks.rate().to_string())
}

/// The contents of a packet.
fn what(packets: &Packets, instrument: &Instrument) -> String {
    match &packets.format {
        PacketFormat::Vdif(vdif) => format!("a VDIF frame each{}", lanes(vdif)),
        PacketFormat::Mark5b(mark5b) => match mark5b.frame {
            Cut::Halves => "half a Mark5B frame each".into(),
            Cut::Whole => "a Mark5B frame each".into(),
        },
        PacketFormat::Raw(raw) => format!("{} each, in an unknown format", bytes(raw.payload)),
        PacketFormat::Numbered(numbered) => {
            let streams = numbered.streams();
            let streams = if streams > 1 { format!(", of {streams} streams in turn") } else { String::new() };
            format!("{} each behind a header{streams}", bytes(numbered.payload))
        }
        PacketFormat::Excalibur(modules) => format!("EXCALIBUR in 12-bit mode, {} modules", modules.modules),
        PacketFormat::Jungfrau(modules) => format!("JUNGFRAU, {} modules", modules.modules),
        PacketFormat::Eiger(eiger) => format!("EIGER, {} half modules", eiger.halves),
        PacketFormat::DummyUdp(_) => "the test stream of odin-data".into(),
        PacketFormat::Described(_) => {
            let detector = packets.detector(instrument.frame_size());
            detector.map_or_else(String::new, |detector| described(&detector))
        }
    }
}

fn lanes(vdif: &Vdif) -> String {
    let list = |name: &str, texts: Vec<String>| format!(", {name} {}", texts.join(", "));
    let stations = vdif.stations.as_ref();
    let stations = stations.map(|all| list("stations", all.iter().map(ToString::to_string).collect()));
    let threads = vdif.threads.as_ref();
    let threads = threads.map(|all| list("threads", all.iter().map(ToString::to_string).collect()));
    let header = if vdif.header == HeaderKind::Legacy { ", with headers of 16 B" } else { "" };
    stations.unwrap_or_default() + &threads.unwrap_or_default() + header
}

fn described(detector: &Detector) -> String {
    let Detector { modules, subframes, packets, .. } = detector;
    let marks = detector.marks.map_or_else(String::new, |Marks { first, last }| {
        format!(", the first and the last marked by bits {first} and {last}")
    });
    format!("{modules} modules of {subframes} sub-frames of {packets} packets{marks}")
}

/// The bytes of a packet before the data that the recorder stores, and the place of its numbers.
fn in_front(packets: &Packets, instrument: &Instrument) -> String {
    if let Some(detector) = packets.detector(instrument.frame_size()) {
        let at = |field: nilometer_model::packets::Field| format!("{} B at {}", field.bytes, field.offset);
        let packet = detector.packet.map_or_else(String::new, |field| format!(", packet {}", at(field)));
        let module = match detector.module {
            Module::Port => ", module by its port".into(),
            Module::At(field) => format!(", module {}", at(field)),
        };
        return format!("{}: frame {}{packet}{module}", bytes(detector.header), at(detector.frame));
    }
    if let PacketFormat::Numbered(numbered) = &packets.format {
        return described_header(numbered);
    }
    match packets.serial() {
        Some(field) => {
            format!("{}: serial number of {} B at {}", bytes(packets.prefix()), field.bytes, field.offset)
        }
        None if packets.prefix().0 > 0 => format!("{} that are not kept", bytes(packets.prefix())),
        None => "nothing".into(),
    }
}

/// A described header: its size, where its numbers stand, and the part of it that the recorder stores.
fn described_header(numbered: &NumberedPackets) -> String {
    let at = |field: BitField| format!("{} bits at byte {}", field.width(), field.offset);
    let step = match numbered.number.step {
        1 => String::new(),
        step => format!(" in steps of {step}"),
    };
    let upper = numbered.upper.map_or_else(String::new, |upper| format!(", upper part {}", at(upper.at)));
    let stream = numbered.stream.as_ref();
    let stream = stream.map_or_else(String::new, |stream| format!(", stream {}", at(stream.at)));
    let kept = match numbered.keep {
        KeptHeader::Nothing => "not recorded".into(),
        KeptHeader::All => "recorded".into(),
        KeptHeader::From(from) => format!("recorded from byte {} on", from.0),
    };
    format!("{}: number {}{step}{upper}{stream}; {kept}", bytes(numbered.header), at(numbered.number.at))
}

fn ports(packets: &Packets, instrument: &Instrument) -> String {
    let last = u64::from(packets.port) + u64::from(packets.ports()) * instrument.streams - 1;
    let what = match packets.format {
        PacketFormat::Eiger(_) => "two for each half module: left, right",
        _ if packets.ports() > 1 => "a module each",
        _ => "a stream each",
    };
    match last {
        last if last == u64::from(packets.port) => format!("{last}"),
        last => format!("{} to {last}, {what}", packets.port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::user_file::instrument;

    #[test]
    fn packets_are_shown_as_they_come() {
        let shown = |name: &str| {
            let rows = rows(&instrument(name).expect("it is in the catalogue"));
            rows.iter().map(|(key, text)| format!("{key}: {text}")).collect::<Vec<_>>()
        };
        let expected = [
            "packets: a VDIF frame each, threads 0, at most 8040 B each, 63.4 kHz of each stream",
            "in front: 8 B: serial number of 8 B at 0",
            "ports: 46227",
            "recorded: frames of 8032 B, 1 packet each, 509 MB/s in all",
        ];
        assert_eq!(shown("fila10g-4g"), expected);
        let jungfrau = shown("jungfrau-4m");
        assert!(jungfrau[0].contains("JUNGFRAU, 8 modules, at most 8240 B each"), "{jungfrau:?}");
        assert_eq!(jungfrau[1], "in front: 48 B: frame 8 B at 0, packet 4 B at 12, module by its port");
        assert_eq!(jungfrau[2], "ports: 50001 to 50008, a module each");
        let dune = shown("dune-ethernet");
        assert!(
            dune[0].contains("7168 B each behind a header, of 4 streams in turn, at most 7200 B"),
            "{dune:?}"
        );
        let header = "32 B: number 64 bits at byte 8 in steps of 2048, stream 8 bits at byte 0; recorded";
        assert_eq!(dune[1], format!("in front: {header}"));
        assert_eq!(shown("pco-edge"), [""; 0]);
    }
}
