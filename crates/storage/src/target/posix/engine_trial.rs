//! Tries `io_uring` against `pool` in a new run directory, before anything is recorded there. On some network file
//! systems the kernel carries out an operation of a ring by a detour that is slow, or that fails: SMB of Linux 6.1
//! takes 8 MB/s through `io_uring` where `pool` writes 180 MB/s, and some writes end in EINTR or EIO.
//!
//! Each round writes the same blocks at once through one engine, and engines take turns. The fastest round of each
//! counts: other work on the machine can only slow a round down.

use nilometer_model::{Bytes, EngineKind, EngineTrial, Nanos, TriedEngine};

use super::run_directory::RunDirectory;
use crate::{
    Arena, Buffer, Clock, Engine, Operation, ROOT, Wait,
    engine::{EngineError, Options, on_directory},
    operation::{OpKind, Open, Slot},
};

/// Bytes of an operation: SMB and NFS write as much at once.
const BLOCK: usize = 256 << 10;
/// Operations in flight, as in a recording.
const DEPTH: u32 = 4;
/// The most rounds of an engine.
const ROUNDS: u32 = 5;
/// An engine that has spent this time gets no further round.
const ENOUGH: Nanos = Nanos::from_millis(200);
/// An engine that takes longer for a round has failed.
const ROUND_MAX: Nanos = Nanos::from_millis(3000);

const FILE: Slot = Slot(1);

/// Tries both engines in a run directory. `direct` chooses `O_DIRECT`.
pub(super) fn try_engines(run: &RunDirectory, direct: bool) -> EngineTrial {
    let clock = Clock::start();
    tried_by(direct, |kind| made(run, &Options { kind, depth: DEPTH, slots: FILE.0 + 1, clock }))
}

/// Tries the engines that `make` returns.
fn tried_by(direct: bool, make: impl Fn(EngineKind) -> Result<Box<dyn Engine>, TriedEngine>) -> EngineTrial {
    let [mut io_uring, mut pool] =
        [EngineKind::IoUring, EngineKind::Pool].map(|kind| Contender::new(make(kind), kind, direct));
    for _ in 0..ROUNDS {
        pool.round();
        io_uring.round();
    }
    let round = Bytes(u64::from(DEPTH) * BLOCK as u64);
    EngineTrial { round, io_uring: io_uring.tried(), pool: pool.tried() }
}

/// An engine with a file and memory of its own.
struct Contender {
    /// The engine that can go on, or its failure.
    engine: Result<Box<dyn Engine>, TriedEngine>,
    buffers: Vec<Buffer>,
    rounds: u32,
    fastest: Nanos,
    spent: Nanos,
}

impl Contender {
    /// Creates the file of this engine, and registers its memory.
    fn new(engine: Result<Box<dyn Engine>, TriedEngine>, kind: EngineKind, direct: bool) -> Self {
        let (arena, mut buffers) = Arena::shared_out(DEPTH as usize, BLOCK);
        // Some servers do not store zeros.
        for buffer in &mut buffers {
            buffer.fill(0x5a);
        }
        let name = format!("n_engine_{}", kind.name());
        let mut contender = Contender { engine, buffers, rounds: 0, fastest: Nanos::MAX, spent: Nanos(0) };
        if let Ok(engine) = &mut contender.engine {
            // Without the right to lock memory the engine is only slower.
            engine.register(&arena).ok();
            let open = OpKind::Open(Open::CREATE.direct_if(direct));
            let open = Operation::named(open, ROOT, FILE, name.as_bytes(), Buffer::alone(512));
            if let Err(why) = together(engine.as_mut(), vec![open]) {
                contender.engine = Err(TriedEngine::Failed(why));
            }
        }
        contender
    }

    /// Writes all blocks once, if the engine can go on and has time left.
    fn round(&mut self) {
        let Ok(engine) = &mut self.engine else { return };
        if self.spent > ENOUGH {
            return;
        }
        let begin = engine.tick();
        let block = |(index, buffer)| Operation::write(FILE, index * BLOCK as u64, BLOCK as u32, buffer);
        let writes = (0..).zip(self.buffers.drain(..)).map(block).collect();
        match together(engine.as_mut(), writes) {
            Ok(buffers) => {
                let time = engine.tick().since(begin);
                self.buffers = buffers;
                self.fastest = self.fastest.min(time);
                self.spent += time;
                self.rounds += 1;
            }
            Err(why) => self.engine = Err(TriedEngine::Failed(why)),
        }
    }

    fn tried(self) -> TriedEngine {
        let Contender { rounds, fastest, .. } = self;
        self.engine.err().unwrap_or(TriedEngine::Wrote { rounds, fastest })
    }
}

fn made(run: &RunDirectory, options: &Options) -> Result<Box<dyn Engine>, TriedEngine> {
    let root = run.root().try_clone_to_owned().map_err(|error| TriedEngine::Failed(error.to_string()))?;
    on_directory(root, options).map_err(|error| match error {
        EngineError::NotPermitted { source, .. } => TriedEngine::NotPermitted(source.to_string()),
        error => TriedEngine::Failed(error.to_string()),
    })
}

/// Carries out operations at the same time, as many as the engine's depth at most, and returns their buffers. An
/// error says which of them failed, and how.
fn together(engine: &mut dyn Engine, operations: Vec<Operation>) -> Result<Vec<Buffer>, String> {
    let count = operations.len();
    let begin = engine.tick();
    for operation in operations {
        engine.submit(operation, begin);
    }
    let mut done = Vec::new();
    while done.len() < count {
        engine.reap(Wait::Until(begin + ROUND_MAX), &mut done);
        if done.len() < count && engine.tick() >= begin + ROUND_MAX {
            return Err(format!("no answer for {ROUND_MAX}"));
        }
    }
    let mut buffers = Vec::new();
    for completion in done {
        let operation = completion.operation;
        match completion.result {
            Ok(moved) if operation.kind.is_data() && moved < operation.length => {
                return Err(format!("a write of {moved} instead of {} bytes", operation.length));
            }
            Ok(_) => buffers.push(operation.buffer),
            Err(errno) => return Err(errno.to_string()),
        }
    }
    Ok(buffers)
}

#[cfg(test)]
mod tests {
    use nilometer_model::Seed;

    use super::*;
    use crate::{
        Errno,
        testing::wrap::{FaultEffect, Faulty, Rule, When},
    };

    /// A trial in which every write through `io_uring` has this fault.
    fn trial_with(effect: Option<FaultEffect>) -> EngineTrial {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = RunDirectory::create(directory.path(), 1).expect("a run directory");
        let clock = Clock::start();
        let trial = tried_by(false, |kind| {
            let engine = made(&run, &Options { kind, depth: DEPTH, slots: FILE.0 + 1, clock })?;
            let effect = effect.filter(|_| kind == EngineKind::IoUring);
            let rule = effect.map(|effect| Rule { on: Some(OpKind::Write), when: When::Every(1), effect });
            Ok(Box::new(Faulty::new(engine, rule.as_slice(), Seed(1))))
        });
        run.remove().expect("it removes what the trial made");
        assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 0);
        trial
    }

    #[test]
    fn both_engines_write_and_their_figures_are_kept() {
        let EngineTrial { round, io_uring, pool } = trial_with(None);
        assert_eq!(round, Bytes(1 << 20));
        for tried in [io_uring, pool] {
            let TriedEngine::Wrote { rounds, fastest } = tried else { panic!("{tried:?}") };
            assert!((1..=ROUNDS).contains(&rounds) && fastest > Nanos(0), "{rounds} {fastest}");
        }
    }

    #[test]
    fn an_engine_that_fails_or_is_far_slower_is_not_chosen() {
        let failed = trial_with(Some(FaultEffect::Error(Errno::EIO)));
        assert_eq!(failed.io_uring, TriedEngine::Failed("EIO (Input/output error)".into()));
        assert_eq!(failed.suited(), EngineKind::Pool);
        let short = trial_with(Some(FaultEffect::Short));
        assert_eq!(short.io_uring, TriedEngine::Failed("a write of 131072 instead of 262144 bytes".into()));
        let slow = trial_with(Some(FaultEffect::Delay(Nanos::from_millis(500))));
        assert_eq!(slow.suited(), EngineKind::Pool, "{slow}");
        let TriedEngine::Wrote { rounds, .. } = slow.io_uring else { panic!("{slow}") };
        assert_eq!(rounds, 1, "a slow engine gets no further round");
    }
}
