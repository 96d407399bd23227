//! Nilometer as a contestant: a workload on a target's engine through `Drive`, every operation recorded in a `Tally`,
//! as a worker of a campaign does it.

use std::{path::Path, sync::Barrier};

use anyhow::Context;
use nilometer_campaign::workload::{Direction, Order, Transfer, WorkerPart, WorkerPlace, Writing};
use nilometer_model::{Bytes, EngineKind, Nanos, Sample, Seed};
use nilometer_storage::{
    Arena, Buffer, Clock, Counted, Drive, Engine, Tally, Target, Workload,
    engine::Options,
    target::{Posix, probe},
};

use crate::{contest::Cost, measure};

/// The root of all random decisions of the bench.
pub(crate) const SEED: Seed = Seed(20_261_121);

/// A run directory of Nilometer's, removed when dropped.
#[derive(Debug)]
pub(crate) struct Ours {
    target: Posix,
    clock: Clock,
}

/// How a workload is driven.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driving {
    pub(crate) engine: EngineKind,
    pub(crate) depth: u32,
    /// Bytes of a buffer.
    pub(crate) block: usize,
}

/// Workers that are driven at once, one system call at a time each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crew {
    pub(crate) workers: u32,
    /// What is an operation.
    pub(crate) counted: Counted,
    /// Bytes of a worker's buffer.
    pub(crate) block: usize,
}

/// Makes a worker's workload with its memory.
pub(crate) type Make<'a> = dyn Fn(u32, Vec<Buffer>) -> Box<dyn Workload> + Sync + 'a;

impl Driving {
    /// One system call at a time.
    pub(crate) const fn sync(block: usize) -> Self {
        Driving { engine: EngineKind::Sync, depth: 1, block }
    }
}

impl Ours {
    /// In the directory, under a number that is not in use there.
    pub(crate) fn at(path: &Path, number: u64) -> anyhow::Result<Self> {
        Ok(Ours { target: Posix::create(probe(path)?, number)?, clock: Clock::start() })
    }

    /// Where its files are. A contestant's names begin with `n_`, as a run's own.
    pub(crate) fn directory(&self) -> &Path {
        self.target.directory()
    }

    /// The file system's type.
    pub(crate) fn file_system(&self) -> &str {
        &self.target.description().file_system
    }

    /// Drives the workload made with the buffers, and fails if an operation did. The engine and its memory are there
    /// before the measurement begins; opening and closing files belongs to it.
    pub(crate) fn drive<W: Workload>(
        &self,
        amount: f64,
        driving: Driving,
        make: impl FnOnce(Vec<Buffer>) -> W,
    ) -> anyhow::Result<(Cost, W)> {
        let Driving { engine: kind, depth, block } = driving;
        let options = Options { kind, depth, slots: nilometer_campaign::workload::SLOTS, clock: self.clock };
        let mut engine = self.target.engine(&options)?;
        let (arena, mut buffers) = Arena::shared_out(depth as usize, block);
        for buffer in &mut buffers {
            SEED.stream().fill(buffer);
        }
        engine.register(&arena)?;
        let mut workload = make(buffers);
        let start = self.clock.now();
        let mut tally = Tally::new(start);
        let cost = measure::here(amount, || {
            Drive::new(&mut workload, engine.as_mut()).run(|completion| tally.observe(completion));
            Ok(())
        })?;
        let mut sample = Sample::new(start);
        tally.add_to(&mut sample);
        anyhow::ensure!(sample.errors.is_empty(), "operations failed: {:?}", sample.errors);
        Ok((cost, workload))
    }

    /// Drives a crew's workloads at once, each in a thread of its own, as a phase of a campaign does, and fails if an
    /// operation did. Engines and memory are there before the measurement begins. What all of them did, and its cost.
    pub(crate) fn drive_all(
        &self,
        amount: f64,
        crew: &Crew,
        make: &Make<'_>,
    ) -> anyhow::Result<(Cost, Sample)> {
        let (begin, end) = (Barrier::new(crew.workers as usize + 1), Barrier::new(crew.workers as usize + 1));
        let mut sample = Sample::new(Nanos(0));
        let cost = std::thread::scope(|scope| {
            let work = |worker| {
                let ready = self.ready(crew);
                begin.wait();
                let tally = ready.map(|(engine, buffers)| self.work(crew, engine, make(worker, buffers)));
                end.wait();
                tally
            };
            let threads: Vec<_> = (0..crew.workers).map(|worker| scope.spawn(move || work(worker))).collect();
            let cost = measure::here(amount, || {
                begin.wait();
                end.wait();
                Ok(())
            });
            for thread in threads {
                thread.join().expect("it does not panic")?.add_to(&mut sample);
            }
            cost
        })?;
        anyhow::ensure!(sample.errors.is_empty(), "operations failed: {:?}", sample.errors);
        Ok((cost, sample))
    }

    fn ready(&self, crew: &Crew) -> anyhow::Result<(Box<dyn Engine>, Vec<Buffer>)> {
        let slots = nilometer_campaign::workload::SLOTS;
        let options = Options { kind: EngineKind::Sync, depth: 1, slots, clock: self.clock };
        Ok((self.target.engine(&options)?, Arena::shared_out(1, crew.block).1))
    }

    fn work(&self, crew: &Crew, mut engine: Box<dyn Engine>, mut workload: Box<dyn Workload>) -> Tally {
        let mut tally = Tally::counting(crew.counted, self.clock.now());
        Drive::new(workload.as_mut(), engine.as_mut()).run(|completion| tally.observe(completion));
        tally
    }

    /// Moves the named file and checks that no operation failed: the cost of a GiB in sequence, of an operation at random.
    pub(crate) fn transfer(
        &self,
        name: &str,
        order: Order,
        direction: Direction,
        how: (Driving, bool),
    ) -> anyhow::Result<Cost> {
        let (driving, direct) = how;
        let amount = if order.is_random() { order.count() as f64 } else { order.bytes() as f64 / GIB };
        let part =
            |buffers| WorkerPart { direct, ..WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers) };
        let make = |buffers| Transfer::new(name, order, direction, part(buffers));
        self.drive(amount, driving, make).map(|(cost, _)| cost).with_context(|| format!("moving {name}"))
    }

    /// Writes a durable file of random blocks.
    pub(crate) fn lay_out(&self, name: &str, size: u64) -> anyhow::Result<()> {
        let order = Order::sequential(Bytes(size), Bytes(MIB as u64));
        let how = (Driving::sync(MIB), false);
        self.transfer(name, order, Direction::Write(Writing::NEW), how).map(drop)
    }

    /// Drops the file from the page cache, and proves that it is gone.
    pub(crate) fn chill(&self, name: &str) -> anyhow::Result<()> {
        let coldness = self.target.chill(name)?;
        anyhow::ensure!(coldness == nilometer_model::Coldness::Proved, "{name} stays in the page cache");
        Ok(())
    }
}

/// Bytes of a MiB.
pub(crate) const MIB: usize = 1 << 20;
/// Bytes of a GiB.
pub(crate) const GIB: f64 = (1_u64 << 30) as f64;
