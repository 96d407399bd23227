//! `nilometer replay`: sends a recording again, over a network.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_intake::{
    replay::{Replay as Replayer, ReplayError, Replayed, Replaying},
    transport::{
        Outlet, TcpOutlet,
        udp::{Address, Sending, UdpOutlet},
    },
};
use nilometer_model::{ByteRate, Bytes};
use nilometer_recording::{
    reader::{Recording, Trust},
    view::{Extent, RecordingView},
};
use nilometer_report::in_line;
use nilometer_storage::Clock;

use crate::{
    Blame, Failure, Outcome,
    foreign_mode::ForeignMode,
    foreign_text::lacking_fault,
    part::{PartOptions, part_line},
    share::Share,
    signals::stop_on_signal,
    stored_at::refuse_missing,
    tell,
};

/// Send a recording again, packet by packet, at its own rate, even while it grows
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The directories of the recording, those of all lanes; or a recording of another program, as for scan
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Send to this address. `udp://HOST:PORT` gets packets with the serial numbers that preceded them; the
    /// modules of a detector go to as many ports from PORT on. `tcp://HOST:PORT` gets them one after the
    /// other, without serial numbers
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Begin with this serial number
    #[arg(long, default_value_t = 0)]
    serial: u64,
    #[command(flatten)]
    part: PartOptions,
    #[command(flatten)]
    foreign: ForeignMode,
    /// Send this many bytes of frames a second [default: the recording's own rate]
    #[arg(long)]
    rate: Option<ByteRate>,
    /// Let packets to a multicast group pass this many routers [default: 1]
    #[arg(long)]
    ttl: Option<u8>,
    /// Send packets to a multicast group by this interface [default: the system's choice]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

const TCP: &str = "tcp://";
const UDP: &str = "udp://";

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "an HDF5 file without a journal has no packets to send";

impl Replay {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_missing(&self.directories).input()?;
        self.foreign.refuse_unknown_files(&self.directories, FOR_FILES).input()?;
        check(self.rate).input()?;
        let (is_tcp, address) = self.address().input()?;
        let to = address.resolve().input()?;
        let recording =
            self.foreign.stored_at(&self.directories).input()?.open(Trust::Acknowledged).input()?;
        check_foreign(&recording, is_tcp).input()?;
        let whole = self.part.of(RecordingView::new(recording, Extent::Mark)).input()?;
        let replaying = Replaying { serial: self.serial, rate: self.rate };
        let replay = Replayer::new(whole.clone(), replaying).map_err(|error| match error {
            ReplayError::Network(_) => Failure::Run(error.into()),
            _ => Failure::Input(error.into()),
        })?;
        let mut outlets = if is_tcp { self.tcp(to).run()? } else { self.udp(to, replay.ports()).input()? };
        let stop = stop_on_signal().run()?;
        tell::note(format_args!("sending {} to {}", in_line(whole.name()), self.to));
        if let Some(part) = part_line(&whole) {
            tell::note(format_args!("part        {part}"));
        }
        let mut share = Share::new("sent", Bytes(whole.length()));
        let replayed = replay.run(&mut outlets, Clock::start(), &stop, |done| share.tell(Bytes(done)));
        share.clear();
        let replayed = replayed.run()?;
        tell::result(summary(&replayed));
        went_well(&replayed, &whole).run()
    }

    fn tcp(&self, to: SocketAddr) -> anyhow::Result<Vec<Box<dyn Outlet>>> {
        let outlet = TcpOutlet::connect(to).with_context(|| format!("can't send to {}", self.to))?;
        Ok(vec![Box::new(outlet)])
    }

    /// An outlet to each of `ports` ports, from that of `to` on.
    fn udp(&self, to: SocketAddr, ports: usize) -> anyhow::Result<Vec<Box<dyn Outlet>>> {
        let sending = Sending { hops: self.ttl, interface: self.interface.clone(), ..Sending::default() };
        let mut outlets: Vec<Box<dyn Outlet>> = Vec::new();
        for port in usize::from(to.port())..usize::from(to.port()) + ports {
            let last = usize::from(to.port()) + ports - 1;
            let number = u16::try_from(port).map_err(|_| {
                anyhow!("--to {}: there is no port {last}: name the first of {ports}", self.to)
            })?;
            let mut at = to;
            at.set_port(number);
            let outlet = UdpOutlet::connect(at, &sending);
            outlets.push(Box::new(outlet.with_context(|| format!("can't send to {}", self.to))?));
        }
        Ok(outlets)
    }

    /// True if the address is one of TCP, and the address itself.
    fn address(&self) -> anyhow::Result<(bool, Address)> {
        let wrong = || {
            anyhow!("--to {}: write udp://HOST:PORT or tcp://HOST:PORT, as in udp://127.0.0.1:46227", self.to)
        };
        let (is_tcp, rest) = match (self.to.strip_prefix(TCP), self.to.strip_prefix(UDP)) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        // Both forms of address are the same.
        let address = format!("{UDP}{rest}").parse().map_err(|_| wrong())?;
        Ok((is_tcp, address))
    }
}

/// The most bytes of a frame behind a serial number in a UDP packet.
const FRAME_MAX: u64 = 65_499;

/// Refuses a recording without a journal whose packets can't be made again.
fn check_foreign(recording: &Recording, is_tcp: bool) -> anyhow::Result<()> {
    let Some(facts) = recording.foreign() else { return Ok(()) };
    ensure!(
        facts.in_step,
        "{}: not all of its frames have one size, so replay can't cut it into packets: `nilometer verify` shows where",
        in_line(recording.name())
    );
    let frame = recording.index.stream.as_ref().map_or(0, |stream| stream.frame_size() as u64);
    ensure!(
        is_tcp || frame <= FRAME_MAX,
        "frames of {} do not fit into UDP packets: send to tcp://HOST:PORT",
        Bytes(frame)
    );
    Ok(())
}

fn check(rate: Option<ByteRate>) -> anyhow::Result<()> {
    ensure!(rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
    Ok(())
}

fn summary(replayed: &Replayed) -> String {
    let Replayed { sent, wall, latest, waited, .. } = replayed;
    let rate = sent.rate(*wall);
    let mut lines = vec![
        format!(
            "sent        {} packets, {}, {rate} ({}) in {wall}",
            sent.packets,
            Bytes(sent.bytes),
            ByteRate::bits(rate)
        ),
        format!("late        at most {latest}"),
    ];
    if *waited > 0 {
        lines.push(format!("waited      {waited} times for packets that were not yet recorded or read"));
    }
    if sent.refused > 0 {
        lines.push(format!("refused     {} times: nobody listened there", sent.refused));
    }
    lines.join("\n") + "\n"
}

/// Turns packets that were not sent into a failure.
fn went_well(replayed: &Replayed, whole: &RecordingView) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    if replayed.sent.unsent > 0 {
        wrong.push(format!("the network did not take {} packets", replayed.sent.unsent));
    }
    if replayed.stopped {
        wrong.push("interrupted".into());
    }
    let unread = whole.faults().first;
    wrong.extend(
        unread.map(|why| format!("sent frames marked as invalid in place of unreadable ones: {why}")),
    );
    wrong.extend(whole.recording(lacking_fault));
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
