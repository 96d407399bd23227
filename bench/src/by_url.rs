//! Bytes to a server and back by URL, beside the client's own program for copies: the processor time that each of them spends.
//! It runs where the server is reached, by `testbed/enter`; `NILOMETER_BENCH_URL` says where that is, and `NILOMETER_BENCH_FILES`
//! which set of files is copied, as WA105 did: `300x100 MB`, for example; without it one file of 1 GiB. One file has to fit into
//! memory twice.

use std::{path::Path, process::Command, sync::Arc};

use anyhow::{Context, bail};
use nilometer_campaign::workload::{
    Direction, Names, Order, SLOTS, Transfer, WorkerPart, WorkerPlace, Writing,
};
use nilometer_model::{Bytes, EngineKind, Nanos, Sample, TargetAddress, TargetUrl, UrlScheme};
use nilometer_storage::{
    Arena, Buffer, Clock, Drive, OpKind, Operation, ROOT, Tally, Target, Wait, engine::Options,
    target::run_id,
};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Quantity, Stop},
    measure,
    ours::{GIB, SEED},
    place,
};

/// As it is named on the command line.
pub(crate) const NAME: &str = "by-url";
const URL: &str = "NILOMETER_BENCH_URL";
const FILES: &str = "NILOMETER_BENCH_FILES";

const OURS: &str = "nilometer, by URL, recorded";
const FILE: &str = "n_ours";
const THEIRS: &str = "n_theirs";

/// Files of one size.
#[derive(Debug, Clone, Copy)]
struct FileSet {
    count: u32,
    size: Bytes,
}

impl FileSet {
    fn asked() -> anyhow::Result<Self> {
        let Ok(text) = std::env::var(FILES) else { return Ok(FileSet { count: 1, size: Bytes(1 << 30) }) };
        let wrong = || format!("{FILES}={text}: write how many and how large, as 300x100 MB");
        let (count, size) = text.split_once('x').with_context(wrong)?;
        let count = count.trim().parse().with_context(wrong)?;
        Ok(FileSet { count, size: size.trim().parse().with_context(wrong)? })
    }

    fn gib(self) -> f64 {
        f64::from(self.count) * self.size.0 as f64 / GIB
    }
}

/// The client's own program for copies, and transfers like its own.
#[derive(Debug, Clone, Copy)]
struct CopyProgram {
    name: &'static str,
    options: &'static [&'static str],
    block: usize,
    depth: u32,
}

const CURL: &[&str] =
    &["--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--config"];

const LED: &[&str] = &["--silent", "--show-error", "--fail", "--location"];

/// xrdcp has four chunks of 8 MiB under way; nfs-cp as much as the server takes at once, one after the other.
fn copy_program(url: &TargetUrl) -> anyhow::Result<CopyProgram> {
    match url.scheme {
        UrlScheme::XRootD => {
            Ok(CopyProgram { name: "xrdcp", options: &["-f", "-N", "-s"], block: 8 << 20, depth: 4 })
        }
        UrlScheme::Nfs => Ok(CopyProgram { name: "nfs-cp", options: &[], block: 1 << 20, depth: 1 }),
        // Of an object's own programs none is packaged that is not written in Python. This one puts it at once.
        UrlScheme::S3 => Ok(CopyProgram { name: "curl", options: CURL, block: 8 << 20, depth: 1 }),
        // Hadoop's own program starts a Java machine for each copy.
        UrlScheme::Hdfs => Ok(CopyProgram { name: "curl", options: LED, block: 8 << 20, depth: 1 }),
        UrlScheme::XRootDEncrypted => bail!("{url}: there is nothing to compare with"),
    }
}

/// Compares, prints what is found, and says whether the bounds are met.
pub(crate) fn check(stop: &Stop) -> anyhow::Result<bool> {
    let url = std::env::var(URL);
    let url = url.with_context(|| format!("{URL}: say which server, and run this by testbed/enter"))?;
    let address: TargetAddress = url.parse()?;
    let url = address.url().context("it is no URL")?.clone();
    let program = copy_program(&url)?;
    let description = nilometer_remote::describe(&address)?;
    let id = run_id().0;
    let target = nilometer_remote::open(&description, id, None)?;
    let run = nilometer_remote::run_handle(&description, id).context("a URL has one")?;
    let there: TargetUrl = run.0.parse()?;
    let memory = tempfile::tempdir_in("/dev/shm")?;
    let source = memory.path().join("source");
    let files = FileSet::asked()?;
    let mut bytes = vec![0; files.size.0 as usize];
    SEED.stream().fill(&mut bytes);
    std::fs::write(&source, bytes)?;
    let clock = Clock::start();
    let ours = Copies { target, program, clock, files };
    let contest = Contest {
        title: format!(
            "{NAME}: {} x {} to {url} and back, in blocks of {}",
            files.count,
            files.size,
            Bytes(program.block as u64)
        ),
        quantity: Quantity::CpuPerGib,
        phases: &["write", "read"],
        rounds: 7,
        contestants: vec![
            Contestant::new(program.name, || ours.theirs(&there, &source)),
            Contestant::new(OURS, || ours.both()),
        ],
        bounds: vec![Bound { subject: OURS, peer: program.name, limit: Limit::Times(1.15) }],
    };
    let outcome = contest.run(stop)?;
    println!("{outcome}");
    Ok(outcome.is_met())
}

fn variable(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set"))
}

/// Who asks, in a file: arguments are seen by everybody.
fn keys() -> anyhow::Result<String> {
    let [id, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(variable);
    Ok(format!("user = \"{}:{}\"\nheader = \"x-amz-content-sha256: UNSIGNED-PAYLOAD\"\n", id?, secret?))
}

/// Which way a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyDirection {
    There,
    Back,
}

/// Files in a run's directory, by us and by the client's own program.
struct Copies {
    target: Arc<dyn Target>,
    program: CopyProgram,
    clock: Clock,
    files: FileSet,
}

impl Copies {
    fn options(&self) -> Options {
        Options { kind: EngineKind::Pool, depth: self.program.depth, slots: SLOTS, clock: self.clock }
    }

    fn both(&self) -> anyhow::Result<Vec<Cost>> {
        place::touch_memory(self.files.size.0 as usize);
        let write = self.transfer(Direction::Write(Writing::NEW))?;
        let read = self.transfer(Direction::Read)?;
        for name in self.names().all() {
            self.remove(&name)?;
        }
        Ok(vec![write, read])
    }

    fn names(&self) -> Names {
        Names::new(FILE.into(), self.files.count)
    }

    /// The whole process of each file, its start included, from memory and into memory.
    fn theirs(&self, there: &TargetUrl, source: &Path) -> anyhow::Result<Vec<Cost>> {
        place::touch_memory(self.files.size.0 as usize);
        let names: Vec<_> = Names::new(THEIRS.into(), self.files.count).all().collect();
        let back = source.with_file_name("back");
        let mut costs = Vec::new();
        for direction in [CopyDirection::There, CopyDirection::Back] {
            let mut all = Cost { amount: self.files.gib(), cpu: 0.0, wall: 0.0 };
            for name in &names {
                let mut command = self.copy(&there.join(name), source, direction)?;
                let (cost, _) = measure::child(1.0, &mut command)?;
                all.cpu += cost.cpu;
                all.wall += cost.wall;
                // Not every program writes over what is there.
                std::fs::remove_file(&back).or_else(|error| match direction {
                    CopyDirection::There => Ok(()),
                    CopyDirection::Back => Err(error),
                })?;
            }
            costs.push(all);
        }
        for name in &names {
            self.remove(name)?;
        }
        Ok(costs)
    }

    /// The copy of one file.
    fn copy(&self, there: &TargetUrl, source: &Path, direction: CopyDirection) -> anyhow::Result<Command> {
        let CopyProgram { name, options, .. } = self.program;
        let back = source.with_file_name("back");
        let mut command = Command::new(name);
        command.args(options);
        let page = match there.scheme {
            UrlScheme::S3 => {
                let config = source.with_file_name("config");
                std::fs::write(&config, keys()?)?;
                command.arg(&config);
                format!("{}/{}{}", variable("AWS_ENDPOINT_URL")?, there.authority, there.path)
            }
            UrlScheme::Hdfs => {
                let operation = match direction {
                    CopyDirection::There => "CREATE&overwrite=false",
                    CopyDirection::Back => "OPEN",
                };
                let user = std::env::var("HADOOP_USER_NAME").unwrap_or_else(|_| "root".into());
                let TargetUrl { authority, path, .. } = there;
                format!("http://{authority}/webhdfs/v1{path}?op={operation}&user.name={user}")
            }
            _ => {
                match direction {
                    CopyDirection::There => command.arg(source).arg(there.to_string()),
                    CopyDirection::Back => command.arg(there.to_string()).arg(&back),
                };
                return Ok(command);
            }
        };
        match direction {
            CopyDirection::There => command.arg("--upload-file").arg(source).arg(page),
            CopyDirection::Back => command.arg("--output").arg(&back).arg(page),
        };
        Ok(command)
    }

    fn remove(&self, name: &str) -> anyhow::Result<()> {
        let mut engine = self.target.engine(&self.options())?;
        let unlink = Operation::named(OpKind::Unlink, ROOT, ROOT, name.as_bytes(), Buffer::alone(64));
        let mut done = Vec::new();
        engine.submit(unlink, Nanos(0));
        while done.is_empty() {
            engine.reap(Wait::ForOne, &mut done);
        }
        Ok(())
    }

    /// With the engine made and its memory filled before, as in a phase of a campaign.
    fn transfer(&self, direction: Direction) -> anyhow::Result<Cost> {
        let block = self.program.block;
        let order = Order::sequential(self.files.size, Bytes(block as u64));
        let mut engine = self.target.engine(&self.options())?;
        let (arena, mut buffers) = Arena::shared_out(self.program.depth as usize, block);
        for buffer in &mut buffers {
            SEED.stream().fill(buffer);
        }
        engine.register(&arena)?;
        let part = WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers);
        let mut workload = Transfer::new(self.names(), order, direction, part);
        let start = self.clock.now();
        let mut tally = Tally::new(start);
        let cost = measure::here(self.files.gib(), || {
            Drive::new(&mut workload, engine.as_mut()).run(|completion| tally.observe(completion));
            Ok(())
        })?;
        let mut sample = Sample::new(start);
        tally.add_to(&mut sample);
        anyhow::ensure!(sample.errors.is_empty(), "operations failed: {:?}", sample.errors);
        Ok(cost)
    }
}
