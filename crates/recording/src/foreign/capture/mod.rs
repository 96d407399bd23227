//! Captured packets: the payload of UDP packets in a file of pcap or pcapng, as one stream.
//!
//! ```text
//! capture -> container (each packet) -> link (its UDP payload) -> layout (is it of the stream?) -> PayloadRuns
//! PayloadRuns -> one stream of frames, in the order of the capture
//! ```
//!
//! VDIF and Mark5B are recognized in the payload, behind a prefix of any whole number of words. If no payload has
//! them, the stream is that of the packets that have the most common length and port. If the user names the mode, only
//! packets with its frames count.

mod container;
mod layout;
mod link;
mod payload_runs;

use std::{io, ops::ControlFlow, path::Path, sync::Arc};

use nilometer_model::{Format, packets::VlbiMode};

use self::{
    container::{CapturedPacket, each_packet},
    layout::{LayoutVotes, PacketFate, PayloadLayout},
    link::{NotUdp, UdpPayload, udp_payload},
    payload_runs::{CaptureStorage, PayloadRuns},
};
use super::{
    foreign_file::source_file,
    plain_file::{NOT_RECOGNIZED, notes_of, of_bytes},
};
use crate::{ForeignFacts, ForeignKind, reader::Recording, recording_storage::StoredFile};

pub(super) use container::is_magic;

/// Number of UDP packets at the beginning by which to find the layout.
const LOOKED_AT: u64 = 4096;

/// Opens a capture of packets with frames of this mode; `None` means that the packets say their format
/// themselves. The inner error says why its packets are no stream.
pub(super) fn open(
    path: &Path,
    name: &str,
    mode: Option<&VlbiMode>,
) -> io::Result<Result<Recording, String>> {
    let mut source = source_file(path)?;
    let file = &*source.opened.file;
    let votes = votes_of(file, source.length)?;
    let Some(usual) = votes.clone().winner() else {
        return Ok(Err("it has no UDP packets: nothing in it is a stream".into()));
    };
    let layout = match mode {
        None => usual,
        Some(mode) => match votes.winner_of(mode) {
            Some(layout) => layout,
            None => return Ok(Err(not_of(mode, usual))),
        },
    };
    let (runs, counts) = taken(file, source.length, layout)?;
    if runs.length() == 0 {
        return Ok(Err(format!("no packet of its stream is whole: {}", counts.faults().join("; "))));
    }
    let shape = layout.shape();
    let mut notes = notes_of(&shape, 0);
    notes.extend(mode.filter(|_| shape.format == Format::Raw).map(|_| NOT_RECOGNIZED.to_owned()));
    notes.push(counts.note(layout));
    let faults = counts.faults();
    let facts = ForeignFacts { kind: ForeignKind::Capture, files: 1, in_step: true, faults, notes };
    source.length = runs.length();
    let storage = Arc::new(CaptureStorage(Arc::new(runs)));
    Ok(Ok(of_bytes(source, name, &shape, 0, storage, facts)))
}

/// The message for a capture without a packet of the named mode. `usual` are its most common packets.
fn not_of(mode: &VlbiMode, usual: PayloadLayout) -> String {
    let shape = usual.shape();
    let format = if shape.format == Format::Raw { "unknown data" } else { shape.format.name() };
    format!(
        "--mode {mode}: none of its first {LOOKED_AT} packets has such a frame of {} B; most are packets {usual}: {format}, {} B \
         each",
        mode.frame_size().0,
        shape.frame_size
    )
}

/// Counts the layouts of packets at the beginning.
fn votes_of(file: &dyn StoredFile, length: u64) -> io::Result<LayoutVotes> {
    let mut votes = LayoutVotes::default();
    let mut seen = 0;
    each_packet(file, length, &mut |packet: CapturedPacket<'_>| {
        if let Ok(udp) = udp_payload(packet.link, packet.head) {
            votes.add(&packet, &udp);
            seen += 1;
        }
        if seen < LOOKED_AT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(votes)
}

/// Counts of the packets in a capture.
#[derive(Debug, Default)]
struct CaptureCounts {
    taken: u64,
    /// UDP packets that are not of the stream.
    others: u64,
    not_udp: u64,
    fragments: u64,
    cut: u64,
    /// Halves of Mark5B frames without the other half.
    lone: u64,
    /// Why the packets do not go on to the end of the file.
    fault: Option<String>,
}

impl CaptureCounts {
    fn faults(&self) -> Vec<String> {
        let CaptureCounts { fragments, cut, lone, fault, .. } = self;
        let counts = [
            (*cut, "packets of the stream were captured only in part, and are left out"),
            (*fragments, "fragments of IP packets are left out: nobody put them together"),
            (*lone, "halves of frames have no other half, and are left out"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, words)| format!("{count} {words}")).chain(fault.clone()).collect()
    }

    fn note(&self, layout: PayloadLayout) -> String {
        let CaptureCounts { taken, others, not_udp, .. } = self;
        format!("{taken} packets {layout}; {others} other packets of UDP and {not_udp} others are left out")
    }
}

/// Finds the payload of all packets of a stream.
fn taken(
    file: &dyn StoredFile,
    length: u64,
    layout: PayloadLayout,
) -> io::Result<(PayloadRuns, CaptureCounts)> {
    let mut counts = CaptureCounts::default();
    let mut taker = layout.taker();
    let fault = each_packet(file, length, &mut |packet: CapturedPacket<'_>| {
        match udp_payload(packet.link, packet.head) {
            Ok(udp) => count(&mut counts, taker.take(&packet, &udp), &packet, &udp),
            Err(NotUdp::Fragment) => counts.fragments += 1,
            Err(NotUdp::Other) => counts.not_udp += 1,
        }
        ControlFlow::Continue(())
    })?;
    counts.fault = fault;
    let (runs, lone) = taker.end();
    counts.lone += lone;
    Ok((runs, counts))
}

fn count(counts: &mut CaptureCounts, taken: PacketFate, packet: &CapturedPacket<'_>, udp: &UdpPayload) {
    match taken {
        PacketFate::Whole => counts.taken += 1,
        PacketFate::Other if udp.end() > u64::from(packet.captured) => counts.cut += 1,
        PacketFate::Other => counts.others += 1,
        PacketFate::Lone(count) => {
            counts.taken += 1;
            counts.lone += count;
        }
    }
}

#[cfg(test)]
mod tests;
