//! Captured packets: the payload of UDP packets in a file of pcap or pcapng, as one stream.
//!
//! ```text
//! capture -> container (each packet) -> link (its UDP payload) -> layout (is it of the stream?) -> PayloadRuns
//! PayloadRuns -> one stream of frames, in the order of the capture
//! ```
//!
//! VDIF and Mark5B are recognized in the payload, behind a prefix of any whole number of words. If no payload has
//! them, the stream is that of the packets that have the most common length and port. If the user names the mode, only
//! packets with its frames count; if the user names the port, only those to it.
//!
//! Packets that are left out are a fault, unless the user chose other ones. Frames of a named mode without a known
//! header may belong to several streams: if they came to several ports, the user must choose one.

mod container;
mod layout;
mod link;
mod payload_runs;

use std::{collections::BTreeMap, io, ops::ControlFlow, path::Path, sync::Arc};

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
    wish::ForeignWish,
};
use crate::{ForeignFacts, ForeignKind, reader::Recording, recording_storage::StoredFile};

pub(super) use container::is_magic;

/// Number of UDP packets at the beginning by which to find the layout.
const LOOKED_AT: u64 = 4096;

/// Opens a capture of the packets that the user wants. The inner error says why they are no stream.
pub(super) fn open(path: &Path, name: &str, wish: &ForeignWish) -> io::Result<Result<Recording, String>> {
    let mut source = source_file(path)?;
    let file = &*source.opened.file;
    let votes = votes_of(file, source.length, wish)?;
    let layout = match layout_of(votes, wish) {
        Ok(layout) => layout,
        Err(why) => return Ok(Err(why)),
    };
    let (runs, counts) = taken(file, source.length, layout, wish)?;
    if runs.length() == 0 {
        return Ok(Err(format!("no packet of its stream is whole: {}", counts.faults().join("; "))));
    }
    let shape = layout.shape();
    let mut notes = notes_of(&shape, 0);
    notes.extend(wish.mode.filter(|_| shape.format == Format::Raw).map(|_| NOT_RECOGNIZED.to_owned()));
    notes.push(counts.note(layout));
    let faults = counts.faults();
    let facts = ForeignFacts { kind: ForeignKind::Capture, files: 1, in_step: true, faults, notes };
    source.length = runs.length();
    let storage = Arc::new(CaptureStorage(Arc::new(runs)));
    Ok(Ok(of_bytes(source, name, &shape, 0, storage, facts)))
}

/// Chooses the packets of the stream. The error says why nothing can be chosen.
fn layout_of(votes: LayoutVotes, wish: &ForeignWish) -> Result<PayloadLayout, String> {
    let Some(usual) = votes.clone().winner() else {
        return Err(match wish.port {
            Some(port) if !votes.ports().is_empty() => {
                let ports = ports_text(votes.ports(), "packets");
                format!("--port {port}: no packet came to this port, but to {ports}")
            }
            _ => "it has no UDP packets: nothing in it is a stream".into(),
        });
    };
    let Some(mode) = &wish.mode else { return Ok(usual) };
    let ports = votes.ports_of(mode);
    if ports.len() > 1 {
        return Err(format!(
            "--mode {mode}: such frames came to {} ports, and may be several streams: choose one with --port: {}",
            ports.len(),
            ports_text(&ports, "frames")
        ));
    }
    votes.winner_of(mode).ok_or_else(|| not_of(mode, usual))
}

/// Ports that a message names, at the most.
const NAMED_PORTS: usize = 16;

/// The ports with the number of packets to each: `46227 (9 frames), 46228 (7)`.
fn ports_text(ports: &BTreeMap<u16, u64>, noun: &str) -> String {
    let one = |(number, (port, count)): (usize, (&u16, &u64))| {
        let noun = if number == 0 { format!(" {noun}") } else { String::new() };
        format!("{port} ({count}{noun})")
    };
    let named: Vec<_> = ports.iter().take(NAMED_PORTS).enumerate().map(one).collect();
    let more = ports.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
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

/// Counts the layouts of packets at the beginning. Packets to another port than the wanted one count only as such.
fn votes_of(file: &dyn StoredFile, length: u64, wish: &ForeignWish) -> io::Result<LayoutVotes> {
    let mut votes = LayoutVotes::default();
    let mut seen = 0;
    each_packet(file, length, &mut |packet: CapturedPacket<'_>| {
        if let Ok(udp) = udp_payload(packet.link, packet.head) {
            seen += u64::from(votes.add(&packet, &udp, wish));
        }
        if seen < LOOKED_AT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(votes)
}

/// Counts of the packets in a capture.
#[derive(Debug, Default)]
struct CaptureCounts {
    taken: u64,
    /// Packets that are left out although they may be of the stream.
    alike: u64,
    /// The same for the first ports and lengths.
    alike_by_port: BTreeMap<(u16, usize), u64>,
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
        let counts = counts.map(|(count, words)| format!("{count} {words}"));
        self.left_out().into_iter().chain(counts).chain(fault.clone()).collect()
    }

    /// The packets that the user may miss.
    fn left_out(&self) -> Option<String> {
        let named = self.alike_by_port.iter();
        let named = named.map(|((port, length), count)| format!("{count} of {length} B to port {port}"));
        let named = named.collect::<Vec<_>>().join(", ");
        let which = if named.is_empty() { named } else { format!(" ({named})") };
        (self.alike > 0).then(|| {
            format!(
                "{} packets{which} may be of another stream, and are left out: choose with --port and --mode",
                self.alike
            )
        })
    }

    /// Counts a packet that is left out although it may be of the stream.
    fn add_alike(&mut self, udp: &UdpPayload) {
        self.alike += 1;
        let key = (udp.port, udp.length);
        if self.alike_by_port.len() < NAMED_PORTS || self.alike_by_port.contains_key(&key) {
            *self.alike_by_port.entry(key).or_default() += 1;
        }
    }

    fn note(&self, layout: PayloadLayout) -> String {
        let CaptureCounts { taken, alike, others, not_udp, .. } = self;
        let others = alike + others;
        format!("{taken} packets {layout}; {others} other packets of UDP and {not_udp} others are left out")
    }
}

/// Finds the payload of all packets of a stream.
fn taken(
    file: &dyn StoredFile,
    length: u64,
    layout: PayloadLayout,
    wish: &ForeignWish,
) -> io::Result<(PayloadRuns, CaptureCounts)> {
    let mut counts = CaptureCounts::default();
    let mut taker = layout.taker(*wish, file);
    let fault = each_packet(file, length, &mut |packet: CapturedPacket<'_>| {
        match udp_payload(packet.link, packet.head) {
            Ok(udp) => count(&mut counts, taker.take(&packet, &udp), &udp),
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

fn count(counts: &mut CaptureCounts, taken: PacketFate, udp: &UdpPayload) {
    match taken {
        PacketFate::Whole => counts.taken += 1,
        PacketFate::Cut => counts.cut += 1,
        PacketFate::Alike => counts.add_alike(udp),
        PacketFate::Other => counts.others += 1,
        PacketFate::Lone(count) => {
            counts.taken += 1;
            counts.lone += count;
        }
    }
}

#[cfg(test)]
mod tests;
