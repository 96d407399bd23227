//! `nilometer record`: packets from the network, through the recorder, into a directory that stays.

mod live;
mod settings;
mod summary;
mod wishes;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::anyhow;
use clap::Args;
use nilometer_acquisition::{Outcome as Recorded, Recorder};
use nilometer_model::{Moment, Nanos};
use nilometer_storage::{Calendar, Clock};

use crate::{Blame, Failure, Outcome, evaluate::stop_on_signal, recorded::durable_when};
use live::Live;
pub(crate) use settings::{Prepared, Settings};
pub(crate) use summary::{summary, went_well};
pub(crate) use wishes::Wishes;

/// Records the packets of an instrument from the network, in order and complete, until it is stopped
#[derive(Debug, Args)]
pub(crate) struct Record {
    #[command(flatten)]
    wishes: Wishes,
    /// A TOML file with any of what can be said here, such as `to = "/data"`; options win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say nothing while it runs
    #[arg(long)]
    quiet: bool,
}

/// Longest without a look at the time and at signals.
const LOOK: Nanos = Nanos::from_millis(50);

impl Record {
    pub(crate) fn execute(&self) -> Outcome {
        let settings = self.settings().input()?;
        let stop = stop_on_signal().run()?;
        let mut prepared = settings.prepare(stop.clone())?;
        if let Some(start) = settings.wishes().start {
            prepared = until_start(prepared, start, &stop)?;
        }
        let Prepared { mut recorder, targets, name, at, room, durability } = prepared;
        eprintln!("recording {name} from udp://{at}, {room} of packets may wait in the kernel");
        recorder.begin().run()?;
        let outcome = self.follow(recorder, settings.wishes().stop);
        print!("{}", summary(&outcome, &targets));
        println!("durable     {}", durable_when(durability));
        let paths: Vec<_> = targets.iter().map(|target| target.path().display().to_string()).collect();
        println!("\nnilometer verify {}", paths.join(" "));
        // A directory on storage that hangs must not be closed: the program is to end.
        std::mem::forget(targets);
        went_well(&outcome).run()
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let file = self.config.as_deref().map(Wishes::read).transpose()?;
        Settings::of(self.wishes.clone().over(file.unwrap_or_default()))
    }

    /// Until it is over, or this time has come.
    fn follow(&self, mut recorder: Recorder, stop: Option<Moment>) -> Recorded {
        let clock = Clock::start();
        let mut live = Live::new(self.quiet, clock.now());
        let outcome = loop {
            let left = stop.map_or(LOOK, left_until);
            if left == Nanos(0) {
                recorder.stop();
            }
            if let Some(outcome) = recorder.wait(if left == Nanos(0) { LOOK } else { left.min(LOOK) }) {
                break outcome;
            }
            live.tell(clock.now(), || recorder.status());
        };
        live.clear();
        outcome
    }
}

/// Waits for the time to begin, with everything prepared. What came before is none of the recording.
fn until_start(mut prepared: Prepared, start: Moment, stop: &Arc<AtomicBool>) -> Result<Prepared, Failure> {
    eprintln!("{} is prepared, and begins at {start}", prepared.name);
    loop {
        let left = left_until(start);
        if left == Nanos(0) {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            prepared.discard();
            return Err(Failure::Run(anyhow!("stopped before it began: nothing was recorded")));
        }
        std::thread::sleep(left.min(LOOK).duration());
    }
    prepared.recorder.discard().run()?;
    Ok(prepared)
}

/// How long it still is until then, by the calendar's clock.
pub(crate) fn left_until(moment: Moment) -> Nanos {
    moment.0.since(Calendar::now().time)
}
