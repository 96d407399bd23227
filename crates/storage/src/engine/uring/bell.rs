//! How other threads break the ring's sleep: an eventfd that the ring watches, armed only when someone sleeps and only
//! if someone holds the other end, so that reads and writes pay nothing for it.

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

/// The engine's end.
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
        // Fails only if 2^64 - 2 wakes are pending: then it is rung.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let line = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { line: Arc::new(Line(line)), handed_out: Cell::new(false), armed: false, rung: false })
    }

    /// The end of another thread.
    pub(super) fn waker(&self) -> Arc<dyn Wake> {
        self.handed_out.set(true);
        self.line.clone()
    }

    /// The watch that has to be queued before a sleep, if any. It needs no memory.
    pub(super) fn watch(&mut self) -> Option<squeue::Entry> {
        if self.armed || !self.handed_out.get() {
            return None;
        }
        self.armed = true;
        let line = types::Fd(self.line.0.as_raw_fd());
        Some(opcode::PollAdd::new(line, libc::POLLIN as u32).build().user_data(TAG))
    }

    /// The watch has ended.
    pub(super) fn ring(&mut self) {
        (self.armed, self.rung) = (false, true);
    }

    /// Whether there was a wake since the last answer; all wakes until now are answered by it.
    pub(super) fn answer(&mut self) -> bool {
        if self.rung {
            // Fails only if a wake is still on its way: then the next watch finds it.
            rustix::io::read(&self.line.0, &mut [0_u8; 8]).ok();
        }
        std::mem::take(&mut self.rung)
    }
}
