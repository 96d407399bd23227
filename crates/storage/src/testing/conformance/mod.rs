//! The rules for every engine and every workload. Each implementation and each wrapper runs these suites in
//! its tests. The message of a failed assertion describes the fault.

mod capable;
mod checked;
mod files;
mod names;
mod target;
mod waits;
mod whole;
mod workload;

pub use target::target_suite;
pub use workload::{Demands, workload_suite};

use nilometer_model::{Capabilities, Capability};

use crate::engine::Engine;
use checked::Checked;

/// Makes an engine with this depth and number of slots on an empty directory of its own. An engine without
/// that depth may have a smaller one, never a greater.
pub type MakeEngine<'a> = dyn FnMut(u32, u32) -> Box<dyn Engine> + 'a;

/// Checks an engine of a target with these capabilities, at the smallest legal depth and number of slots, and
/// at more, in real or virtual time. The engine must refuse anything that the target can't do.
pub fn engine_suite(capabilities: &Capabilities, make: &mut MakeEngine<'_>) {
    let lacking = capabilities.lacking(&Capabilities::all());
    for depth in [1, 2, 8] {
        let files = files::ALL.into_iter().map(|check| (2, check));
        let names = names::ALL.into_iter().map(|check| (3, check));
        let waits = waits::ALL.into_iter().map(|check| (2, check));
        let whole = whole::ALL.into_iter().map(|check| (3, check));
        for (slots, (check, needs)) in files.chain(names).chain(waits).chain(whole) {
            if needs.iter().all(|&capability| capabilities.has(capability)) {
                check(&mut checked(make, depth, slots));
            }
        }
        capable::refuses(&mut checked(make, depth, 2), &lacking);
        if lacking.contains(&Capability::Keep) {
            capable::takes_everything(&mut checked(make, depth, 2));
        }
    }
}

fn checked(make: &mut MakeEngine<'_>, depth: u32, slots: u32) -> Checked {
    let engine = make(depth, slots);
    let its = engine.depth();
    assert!((1..=depth as usize).contains(&its), "the engine has depth {its}, not 1 to {depth}");
    Checked::new(engine)
}

/// Checks that no symlink leads an engine out of its directory. `make` returns an engine on `directory`,
/// which is empty. The suite makes a file beside it and removes it.
pub fn containment_suite(directory: &std::path::Path, make: &mut MakeEngine<'_>) {
    names::containment(directory, &mut Checked::new(make(1, 2)));
}

/// Checks that an engine only reads the files of the directory that copies come from. `make` returns an
/// engine on an empty directory, whose source holds one file, `n_f`, with the bytes `source`.
pub fn source_suite(make: &mut MakeEngine<'_>) {
    for depth in [1, 8] {
        names::source(&mut Checked::new(make(depth, 2)));
    }
}

#[cfg(test)]
mod tests {
    use std::{os::fd::OwnedFd, path::Path, sync::Arc};

    use nilometer_model::{ByteRate, Bytes, EngineKind, Frequency, Nanos, Seed};

    use super::*;
    use crate::{
        Buffer, Clock, Errno, OpKind, Open, Operation, ROOT, Slot, Wait,
        clock::VirtualClock,
        engine::{self, Options, Reach},
        target::{NullTarget, Posix, Target, probe},
        testing::wrap::{Cap, FaultEffect, Faulty, Metered, Rule, Throttled, When},
        testing::{Cost, Device, Memory, Simulated},
    };

    #[test]
    fn every_target_is_a_proper_one() {
        target_suite(&Memory::new(Bytes(1 << 20)));
        target_suite(&NullTarget::new());
        target_suite(&Simulated::new(Device::default(), VirtualClock::default()));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let description = probe(directory.path()).expect("it can be described");
        target_suite(&Posix::create(description, 1).expect("a run directory can be made"));
        let left = std::fs::read_dir(directory.path()).expect("still there").count();
        assert_eq!(left, 0, "the run directory is gone");
    }

    fn options(slots: u32) -> Options {
        Options { kind: EngineKind::Sync, depth: 1, slots, clock: Clock::start() }
    }

    /// Returns an engine on a real directory.
    fn on(directory: &Path, options: &Options) -> Box<dyn Engine> {
        let root = OwnedFd::from(std::fs::File::open(directory).expect("the directory can be opened"));
        engine::on_directory(root, options).expect("permitted here")
    }

    /// Runs the suite for an engine on real directories, in a wrapper.
    fn real(kind: EngineKind, wrap: &dyn Fn(Box<dyn Engine>) -> Box<dyn Engine>) {
        let mut directories = Vec::new();
        engine_suite(&Capabilities::all(), &mut |depth, slots| {
            directories.push(tempfile::tempdir().expect("a temporary directory can be made"));
            let directory = directories.last().expect("just made").path();
            wrap(on(directory, &Options { kind, depth, ..options(slots) }))
        });
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        containment_suite(directory.path(), &mut |depth, slots| {
            wrap(on(directory.path(), &Options { kind, depth, ..options(slots) }))
        });
    }

    /// Runs the suite for an engine on a real directory, with a source that holds a file.
    fn with_source(kind: EngineKind) {
        let mut directories = Vec::new();
        source_suite(&mut |depth, slots| {
            let [root, source] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
            std::fs::write(source.path().join("n_f"), b"source").expect("space");
            let opened = |directory: &tempfile::TempDir| {
                OwnedFd::from(std::fs::File::open(directory.path()).expect("it can be opened"))
            };
            let reach = Reach { root: opened(&root), source: Some(opened(&source)) };
            directories.extend([root, source]);
            let engine = engine::on_directory(reach, &Options { kind, depth, ..options(slots) });
            engine.expect("permitted here")
        });
        for source in directories.iter().skip(1).step_by(2) {
            let names: Vec<_> = std::fs::read_dir(source.path()).expect("it is there").collect();
            assert_eq!(names.len(), 1, "the source was changed: {names:?}");
            assert_eq!(std::fs::read(source.path().join("n_f")).expect("it is there"), b"source");
        }
    }

    #[test]
    fn a_source_can_only_be_read() {
        for kind in [EngineKind::Sync, EngineKind::IoUring, EngineKind::Pool] {
            with_source(kind);
        }
        source_suite(&mut |depth, slots| {
            let target = Simulated::new(Device::default(), VirtualClock::default());
            with_stand_in(&mut target.attach(1, 3));
            Box::new(target.attach(depth as usize, slots))
        });
        source_suite(&mut |_, slots| {
            let target = Memory::new(Bytes(1 << 20));
            with_stand_in(target.engine(&options(3)).expect("memory works everywhere").as_mut());
            target.engine(&options(slots)).expect("memory works everywhere")
        });
    }

    /// A tree in memory holds its source within itself.
    fn with_stand_in(engine: &mut dyn Engine) {
        let buffer = || Buffer::alone(16);
        let (dir, file) = (Slot(1), Slot(2));
        let data = |mut buffer: Buffer| {
            buffer[..6].copy_from_slice(b"source");
            Operation::write(file, 0, 6, buffer)
        };
        for operation in [
            Operation::named(OpKind::MakeDir, ROOT, ROOT, b"n_source", buffer()),
            Operation::named(OpKind::OpenDir, ROOT, dir, b"n_source", buffer()),
            Operation::named(OpKind::Open(Open::CREATE), dir, file, b"n_f", buffer()),
            data(buffer()),
        ] {
            let mut done = Vec::new();
            engine.submit(operation, engine.now());
            engine.reap(Wait::ForOne, &mut done);
            assert!(done.iter().all(|completion| completion.result.is_ok()), "{done:?}");
        }
    }

    #[test]
    fn sync() {
        real(EngineKind::Sync, &|engine| engine);
    }

    #[test]
    fn io_uring() {
        real(EngineKind::IoUring, &|engine| engine);
    }

    #[test]
    fn pool() {
        real(EngineKind::Pool, &|engine| engine);
    }

    #[test]
    fn faulty_without_a_rule() {
        for kind in [EngineKind::Sync, EngineKind::IoUring] {
            real(kind, &|engine| Box::new(Faulty::new(engine, &[], Seed(1))));
        }
    }

    #[test]
    fn metered() {
        for kind in [EngineKind::Sync, EngineKind::IoUring] {
            real(kind, &|engine| Box::new(Metered::new(engine, Arc::default())));
        }
    }

    #[test]
    fn throttled() {
        let cap = Cap { bytes: Some(ByteRate(1e9)), operations: Some(Frequency(1e5)) };
        for kind in [EngineKind::Sync, EngineKind::IoUring] {
            real(kind, &|engine| Box::new(Throttled::new(engine, cap)));
        }
        engine_suite(&Capabilities::all(), &mut |depth, slots| {
            let target = Simulated::new(Device::default(), VirtualClock::default());
            Box::new(Throttled::new(Box::new(target.attach(depth as usize, slots)), cap))
        });
    }

    #[test]
    fn memory() {
        let new = || Memory::new(Bytes(1 << 20));
        engine_suite(&Capabilities::all(), &mut |_, slots| {
            new().engine(&options(slots)).expect("memory works everywhere")
        });
    }

    #[test]
    fn null() {
        let target = NullTarget::new();
        let capabilities = &target.description().capabilities;
        engine_suite(capabilities, &mut |depth, slots| {
            target.engine(&Options { depth, ..options(slots) }).expect("nothing can fail")
        });
    }

    /// A target that can't rename: its engine must report that, or the suite fails it.
    #[test]
    fn what_a_target_cannot_do_is_refused_as_such() {
        let capabilities = Capabilities::all().without(&[Capability::Rename]);
        let suite = |errno: Errno| {
            let effect = FaultEffect::Error(errno);
            let rule = Rule { on: Some(OpKind::Rename), when: When::Every(1), effect };
            engine_suite(&capabilities, &mut |_, slots| {
                let engine = Memory::new(Bytes(1 << 20)).engine(&options(slots));
                Box::new(Faulty::new(engine.expect("memory works everywhere"), &[rule], Seed(1)))
            });
        };
        suite(Errno::EOPNOTSUPP);
        assert!(std::panic::catch_unwind(|| suite(Errno::EIO)).is_err(), "a fault is no refusal");
    }

    #[test]
    fn simulated() {
        let slow =
            Device { parallel: 3, ..Device::with_cost(Cost { base: Nanos(700), picoseconds_per_byte: 9 }) };
        let stalled = Device { stalls: vec![(Nanos(1000), Nanos(9_000_000))], ..slow.clone() };
        for device in [Device::default(), slow, stalled] {
            engine_suite(&Capabilities::all(), &mut |depth, slots| {
                let target = Simulated::new(device.clone(), VirtualClock::default());
                Box::new(target.attach(depth as usize, slots))
            });
        }
    }
}
