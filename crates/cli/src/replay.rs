//! `nilometer replay`: a recording sent again, over a network.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

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
    reader::Trust,
    view::{Extent, RecordingView},
};
use nilometer_storage::Clock;

use crate::{
    Blame, Failure, Outcome, lone_file::refuse_files, recording_text::in_line, share::Share,
    signals::stop_on_signal, stored_at::StoredAt, tell,
};

/// Sends a recording again, packet by packet, at its own rate; also while it is still recorded
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The directories of the recording, those of all lanes
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Where it goes: `udp://HOST:PORT`, with the serial numbers that its packets had in front of them, the modules of a
    /// detector to as many ports from that one on; or `tcp://HOST:PORT`, one after the other without them
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// The serial number of the first packet
    #[arg(long, default_value_t = 0)]
    serial: u64,
    /// Bytes of frames a second [default: as it came]
    #[arg(long)]
    rate: Option<ByteRate>,
    /// How many routers packets to a multicast group may pass [default: 1]
    #[arg(long)]
    ttl: Option<u8>,
    /// The interface by which packets to a multicast group leave [default: the system's choice]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

const TCP: &str = "tcp://";
const UDP: &str = "udp://";

/// What is for a file that is named.
const FOR_FILES: &str = "what a recording of packets sends again is in its directories, and a file of HDF5 without a journal has no packets";

impl Replay {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_files(&self.directories, FOR_FILES).input()?;
        check(self.rate).input()?;
        let (is_tcp, address) = self.address().input()?;
        let to = address.resolve().input()?;
        let recording = StoredAt::named(&self.directories).input()?.open(Trust::Acknowledged).input()?;
        let whole = Arc::new(RecordingView::new(recording, Extent::Mark));
        let replaying = Replaying { serial: self.serial, rate: self.rate };
        let replay = Replayer::new(whole.clone(), replaying).map_err(|error| match error {
            ReplayError::Network(_) => Failure::Run(error.into()),
            _ => Failure::Input(error.into()),
        })?;
        let mut outlets = if is_tcp { self.tcp(to).run()? } else { self.udp(to, replay.ports()).input()? };
        let stop = stop_on_signal().run()?;
        tell::note(format_args!("sending {} to {}", in_line(whole.name()), self.to));
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

    /// To each of so many ports from that one on.
    fn udp(&self, to: SocketAddr, ports: usize) -> anyhow::Result<Vec<Box<dyn Outlet>>> {
        let sending = Sending { hops: self.ttl, interface: self.interface.clone(), ..Sending::default() };
        let mut outlets: Vec<Box<dyn Outlet>> = Vec::new();
        for port in usize::from(to.port())..usize::from(to.port()) + ports {
            let last = usize::from(to.port()) + ports - 1;
            let number = u16::try_from(port).map_err(|_| {
                anyhow!("--to {}: there is no port {last}: name the first of {ports}", self.to)
            })?;
            let outlet = UdpOutlet::connect(SocketAddr::new(to.ip(), number), &sending);
            outlets.push(Box::new(outlet.with_context(|| format!("can't send to {}", self.to))?));
        }
        Ok(outlets)
    }

    /// Whether it is one of TCP, and where.
    fn address(&self) -> anyhow::Result<(bool, Address)> {
        let wrong = || {
            anyhow!("--to {}: write udp://HOST:PORT or tcp://HOST:PORT, as in udp://127.0.0.1:46227", self.to)
        };
        let (is_tcp, rest) = match (self.to.strip_prefix(TCP), self.to.strip_prefix(UDP)) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        // The forms are the same.
        let address = format!("{UDP}{rest}").parse().map_err(|_| wrong())?;
        Ok((is_tcp, address))
    }
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
        lines.push(format!("waited      {waited} times for what was not recorded or read yet"));
    }
    if sent.refused > 0 {
        lines.push(format!("refused     {} times: nobody listened there", sent.refused));
    }
    lines.join("\n") + "\n"
}

/// What was not sent becomes the exit code.
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
        unread.map(|why| format!("frames marked as invalid were sent for what can't be read: {why}")),
    );
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
