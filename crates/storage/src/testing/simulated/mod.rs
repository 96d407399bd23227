//! A storage system in virtual time that can lose its power. Every byte of a recorder passes an engine, so
//! tests can run thousands of crashes a second without a machine.
//!
//! Written data are visible at once but safe only after a sync, exactly as POSIX promises; names need a sync
//! of their directory. `O_DIRECT` is no exception, since devices have caches of their own.

mod device;
mod engine;
mod volume;

pub use device::{Cost, Device, Speed, WriteCache};
pub use engine::SimulatedEngine;
use volume::Volume;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use nilometer_model::{
    Bytes, Capabilities, Coldness, DeviceTraffic, DirectIo, EngineKind, FileSystemSpace, Seed,
    StorageProfile, TargetDescription,
};

use crate::{
    Target, TargetError,
    clock::VirtualClock,
    engine::{Engine, EngineError, Options},
};

/// A simulated storage system. Clones are the same system.
#[derive(Debug, Clone)]
pub struct Simulated {
    description: Arc<TargetDescription>,
    clock: VirtualClock,
    volume: Arc<Mutex<Volume>>,
}

impl Simulated {
    /// Creates an empty system on this device, with this clock.
    pub fn new(device: Device, clock: VirtualClock) -> Self {
        let description = Arc::new(describe(&device));
        Simulated { description, clock, volume: Arc::new(Mutex::new(Volume::new(device))) }
    }

    /// Creates an engine for `depth` operations in flight with `slots` for open files, including the run's
    /// directory.
    pub fn attach(&self, depth: usize, slots: u32) -> SimulatedEngine {
        SimulatedEngine::new(self.volume.clone(), self.clock.clone(), depth, slots)
    }

    /// Loses the power now. The seed decides the fate of unsynced changes: each write is kept, lost or torn
    /// at a sector, each change of a name kept or lost. Operations in flight count as unsynced. Existing
    /// engines fail with EIO from now on; a new one sees the survivors.
    pub fn crash(&self, seed: Seed) {
        self.volume().crash(seed, self.clock.now());
    }

    /// Kills the processes that use it now. No completed operation is lost, and the device finishes those it
    /// has begun. Existing engines fail with EIO from now on.
    pub fn kill(&self) {
        self.volume().kill(self.clock.now());
    }

    /// Returns another system with the same files, safe and unsafe, and a clock of its own, so that one
    /// history can be crashed many times. No file is open and no operation in flight there.
    #[must_use]
    pub fn copy(&self, clock: VirtualClock) -> Self {
        let mut volume = self.volume();
        volume.advance(self.clock.now());
        let copy = Arc::new(Mutex::new(volume.copy()));
        Simulated { description: self.description.clone(), clock, volume: copy }
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().expect("no engine panics while it holds the volume")
    }
}

impl Target for Simulated {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    /// Uses the target's own time, for any clock in the options.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let depth = if options.kind == EngineKind::Sync { 1 } else { options.depth.max(1) };
        Ok(Box::new(self.attach(depth as usize, options.slots)))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        let size = self.description.space.size;
        Ok(FileSystemSpace { free: Bytes(size.0 - self.volume().used()), ..self.description.space })
    }

    /// This machine has no cache before the device.
    fn chill(&self, _name: &str) -> Result<Coldness, TargetError> {
        Ok(Coldness::Proved)
    }

    fn traffic(&self) -> Option<DeviceTraffic> {
        let (read, written) = self.volume().traffic();
        Some(DeviceTraffic { read, written, ..DeviceTraffic::default() })
    }

    fn clear(&self) -> Result<(), TargetError> {
        self.volume().clear();
        Ok(())
    }

    fn remove(&self) -> Result<(), TargetError> {
        self.clear()
    }
}

fn describe(device: &Device) -> TargetDescription {
    let size = Bytes(device.capacity);
    TargetDescription {
        address: PathBuf::from("/simulated").into(),
        capabilities: Capabilities::all(),
        file_system: "simulated".into(),
        mount_point: PathBuf::from("/simulated"),
        source: "simulated".into(),
        options: String::new(),
        device: None,
        space: FileSystemSpace { size, free: size, used: None, inodes: None, free_inodes: None },
        writable: true,
        striping: None,
        stripe_size: None,
        direct: DirectIo::Real { alignment: device.alignment },
        profile: StorageProfile::default(),
        facts: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
