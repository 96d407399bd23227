//! Files by MPI-IO: by the two implementations of Open MPI and by that of MPICH, on real file systems.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_campaign::workload::{self, WorkerPart, WorkerPlace};
use nilometer_cluster::{Cluster, MessageCluster, MpiFiles, MpiIoSetup, MpiMessages};
use nilometer_model::{Bytes, EngineKind, Invalid, MpiIoHints, MpiIoImplementation, Phase, Sample, Seed};
use nilometer_plan::{
    Access, DataSource, FileLayout, Measured, MpiIo, MpiIoCalls, Results, Shift, StreamCell, SyncPolicy,
    WorkloadCell,
};
use nilometer_storage::{
    Arena, Clock, Completion, Drive, Engine, OpKind,
    engine::{Options, on_directory},
};
use nilometer_tests::{
    Ended, FileSystem, Filler, Mpi, MpiKind, Running, await_let_go, await_some, may_mount, nilometer,
    run_directories,
};
use tempfile::TempDir;

const RANKS: u32 = 4;
const LIMIT: Duration = Duration::from_mins(2);

/// What each MPI can be told to use, and what that is.
fn implementations(mpi: &Mpi) -> Vec<(&'static str, MpiIoImplementation)> {
    match mpi.kind() {
        MpiKind::OpenMpi => {
            vec![("ompio", MpiIoImplementation::Ompio), ("romio321", MpiIoImplementation::Romio)]
        }
        MpiKind::Mpich => vec![("", MpiIoImplementation::Romio)],
    }
}

/// Tells the processes of Open MPI which of its implementations to use. That of MPICH does not read it.
const CHOICE: &str = "OMPI_MCA_io";

/// Names the directory that a process of the first test works in, and what it should find that it has.
const PLACE: &str = "NILOMETER_TEST_MPI_IO";
const EXPECTED: &str = "NILOMETER_TEST_MPI_IO_BY";

#[test]
fn what_four_processes_write_together_is_what_posix_writes() {
    for mpi in Mpi::all() {
        for (choice, expected) in implementations(&mpi) {
            let place = tempfile::tempdir().expect("a temporary directory");
            let program = env::current_exe().expect("it runs");
            let part = ["--exact", "mpi_io::one_of_four_processes", "--ignored", "--nocapture"];
            let words = [&[program.to_str().expect("plain letters")], &part[..]].concat();
            let mut command = mpi.command(RANKS, place.path(), &words);
            command.env(PLACE, place.path()).env(EXPECTED, expected.name()).env(CHOICE, choice);
            let ended = Running::of(command).end(LIMIT);
            assert_eq!(ended.code, Some(0), "{:?} by {expected}: {ended:?}", mpi.kind());
            assert_eq!(ended.stdout.matches(". 1 passed; 0 failed").count(), RANKS as usize, "{ended:?}");
        }
    }
}

#[test]
#[ignore = "one of the processes of the test above, which starts it by mpirun"]
fn one_of_four_processes() {
    let place = PathBuf::from(env::var_os(PLACE).expect("the test above says where"));
    let cluster = MessageCluster::new(MpiMessages::start(RANKS).expect("MPI has started it"));
    let files = cluster.files().expect("MPI has files");
    let expected = env::var(EXPECTED).expect("the test above says what");
    assert_eq!(files.implementation().expect("a temporary file").name(), expected);
    for calls in [MpiIoCalls::Independent, MpiIoCalls::Collective] {
        for layout in [FileLayout::Segmented, FileLayout::Strided] {
            let hints = MpiIoHints::from([("cb_buffer_size".to_owned(), "1048576".to_owned())]);
            let mpi_io = MpiIo { calls, hints, implementation: None };
            let directory = place.join(format!("{} {layout:?}", calls.name()));
            fs::create_dir_all(&directory).expect("space");
            let parts = SharedFile { directory: &directory, cell: cell(layout), mpi_io: &mpi_io };
            parts.made_and_read(&cluster, &files);
            let found = files.take_in_force().expect("a file was opened");
            assert_eq!(found.implementation.name(), expected, "{found}");
            assert_eq!(found.hints.get("cb_buffer_size").map(String::as_str), Some("1048576"), "{found}");
        }
    }
}

/// Of each process, five blocks of an odd size.
fn cell(layout: FileLayout) -> StreamCell {
    StreamCell {
        file_size: Bytes(5 * 37_001),
        block_size: Bytes(37_001),
        access: Access::Buffered,
        sync: SyncPolicy::Every(2),
        files: 1,
        total_files: 0,
        layout,
        preallocate: false,
        source: DataSource::Memory,
        rewrite: false,
        read_back: true,
        shift: Shift::OWN,
    }
}

/// A file of four processes.
struct SharedFile<'a> {
    directory: &'a Path,
    cell: StreamCell,
    mpi_io: &'a MpiIo,
}

impl SharedFile<'_> {
    /// Written and read by all, and compared with what POSIX writes; nobody is behind before all have looked.
    fn made_and_read(&self, cluster: &dyn Cluster, files: &std::sync::Arc<MpiFiles>) {
        let place = |rank| WorkerPlace::of_rank(rank, RANKS, 1).next().expect("one worker");
        let mine = place(cluster.rank());
        let ranks: Vec<u32> = (0..RANKS).collect();
        let engine = || {
            let setup = MpiIoSetup {
                directory: self.directory,
                together: Some(&ranks),
                mpi_io: self.mpi_io,
                slots: 2,
                clock: Clock::start(),
            };
            files.engine(&setup).expect("processes that MPI has started")
        };
        self.run(Phase::Write, mine, engine().as_mut(), &mut |_| {});
        cluster.barrier();
        let posix = tempfile::tempdir().expect("a temporary directory");
        for rank in 0..RANKS {
            self.run(Phase::Write, place(rank), on(posix.path()).as_mut(), &mut |_| {});
        }
        let whole = fs::read(posix.path().join("n_shared")).expect("it was written");
        assert_eq!(whole.len() as u64, u64::from(RANKS) * self.cell.file_size.0);
        let made = fs::read(self.directory.join("n_shared")).expect("it was written");
        assert!(made == whole, "what is in the file is not what POSIX writes ({:?})", self.mpi_io);
        let mut read = 0;
        self.run(Phase::Read, mine, engine().as_mut(), &mut |completion| {
            let operation = &completion.operation;
            if operation.kind == OpKind::Read {
                let (at, length) = (operation.offset as usize, operation.length as usize);
                assert!(operation.buffer[..length] == whole[at..][..length], "another block at {at}");
                read += length as u64;
            }
        });
        assert_eq!(read, self.cell.file_size.0);
        cluster.barrier();
    }

    /// The part of one worker in a phase, in which nothing fails.
    fn run(
        &self,
        phase: Phase,
        place: WorkerPlace,
        engine: &mut dyn Engine,
        look: &mut dyn FnMut(&Completion),
    ) {
        let (_arena, buffers) = Arena::shared_out(2, self.cell.block_size.0 as usize);
        let part = WorkerPart { keeps_step: true, ..WorkerPart::new(place, Seed(5), buffers) };
        let mut workload = workload::build(&WorkloadCell::Stream(self.cell), phase, part);
        Drive::new(workload.as_mut(), engine).run(|completion| {
            assert!(completion.result.is_ok(), "{completion:?}");
            look(completion);
        });
    }
}

/// An engine of system calls.
fn on(directory: &Path) -> Box<dyn Engine> {
    let root = OwnedFd::from(File::open(directory).expect("it is there"));
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: 2, clock: Clock::start() };
    on_directory(root, &options).expect("permitted everywhere")
}

/// POSIX beside MPI-IO in the same rounds.
const PLAN: &str = r#"
title = "one file"
repeats = 2
reserve = "0 B"
[[stage]]
name = "N-to-1"
engine = ["sync", "mpi_io"]
[stage.mpi_io]
calls = ["independent", "collective"]
hints = { cb_nodes = "1" }
[stage.workload.stream]
file_size = "512 KiB"
block_size = "64 KiB"
access = "buffered"
layout = ["segmented", "strided"]
"#;

/// A directory that is a target, a plan beside it, and where the record goes.
struct Lab(TempDir);

impl Lab {
    fn new(plan: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        fs::write(home.path().join("plan.toml"), plan).expect("space");
        Lab(home)
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.0.path().join("r.sqlite")).expect("a record")
    }

    /// Processes of the program, all of them with the same environment.
    fn run(&self, mpi: &Mpi, ranks: u32, choice: &str) -> Ended {
        let program = nilometer().to_str().expect("a plain name");
        let mut command = mpi.command(ranks, self.0.path(), &[&[program], &EVALUATE[..]].concat());
        command.env(CHOICE, choice);
        Running::of(command).end(LIMIT)
    }

    fn assert_refused(&self, ended: &Ended, said: &str) {
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{ended:?}");
        assert!(!self.0.path().join("r.sqlite").exists(), "{ended:?}");
        assert_eq!(fs::read_dir(self.0.path().join("target")).expect("it is there").count(), 0);
    }
}

const EVALUATE: [&str; 6] = ["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"];

/// Each cell was measured in each round on the target, by so many processes, and nothing failed. What is left is how often each
/// cell was measured, by its name.
fn assert_measured(results: &Results, ranks: u32, rounds: usize) -> BTreeMap<String, usize> {
    let mut cells = BTreeMap::new();
    for Measured { key, sample } in results.samples.iter().filter(|measured| measured.key.target == 0) {
        let cell = &results.cells[key.cell];
        assert_eq!(sample.parts.len() as u32, ranks, "{cell}");
        assert_eq!(sample.bytes, u64::from(ranks) << 19, "{cell}");
        assert!(sample.errors.is_empty(), "{cell}: {:?}", sample.errors);
        *cells.entry(cell.to_string()).or_insert(0) += 1;
    }
    assert!(cells.values().all(|count| *count == 2 * rounds), "written and read in each round: {cells:?}");
    cells
}

/// What the record says that the files of a cell were opened by and with.
fn in_force<'a>(results: &'a Results, cell: &str) -> &'a str {
    let facts = results.environment.iter();
    let mut found = facts.filter(|(key, _)| key.starts_with("MPI-IO of N-to-1: ") && key.contains(cell));
    found.next().map(|(_, value)| value.as_str()).expect("it is noted")
}

#[test]
fn posix_stands_beside_mpi_io_in_the_same_rounds_and_hints_in_force_are_noted() {
    for mpi in Mpi::all() {
        for (choice, expected) in implementations(&mpi) {
            let lab = Lab::new(PLAN);
            let ended = lab.run(&mpi, RANKS, choice);
            assert!(ended.has_answered(), "{ended:?}");
            let results = lab.results();
            let cells = assert_measured(&results, RANKS, 2);
            assert_eq!(cells.len(), 2 * 3, "{cells:?}");
            assert_eq!(cells.keys().filter(|cell| !cell.contains("MPI-IO")).count(), 2, "{cells:?}");
            for calls in ["independent", "collective"] {
                let found = in_force(&results, calls);
                let by = format!("{} (", expected.name());
                assert!(found.starts_with(&by) && found.contains("cb_nodes = 1"), "{found}");
            }
            let cells: Vec<String> = results.cells.iter().map(ToString::to_string).collect();
            assert!(cells.iter().any(|cell| cell.contains("MPI-IO collective")), "{cells:?}");
        }
    }
}

#[test]
fn both_implementations_of_open_mpi_are_a_dimension_of_one_plan() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let plan = PLAN.replace("hints =", "implementation = [\"ompio\", \"romio\"]\nhints =");
    let lab = Lab::new(&plan.replace("engine =", "processes = 2\nengine ="));
    let program = nilometer().to_str().expect("a plain name");
    // Two processes of each.
    let others = [":", "-n", "2", "env", "OMPI_MCA_io=romio321", program];
    let words = [&[program], &EVALUATE[..], &others, &EVALUATE].concat();
    let ended = Running::of(mpi.command(2, lab.0.path(), &words)).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results();
    let cells = assert_measured(&results, 2, 2);
    assert_eq!(cells.len(), 2 * (1 + 2 * 2), "{cells:?}");
    for expected in ["ompio", "romio"] {
        assert!(in_force(&results, &format!("collective, {expected}")).starts_with(&format!("{expected} (")));
    }
    let ranks_of = |expected: &str| {
        let of = results.samples.iter().filter(|measured| measured.key.target == 0);
        let mut of = of.filter(|measured| results.cells[measured.key.cell].to_string().contains(expected));
        of.next().map(|measured| measured.sample.parts.iter().map(|part| part.rank).collect::<Vec<_>>())
    };
    assert_eq!([ranks_of("ompio"), ranks_of("romio")], [Some(vec![0, 1]), Some(vec![2, 3])]);
    // Without a word on which, a file would be opened by both.
    let unsaid = Lab::new(PLAN);
    let ended = Running::of(mpi.command(2, unsaid.0.path(), &words)).end(LIMIT);
    unsaid.assert_refused(&ended, "there is ompio in 2 processes, romio in 2 processes: write which");
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let lab = Lab::new(PLAN);
    let alone =
        Command::new(nilometer()).args(EVALUATE).current_dir(lab.0.path()).output().expect("it starts");
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(2), "{said}");
    assert!(said.contains("stage `N-to-1`: engine = \"mpi_io\": there is one process"), "{said}");
    assert!(said.contains("mpirun -n 4 nilometer evaluate"), "{said}");
    for mpi in Mpi::all() {
        let (choice, there) = implementations(&mpi)[0];
        let other = if there == MpiIoImplementation::Romio { "ompio" } else { "romio" };
        let lab = Lab::new(&PLAN.replace("hints =", &format!("implementation = \"{other}\"\nhints =")));
        let said = format!("implementation = \"{other}\": there is {there} in 2 processes");
        lab.assert_refused(&lab.run(&mpi, 2, choice), &said);
        let colon = Lab::new(PLAN);
        let target = colon.0.path().join("target/a:b");
        fs::create_dir(&target).expect("space");
        let target = target.to_str().expect("plain letters");
        let ended = mpi.run(2, colon.0.path(), &["evaluate", target, "--plan", "plan.toml"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("name a directory without a colon"), "{ended:?}");
    }
}

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

#[test]
fn a_disk_that_fills_up_is_data_and_no_process_waits_for_another() {
    if !may_mount() {
        return;
    }
    let plan = PLAN.replace("repeats = 2", "repeats = 12\nhang_after = \"60 s\"");
    let plan = plan.replace("[\"sync\", \"mpi_io\"]", "\"mpi_io\"");
    for mpi in Mpi::all() {
        for (choice, expected) in implementations(&mpi) {
            let lab = Lab::new(&plan);
            let full = FileSystem::ext4(32);
            let target = full.path().to_str().expect("plain letters");
            let program = nilometer().to_str().expect("a plain name");
            let words = [program, "evaluate", target, "--plan", "plan.toml", "--record", "r.sqlite"];
            let mut command = mpi.command(RANKS, lab.0.path(), &words);
            command.env(CHOICE, choice);
            let running = Running::of(command);
            let record = lab.0.path().join("r.sqlite");
            running.await_run_directory(full.path(), &record);
            let some = || nilometer_record::read(&record).is_ok_and(|results| results.samples.len() > 3);
            await_some("some samples", || some().then_some(()));
            let filler = Filler::begin(full.path());
            let ended = running.end(LIMIT);
            drop(filler);
            assert_eq!(ended.code, Some(1), "{expected}: {ended:?}");
            assert_no_space(&lab.results(), expected);
            assert!(run_directories(full.path()).is_empty());
        }
    }
}

/// Some samples failed because there was no space, and none for another reason.
fn assert_no_space(results: &Results, by: MpiIoImplementation) {
    let failed: Vec<&Sample> = results.samples.iter().map(|measured| &measured.sample).collect();
    let failed: Vec<_> = failed.into_iter().filter(|sample| !sample.errors.is_empty()).collect();
    let full = failed.iter().filter(|sample| sample.errors.contains_key(&ENOSPC)).count();
    assert!(full > 0, "the full disk shows in no sample ({by})");
    // After a collective write that failed, ompio can't sync any more.
    let known: &[i32] = if by == MpiIoImplementation::Ompio { &[ENOSPC, EIO] } else { &[ENOSPC] };
    for sample in failed {
        let why = sample.invalid.as_ref().expect("operations failed");
        assert!(is_of_operations(why), "{by}: {why:?}");
        assert!(sample.errors.keys().all(|kind| known.contains(kind)), "{by}: {:?}", sample.errors);
    }
}

/// Whether operations failed: those of the sample, or of the phase that makes its files, when that was run again.
fn is_of_operations(why: &Invalid) -> bool {
    match why {
        Invalid::Errors => true,
        Invalid::Refused(text) => text.ends_with("was run again: operations failed"),
        _ => false,
    }
}

#[test]
fn a_storage_that_hangs_in_a_call_ends_the_campaign_with_its_record_whole() {
    if !may_mount() {
        return;
    }
    let plan = PLAN.replace("repeats = 2", "repeats = 200\nhang_after = \"3 s\"");
    for mpi in Mpi::all() {
        let lab = Lab::new(&plan.replace("[\"sync\", \"mpi_io\"]", "\"mpi_io\""));
        let frozen = FileSystem::ext4(64);
        let target = frozen.path().to_str().expect("plain letters");
        let program = nilometer().to_str().expect("a plain name");
        let words = [program, "evaluate", target, "--plan", "plan.toml", "--record", "r.sqlite"];
        let running = Running::of(mpi.command(RANKS, lab.0.path(), &words));
        let record = lab.0.path().join("r.sqlite");
        let run = running.await_run_directory(frozen.path(), &record);
        let some = || nilometer_record::read(&record).is_ok_and(|results| results.samples.len() > 3);
        await_some("some samples", || some().then_some(()));
        frozen.freeze();
        let is_left_out = |results: Results| results.targets[0].left_out.is_some();
        let noted = || nilometer_record::read(&record).is_ok_and(is_left_out);
        await_some("the hang in the record", || noted().then_some(()));
        if mpi.kind() == MpiKind::Mpich {
            // Its launcher waits for processes that the kernel does not let go.
            frozen.thaw();
        }
        let ended = running.end(LIMIT);
        let results = lab.results();
        if mpi.kind() == MpiKind::OpenMpi {
            frozen.thaw();
        }
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("Record: "), "{ended:?}");
        let hung = results.samples.iter().filter(|measured| measured.sample.invalid == Some(Invalid::Hung));
        // It froze between two calls, if there is none.
        assert!(hung.count() <= 1, "{ended:?}");
        assert!(results.targets[0].left_out.is_some(), "{ended:?}");
        await_let_go(&run);
    }
}
