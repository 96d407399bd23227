//! A storage system in virtual time that can lose its power: every byte of a recorder passes an engine, so thousands
//! of crashes a second are tested without a machine.
//!
//! What is written is visible at once and safe only after a sync, strictly as POSIX promises: names need a sync of
//! their directory. `O_DIRECT` is no exception, since devices have caches of their own.

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
    /// Empty, on this device, in this time.
    pub fn new(device: Device, clock: VirtualClock) -> Self {
        let description = Arc::new(describe(&device));
        Simulated { description, clock, volume: Arc::new(Mutex::new(Volume::new(device))) }
    }

    /// An engine for `depth` operations in flight with `slots` for open files, the run's directory included.
    pub fn attach(&self, depth: usize, slots: u32) -> SimulatedEngine {
        SimulatedEngine::new(self.volume.clone(), self.clock.clone(), depth, slots)
    }

    /// The power is lost now. Each write since the last sync of its file is kept, lost or torn at a sector, each change
    /// of a name since the last sync of its directory kept or lost, by the seed; so is what is in flight. The engines
    /// of before fail with EIO from now on; a new one sees what survived.
    pub fn crash(&self, seed: Seed) {
        self.volume().crash(seed, self.clock.now());
    }

    /// The processes that use it die now: nothing that was done is lost, and what the device has begun is done. The
    /// engines of before fail with EIO from now on.
    pub fn kill(&self) {
        self.volume().kill(self.clock.now());
    }

    /// Another system with the same files, safe and unsafe, in a time of its own: what was written once can be crashed
    /// many times. Nothing is open or in flight there.
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

    /// Time is the target's own, whatever clock the options name.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let depth = if options.kind == EngineKind::Sync { 1 } else { options.depth.max(1) };
        Ok(Box::new(self.attach(depth as usize, options.slots)))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        let size = self.description.space.size;
        Ok(FileSystemSpace { free: Bytes(size.0 - self.volume().used()), ..self.description.space })
    }

    /// There is no cache of this machine before the device.
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
