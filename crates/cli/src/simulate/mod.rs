//! `nilometer simulate`: what an instrument would deliver, recorded into directories that stay, or sent over a network.

mod asked;
mod faulty;
mod files;
mod kept;
mod network;
mod stored;
mod stream;
mod turns;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use nilometer_hdf5_recording::settle_instrument;
use nilometer_intake::transport::udp::Address;
use nilometer_model::{Instrument, Nanos, Seed, TargetUrl};
use nilometer_storage::{target::run_id, user_file};

use crate::{Blame, Outcome};
use asked::{Rate, Shape, shape};
use faulty::FaultOptions;
use files::Files;
use network::Network;
use stream::Stream;

/// Records what an instrument would deliver, when it is due, into directories that stay; or sends it over a network
///
/// Started several times by a launcher of MPI, as `mpirun --host a,b -n 2 nilometer simulate pilatus-6m --to /gpfs ...`, each process
/// records every n-th frame of one recording.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// A name of the catalogue (see `nilometer instrument list`), or the path of a .toml file
    instrument: String,
    /// Where the recording goes, in a new directory of its name; may be given several times: a lane each, and one that
    /// fails or is full leaves its frames to the others. Or one address, udp://HOST:PORT: packets are sent there, those of
    /// further streams and modules to the next ports; or tcp://ADDRESS:PORT: a receiver is awaited there, and frames are sent
    /// to it by the DECTRIS stream
    #[arg(long = "to", required = true, value_name = "DIRECTORY|ADDRESS")]
    to: Vec<PathBuf>,
    /// How long frames come [default: 10 s; with --frames, or a --scan, as long as these take]
    #[arg(long)]
    duration: Option<Nanos>,
    /// End after so many frames at the latest, counted over all streams; those of a network's format, such as VDIF, if
    /// packets are sent
    #[arg(long)]
    frames: Option<u64>,
    /// Frames a second of each stream, instead of the instrument's, or how much data: "25 Hz", "8 Gbit/s"
    #[arg(long, value_name = "FREQUENCY|RATE")]
    rate: Option<Rate>,
    /// Pixels of a frame, instead of the instrument's, such as "1475 x 1679": those of a row first, as `nilometer
    /// instrument show` has them
    #[arg(long, value_name = "PIXELS", value_parser = shape)]
    shape: Option<Shape>,
    /// Streams in step, instead of the instrument's
    #[arg(long)]
    streams: Option<u64>,
    /// Where all random numbers come from: the same data, and the same faults, once more [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    stream: Stream,
    #[command(flatten)]
    faults: FaultOptions,
}

/// What is to be delivered.
#[derive(Debug)]
struct Asked {
    instrument: Instrument,
    duration: Nanos,
    frames: Option<u64>,
    seed: Seed,
}

/// How long frames come, unless it is said.
const DURATION: Nanos = Nanos::from_millis(10_000);

impl Simulate {
    pub(crate) fn execute(&self) -> Outcome {
        if let Some(to) = self.stream_address().input()? {
            let asked = self.asked(false).input()?;
            return self.stream.send(&asked, &to, self.files.encoders(), &self.faults);
        }
        match self.address().input()? {
            Some(address) => self.network.send(&self.asked(true).input()?, &address, &self.faults),
            None => self.files.record(&self.asked(false).input()?, &self.to),
        }
    }

    /// Where frames go to over TCP; none if they go elsewhere.
    fn stream_address(&self) -> anyhow::Result<Option<String>> {
        let Some(to) = self.to.iter().map(|to| to.to_string_lossy()).find(|to| to.starts_with("tcp://"))
        else {
            let why = "only for frames over TCP: write --to tcp://HOST:PORT, or leave it out";
            return self.stream.given().map_or(Ok(None), |option| Err(anyhow!("{option}: {why}")));
        };
        ensure!(self.to.len() == 1, "--to {to}: write one address and no directory beside it");
        if let Some(option) = self.network.given() {
            bail!("{option}: only for packets: write --to udp://HOST:PORT, or leave it out");
        }
        if let Some(option) = self.files.given_beside(&["--compression", "--encoders"]) {
            bail!("{option}: only for recordings: write --to DIRECTORY, or leave it out");
        }
        Ok(Some(to.into_owned()))
    }

    /// Where packets go to; none if frames go into directories.
    fn address(&self) -> anyhow::Result<Option<Address>> {
        let written: Vec<_> = self.to.iter().map(|to| to.to_string_lossy()).collect();
        let Some(first) = written.iter().find(|to| Address::is_meant_by(to) && !TargetUrl::is_one(to)) else {
            if let Some(address) = written.iter().find(|to| to.parse::<SocketAddr>().is_ok()) {
                bail!("--to {address}: to send packets there write udp://{address}");
            }
            if let Some(option) = self.network.given() {
                bail!("{option}: only for packets: write --to udp://HOST:PORT, or leave it out");
            }
            if let Some(option) = self.faults.given() {
                let to = "udp://HOST:PORT or tcp://ADDRESS:PORT";
                bail!("{option}: only over a network: write --to {to}, or leave it out");
            }
            return Ok(None);
        };
        ensure!(written.len() == 1, "--to {first}: write one address and no directory beside it");
        if let Some(option) = self.files.given_beside(&[]) {
            bail!("{option}: only for recordings: write --to DIRECTORY, or leave it out");
        }
        Ok(Some(first.parse().map_err(|error| anyhow!("--to {error}"))?))
    }

    /// A scan whose lines are known has as many frames, and takes as long as they do.
    fn scan(&self, asked: &mut Asked) -> anyhow::Result<()> {
        let Some(scan) = asked.instrument.recording.scan else { return Ok(()) };
        if let Some(frames) = asked.frames {
            scan.check_frames(frames).map_err(|why| anyhow!("--frames {frames}: {why}"))?;
        }
        let Some(all) = scan.frames() else { return Ok(()) };
        let takes = asked.instrument.schedule().due(all);
        asked.frames = Some(all);
        match self.duration {
            Some(duration) => ensure!(
                duration >= takes,
                "--duration {duration}: the {all} frames of the scan {scan} take {takes}; write as much, or leave it out"
            ),
            None => asked.duration = takes.max(Nanos(1)),
        }
        Ok(())
    }

    /// The instrument as it was asked for.
    fn asked(&self, over_network: bool) -> anyhow::Result<Asked> {
        let mut instrument = user_file::instrument(&self.instrument)?;
        if let Some(Shape(shape)) = &self.shape {
            instrument.shape.clone_from(shape);
        }
        if let Some(rate) = self.rate {
            instrument.frame_rate = rate.of_frames(instrument.frame_size());
        }
        instrument.streams = self.streams.unwrap_or(instrument.streams);
        if over_network {
            self.network.change(&mut instrument)?;
        } else {
            self.files.change(&mut instrument);
            instrument = instrument.simulated();
        }
        instrument.check().map_err(|why| anyhow!("{}: {why}", self.instrument))?;
        if !over_network {
            settle_instrument(&mut instrument).map_err(|why| anyhow!("{}: {why}", self.instrument))?;
        }
        ensure!(self.frames != Some(0), "--frames 0: write at least 1");
        ensure!(self.duration != Some(Nanos(0)), "--duration 0 s: write more than 0 s");
        let seed = self.seed.map_or_else(run_id, Seed);
        let takes = self.frames.map(|frames| instrument.schedule().due(frames).max(Nanos(1)));
        let duration = self.duration.or(takes).unwrap_or(DURATION);
        let mut asked = Asked { instrument, duration, frames: self.frames, seed };
        if !over_network {
            self.scan(&mut asked)?;
        }
        Ok(asked)
    }
}
