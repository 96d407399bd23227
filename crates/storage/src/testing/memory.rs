//! The memory of this machine as a target: the ceiling for any storage. One lock guards the tree, so it is
//! the ceiling of one worker at a time.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use nilometer_model::{Bytes, Capabilities, DirectIo, FileSystemSpace, StorageProfile, TargetDescription};

use super::{memory_engine::MemoryEngine, tree::Tree};
use crate::{
    Target, TargetError,
    engine::{Engine, EngineError, Options},
};

/// A target that keeps its files in memory.
#[derive(Debug)]
pub struct Memory {
    description: TargetDescription,
    tree: Arc<Mutex<Tree>>,
}

impl Memory {
    /// Creates an empty target that takes up to `capacity` of the process's memory for data.
    pub fn new(capacity: Bytes) -> Self {
        let space =
            FileSystemSpace { size: capacity, free: capacity, used: None, inodes: None, free_inodes: None };
        let description = TargetDescription {
            address: PathBuf::from("/memory").into(),
            capabilities: Capabilities::all(),
            file_system: "memory".into(),
            mount_point: PathBuf::from("/memory"),
            source: "memory".into(),
            options: String::new(),
            device: None,
            space,
            writable: true,
            striping: None,
            stripe_size: None,
            direct: DirectIo::Buffered,
            profile: StorageProfile::default(),
            facts: Vec::new(),
        };
        Memory { description, tree: Arc::new(Mutex::new(Tree::new(capacity.0, None))) }
    }
}

impl Target for Memory {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    /// Copies in the calling thread, for any engine in the options.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(MemoryEngine::new(self.tree.clone(), options.slots, options.clock)))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        let used = self.tree.lock().expect("no engine panics while it holds the tree").used();
        let size = self.description.space.size;
        Ok(FileSystemSpace { free: Bytes(size.0 - used), ..self.description.space })
    }

    fn clear(&self) -> Result<(), TargetError> {
        self.tree.lock().expect("no engine panics while it holds the tree").clear();
        Ok(())
    }

    fn remove(&self) -> Result<(), TargetError> {
        self.clear()
    }
}
