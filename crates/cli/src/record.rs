//! `nilometer record`: packets from the network, through the recorder, into a directory that stays.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, ensure};
use clap::{Args, builder::PossibleValuesParser};
use nilometer_acquisition::{
    Feed, Network, Outcome as Recorded, Recorder, Setup, Stream, Traffic, Until,
    assembly::{Limits, Missing, frames_of_block},
    format::{self, Ignored, Known, WireFormat},
    journal::Head,
    sink::{Durability, RawLayout},
    suited_engine,
    transport::{
        Transport,
        udp::{Address, Listening, UdpInlet},
    },
};
use nilometer_model::{
    ByteRate, Bytes, Format, Instrument, Nanos, Storing,
    packets::{PacketFormat, Packets},
};
use nilometer_storage::{
    Calendar, Clock, Target,
    buffer::ALIGNMENT,
    target::{Description, Directory},
};

use crate::{
    Blame, Outcome,
    describe::described,
    evaluate::{run_id, stop_on_signal},
    instrument,
    recorded::{check_buffer, check_name, durable_when, early_ends, lanes, make, stalls},
};

/// Records the packets of an instrument from the network, in order and complete, until it is stopped
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// A name of the catalogue (see `nilometer instrument list`), or the path of a .toml file, with `packets`
    instrument: String,
    /// Where the recording goes, in a new directory of its name
    #[arg(long = "to", required = true, value_name = "DIRECTORY")]
    to: PathBuf,
    /// The name of the recording [default: the instrument and a number]
    #[arg(long)]
    name: Option<String>,
    /// Where packets come: an address of this machine, or of a group, and a port [default: `udp://127.0.0.1` and the port of
    /// the instrument, so that only this machine is heard]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    /// By which interface, given as its address, the group is joined
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<IpAddr>,
    /// Take packets of this sender only; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    allow: Vec<IpAddr>,
    /// End so long after the first packet
    #[arg(long)]
    duration: Option<Nanos>,
    /// End after so many packets
    #[arg(long)]
    packets: Option<u64>,
    /// End when none came for so long after the last
    #[arg(long)]
    silence: Option<Nanos>,
    /// What stands in the place of frames that do not come: ones that are marked as invalid and carry the time that those
    /// would have had, or nothing
    #[arg(long, value_name = "HOW", default_value = Missing::Filled.name())]
    #[arg(value_parser = PossibleValuesParser::new(Missing::ALL.map(Missing::name)))]
    missing: String,
    /// By how many others a packet may be overtaken before it counts as missing
    #[arg(long, value_name = "PACKETS", default_value_t = Limits::default().window)]
    window: u64,
    /// Memory between the network and the storage
    #[arg(long, default_value = "1 GiB")]
    buffer: Bytes,
    /// Memory of the kernel for packets that wait; without root at most what `net.core.rmem_max` allows
    #[arg(long, default_value = "64 MiB")]
    receive_buffer: Bytes,
    /// For how many microseconds the network card is asked before the processor sleeps
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    busy_poll: u32,
    /// What stays free on the storage; without that room the recording ends
    #[arg(long, default_value = "1 GiB")]
    reserve: Bytes,
    /// Write a checksum of each block of packets into the journal
    #[arg(long)]
    checksums: bool,
    /// How long storage may be silent after the last packet
    #[arg(long, default_value = "60 s")]
    hang_after: Nanos,
}

/// How frames lie in blocks.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    frames: u64,
    size: u64,
    direct: bool,
}

impl Record {
    pub(crate) fn execute(&self) -> Outcome {
        let (instrument, packets) = self.instrument().input()?;
        let known = known(&instrument, &packets);
        let format = format::of(&packets, &known).map_err(anyhow::Error::msg).input()?;
        // What the file says of its rate is better than nothing for whoever reads the recording.
        let known = Known { frames_per_second: Known::of(&instrument).frames_per_second, ..known };
        let description = described(&self.to).input()?;
        let blocks = Blocks::of(format.as_ref(), &description);
        let id = run_id().0;
        let name = self.name.clone().unwrap_or_else(|| format!("{}-{id:016x}", instrument.name));
        self.check(&description, blocks, format.as_ref(), &name).input()?;
        let listening = self.listening(&packets).input()?;
        let inlet = UdpInlet::open(&listening).with_context(|| {
            format!("can't listen at udp://{}: name an address of this machine and a free port", listening.at)
        });
        let inlet = inlet.input()?;
        let stop = stop_on_signal().run()?;
        let targets = make(vec![description], &name).input()?;
        let room = Bytes(inlet.room());
        let setup =
            self.setup(format, inlet, &targets[0], (id, &name), blocks, (&packets, &known), stop).run()?;
        let durability = setup.lanes[0].1.durability;
        let mut recorder = Recorder::prepare(setup).run()?;
        eprintln!("recording {name} from udp://{}, {room} of packets may wait in the kernel", listening.at);
        recorder.begin().run()?;
        let outcome = recorder.wait_to_end();
        print!("{}", summary(&outcome, &targets));
        println!("durable     {}", durable_when(durability));
        println!("\nnilometer verify {}", targets[0].path().display());
        // A directory on storage that hangs must not be closed: the program is to end.
        std::mem::forget(targets);
        went_well(&outcome).run()
    }

    fn instrument(&self) -> anyhow::Result<(Instrument, Packets)> {
        let instrument = instrument::load(&self.instrument)?;
        let packets = instrument.packets.clone().with_context(|| {
            format!("{}: it has no `packets`: nothing says how it comes over a network", self.instrument)
        })?;
        ensure!(
            packets.ports() == 1,
            "{}: packets that come to several ports are not recorded yet",
            self.instrument
        );
        Ok((instrument, packets))
    }

    fn check(
        &self,
        description: &Description,
        blocks: Blocks,
        format: &dyn WireFormat,
        name: &str,
    ) -> anyhow::Result<()> {
        check_name(name)?;
        check_buffer(self.buffer, Bytes(blocks.size))?;
        let window = self.window * format.geometry().packet_size() as u64;
        let needed = Bytes(window + 4 * blocks.size);
        let window = self.window;
        ensure!(
            self.buffer >= needed,
            "--buffer {}: a window of {window} packets needs {needed}",
            self.buffer
        );
        for (option, value) in [("--packets", self.packets), ("--duration", self.duration.map(|time| time.0))]
        {
            ensure!(value != Some(0), "{option} 0: write more than 0");
        }
        let path = description.path.display();
        ensure!(
            description.writable,
            "{path}: can't be written: name a directory that this user may write to"
        );
        let existing = description.path.join(name);
        ensure!(!existing.exists(), "{} exists: choose another --name", existing.display());
        let (free, size) = (description.space.free, Bytes(blocks.size));
        ensure!(
            free.0.saturating_sub(self.reserve.0) >= blocks.size,
            "{path} has {free} free, and {} must stay free: no block of {size} fits; name larger storage, or a smaller \
             --reserve",
            self.reserve
        );
        Ok(())
    }

    fn listening(&self, packets: &Packets) -> anyhow::Result<Listening> {
        let at = match &self.listen {
            Some(address) => address.resolve()?,
            None => SocketAddr::from((Ipv4Addr::LOCALHOST, packets.port)),
        };
        let (interface, allowed) = (self.interface, self.allow.clone());
        Ok(Listening { at, interface, room: self.receive_buffer, allowed, busy_poll: self.busy_poll })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is made before anything is started, and used here only"
    )]
    fn setup(
        &self,
        format: Box<dyn WireFormat>,
        inlet: UdpInlet,
        target: &Arc<Directory>,
        (recording, name): (u64, &str),
        blocks: Blocks,
        (packets, known): (&Packets, &Known),
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Setup> {
        let stored = stored(packets);
        let missing =
            Missing::ALL.into_iter().find(|missing| missing.name() == self.missing).unwrap_or_default();
        let head = Head {
            recording,
            lane: 0,
            lanes: 1,
            frame_size: blocks.size,
            stride: blocks.size,
            frames_per_file: (PART / blocks.size).max(1),
            storing: Storing::Shared,
            format: stored,
        };
        let layout = RawLayout {
            checksums: self.checksums,
            durability: Durability::EachFile,
            stream: Some(Stream::new(stored, format.geometry(), missing).sent_as(packets, known)),
            ..RawLayout::suited(name.into(), head, blocks.direct)
        };
        let until = Until::default();
        let until = Until {
            duration: self.duration.unwrap_or(until.duration),
            packets: self.packets.unwrap_or(until.packets),
            silence: self.silence.unwrap_or(until.silence),
        };
        let limits = Limits { window: self.window, ..Limits::default() };
        let network = Network {
            transport: Box::new(inlet),
            format,
            frames_of_block: blocks.frames,
            limits,
            missing,
            until,
        };
        Ok(Setup {
            engine: suited_engine(target.as_ref(), blocks.direct, Clock::start())?,
            slots: (self.buffer.0 / blocks.size.next_multiple_of(ALIGNMENT as u64)).max(2) as usize,
            lanes: vec![(target.clone() as Arc<dyn Target>, layout)],
            feed: Feed::Network(network),
            reserve: Some(self.reserve),
            stop,
            allowance: Nanos::from_millis(10),
            hang_after: self.hang_after,
        })
    }
}

/// One file is synced by parts of it.
const PART: u64 = 256 << 20;
/// From 1970-01-01 to 2000-01-01 00:00 UTC, in seconds.
const YEAR_2000: u64 = 946_684_800;

/// What is known of a stream before it comes: today's date among it. Where packets have serial numbers, the frames of a
/// second are learned from them: the instrument may be set to another rate than its file says.
fn known(instrument: &Instrument, packets: &Packets) -> Known {
    let today = (Calendar::now().time.0 / 1_000_000_000).saturating_sub(YEAR_2000);
    let known = Known { begins: today, ..Known::of(instrument) };
    let frames_per_second = known.frames_per_second.filter(|_| packets.serial().is_none());
    Known { frames_per_second, ..known }
}

/// The form in which the frames of a stream are kept.
fn stored(packets: &Packets) -> Format {
    match packets.format {
        PacketFormat::Vdif(_) => Format::Vdif,
        PacketFormat::Mark5b(_) => Format::Mark5b,
        _ => Format::Raw,
    }
}

impl Blocks {
    fn of(format: &dyn WireFormat, description: &Description) -> Self {
        let frame = format.geometry().frame_size();
        let aligned = frames_of_block(frame, ALIGNMENT);
        let frames = aligned.or_else(|| frames_of_block(frame, 1)).unwrap_or(1);
        let direct = aligned.is_some() && description.direct_alignment().is_some();
        Blocks { frames, size: frames * frame as u64, direct }
    }
}

/// What became of the packets, a line each.
fn summary(outcome: &Recorded, targets: &[Arc<Directory>]) -> String {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let Traffic { tally, counted, .. } = &traffic;
    let books = outcome.books;
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut lines = vec![
        format!(
            "came        {} packets, {}, {}",
            counted.packets,
            Bytes(counted.bytes),
            ByteRate::of(counted.bytes, outcome.wall)
        ),
        format!("recorded    {} packets, {}", tally.placed, Bytes(tally.bytes)),
        format!("missing     {}", missing(&traffic)),
        format!("reordered   {}", reordered(&traffic)),
        format!("dropped     {}", dropped(&traffic)),
    ];
    if tally.restarts > 0 {
        lines.push(format!("anew        the numbers of packets began anew {} times", tally.restarts));
    }
    if tally.jumps > 0 {
        let (jumps, over) = (tally.jumps, tally.jumped);
        lines.push(format!("jumped      ahead {jumps} times, over {over} packets that are not filled"));
    }
    lines.extend([
        format!("latest      {longest} from complete until acknowledged"),
        format!("stalls      {}", stalls(&outcome.chronicle)),
        format!("buffer      {} of {} blocks in use at the most", books.high, books.slots),
    ]);
    lines.extend(lanes(outcome, targets, "blocks"));
    lines.join("\n") + "\n"
}

/// Which packets should be there and are not.
fn missing(Traffic { tally, counted, .. }: &Traffic) -> String {
    if tally.missing == 0 && tally.jumped == 0 && counted.dropped == 0 {
        return "none".into();
    }
    let share = tally.missing as f64 / (tally.missing + tally.placed) as f64 * 100.0;
    let mut causes = Vec::new();
    let mut cause = |count: u64, why: &str| {
        if count > 0 {
            causes.push(format!("{count} {why}"));
        }
    };
    cause(counted.dropped, "messages found no room in the kernel");
    cause(tally.refused, "found the buffer full");
    cause(tally.late, "came too late");
    let causes = if causes.is_empty() { String::new() } else { format!("; {}", causes.join(", ")) };
    format!(
        "{} packets, {share:.4} %, in {} gaps, the longest of {}{causes}",
        tally.missing, tally.losses, tally.longest_loss
    )
}

/// Which packets came out of order.
fn reordered(Traffic { tally, .. }: &Traffic) -> String {
    match tally.reordered {
        0 => "none".into(),
        count => format!("{count} packets, overtaken by {} others at the most", tally.extents.max()),
    }
}

/// Which packets were none of the stream.
fn dropped(Traffic { tally, counted, .. }: &Traffic) -> String {
    let ignored = Ignored::ALL.into_iter().map(|why| (tally.ignored[why as usize], why.name()));
    let others = [
        (counted.strangers, "of senders that are not allowed"),
        (tally.duplicates, "twice"),
        (tally.late, "too late"),
        (tally.stray, "with a number far from all others"),
    ];
    let all: Vec<_> = ignored
        .chain(others)
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if all.is_empty() { "none".into() } else { format!("packets: {}", all.join(", ")) }
}

/// Losses and storage that failed become the exit code.
fn went_well(outcome: &Recorded) -> anyhow::Result<()> {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let mut faults = Vec::new();
    let missing = traffic.tally.missing + traffic.tally.jumped;
    if missing > 0 {
        faults.push(format!("{missing} packets are missing"));
    }
    let lost = outcome.due.saturating_sub(outcome.stored());
    if lost > 0 {
        faults.push(format!("{lost} of {} blocks were not stored", outcome.due));
    }
    faults.extend(traffic.fault.map(|why| format!("the network: {why}")));
    faults.extend(early_ends(outcome, "directories", false));
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}
