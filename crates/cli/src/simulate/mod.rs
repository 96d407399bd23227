//! `nilometer simulate`: records an instrument's data into directories that stay, or sends them over a
//! network.

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
use nilometer_service::recording::place::refuse_twice;
use nilometer_storage::{target::run_id, user_file};

use crate::{Blame, Outcome, instrument_changes::InstrumentChanges};
use asked::{Rate, Shape, shape};
use faulty::FaultOptions;
use files::Files;
use network::Network;
use stream::Stream;

/// Record an instrument's simulated frames, each when it is due. Writes them into directories that stay, or
/// sends them over a network
///
/// To record on several machines, start it with a launcher of MPI: `mpirun --host a,b -n 2 nilometer simulate
/// pilatus-6m --to /gpfs ...`. Each of `n` processes records every n-th frame of one recording.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// A name of the catalogue (see `nilometer instrument list`), or the path of a .toml file
    instrument: String,
    /// Record into this directory, in a new one with the recording's name. Repeat the option for several
    /// lanes; a lane that fails or is full leaves its frames to the others. Or send to one address. With
    /// udp://HOST:PORT, packets go to this port, and those of further streams and modules to the next ports.
    /// With tcp://ADDRESS:PORT, a receiver connects there, and gets frames by the DECTRIS stream
    #[arg(long = "to", required = true, value_name = "DIRECTORY|ADDRESS")]
    to: Vec<PathBuf>,
    /// Deliver frames for this time [default: 10 s; with --frames or a --scan, as long as these take]
    #[arg(long)]
    duration: Option<Nanos>,
    /// Stop after this many frames at the latest, counted over all streams. If packets are sent, these are
    /// frames of a network's format, such as VDIF
    #[arg(long)]
    frames: Option<u64>,
    /// Deliver at this rate instead of the instrument's: frames a second of each stream, or data: "25 Hz", "8
    /// Gbit/s"
    #[arg(long, value_name = "FREQUENCY|RATE")]
    rate: Option<Rate>,
    /// Use frames of this size instead of the instrument's, such as "1475 x 1679". The pixels of a row come
    /// first, as `nilometer instrument show` prints them
    #[arg(long, value_name = "PIXELS", value_parser = shape)]
    shape: Option<Shape>,
    /// Deliver this many streams in step, instead of the instrument's
    #[arg(long)]
    streams: Option<u64>,
    /// Seed all random numbers: the same seed gives the same data and the same faults [default: another each
    /// time]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    changes: InstrumentChanges,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    stream: Stream,
    #[command(flatten)]
    faults: FaultOptions,
}

/// The instrument, and how much of it to deliver.
#[derive(Debug)]
struct Asked {
    instrument: Instrument,
    duration: Nanos,
    frames: Option<u64>,
    seed: Seed,
}

impl Asked {
    /// The end of the frames: their number, or the time if that comes first.
    fn extent(&self) -> String {
        match self.frames {
            Some(1) => "1 frame".into(),
            Some(frames) if self.instrument.schedule().due(frames) <= self.duration => {
                format!("{frames} frames")
            }
            _ => self.duration.to_string(),
        }
    }
}

/// The time for which frames come without `--duration`.
const DURATION: Nanos = Nanos::from_millis(10_000);

impl Simulate {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_twice(&self.to).input()?;
        if let Some(to) = self.stream_address().input()? {
            let asked = self.asked(false).input()?;
            return self.stream.send(&asked, &to, self.files.encoders(), &self.faults);
        }
        match self.address().input()? {
            Some(address) => self.network.send(&self.asked(true).input()?, &address, &self.faults),
            None => self.files.record(&self.asked(false).input()?, &self.to),
        }
    }

    /// The address of frames over TCP; `None` if they go elsewhere.
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

    /// The address of packets; `None` if frames go into directories.
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

    /// A scan with a number of lines sets the number of frames and the duration.
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

    /// The instrument with the changes of the options.
    fn asked(&self, over_network: bool) -> anyhow::Result<Asked> {
        let mut instrument = user_file::instrument(&self.instrument)?;
        if let Some(Shape(shape)) = &self.shape {
            check_sides(shape, &instrument).map_err(|why| anyhow!(why))?;
            instrument.shape.clone_from(shape);
        }
        ensure!(
            self.rate.is_none() || !self.changes.has_frame_rate(),
            "--rate and --frame-rate: write one of them"
        );
        self.changes.apply(&mut instrument)?;
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

/// Refuses one number for frames that have rows and columns.
fn check_sides(shape: &[u64], instrument: &Instrument) -> Result<(), String> {
    match (shape, &instrument.shape[..]) {
        ([side], [_, _, ..]) => Err(format!(
            "--shape {side}: a frame of {} has rows and columns: write both, such as \"{side} x {side}\"",
            instrument.name
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_with_rows_has_no_shape_of_one_number() {
        let instrument = user_file::instrument("pco-4000").expect("it is in the catalogue");
        let why = check_sides(&[2048], &instrument).expect_err("rows or columns?");
        assert_eq!(
            why,
            "--shape 2048: a frame of pco-4000 has rows and columns: write both, such as \"2048 x 2048\""
        );
        assert_eq!(check_sides(&[20, 30], &instrument), Ok(()));
        let flat = Instrument { shape: vec![8000], ..instrument };
        assert_eq!(check_sides(&[2048], &flat), Ok(()), "its frames have one dimension");
    }
}
