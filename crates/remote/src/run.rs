//! The directory that a run makes on a server, and the proof that the run owns it. It works as on a mounted
//! file system, except that these clients have no inodes and no locks.
//!
//! The directory's name is `nilometer-` and 16 hexadecimal digits. Its marker records that name and the process
//! that made it: machine, boot, process number and start time. Other machines can't tell if that process still
//! runs, so there the directory stays. All entries that the run makes begin with `n_`; nothing else is ever
//! removed.

use std::{fmt, fs};

use nilometer_model::Seed;
use nilometer_storage::{
    Errno,
    listing::DIRECTORY,
    listing_bound::{DEPTH_MAX, ListingBound},
    process::BootId,
    target::{OURS, is_run_name},
};

use crate::{
    files::{Place, TargetFiles},
    system::{RemoteSystem, files_at},
};

/// The same name as on mounted file systems.
const MARKER: &str = ".nilometer-run";
/// Stands for a machine without machine-id(5), or for an unknown boot.
const UNKNOWN: &str = "unknown";
const FIRST_LINE: &str = "A run of nilometer made this directory. `nilometer clean` removes it.";

/// The process that made a run's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunMaker {
    host: String,
    /// Identifies the installation, because two machines may share a host name.
    machine: String,
    boot: String,
    pub(crate) process: u32,
    started: u64,
}

impl RunMaker {
    fn this_process() -> Self {
        let process = std::process::id();
        RunMaker {
            host: host(),
            machine: machine(),
            boot: boot(),
            process,
            started: start_of(process).unwrap_or_default(),
        }
    }

    /// Parses the marker of the directory with this name.
    fn of_marker(text: &str, name: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) || lines.next()? != format!("name {name}") {
            return None;
        }
        let mut field = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(str::to_owned);
        Some(RunMaker {
            host: field("host")?,
            machine: field("machine")?,
            boot: field("boot")?,
            process: field("process")?.parse().ok()?,
            started: field("started")?.parse().ok()?,
        })
    }

    fn marker(&self, name: &str) -> String {
        let RunMaker { host, machine, boot, process, started } = self;
        format!(
            "{FIRST_LINE}\nname {name}\nhost {host}\nmachine {machine}\nboot {boot}\nprocess {process}\nstarted {started}\n"
        )
    }

    /// Returns true if the process still runs, or `None` if this machine can't tell.
    fn is_alive(&self) -> Option<bool> {
        if self.host != host() || self.machine != machine() {
            return None;
        }
        let is_same_start = self.boot == boot();
        if self.machine == UNKNOWN && !is_same_start {
            // It may be another machine of the same name, for example a container.
            return None;
        }
        Some(is_same_start && start_of(self.process) == Some(self.started))
    }
}

fn host() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    host.lines().next().unwrap_or_default().to_owned()
}

/// Returns a digest of machine-id(5), which is confidential.
fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let id = id.trim();
    if id.is_empty() { UNKNOWN.to_owned() } else { format!("{:016x}", Seed(0).named(id).0) }
}

fn boot() -> String {
    BootId::now().map_or_else(|| UNKNOWN.to_owned(), |boot| format!("{:032x}", boot.0))
}

/// Returns the start time of a process of this machine, in ticks since boot (proc(5), `stat`).
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name, which may contain any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Makes the directory of this name, with its marker, below `above`.
pub(crate) fn make(above: &TargetFiles, name: &str) -> Result<(), Errno> {
    above.make_dir(Place::root(name))?;
    let marker = RunMaker::this_process().marker(name);
    above.write_new(Place::within(name, MARKER), marker.as_bytes()).inspect_err(|errno| {
        if *errno == Errno::EEXIST {
            // The marker belongs to another run.
            return;
        }
        // On a full server, leave nothing behind. If this fails too, the first error says why.
        above.unlink(Place::within(name, MARKER)).ok();
        above.remove_dir(Place::root(name)).ok();
    })
}

/// The reason why the directory of a run stays.
#[derive(Debug)]
pub(crate) enum RunKept {
    /// The campaign of this process still runs.
    InUse(u32),
    /// Nothing proves that the directory is ours.
    NotOurs(String),
    /// The directory or one of its entries could not be removed.
    Left(String),
}

impl fmt::Display for RunKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunKept::InUse(process) => write!(f, "in use by a running campaign (process {process})"),
            RunKept::NotOurs(why) | RunKept::Left(why) => f.write_str(why),
        }
    }
}

/// Returns the process that is using the directory of this name, or `None` if it has ended.
///
/// # Errors
/// The directory is not ours, or this machine can't tell if its process runs.
pub(crate) fn holder(above: &TargetFiles, name: &str) -> Result<Option<u32>, RunKept> {
    let text = match above.read(Place::within(name, MARKER)) {
        Ok(text) => text,
        Err(errno) => return without_marker(above, name, errno),
    };
    let maker = RunMaker::of_marker(&String::from_utf8_lossy(&text), name);
    let maker = maker.ok_or_else(|| RunKept::NotOurs("its marker is none of this directory".into()))?;
    match maker.is_alive() {
        Some(alive) => Ok(alive.then_some(maker.process)),
        None => Err(RunKept::Left(format!(
            "process {} of {} made it, and only there can be seen whether that runs: clean it there",
            maker.process, maker.host
        ))),
    }
}

/// Accepts an empty directory: a run that was killed before it wrote its marker leaves one.
fn without_marker(above: &TargetFiles, name: &str, errno: Errno) -> Result<Option<u32>, RunKept> {
    let is_empty = errno == Errno::ENOENT && above.names(Some(name)).is_ok_and(|names| names.is_empty());
    if is_empty { Ok(None) } else { Err(RunKept::NotOurs(format!("no marker {MARKER}: {errno}"))) }
}

/// Removes everything that a run made in its directory. The error is the first entry that remains.
pub(crate) fn clear(system: &dyn RemoteSystem, path: &str) -> Result<(), RunKept> {
    remove_below(system, path, 0)
}

/// Removes the directory `name` in `above` with everything that the run made in it.
pub(crate) fn remove(system: &dyn RemoteSystem, above: &str, name: &str) -> Result<(), RunKept> {
    let path = format!("{above}/{name}");
    clear(system, &path)?;
    system.forget_unfinished(&path).map_err(RunKept::Left)?;
    let files = files_at(system, above).map_err(|error| RunKept::Left(error.to_string()))?;
    remove_marked(&files, name)
}

/// Removes a directory that contains only its marker. If that fails, it restores the marker: without one nobody
/// could tell later who owns the directory.
fn remove_marked(above: &TargetFiles, name: &str) -> Result<(), RunKept> {
    let left = |what: &str, errno: Errno| RunKept::Left(format!("can't {what}: {errno}"));
    match above.names(Some(name)) {
        Err(Errno::ENOENT) => return Ok(()),
        Err(errno) => return Err(left("list the directory", errno)),
        Ok(names) => {
            if let Some((other, _)) = names.into_iter().find(|(name, _)| name != MARKER) {
                return Err(RunKept::Left(format!("{other} was put into it, and the run did not make it")));
            }
        }
    }
    let marker = Place::within(name, MARKER);
    let text = above.read(marker);
    match above.unlink(marker) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(left("remove the marker", errno)),
    }
    match above.remove_dir(Place::root(name)) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => {
            // If this fails too, the first error says why.
            text.and_then(|text| above.write_new(marker, &text)).ok();
            Err(left("remove the directory", errno))
        }
    }
}

/// Removes the entries of a directory `depth` levels below the run's directory. At depth 0 it keeps the marker.
fn remove_below(system: &dyn RemoteSystem, path: &str, depth: u64) -> Result<(), RunKept> {
    if depth > DEPTH_MAX {
        // A faulty server may list a directory inside every directory, without end.
        return Err(RunKept::Left(format!("can't list {path}: {}", Errno::from(ListingBound::Depth))));
    }
    let files = files_at(system, path).map_err(|error| RunKept::Left(error.to_string()))?;
    let names = match files.names(None) {
        Err(Errno::ENOENT) => return Ok(()),
        names => names.map_err(|errno| RunKept::Left(format!("can't list {path}: {errno}")))?,
    };
    let mut kept = None;
    for (name, kind) in names.iter().filter(|(name, _)| !(depth == 0 && name == MARKER)) {
        let removed = remove_entry(system, &files, Entry { path, name, kind: *kind, depth });
        kept = kept.or(removed.err());
    }
    kept.map_or(Ok(()), Err)
}

/// A name in a directory.
#[derive(Clone, Copy)]
struct Entry<'a> {
    path: &'a str,
    name: &'a str,
    kind: u8,
    /// Depth of the containing directory below the run's directory.
    depth: u64,
}

fn remove_entry(system: &dyn RemoteSystem, files: &TargetFiles, entry: Entry<'_>) -> Result<(), RunKept> {
    let Entry { path, name, kind, depth } = entry;
    if !name.as_bytes().starts_with(OURS) {
        return Err(RunKept::Left(format!(
            "{path}/{name} is in a run directory, but the run did not make it"
        )));
    }
    let removed = if kind == DIRECTORY {
        remove_below(system, &format!("{path}/{name}"), depth + 1)?;
        files.remove_dir(Place::root(name))
    } else {
        files.unlink(Place::root(name))
    };
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(RunKept::Left(format!("can't remove {path}/{name}: {errno}"))),
    }
}

/// Returns the names of run directories in a directory.
pub(crate) fn runs_in(files: &TargetFiles) -> Result<Vec<String>, Errno> {
    let names = files.names(None)?;
    Ok(names.into_iter().map(|(name, _)| name).filter(|name| is_run_name(name)).collect())
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Bytes, EngineKind, FileSystemSpace, TargetDescription, TargetUrl};
    use nilometer_storage::{
        Clock, Engine, EngineError, OpKind, Target,
        engine::Options,
        testing::{
            Memory,
            wrap::{FaultEffect, Faulty, Rule, When},
        },
    };

    use super::*;
    use crate::files::SLOTS;

    /// Files in memory, with the faults of the rules.
    fn files(rules: &[Rule]) -> TargetFiles {
        let options = Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() };
        let engine = Memory::new(Bytes(1 << 20)).engine(&options).expect("memory works everywhere");
        TargetFiles::new(Box::new(Faulty::new(engine, rules, Seed(1))))
    }

    #[test]
    fn a_directory_that_can_not_go_keeps_its_marker() {
        const NAME: &str = "nilometer-0000000000000001";
        let busy = FaultEffect::Error(Errno::EIO);
        let rule = Rule { on: Some(OpKind::RemoveDir), when: When::Every(2), effect: busy };
        let files = files(&[rule]);
        // The name begins with `n_`, but `remove` did not make this directory.
        files.make_dir(Place::root("n_other")).expect("room");
        files.remove_dir(Place::root("n_other")).expect("it is empty");
        make(&files, NAME).expect("room");
        let kept = remove_marked(&files, NAME).expect_err("it can't be removed").to_string();
        assert!(kept.contains("can't remove the directory"), "{kept}");
        let process = holder(&files, NAME).expect("the marker is there again");
        assert_eq!(process, Some(std::process::id()));
        files.write_new(Place::within(NAME, "foreign"), b"").expect("room");
        let kept = remove_marked(&files, NAME).expect_err("something is in it").to_string();
        assert!(kept.contains("foreign was put into it"), "{kept}");
        assert!(holder(&files, NAME).is_ok(), "the marker was not touched");
        files.unlink(Place::within(NAME, "foreign")).expect("it is there");
        remove_marked(&files, NAME).expect("nothing is left in it");
        assert_eq!(files.stat(Place::root(NAME)), Err(Errno::ENOENT));
    }

    /// A server on which every directory contains the same directory.
    #[derive(Debug)]
    struct BottomlessSystem(Memory);

    impl RemoteSystem for BottomlessSystem {
        fn engine(&self, _: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
            self.0.engine(options)
        }
        fn space(&self, _: &str) -> Result<FileSystemSpace, String> {
            Err("nobody asks".into())
        }
        fn description(&self, _: &TargetUrl) -> Result<TargetDescription, String> {
            Err("nobody asks".into())
        }
    }

    #[test]
    fn directories_within_each_other_are_not_followed_for_ever() {
        let system = BottomlessSystem(Memory::new(Bytes(1 << 20)));
        let above = files_at(&system, "/x").expect("memory works everywhere");
        above.make_dir(Place::root("n_x")).expect("room");
        let kept = clear(&system, "/x").expect_err("it has no bottom").to_string();
        assert!(kept.contains("more than 256 directories within each other"), "{kept}");
        assert!(above.stat(Place::root("n_x")).is_ok(), "nothing was removed");
    }

    #[test]
    fn a_marker_names_its_directory_and_who_made_it() {
        let maker = RunMaker::this_process();
        let text = maker.marker("nilometer-0000000000000001");
        assert_eq!(RunMaker::of_marker(&text, "nilometer-0000000000000001"), Some(maker.clone()));
        assert_eq!(RunMaker::of_marker(&text, "nilometer-0000000000000002"), None, "it was moved");
        for end in 0..text.len() - 1 {
            assert!(
                text[..end].lines().count() < 7
                    || RunMaker::of_marker(&text[..end], "nilometer-0000000000000001") != Some(maker.clone()),
                "a marker that was cut proves nothing: {end}"
            );
        }
        assert_eq!(maker.is_alive(), Some(true), "this process runs");
        let other = RunMaker { started: maker.started + 1, ..maker.clone() };
        assert_eq!(other.is_alive(), Some(false), "the number belongs to another process by now");
        let elsewhere = RunMaker { host: "elsewhere".into(), ..maker.clone() };
        assert_eq!(elsewhere.is_alive(), None);
        let namesake = RunMaker { machine: "another".into(), ..maker };
        assert_eq!(namesake.is_alive(), None, "another machine of the same name");
    }
}
