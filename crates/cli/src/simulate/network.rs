//! Sends an instrument's packets over a network, with the faults of the options.

use std::{sync::atomic::Ordering, thread};

use anyhow::{anyhow, ensure};
use clap::{Args, value_parser};
use nilometer_intake::transport::{
    Left, Sent, Shape, Simulation,
    faults::{FaultCounts, Faults},
    udp::{Address, Sending},
};
use nilometer_model::{
    ByteRate, Bytes, Frequency, Instrument, Nanos, Seed,
    packets::{PacketFormat, Station},
};
use nilometer_storage::{Calendar, Clock};

use super::{
    Asked,
    asked::{Jump, Share, part},
    faulty::{FaultOptions, fault_lines},
};
use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// The options of packets and of their faults.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over a network")]
pub(super) struct Network {
    /// Stop after this many packets of each stream at the latest
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Use these stations in VDIF frames, two characters each, such as Ef,Mc. They take turns in each stream
    #[arg(long, value_name = "STATION,...", value_delimiter = ',')]
    stations: Vec<Station>,
    /// Use these threads in VDIF frames, such as 0,1,2,3. They take turns
    #[arg(long, value_name = "THREAD,...", value_delimiter = ',')]
    threads: Vec<u16>,
    /// Send this share of packets in another size
    #[arg(long, value_name = "SHARE", value_parser = part)]
    odd: Option<Share>,
    /// Send packets of random bytes beside the stream, every second one from another port. The share of the
    /// stream's packets may be above 100 %
    #[arg(long, value_name = "SHARE")]
    foreign: Option<Share>,
    /// Restart serial numbers each time after this many packets, as at a new scan
    #[arg(long, value_name = "PACKETS", value_parser = value_parser!(u64).range(1..))]
    restart_after: Option<u64>,
    /// Let the clock in VDIF or Mark5B frames jump by this time, such as "3 s" or "-3 s"
    #[arg(long, value_name = "TIME", requires = "jump_after", allow_hyphen_values = true)]
    jump: Option<Jump>,
    /// Let the clock jump after this many packets
    #[arg(long, value_name = "PACKETS", requires = "jump")]
    jump_after: Option<u64>,
    /// Let packets to a multicast group pass this many routers [default: 1]
    #[arg(long)]
    ttl: Option<u8>,
    /// Send packets to a multicast group by this interface [default: the system's choice]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

/// The most foreign packets for each packet of the stream: more would be a flood that hides the stream.
const FOREIGN_MAX: f64 = 100.0;
/// 2000-01-01 00:00 UTC, in seconds since 1970.
const SINCE_2000: u64 = 946_684_800;
const SECOND: u64 = 1_000_000_000;
/// The time to prepare data before the first packet.
const AHEAD: u64 = SECOND / 4;

impl Network {
    /// The first of these options on the command line.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--packets", self.packets.is_some()),
            ("--stations", !self.stations.is_empty()),
            ("--threads", !self.threads.is_empty()),
            ("--odd", self.odd.is_some()),
            ("--foreign", self.foreign.is_some()),
            ("--restart-after", self.restart_after.is_some()),
            ("--jump", self.jump.is_some()),
            ("--ttl", self.ttl.is_some()),
            ("--interface", self.interface.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Puts the stations and threads of the options into the instrument's packets.
    pub(super) fn change(&self, instrument: &mut Instrument) -> anyhow::Result<()> {
        let asked = if self.stations.is_empty() { "--threads" } else { "--stations" };
        if self.stations.is_empty() && self.threads.is_empty() {
            return Ok(());
        }
        let name = instrument.name.clone();
        match instrument.packets.as_mut().map(|packets| &mut packets.format) {
            Some(PacketFormat::Vdif(vdif)) => {
                if !self.threads.is_empty() {
                    vdif.threads = Some(self.threads.clone());
                }
                if !self.stations.is_empty() {
                    vdif.stations = Some(self.stations.clone());
                }
                Ok(())
            }
            _ => Err(anyhow!("{asked}: only VDIF has them, and {name} does not send it: leave it out")),
        }
    }

    /// Sends the instrument's packets.
    pub(super) fn send(&self, asked: &Asked, address: &Address, faults: &FaultOptions) -> Outcome {
        let mut simulation = self.simulation(asked, address, faults).input()?;
        let shape = simulation.shape().input()?;
        if let Some(frames) = asked.frames {
            let parts = shape.geometry.parts.len() as u64;
            let frames = frames.div_ceil(simulation.instrument.streams);
            simulation.packets = simulation.packets.min(frames.saturating_mul(parts));
        }
        let begin = Calendar::now().time.0 + AHEAD;
        let begin = Nanos(begin.next_multiple_of(SECOND));
        simulation.begins = (begin.0 / SECOND).saturating_sub(SINCE_2000);
        let sender = simulation.sender().input()?;
        let stop = stop_on_signal().run()?;
        let extent = self
            .packets
            .map_or_else(|| asked.extent(), |packets| format!("{packets} packets of each stream"));
        tell::note(format_args!("sending {} to {address} for {extent}", asked.instrument.name));
        if shape.clock.is_some() {
            // A station's seconds begin with the seconds of UTC.
            thread::sleep(begin.since(Calendar::now().time).duration());
        }
        let left = sender.run(Clock::start(), &stop).run()?;
        tell::result(summary(&left, &simulation, &shape));
        went_well(&left, stop.load(Ordering::Relaxed)).run()
    }

    fn simulation(
        &self,
        asked: &Asked,
        address: &Address,
        faults: &FaultOptions,
    ) -> anyhow::Result<Simulation> {
        let foreign = self.foreign.map_or(0.0, |share| share.0);
        ensure!(
            foreign <= FOREIGN_MAX,
            "--foreign {} %: write at most {} %",
            foreign * 100.0,
            FOREIGN_MAX * 100.0
        );
        Ok(Simulation {
            instrument: asked.instrument.clone(),
            to: address.resolve()?,
            sending: Sending { hops: self.ttl, interface: self.interface.clone(), ..Sending::default() },
            duration: asked.duration,
            packets: self.packets.unwrap_or(u64::MAX),
            faults: self.faults(faults),
            restart_after: self.restart_after,
            jump: self.jump_after.zip(self.jump).map(|(after, Jump(seconds))| (after, seconds)),
            begins: 0,
            seed: asked.seed,
        })
    }

    /// The faults of these options, and those that packets share with images.
    fn faults(&self, asked: &FaultOptions) -> Faults {
        let share = |share: Option<Share>| share.map_or(0.0, |share| share.0);
        Faults { odd: share(self.odd), foreign: share(self.foreign), ..asked.faults() }
    }
}

/// The results of sending, one line each.
fn summary(left: &Left, simulation: &Simulation, shape: &Shape) -> String {
    let sent = sent(left);
    let counts = counts(left);
    let packets = Frequency(sent.packets as f64 / left.wall.seconds().max(1e-9));
    let rate = sent.rate(left.wall);
    let size = shape.geometry.packet_size();
    let mut lines = vec![
        format!("due         {} packets of {size} B in {}", counts.due, left.due),
        format!(
            "sent        {} packets, {}, {rate} ({}), {packets}",
            sent.packets,
            Bytes(sent.bytes),
            ByteRate::bits(rate)
        ),
        format!("late        {}", lateness(left)),
        format!("batches     {} at once at the most, {:.1} with a call", left.burst, per_call(&sent)),
        format!("send buffer {}", Bytes(left.room)),
        format!(
            "processor   {:.2} cores, waiting included",
            left.usage.total().seconds() / left.wall.seconds().max(1e-9)
        ),
    ];
    lines.extend(faults(&counts, left.restarts, simulation));
    if sent.refused > 0 {
        lines.push(format!("refused     {} times: nobody listened there", sent.refused));
    }
    if sent.answers > 0 {
        lines.push(format!("answers     {} datagrams came back and were dropped", sent.answers));
    }
    let Seed(seed) = simulation.seed;
    lines.push(format!("seed        {seed}"));
    lines.join("\n") + "\n"
}

fn sent(left: &Left) -> Sent {
    left.sent.iter().fold(Sent::default(), |all, sent| all.and(*sent))
}

fn counts(left: &Left) -> FaultCounts {
    left.counts.iter().fold(FaultCounts::default(), |all, counts| all.and(*counts))
}

fn per_call(sent: &Sent) -> f64 {
    sent.packets as f64 / sent.calls.max(1) as f64
}

fn lateness(left: &Left) -> String {
    let quantile = |share| Nanos(left.lateness.quantile(share));
    let half = quantile(0.5);
    let most = quantile(0.99);
    let nearly = quantile(0.9999);
    format!("half by {half}, 1 % by {most}, 0.01 % by {nearly}, at most {}", Nanos(left.lateness.max()))
}

/// One line for each kind of fault that occurred, or that an option set.
fn faults(counts: &FaultCounts, restarts: u64, simulation: &Simulation) -> Vec<String> {
    let faults = &simulation.faults;
    let kinds = [
        (faults.odd, format!("odd-sized   {} packets", counts.odd)),
        (faults.foreign, format!("foreign     {} packets beside the stream", counts.foreign)),
        (
            simulation.restart_after.map_or(0.0, |_| 1.0),
            format!("restarts    {restarts} of the serial number"),
        ),
        (
            simulation.jump.map_or(0.0, |_| 1.0),
            simulation.jump.map_or_else(String::new, |(after, by)| {
                format!("clock       jumped by {by} s after {after} packets")
            }),
        ),
    ];
    let others = kinds.into_iter().filter(|(asked, _)| *asked > 0.0).map(|(_, line)| line);
    fault_lines(faults, counts, "packets").into_iter().chain(others).collect()
}

/// The most that the last packet may be late. If it is later, the rate was not the instrument's.
const BEHIND_MAX: Nanos = Nanos::from_millis(100);

/// Turns packets that were not sent, or sent late, into a failure.
fn went_well(left: &Left, interrupted: bool) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let unsent = sent(left).unsent;
    if unsent > 0 {
        wrong.push(format!("the network did not take {unsent} packets"));
    }
    if left.wall.since(left.due) > BEHIND_MAX.max(Nanos(left.due.0 / 100)) {
        wrong.push(format!("the pace was not kept: it took {} instead of {}", left.wall, left.due));
    }
    if interrupted {
        wrong.push("interrupted".into());
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
