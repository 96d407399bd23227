//! How other threads end the ring's sleep: an eventfd that the ring watches. The engine arms it only before
//! it sleeps, and only if another thread holds a waker, so that reads and writes pay nothing for it.

use std::{
    cell::Cell,
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use io_uring::{opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};

use crate::engine::Wake;

/// The `user_data` of the watch.
pub(super) const TAG: u64 = u64::MAX;

/// The engine's side of the bell.
#[derive(Debug)]
pub(super) struct Bell {
    line: Arc<Line>,
    handed_out: Cell<bool>,
    armed: bool,
    rung: bool,
}

#[derive(Debug)]
struct Line(OwnedFd);

impl Wake for Line {
    fn wake(&self) {
        // This fails only if 2^64 - 2 wakes are pending, and then the bell has rung already.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let line = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { line: Arc::new(Line(line)), handed_out: Cell::new(false), armed: false, rung: false })
    }

    /// Returns the handle for other threads.
    pub(super) fn waker(&self) -> Arc<dyn Wake> {
        self.handed_out.set(true);
        self.line.clone()
    }

    /// Returns the watch to queue before a sleep, if one is needed. It uses no memory.
    pub(super) fn watch(&mut self) -> Option<squeue::Entry> {
        if self.armed || !self.handed_out.get() {
            return None;
        }
        self.armed = true;
        let line = types::Fd(self.line.0.as_raw_fd());
        Some(opcode::PollAdd::new(line, libc::POLLIN as u32).build().user_data(TAG))
    }

    /// Notes that the watch has ended.
    pub(super) fn ring(&mut self) {
        (self.armed, self.rung) = (false, true);
    }

    /// Returns true if there was a wake since the last call, and clears all wakes until now.
    pub(super) fn answer(&mut self) -> bool {
        if self.rung {
            // This fails only if a wake is still on its way: the next watch finds it.
            rustix::io::read(&self.line.0, &mut [0_u8; 8]).ok();
        }
        std::mem::take(&mut self.rung)
    }
}
