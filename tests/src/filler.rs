//! A program that takes all the space of a file system.

use std::{
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Takes every free byte on a file system, and those that others give back, until it is dropped. Its file
/// stays.
#[derive(Debug)]
pub struct Filler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filler {
    /// Writes into a file of its own in this directory. All space is taken when this returns.
    pub fn begin(directory: &Path) -> Self {
        let mut file = File::create(directory.join("filler")).expect("an inode");
        fill(&mut file);
        // Bytes in the cache may still find no room.
        drop(file.sync_all());
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                fill(&mut file);
                thread::sleep(Duration::from_millis(1));
            }
        });
        Filler { over, thread: Some(thread) }
    }
}

/// Writes large pieces as long as they fit, and then small ones.
fn fill(file: &mut File) {
    for size in [1 << 20, 64 << 10, 4096] {
        let piece = vec![1; size];
        while file.write_all(&piece).is_ok() {}
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}
