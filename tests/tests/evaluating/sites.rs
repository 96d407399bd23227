//! How a site runs it: the batch script for Slurm and the Job for Kubernetes, with commands that take the place of Slurm's.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_tests::{Mpi, MpiKind, Running, await_some, nilometer};
use rustix::process::Signal;
use tempfile::TempDir;

/// Slow by its rate, so that it is in the middle when it is told to end, however busy the machine is: 24 samples of half a second.
const PLAN: &str = "title = \"site\"\nrepeats = 12\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\nrate = \"2 MB/s\"\n\
                    [stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"256 KiB\"\naccess = \"buffered\"\n";

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib").join(name)
}

/// A job's directory, with commands of a site in the place of Slurm's: `srun` starts two tasks by `mpirun`.
struct Site {
    home: TempDir,
    mpi: Mpi,
}

impl Site {
    fn new() -> Option<Self> {
        let mpi = Mpi::of(MpiKind::OpenMpi)?;
        let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("space");
        fs::write(home.path().join("plan.toml"), PLAN).expect("space");
        let site = Site { home, mpi };
        let launch = site.mpi.command(2, site.home.path(), &[]);
        let words: Vec<_> = std::iter::once(launch.get_program()).chain(launch.get_args()).collect();
        let words: Vec<_> = words.iter().map(|word| word.to_str().expect("a plain word")).collect();
        site.command(
            "srun",
            &format!(
                "[ \"$1\" = --kill-on-bad-exit=1 ] || exit 9\nshift\necho $$ > step\nexec {} \"$@\"",
                words.join(" ")
            ),
        );
        site.command("scontrol", "echo \"$*\" >> requeued");
        site.command("scancel", "[ \"$*\" = '--signal=TERM 17' ] || exit 9\nkill -TERM \"$(cat step)\"");
        Some(site)
    }

    fn command(&self, name: &str, does: &str) {
        let path = self.home.path().join(name);
        fs::write(&path, format!("#!/bin/bash\n{does}\n")).expect("space");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// The job, as Slurm would begin it.
    fn submitted(&self) -> Running {
        let path = format!("{}:{}", self.home.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.arg(contrib("slurm/evaluate.sbatch")).args(["target", "--plan", "plan.toml"]);
        command.current_dir(self.home.path()).env("PATH", path).env("NILOMETER", nilometer());
        command.env("NILOMETER_MPI", self.mpi.adapter());
        command.envs([("SLURM_JOB_ID", "17"), ("SLURM_JOB_NAME", "job")]);
        Running::of(command)
    }

    fn samples(&self) -> usize {
        nilometer_record::read(&self.home.path().join("job.sqlite"))
            .map_or(0, |results| results.samples.len())
    }
}

#[test]
fn a_job_of_slurm_that_comes_to_its_time_limit_is_queued_again_and_goes_on() {
    let Some(site) = Site::new() else { return };
    let job = site.submitted();
    await_some("some samples", || (site.samples() > 2).then_some(()));
    job.signal(Signal::USR1);
    let ended = job.end(Duration::from_mins(2));
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let requeued = fs::read_to_string(site.home.path().join("requeued")).unwrap_or_default();
    assert_eq!(requeued, "requeue 17\n", "{ended:?}");
    let before = site.samples();
    assert!(before > 2, "{ended:?}");
    let ended = site.submitted().end(Duration::from_mins(3));
    assert!(ended.has_answered(), "{ended:?}");
    assert!(site.samples() > before, "it went on: {ended:?}");
}

/// The shell script that a pod runs, with the places of this test.
fn script_of_pod(storage: &Path, records: &Path) -> String {
    let manifest = fs::read_to_string(contrib("kubernetes/recorders.yaml")).expect("it is there");
    let block = manifest.lines().skip_while(|line| line.trim() != "- |").skip(1);
    let indent = "              ";
    let lines: Vec<&str> = block.map_while(|line| line.strip_prefix(indent)).collect();
    let script = lines.join("\n");
    assert!(script.contains("/storage") && script.contains("/records"), "{script}");
    let place = |path: &Path| path.to_str().expect("a plain name").to_owned();
    script.replace("/storage", &place(storage)).replace("/records", &place(records))
}

#[test]
fn a_pod_records_the_instrument_of_its_index() {
    let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let storage = home.path().join("storage");
    fs::create_dir(&storage).expect("space");
    let script = script_of_pod(&storage, home.path())
        .replace("--plan none", "--plan none --duration '1 s' --keep 50MB --buffer 64MB");
    let script = script.replace("nilometer evaluate", &format!("{} evaluate", nilometer().display()));
    let pod = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-euc", script]).current_dir(home.path());
        command.env("JOB_COMPLETION_INDEX", "1").env("INSTRUMENTS", "none pilatus-2m another");
        Running::of(command).end(Duration::from_mins(3))
    };
    let ended = pod(&script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(home.path().join("pilatus-2m.sqlite").exists(), "{ended:?}");
    let again = pod(&script);
    assert!(
        again.code == Some(0) && again.stdout.contains("pilatus-2m"),
        "it has a record already: {again:?}"
    );
}
