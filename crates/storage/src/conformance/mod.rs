//! What every engine and every workload must do, whoever makes them: each implementation and each wrapper runs these
//! suites in its tests. A failed assertion says what is wrong.

mod checked;
mod files;
mod names;
mod waits;
mod workload;

pub use workload::{Demands, workload_suite};

use crate::engine::Engine;
use checked::Checked;

/// Makes an engine with this depth and these slots on an empty directory of its own. A depth that it does not have may
/// come out smaller, never greater.
pub type MakeEngine<'a> = dyn FnMut(u32, u32) -> Box<dyn Engine> + 'a;

/// Checks an engine at the smallest legal depth and number of slots, and at more; in real or in virtual time.
///
/// Not for engines that do nothing on purpose.
pub fn engine_suite(make: &mut MakeEngine<'_>) {
    for depth in [1, 2, 8] {
        let files = files::ALL.into_iter().map(|check| (2, check));
        let names = names::ALL.into_iter().map(|check| (3, check));
        let waits = waits::ALL.into_iter().map(|check| (2, check));
        for (slots, check) in files.chain(names).chain(waits) {
            let engine = make(depth, slots);
            let its = engine.depth();
            assert!(
                (1..=depth as usize).contains(&its),
                "a depth of {depth} was asked for, and came out as {its}"
            );
            check(&mut Checked::new(engine));
        }
    }
}

/// Checks that no symlink leads an engine out of its directory. `make` gives an engine on `directory`, which is empty; a file is
/// made beside it and removed.
pub fn containment_suite(directory: &std::path::Path, make: &mut MakeEngine<'_>) {
    names::containment(directory, &mut Checked::new(make(1, 2)));
}

#[cfg(test)]
mod tests {
    use std::{os::fd::OwnedFd, path::Path, sync::Arc};

    use nilometer_model::{ByteRate, Bytes, Frequency, Nanos, Seed, plan::EngineKind};

    use super::*;
    use crate::{
        Clock,
        clock::VirtualClock,
        engine::{
            self, Options,
            wrap::{Cap, Faulty, Metered, Throttled},
        },
        target::{Cost, Device, Memory, Simulated, Target},
    };

    fn options(slots: u32) -> Options {
        Options { kind: EngineKind::Sync, depth: 1, slots, clock: Clock::start() }
    }

    /// An engine on a real directory.
    fn on(directory: &Path, options: &Options) -> Box<dyn Engine> {
        let root = OwnedFd::from(std::fs::File::open(directory).expect("the directory can be opened"));
        engine::on_directory(root, options).expect("permitted here")
    }

    /// The suite for an engine on real directories, in a wrapper.
    fn real(kind: EngineKind, wrap: &dyn Fn(Box<dyn Engine>) -> Box<dyn Engine>) {
        let mut directories = Vec::new();
        engine_suite(&mut |depth, slots| {
            directories.push(tempfile::tempdir().expect("a temporary directory can be made"));
            let directory = directories.last().expect("just made").path();
            wrap(on(directory, &Options { kind, depth, ..options(slots) }))
        });
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        containment_suite(directory.path(), &mut |depth, slots| {
            wrap(on(directory.path(), &Options { kind, depth, ..options(slots) }))
        });
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
        engine_suite(&mut |depth, slots| {
            let target = Simulated::new(Device::default(), VirtualClock::default());
            Box::new(Throttled::new(Box::new(target.attach(depth as usize, slots)), cap))
        });
    }

    #[test]
    fn memory() {
        let new = || Memory::new(Bytes(1 << 20));
        engine_suite(&mut |_, slots| new().engine(&options(slots)).expect("memory works everywhere"));
    }

    #[test]
    fn simulated() {
        let slow =
            Device { parallel: 3, ..Device::with_cost(Cost { base: Nanos(700), picoseconds_per_byte: 9 }) };
        let stalled = Device { stalls: vec![(Nanos(1000), Nanos(9_000_000))], ..slow.clone() };
        for device in [Device::default(), slow, stalled] {
            engine_suite(&mut |depth, slots| {
                let target = Simulated::new(device.clone(), VirtualClock::default());
                Box::new(target.attach(depth as usize, slots))
            });
        }
    }
}
