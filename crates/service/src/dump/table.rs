//! The dumps of a recorder: it begins them, lists them and ends them. Requests never wait for a dump.

use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use nilometer_model::{ByteRate, Nanos};
use nilometer_storage::{Clock, DetachedTask, NoOutcome, in_time};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::{
    progress::DumpProgress,
    report::{DumpList, DumpReport, DumpState},
    request::{DumpRequest, NAME_MAX},
    run::{DumpJob, DumpSource, run},
};
use crate::{
    error::{OperatorLog, ServiceError, require},
    latest_frame::PictureSource,
    publisher::Publisher,
};

/// The most requests whose dumps run at once. With data streams a request has a dump for each.
const RUNNING_MAX: usize = 4;
/// The most dumps that the list has; the oldest ended ones go first.
const LISTED_MAX: usize = 64;
/// The time that the storage of the destination has for an answer to a request.
const PATIENCE: Nanos = Nanos::from_millis(5_000);
/// The longest wait at the end of the service for a dump that does not progress.
const LEAVE: Nanos = Nanos::from_millis(5_000);
/// The longest wait at the end of the service for dumps that progress.
const COMPLETE: Nanos = Nanos::from_millis(60_000);
/// The interval between two looks at dumps that end.
const LOOK: Nanos = Nanos::from_millis(20);

/// The dumps of one recorder. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Dumps(Arc<SharedDumps>);

#[derive(Debug)]
struct SharedDumps {
    /// The directories below which dumps may lie.
    roots: Vec<PathBuf>,
    published: Publisher,
    table: Mutex<DumpTable>,
}

#[derive(Debug, Default)]
struct DumpTable {
    /// The number of dumps so far.
    begun: u64,
    dumps: Vec<RunningDump>,
    /// The counts of the dumps that the list forgot.
    forgotten: DumpCounts,
}

/// Sums over all dumps of this program, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DumpCounts {
    pub(crate) running: u64,
    pub(crate) complete: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) overtaken_frames: u64,
    pub(crate) damaged_frames: u64,
}

/// A dump with its thread.
#[derive(Debug)]
struct RunningDump {
    /// The number of the first dump of the same request.
    request: u64,
    progress: DumpProgress,
    /// The path of its file without the suffix.
    file: PathBuf,
    task: DetachedTask<()>,
}

/// The reason why the service does not begin a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DumpRefusal {
    /// The request is invalid.
    AskedWrongly(String),
    /// There is no recording to dump from.
    NoRecording,
    /// The allowed number of dumps is running.
    TooMany(String),
    /// The service can't start a thread.
    Failed(String),
}

/// One message for missing and forbidden directories, so that it reveals neither.
const OUTSIDE: &str = "to: write a directory that the option --dumps (`dumps` of the service's configuration) \
                       names, or one below it";
const NO_ROOT: &str = "to: this recorder has no directory for dumps: start it with --dumps DIRECTORY (`dumps` of \
                       the service's configuration)";

impl Dumps {
    /// The dumps of a recorder that publishes its state here, into these directories and those below them.
    pub(crate) fn new(roots: Vec<PathBuf>, published: Publisher) -> Self {
        Dumps(Arc::new(SharedDumps { roots, published, table: Mutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, DumpTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a dump from the recording that runs, or that ran last: one for each of its data streams that the request
    /// names.
    pub(crate) fn begin(&self, request: &DumpRequest) -> Result<Vec<DumpReport>, DumpRefusal> {
        let limits = request.limits().map_err(DumpRefusal::AskedWrongly)?;
        let sources = self.sources(request.data_stream.as_deref())?;
        let (directory, real) = self.directory(&request.to)?;
        let table = &mut *self.lock();
        table.settle();
        table.check_running()?;
        let first = table.begun + 1;
        let count = sources.len() as f64;
        let mut jobs = Vec::new();
        for (id, source) in (first..).zip(sources) {
            let file = real.join(file_name(request, &source, id, count > 1.0)?);
            table.check_free(&file)?;
            let progress = DumpProgress::new(DumpReport {
                id,
                recording: source.name.clone(),
                begin: request.begin.clone(),
                end: request.end.clone(),
                path: file,
                ..DumpReport::default()
            });
            let rate = request.rate.map(|rate| ByteRate(rate.0 / count));
            let directory = directory.try_clone().map_err(|error| DumpRefusal::Failed(error.to_string()))?;
            jobs.push(DumpJob { source, limits, rate, directory, progress });
        }
        table.run(jobs)
    }

    /// All dumps, the oldest first.
    pub(crate) fn list(&self) -> DumpList {
        let table = &mut *self.lock();
        table.settle();
        DumpList { dumps: table.dumps.iter().map(|dump| dump.progress.report()).collect() }
    }

    /// The dumps that run, the oldest first, and behind them the youngest one that has ended.
    pub(crate) fn current(&self) -> Vec<DumpReport> {
        let all = self.list().dumps;
        let ended = all.iter().rfind(|report| report.state != DumpState::Running).cloned();
        let running = all.into_iter().filter(|report| report.state == DumpState::Running);
        running.chain(ended).collect()
    }

    /// The sums over all dumps; `None` if the recorder has no directory for dumps.
    pub(crate) fn counts(&self) -> Option<DumpCounts> {
        if self.0.roots.is_empty() {
            return None;
        }
        let table = &mut *self.lock();
        table.settle();
        let reports = table.dumps.iter().map(|dump| dump.progress.report());
        Some(reports.fold(table.forgotten, |counts, report| counts.with(&report)))
    }

    /// Ends a dump, if it still runs. Returns its report, or `None` if there is no dump of this number.
    pub(crate) fn end(&self, id: u64) -> Option<DumpReport> {
        let progress = {
            let table = &mut *self.lock();
            table.settle();
            table.dumps.iter().find(|dump| dump.progress.report().id == id)?.progress.clone()
        };
        progress.stop.store(true, Ordering::Relaxed);
        Some(progress.report())
    }

    /// Waits for dumps as long as they progress, at most a minute: without an end of its own, a dump ends with its
    /// recording.
    fn await_complete(&self) {
        let clock = Clock::start();
        let mut last = (0, Nanos(0));
        while self.lock().dumps.iter().any(RunningDump::runs) {
            let bytes: u64 = self.lock().dumps.iter().map(|dump| dump.progress.report().bytes).sum();
            let now = clock.now();
            if bytes != last.0 {
                last = (bytes, now);
            }
            if now >= COMPLETE || now.since(last.1) >= LEAVE {
                return;
            }
            std::thread::sleep(LOOK.duration());
        }
    }

    /// Waits for dumps that progress, and then ends all and waits a little, so that no partial files stay. It does not
    /// wait for storage that does not answer. The log gets a line for each dump that it ends.
    pub(crate) fn leave(&self, log: OperatorLog) {
        self.await_complete();
        for dump in self.lock().dumps.iter().filter(|dump| dump.runs()) {
            dump.progress.stop.store(true, Ordering::Relaxed);
            let DumpReport { id, path, recording, .. } = dump.progress.report();
            let path = path.display();
            log(&format!(
                "dump {id} to {path} ends unfinished: export the part from {recording}, which stays as it is now"
            ));
        }
        let clock = Clock::start();
        while clock.now() < LEAVE && self.lock().dumps.iter().any(RunningDump::runs) {
            std::thread::sleep(LOOK.duration());
        }
    }

    /// The recording that runs, or that ran last: all of its data streams, or the one with this label.
    fn sources(&self, label: Option<&str>) -> Result<Vec<DumpSource>, DumpRefusal> {
        let pictured = self.0.published.read(|published| published.pictured.clone());
        if pictured.is_empty() {
            return Err(DumpRefusal::NoRecording);
        }
        let source = |pictured: &Arc<PictureSource>| DumpSource {
            name: pictured.name().into(),
            directories: pictured.directories().to_vec(),
            published: self.0.published.clone(),
        };
        let all: Vec<DumpSource> = pictured.iter().map(source).collect();
        let Some(label) = label else { return Ok(all) };
        let labels: Vec<_> = all.iter().filter_map(DumpSource::label).map(str::to_owned).collect();
        let own: Vec<_> = all.into_iter().filter(|source| source.label() == Some(label)).collect();
        if own.is_empty() {
            let why = if labels.is_empty() {
                "data_stream: this recording has no data streams; leave it out".into()
            } else {
                format!("data_stream: write one of {}", labels.join(", "))
            };
            return Err(DumpRefusal::AskedWrongly(why));
        }
        Ok(own)
    }

    /// Opens the directory for a dump, if the service was given it for that. The second value is its real path.
    fn directory(&self, to: &Path) -> Result<(OwnedFd, PathBuf), DumpRefusal> {
        let refused = |why: &str| DumpRefusal::AskedWrongly(why.into());
        if self.0.roots.is_empty() {
            return Err(refused(NO_ROOT));
        }
        let roots = self.0.roots.clone();
        let path = to.to_owned();
        let opened = in_time(PATIENCE, to.to_owned(), move || permitted(&path, &roots));
        opened
            .map_err(|error| DumpRefusal::AskedWrongly(format!("to: {error}")))?
            .ok_or_else(|| refused(OUTSIDE))
    }
}

impl DumpTable {
    /// Checks that one more request may run.
    fn check_running(&self) -> Result<(), DumpRefusal> {
        let running: BTreeSet<u64> =
            self.dumps.iter().filter(|dump| dump.runs()).map(|dump| dump.request).collect();
        if running.len() < RUNNING_MAX {
            return Ok(());
        }
        let why = format!("{RUNNING_MAX} dumps are running: wait for one, or end one with DELETE /dumps/ID");
        Err(DumpRefusal::TooMany(why))
    }

    /// Checks that no running dump writes this file.
    fn check_free(&self, file: &Path) -> Result<(), DumpRefusal> {
        let Some(other) = self.dumps.iter().find(|dump| dump.runs() && dump.file == file) else {
            return Ok(());
        };
        let other = other.progress.report().id;
        Err(DumpRefusal::AskedWrongly(format!("name: dump {other} writes this file: write another name")))
    }

    /// Starts the dumps of one request. If a thread can't start, it ends the others.
    fn run(&mut self, jobs: Vec<DumpJob>) -> Result<Vec<DumpReport>, DumpRefusal> {
        let request = self.begun + 1;
        let mut reports = Vec::new();
        for job in jobs {
            let progress = job.progress.clone();
            let report = progress.report();
            match DetachedTask::begin("dump", move || run(&job)) {
                Ok(task) => {
                    self.begun = report.id;
                    self.dumps.push(RunningDump { request, progress, file: report.path.clone(), task });
                    reports.push(report);
                }
                Err(error) => {
                    for dump in self.dumps.iter().filter(|dump| dump.request == request) {
                        dump.progress.stop.store(true, Ordering::Relaxed);
                    }
                    return Err(DumpRefusal::Failed(format!("can't start a thread: {error}")));
                }
            }
        }
        Ok(reports)
    }

    /// Takes note of threads that died, and forgets the oldest ended dumps.
    fn settle(&mut self) {
        for dump in &self.dumps {
            let gone = matches!(dump.task.outcome(), Err(NoOutcome::Gone));
            dump.progress.change(|report| {
                if gone && report.state == DumpState::Running {
                    report.state = DumpState::Failed;
                    report.error = Some("internal error, see the log".into());
                }
            });
        }
        let mut excess = self.dumps.len().saturating_sub(LISTED_MAX);
        self.dumps.retain(|dump| {
            let goes = excess > 0 && !dump.runs();
            excess -= usize::from(goes);
            if goes {
                self.forgotten = self.forgotten.with(&dump.progress.report());
            }
            !goes
        });
    }
}

impl DumpCounts {
    /// The sums with another dump.
    fn with(mut self, report: &DumpReport) -> Self {
        let number = match report.state {
            DumpState::Running => &mut self.running,
            DumpState::Complete => &mut self.complete,
            DumpState::Failed => &mut self.failed,
            DumpState::Cancelled => &mut self.cancelled,
        };
        *number += 1;
        self.frames += report.frames;
        self.bytes += report.bytes;
        self.overtaken_frames += report.overtaken_frames;
        self.damaged_frames += report.damaged_frames;
        self
    }
}

impl RunningDump {
    fn runs(&self) -> bool {
        self.progress.report().state == DumpState::Running
    }
}

/// The name of a dump's file without its suffix. It has the label of the data stream if the request dumps `several`.
fn file_name(
    request: &DumpRequest,
    source: &DumpSource,
    id: u64,
    several: bool,
) -> Result<String, DumpRefusal> {
    let Some(name) = &request.name else { return Ok(format!("{}-dump-{id}", source.name)) };
    let label = source.label().filter(|_| several).map_or_else(String::new, |label| format!("_ds{label}"));
    let longest = NAME_MAX - label.len();
    if name.len() > longest {
        return Err(DumpRefusal::AskedWrongly(format!(
            "name: write up to {longest} bytes, for {label} behind them"
        )));
    }
    Ok(format!("{name}{label}"))
}

/// Checks that dumps can go into these directories.
///
/// # Errors
///
/// One of them is no directory with an absolute path, or its storage gives no answer.
pub(crate) fn check_roots(roots: &[PathBuf]) -> Result<(), ServiceError> {
    for root in roots {
        let path = root.clone();
        let is_there = in_time(PATIENCE, root.clone(), move || path.is_absolute() && path.is_dir());
        require(matches!(is_there, Ok(true)), || {
            format!("dumps = \"{}\": write the absolute path of a directory that is there", root.display())
        })?;
    }
    Ok(())
}

/// Opens a directory, if it is one of these or lies below one. No symbolic link may lead it elsewhere between the
/// check and the opening.
fn permitted(path: &Path, roots: &[PathBuf]) -> Option<(OwnedFd, PathBuf)> {
    let real = path.canonicalize().ok()?;
    let below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if !path.is_absolute() || !roots.iter().any(below) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat2(CWD, &real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6 lack this call.
        Err(Errno::NOSYS) => rustix::fs::open(&real, flags | OFlags::NOFOLLOW, Mode::empty()),
        opened => opened,
    };
    Some((opened.ok()?, real))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn dumps_go_only_below_their_roots() {
        let home = tempfile::tempdir().expect("space");
        let [root, other] = ["root", "other"].map(|name| home.path().join(name));
        fs::create_dir_all(root.join("below")).expect("space");
        fs::create_dir(&other).expect("space");
        symlink(&other, root.join("link")).expect("space");
        symlink(&root, home.path().join("way")).expect("space");
        fs::write(root.join("file"), "").expect("space");
        let roots = [home.path().join("way")];
        let real = |path: PathBuf| permitted(&path, &roots).map(|(_, real)| real);
        assert_eq!(real(root.clone()), Some(root.canonicalize().expect("it is there")));
        assert!(real(root.join("below")).is_some() && real(home.path().join("way/below")).is_some());
        for outside in
            [other, root.join("link"), root.join(".."), root.join("file"), root.join("none"), "root".into()]
        {
            assert_eq!(real(outside.clone()), None, "{outside:?}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_refused_at_the_start() {
        let home = tempfile::tempdir().expect("space");
        check_roots(&[home.path().to_owned()]).expect("it is there");
        for wrong in [home.path().join("none"), "relative".into()] {
            let why = check_roots(std::slice::from_ref(&wrong)).expect_err("it is refused").to_string();
            assert!(why.contains(&wrong.display().to_string()), "{why}");
        }
    }

    fn source(published: &Publisher, name: &str) -> Arc<PictureSource> {
        let text = "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [8]\npixel = \"uint8\"\n\
                    frame_rate = \"1 Hz\"\n";
        let instrument = nilometer_model::Instrument::parse(text, "t.toml").expect("valid");
        let source = Arc::new(PictureSource::new(name, vec![format!("/{name}").into()], &instrument));
        published.changing().pictured.push(source.clone());
        source
    }

    #[test]
    fn a_dump_is_of_all_data_streams_or_of_the_one_with_its_label() {
        let published = Publisher::default();
        let dumps = Dumps::new(vec!["/".into()], published.clone());
        assert_eq!(dumps.sources(None).map(|all| all.len()), Err(DumpRefusal::NoRecording));
        for name in ["s_dsx_dsA", "s_dsx_dsB-2"] {
            source(&published, name);
        }
        let names = |label| {
            let sources = dumps.sources(label)?;
            Ok::<_, DumpRefusal>(sources.into_iter().map(|source| source.name).collect::<Vec<_>>())
        };
        assert_eq!(names(None), Ok(vec!["s_dsx_dsA".into(), "s_dsx_dsB-2".into()]));
        assert_eq!(names(Some("B-2")), Ok(vec!["s_dsx_dsB-2".into()]));
        let refused = names(Some("x")).expect_err("there is no such label");
        assert_eq!(refused, DumpRefusal::AskedWrongly("data_stream: write one of A, B-2".into()));
        let plain = Publisher::default();
        source(&plain, "scan");
        let refused = Dumps::new(vec!["/".into()], plain).sources(Some("A")).expect_err("it has none");
        assert!(matches!(refused, DumpRefusal::AskedWrongly(why) if why.contains("no data streams")));
    }

    #[test]
    fn the_files_of_data_streams_have_their_labels() {
        let published = Publisher::default();
        let dumps = Dumps::new(vec!["/".into()], published.clone());
        source(&published, "s_dsA");
        let source = dumps.sources(None).expect("a recording").remove(0);
        let named = |name: Option<&str>, several| {
            let request = DumpRequest { name: name.map(str::to_owned), ..DumpRequest::default() };
            file_name(&request, &source, 7, several)
        };
        assert_eq!(named(Some("event"), true), Ok("event_dsA".into()));
        assert_eq!(named(Some("event"), false), Ok("event".into()));
        assert_eq!(named(None, true), Ok("s_dsA-dump-7".into()));
        assert_eq!(named(Some(&"n".repeat(196)), true).map(|name| name.len()), Ok(200));
        assert!(named(Some(&"n".repeat(197)), true).is_err());
    }

    #[test]
    fn a_dump_needs_a_directory_and_a_recording() {
        let request: DumpRequest = serde_json::from_str(r#"{"to": "/"}"#).expect("valid");
        let dumps = Dumps::new(vec!["/".into()], Publisher::default());
        assert_eq!(dumps.begin(&request).err(), Some(DumpRefusal::NoRecording));
        assert!(dumps.list().dumps.is_empty() && dumps.end(1).is_none());
        let without = Dumps::new(Vec::new(), Publisher::default());
        let refused = without.directory(Path::new("/")).map(|(_, real)| real);
        assert_eq!(refused, Err(DumpRefusal::AskedWrongly(NO_ROOT.into())));
    }
}
