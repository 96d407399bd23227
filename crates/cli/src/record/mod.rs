//! `nilometer record`: stores packets or frames from the network in directories that stay.

mod data_streams;
mod disks;
mod every_series;
mod figures;
mod live;
mod parts;
mod recording_screen;
mod series_parts;
mod series_summary;
mod summary;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use nilometer_acquisition::{Outcome as Recorded, Recorder};
use nilometer_cluster::launched_here;
use nilometer_intake::{joined::JoinedTally, series::SeriesRelay};
use nilometer_model::{Moment, Nanos, StorageRoom, packets::PacketShare};
use nilometer_service::{
    AllowedSender, BeforeRecording, ClientReach, OperatorLog, PreparedRecording, PreviewListener,
    PreviewOptions, RecordOptions, RecordingAccount, RecordingAtEnd, RecordingSettings, ServiceState,
    StatusServer, TlsFiles, recording::ended::fault_of,
};
use nilometer_storage::{Calendar, Clock};

use crate::{
    Blame, Failure, Outcome, explained, ranks, recorded::durable_when, signals::stop_on_signal, tell,
    together::Together,
};
use live::{Live, LiveForm};
use parts::{OwnStored, own_settings, share_of, shared};
use series_parts::agreed_share;
use series_summary::series_summary;
use summary::summary;

/// Record an instrument's packets, in order and complete, until you stop it. Also records a series of frames
/// that comes over TCP
///
/// To record on several machines, start it with a launcher of MPI: `mpirun --host a,b -n 2 nilometer record
/// jungfrau-4m ...`. Each process records the stream, or the modules of each frame, whose packets come to its
/// ports. If frames come as a series over TCP, it records the images that come to it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Record {
    #[command(flatten)]
    wishes: RecordOptions,
    /// Read options from this TOML file, such as `to = "/data"`. Options of the command line win
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    config: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
    /// Print nothing while recording
    #[arg(long, short, help_heading = "While it runs")]
    quiet: bool,
    /// Print progress on stderr in this form
    #[arg(long, value_enum, default_value_t = RecordProgress::Text, value_name = "FORM", help_heading = "While it runs", conflicts_with = "quiet")]
    progress: RecordProgress,
}

/// The form of a recording's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecordProgress {
    /// A line that is rewritten every second
    Text,
    /// A view that fills the terminal
    Screen,
}

/// The options that let others watch a running recording.
#[derive(Debug, Clone, Default, Args)]
struct Shown {
    /// Serve a page for browsers at this address and port while recording, such as 127.0.0.1:9620. GET
    /// /status answers with JSON, GET /metrics for Prometheus
    #[arg(long, value_name = "ADDRESS", help_heading = "While it runs")]
    http: Option<String>,
    /// Let other machines watch too. --tokens, --tls-clients and --allow-clients restrict them
    #[arg(long, help_heading = "While it runs")]
    listen_beyond_loopback: bool,
    /// Answer only this client: an address, or a network such as 10.0.0.0/24. Repeat the option for more
    /// [default: all that reach the port]
    #[arg(long, value_name = "ADDRESS|NETWORK", help_heading = "While it runs")]
    allow_clients: Vec<AllowedSender>,
    #[command(flatten, next_help_heading = "While it runs")]
    tls: TlsFiles,
    /// Answer only clients that send a token of this file, as `Authorization: Bearer TOKEN`. A browser asks
    /// for the name and, as password, the token; each line is NAME TOKEN
    #[arg(long, value_name = "FILE", help_heading = "While it runs", requires = "http")]
    tokens: Option<PathBuf>,
    /// Let clients of --http dump parts of the recording into this directory and those below it (POST /dump).
    /// Repeat the option for more
    #[arg(long, value_name = "DIRECTORY", help_heading = "While it runs", requires = "http")]
    dumps: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "While it runs")]
    preview: PreviewOptions,
}

impl Shown {
    fn server(&self, log: OperatorLog) -> Result<StatusServer, Failure> {
        let Shown { http, listen_beyond_loopback, allow_clients, tls, tokens, dumps, preview } = self;
        if http.is_none() && !tls.is_empty() {
            return Err(Failure::Input(anyhow!(
                "--tls-certificate, --tls-key and --tls-clients are for --http: name where it listens"
            )));
        }
        if http.is_none() && preview.address.is_none() && !allow_clients.is_empty() {
            return Err(Failure::Input(anyhow!(
                "--allow-clients is for --http and --preview: name where one of them listens"
            )));
        }
        let tokens = tokens.as_deref();
        let reach =
            ClientReach { beyond: *listen_beyond_loopback, clients: allow_clients, tls: Some(tls), tokens };
        let viewers = PreviewListener::open(preview, reach, log)?;
        let mut server = StatusServer::open(http.as_deref(), reach, dumps.clone(), log)?;
        if let Some(viewers) = viewers {
            server.show_preview(viewers)?;
        }
        Ok(server)
    }
}

/// The longest time without a check of the clock and of signals.
const LOOK: Nanos = Nanos::from_millis(50);

/// A prepared recording, with its settings and its status server.
struct ReadyRecording {
    settings: RecordingSettings,
    server: StatusServer,
    prepared: PreparedRecording,
}

impl Record {
    pub(crate) fn execute(&self) -> Outcome {
        let stop = stop_on_signal().run()?;
        let cluster = ranks::cluster()?;
        let settings = self.settings(share_of(cluster.as_ref()));
        // From here on all processes send the same messages in the same order, even if one of them fails.
        let together = Together::share(cluster.as_ref(), &shared(settings.as_ref().ok()));
        if let Ok(settings) = &settings
            && settings.records_every_series()
        {
            return self.every_series(settings, &together, &stop);
        }
        if let Ok(settings) = &settings
            && !together.is_shared()
        {
            let streams = settings.streams()?;
            if !streams.is_empty() {
                return self.data_streams(streams, &stop);
            }
        }
        let ready = if together.is_shared() && together.shared.is_series {
            let Some((settings, relay)) = agreed_share(settings, &together)? else { return Ok(()) };
            self.ready(settings, Some(relay), &together, &stop)
        } else {
            settings.and_then(|settings| self.ready(settings, None, &together, &stop))
        };
        let Some(mut ready) = together.all_prepared(ready, ReadyRecording::discard)? else { return Ok(()) };
        if together.is_shared() && !together.shared.is_series {
            // Packets from before all processes were ready do not belong to the recording. Later ones do.
            let heard = ready.prepared.recorder.discard().run().map(|()| ready);
            let Some(all) = together.all_prepared(heard, ReadyRecording::discard)? else { return Ok(()) };
            ready = all;
            together.note(all_listen(&ready, &together));
        }
        let Some(ready) = ready.awaited(&together, &stop)? else { return Ok(()) };
        let ReadyRecording { settings, mut server, prepared } = ready;
        self.recorded(&settings, &mut server, prepared, &together)
    }

    fn live_form(&self, together: &Together<'_>) -> LiveForm {
        match self.progress {
            _ if self.quiet || together.rank() > 0 => LiveForm::Quiet,
            RecordProgress::Screen => LiveForm::Screen,
            RecordProgress::Text => LiveForm::Line,
        }
    }

    fn settings(&self, share: Result<PacketShare, Failure>) -> Result<RecordingSettings, Failure> {
        let file = self.config.as_deref().map(RecordOptions::read).transpose()?;
        let settings =
            RecordingSettings::of_share(self.wishes.clone().over(file.unwrap_or_default()), share?)?;
        Ok(settings.sharing_memory(launched_here()).with_preview(self.shown.preview.address.is_some()))
    }

    /// Prepares the recording: all that it needs exists after this. `relay` leads to the processes that record the
    /// rest of a series.
    fn ready(
        &self,
        settings: RecordingSettings,
        relay: Option<SeriesRelay>,
        together: &Together<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<ReadyRecording, Failure> {
        together.check_alike()?;
        let settings = own_settings(settings, together)?;
        let log = if together.rank() == 0 { tell::log } else { |_: &str| {} };
        let server = self.shown.server(log)?;
        server.awaits(&settings);
        let mut prepared = match relay {
            Some(relay) => settings.prepare_share(relay, stop.clone(), log)?,
            None => settings.prepare(stop.clone(), log)?,
        };
        server.enter(ServiceState::Armed, &mut prepared, &settings);
        Ok(ReadyRecording { settings, server, prepared })
    }

    fn recorded(
        &self,
        settings: &RecordingSettings,
        server: &mut StatusServer,
        mut prepared: PreparedRecording,
        together: &Together<'_>,
    ) -> Outcome {
        if !together.is_shared() {
            note_beginning(&prepared, settings);
        }
        let before = BeforeRecording::now();
        let begun = prepared.recorder.begin();
        let outcome = if begun.is_ok() {
            server.enter(ServiceState::Recording, &mut prepared, settings);
            let live = Live::new(&prepared.name, self.live_form(together), Clock::start().now());
            follow(&mut prepared.recorder, settings.wishes().stop, server, live)
        } else {
            // Process 0 waits for the others, and they wait for its message.
            prepared.recorder.give_up()
        };
        let fault = begun.err().map(|error| error.to_string());
        FinishedRecording { settings, server, prepared, before, outcome, fault }.told(together)
    }
}

/// A recording that has ended, before its last files are written.
struct FinishedRecording<'a> {
    settings: &'a RecordingSettings,
    server: &'a StatusServer,
    prepared: PreparedRecording,
    before: BeforeRecording,
    outcome: Recorded,
    /// The reason why it did not begin.
    fault: Option<String>,
}

impl FinishedRecording<'_> {
    /// Writes the files that belong to the end, and prints the results.
    fn told(self, together: &Together<'_>) -> Outcome {
        let FinishedRecording { settings, server, mut prepared, before, outcome, fault } = self;
        let status = prepared.recorder.status();
        let account = RecordingAccount::of(&prepared, &before, &outcome, status);
        let joined = if outcome.hung { Ok(None) } else { prepared.join_rest(settings.patience()) };
        let account = account.joining(joined.as_ref().ok().and_then(Option::as_ref));
        let kept = if outcome.hung { Ok(()) } else { account.keep(&prepared.targets, settings.patience()) };
        let has_own_master = !outcome.hung && !settings.is_series_share();
        let master = if has_own_master { prepared.put_master(settings.patience()) } else { Ok(None) };
        let tally = joined.as_ref().ok().cloned().flatten();
        server.end(RecordingAtEnd {
            prepared: &prepared,
            before: &before,
            outcome: &outcome,
            status: account.recording(),
            joined: joined.as_ref().ok().and_then(|tally| tally.as_ref()?.text()),
            master: master.as_ref().ok().cloned().flatten(),
            patience: settings.patience(),
        });
        let text = told(&prepared, &outcome, &account, Told { wishes: settings.wishes(), tally });
        let text = if settings.is_of_several() { format!("{}\n{text}", prepared.name) } else { text };
        let mut faults: Vec<String> = fault.into_iter().collect();
        if faults.is_empty() {
            faults.extend(fault_of(&outcome));
        }
        faults.extend(failed("the rest of --metadata into the files", joined));
        faults.extend(failed("the file over those of the recording", master));
        faults.extend(failed("the summary beside the recording", kept));
        let part = OwnStored { settings, prepared: &prepared, outcome: &outcome, text, faults };
        let ended = part.told(together);
        if outcome.hung {
            // Closing a directory on storage that hangs would block, and the program must end.
            std::mem::forget(prepared);
        }
        ended
    }
}

/// Prints the lines at the start of a recording.
fn note_beginning(prepared: &PreparedRecording, settings: &RecordingSettings) {
    if let Some(warning) = too_long(prepared, settings) {
        tell::note(warning);
    }
    tell::note(begins(prepared, settings));
}

/// The line of a step at the end that failed, with the reason.
fn failed<T>(what: &str, outcome: Result<T, impl Into<anyhow::Error>>) -> Option<String> {
    let error: anyhow::Error = outcome.err()?.into();
    Some(format!("can't write {what}: {}", explained(&error)))
}

/// Follows the recording until it ends, or until the time to stop.
fn follow(
    recorder: &mut Recorder,
    stop: Option<Moment>,
    server: &mut StatusServer,
    mut live: Live,
) -> Recorded {
    let clock = Clock::start();
    let outcome = loop {
        let left = stop.map_or(LOOK, Calendar::left_until);
        if left == Nanos(0) {
            recorder.stop();
        }
        if let Some(outcome) = recorder.wait(if left == Nanos(0) { LOOK } else { left.min(LOOK) }) {
            break outcome;
        }
        live.warn(clock.now(), || recorder.status());
        live.tell(clock.now(), || recorder.status());
        server.tell(clock.now(), || recorder.status());
    };
    live.end(&recorder.status());
    outcome
}

/// The line at the start: the source, packets that came too early, and the room of the storage.
fn begins(prepared: &PreparedRecording, settings: &RecordingSettings) -> String {
    let PreparedRecording { recorder, name, from, room, .. } = prepared;
    let storage = storage_room(prepared, settings).map_or_else(String::new, |room| format!("; {room}"));
    let Some(room) = room else { return format!("recording {name} from {from}{storage}") };
    let early = match recorder.traffic().unwrap_or_default().counted.early {
        0 => String::new(),
        early => format!("; {early} packets came earlier and are not recorded"),
    };
    format!(
        "recording {name} from {from}: listening, {room} of packets may wait in the kernel{early}{storage}"
    )
}

/// The room of the recording's directories.
fn storage_room(prepared: &PreparedRecording, settings: &RecordingSettings) -> Option<StorageRoom> {
    settings.room(prepared.targets.iter().map(|target| target.description()))
}

/// A warning if the storage is full before the recording has taken as long as it should.
fn too_long(prepared: &PreparedRecording, settings: &RecordingSettings) -> Option<String> {
    let room = storage_room(prepared, settings)?;
    let wishes = settings.wishes();
    let duration = wishes.duration.or_else(|| wishes.stop.map(Calendar::left_until))?;
    let warning = room.shortage(duration)?;
    Some(format!("{warning}; add directories with --to, free space, or write a shorter --duration"))
}

/// The facts that the last lines report beside the frames.
struct Told<'a> {
    wishes: &'a RecordOptions,
    /// The tally of the values that were joined to the frames.
    tally: Option<JoinedTally>,
}

/// Tells how the next recording gets checksums.
const WITHOUT_CHECKSUMS: &str = "checksums   none: `verify` can read the blocks, and not prove them; `record --checksums` keeps one of each";

/// The last lines of a recording: its results.
fn told(
    prepared: &PreparedRecording,
    outcome: &Recorded,
    account: &RecordingAccount,
    beside: Told<'_>,
) -> String {
    let Told { wishes, tally } = beside;
    let targets = &prepared.targets;
    let paths: Vec<_> = targets.iter().map(|target| target.path().display().to_string()).collect();
    let lost = account.network_losses();
    let lost = if lost.is_empty() { "nothing".into() } else { lost.join(", ") };
    let kept =
        wishes.keep.map(|keep| format!("kept        the latest {keep}: older packets made room for it"));
    let kernel = prepared
        .room
        .map(|room| format!("kernel      {room} socket buffer; system-wide drops meanwhile: {lost}"));
    let engine = prepared.recorder.engine();
    let engine = engine.why().map(|_| format!("engine      {engine}"));
    // Frames of a series come compressed, with checks of their own.
    let unproved = (outcome.series.is_none() && !wishes.checksums).then(|| WITHOUT_CHECKSUMS.to_owned());
    let durable = format!("durable     {}", durable_when(prepared.durability, targets));
    // Process 0 writes the command for the directories of all shares.
    let is_share = outcome.series.as_ref().is_some_and(|series| series.is_share);
    let verify = (!is_share).then(|| format!("\nnilometer verify {}", paths.join(" ")));
    let lines = [durable].into_iter().chain(unproved).chain(verify);
    let joined = tally.as_ref().and_then(JoinedTally::line).map(|line| format!("metadata    {line}"));
    let datasets = tally.as_ref().and_then(|tally| tally.datasets.as_ref());
    let datasets = datasets.map(|datasets| format!("datasets    {}", datasets.line()));
    let lines: Vec<_> =
        joined.into_iter().chain(datasets).chain(kept).chain(kernel).chain(engine).chain(lines).collect();
    let what = match &outcome.series {
        Some(series) => series_summary(outcome, series, account.recording(), targets),
        None => summary(outcome, account.recording(), targets),
    };
    what + &lines.join("\n") + "\n"
}

/// The line that says that all processes listen, and when they start if that is later.
fn all_listen(ready: &ReadyRecording, together: &Together<'_>) -> String {
    let from =
        ready.settings.wishes().start.map(|start| format!("; they begin at {start}")).unwrap_or_default();
    let name = &together.shared.name;
    format!("recording {name} by {} processes: all of them listen{from}", together.size())
}

impl ReadyRecording {
    fn discard(self) {
        self.prepared.discard();
    }

    /// Waits for the time to begin, if there is one, together with all processes. `None` if a stop came
    /// before it and process 0 reports that.
    fn awaited(self, together: &Together<'_>, stop: &Arc<AtomicBool>) -> Result<Option<Self>, Failure> {
        // Without a socket buffer this is a series, which has already started.
        let (Some(start), Some(_)) = (self.settings.wishes().start, self.prepared.room) else {
            return Ok(Some(self));
        };
        if !together.is_shared() {
            tell::note(is_prepared(&self.prepared.name, start));
        }
        let ReadyRecording { settings, server, prepared } = self;
        let prepared = until_start(prepared, start, stop);
        let ready = prepared.map(|prepared| ReadyRecording { settings, server, prepared });
        together.all_prepared(ready, ReadyRecording::discard)
    }
}

/// Waits, prepared, for the time to begin, and discards all packets that came before.
fn until_start(
    mut prepared: PreparedRecording,
    start: Moment,
    stop: &Arc<AtomicBool>,
) -> Result<PreparedRecording, Failure> {
    if !wait_until(start, stop) {
        prepared.discard();
        return Err(stopped_early());
    }
    prepared.recorder.discard().run()?;
    Ok(prepared)
}

/// Says when a recording begins.
fn is_prepared(name: &str, start: Moment) -> String {
    if Calendar::left_until(start).0 > 0 {
        format!("{name} is prepared, and begins at {start}")
    } else {
        format!("{name} is prepared, and begins now: --start {start} is past")
    }
}

/// Waits until this time. Returns false if a stop came before it.
fn wait_until(start: Moment, stop: &AtomicBool) -> bool {
    loop {
        let left = Calendar::left_until(start);
        if left == Nanos(0) {
            return true;
        }
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(left.min(LOOK).duration());
    }
}

fn stopped_early() -> Failure {
    Failure::Run(anyhow!("stopped before it began: nothing was recorded"))
}
