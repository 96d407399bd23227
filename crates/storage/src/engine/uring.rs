//! The `io_uring` engine: many operations in flight from one thread. Reads, writes and syncs go through the
//! kernel's ring. All other operations run at once in the calling thread, because the kernel would hand them
//! to worker threads at twice the cost.
//!
//! Slots are fixed files, registered arenas are fixed buffers. `submit` only queues. `reap` hands the queue
//! to the kernel and waits in one system call, and reads the clock once for all completions it finds.
//! Operations in flight together have no order. Only slots keep one: an open or a close acts on the
//! operations submitted after it. For example:
//!
//! ```text
//! call                       system calls   what happens
//! submit(read of slot 2)     -              queued
//! submit(sync of slot 2)     -              queued
//! reap(ForOne)               1              both are handed over, and one is waited for: the read comes back
//! submit(close of slot 2)    1 or more      waits for the sync: its worker thread may not have the file yet
//!                            2              closes the file, and empties the slot in the kernel's table
//! submit(open in slot 2)     2              opens another file at once, and enters it there
//! submit(write of slot 2)    -              queued: it will go to the new file
//! reap(Poll)                 1              hands the write over; the sync, the close and the open come back
//! ```
//!
//! Some file systems give an operation up because the ring itself interrupts them (EINTR of kernel SMB). The
//! engine then hands it over again, and after [`INTERRUPTIONS_MAX`] times makes the system call itself.
//!
//! If only the read had been in flight, the close would have run at once: the kernel takes hold of the file
//! of a read or write when it receives the entry.

mod bell;
mod flights;
mod memory;
mod setups;

use std::{io, os::fd::AsRawFd, sync::Arc};

use io_uring::{IoUring, opcode, squeue, types};
use nilometer_model::Nanos;

use self::{
    bell::Bell,
    flights::{Flight, Flights},
    memory::Memory,
    setups::{ring, setup},
};
use super::{
    Engine, EngineError, Wait, Wake,
    files::{Files, Reach},
    pause::AWAKE_BEFORE,
};
use crate::{
    Arena, Clock, Completion, Operation,
    operation::{Errno, OpKind, Slot},
};

/// How long a dropped engine waits for operations in flight before it leaves their memory to the kernel.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// How often the engine hands an operation over again that the kernel did not carry out.
const INTERRUPTIONS_MAX: u32 = 8;

/// An `io_uring` engine on the files of a directory. It belongs to the thread that made it.
pub struct Uring {
    // Dropped first: the kernel lets go before the memory and the files go.
    ring: IoUring,
    memory: Memory,
    flights: Flights,
    files: Files,
    /// How often each slot has changed its file.
    generations: Vec<u32>,
    /// Operations that the kernel gave up, by number, with its error. They wait for the end of its completions.
    interrupted: Vec<(u64, Errno)>,
    bell: Bell,
    /// Completions that `reap` has not returned yet.
    done: Vec<Completion>,
    clock: Clock,
    /// The last clock reading, of a completion or of `tick`.
    last: Nanos,
    depth: usize,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring")
            .field("depth", &self.depth)
            .field("flying", &self.flights.count())
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Uring {
    /// Creates an engine for the calling thread. `depth` is from 1 to 4096.
    pub(super) fn new(reach: Reach, slots: u32, depth: u32, clock: Clock) -> Result<Self, EngineError> {
        assert!((1..=4096).contains(&depth), "limits are checked where they are configured");
        // The extra entry is for the bell. The kernel's completion queue is twice as long, so it never
        // overflows.
        let ring = ring((depth + 1).next_power_of_two())?;
        // Register all slots now, as empty. Later only single entries change, which costs the kernel less.
        let mut table = vec![-1; slots.max(1) as usize];
        table[0] = reach.root.as_raw_fd();
        ring.submitter()
            .register_files(&table)
            .map_err(setup("make the table of files (raise `ulimit -n`)"))?;
        Ok(Uring {
            ring,
            memory: Memory::default(),
            flights: Flights::new(depth),
            files: Files::new(reach, slots),
            generations: vec![0; slots.max(1) as usize],
            interrupted: Vec::with_capacity(depth as usize),
            bell: Bell::new().map_err(setup("make an eventfd"))?,
            done: Vec::with_capacity(depth as usize),
            clock,
            last: clock.now(),
            depth: depth as usize,
        })
    }

    /// Queues a read, write or sync.
    #[inline]
    fn launch(&mut self, operation: Operation, due: Nanos) {
        let generation = self.generation(operation.file);
        let flight = Flight { operation, due, issued: self.last, generation, interruptions: 0 };
        let (number, operation) = self.flights.put(flight);
        let entry = entry(operation, &self.memory).user_data(u64::from(number));
        // SAFETY: the entry's memory belongs to the operation, which stays in `flights` until its completion,
        // and is never freed if the completion never comes.
        unsafe { self.push(&entry) }
    }

    /// Queues an entry. If there is no room, hands the queue to the kernel first.
    ///
    /// # Safety
    /// The entry's memory must stay valid, and untouched by anything else, until its completion.
    #[inline]
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: as the caller promises.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(0, None);
        }
    }

    /// Hands the queue to the kernel and waits for `want` completions, up to `limit`. May return early.
    fn enter(&mut self, want: usize, limit: Option<Nanos>) {
        if let Err(error) = self.try_enter(want, limit) {
            match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME) => {}
                // The kernel is short of memory: queued entries stay queued.
                Some(libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                _ => panic!(
                    "the kernel refuses a ring that it made itself, in the thread that made it: {error}"
                ),
            }
        }
    }

    /// Hands the queue to the kernel and waits, in one system call.
    fn try_enter(&self, want: usize, limit: Option<Nanos>) -> io::Result<usize> {
        let Some(limit) = limit else { return self.ring.submit_and_wait(want) };
        let limit = types::Timespec::from(limit.duration());
        self.ring.submitter().submit_with_args(want, &types::SubmitArgs::new().timespec(&limit))
    }

    /// Takes the kernel's completions, with one clock reading for all.
    fn collect(&mut self) {
        let completed = self.ring.completion();
        // Avoid a clock reading for nothing: a poll calls this in every turn.
        if completed.is_empty() {
            return;
        }
        let finished = self.clock.now();
        self.last = finished;
        for entry in completed {
            if entry.user_data() == bell::TAG {
                self.bell.ring();
                continue;
            }
            let result = u32::try_from(entry.result()).map_err(|_| Errno(-entry.result()));
            if let Err(errno @ (Errno::EINTR | Errno::EAGAIN)) = result {
                self.interrupted.push((entry.user_data(), errno));
                continue;
            }
            let Flight { operation, due, issued, .. } = self.flights.take(entry.user_data());
            self.done.push(Completion { operation, result, due, issued, finished });
        }
        while let Some((number, errno)) = self.interrupted.pop() {
            self.repeat(number, errno);
        }
    }

    /// Carries out an operation again that the kernel gave up without an effect. If its slot has another file by now,
    /// the caller gets the error instead.
    fn repeat(&mut self, number: u64, errno: Errno) {
        let flight = self.flights.get_mut(number);
        flight.interruptions += 1;
        let is_last = flight.interruptions > INTERRUPTIONS_MAX;
        let slot = flight.operation.file;
        let same_file = flight.generation == self.generations.get(slot.0 as usize).copied().unwrap_or(0);
        if same_file && !is_last {
            let entry = entry(&mut flight.operation, &self.memory).user_data(number);
            // SAFETY: as in `launch`: the operation is still in `flights`.
            return unsafe { self.push(&entry) };
        }
        let Flight { mut operation, due, issued, .. } = self.flights.take(number);
        let result = if same_file { self.files.execute(&mut operation) } else { Err(errno) };
        let finished = self.tick();
        self.done.push(Completion { operation, result, due, issued, finished });
    }

    /// How often the slot has changed its file; a slot outside the table never holds one.
    #[inline]
    fn generation(&self, slot: Slot) -> u32 {
        self.generations.get(slot.0 as usize).copied().unwrap_or(0)
    }

    /// Hands the queue to the kernel and takes completions, without waiting.
    fn look(&mut self) {
        let queue = self.ring.submission();
        // Without this, completions could stay away: with `coop_taskrun` the kernel posts them only in a
        // system call of this thread, and sets a flag while some wait for one.
        let call = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
        drop(queue);
        if call {
            self.enter(0, None);
        }
        self.collect();
    }

    /// Waits for a completion; a wake does not end it.
    fn wait_for_one(&mut self) {
        while self.done.is_empty() && self.flights.count() > 0 {
            self.enter(1, None);
            self.collect();
        }
    }

    /// Waits for a completion or a wake.
    fn wait_for_news(&mut self) {
        // A wake since the last wait ends this one before it begins.
        if self.bell.answer() {
            return self.look();
        }
        self.arm();
        self.enter(1, None);
        self.collect();
        // With a completion, keep a wake for the next wait. Without one, the wake ended this wait.
        if self.done.is_empty() {
            self.bell.answer();
            self.tick();
        }
    }

    /// Waits for a completion, a wake or `time`. It sleeps until shortly before that and then spins, because
    /// a sleeping thread wakes 50 to 90 us late.
    fn wait_until(&mut self, time: Nanos) {
        if self.bell.answer() {
            return self.look();
        }
        loop {
            let left = time.since(self.tick());
            if left > AWAKE_BEFORE {
                self.arm();
                self.enter(1, Some(left - AWAKE_BEFORE));
                self.collect();
            } else {
                self.look();
            }
            if !self.done.is_empty() || self.bell.answer() || self.last >= time {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Queues the watch for wakes from other threads, unless one is queued already.
    fn arm(&mut self) {
        if let Some(watch) = self.bell.watch() {
            // SAFETY: a watch on a descriptor has no memory.
            unsafe { self.push(&watch) }
        }
    }

    /// Runs an operation at once, in the calling thread.
    fn execute(&mut self, mut operation: Operation, due: Nanos) {
        // Operations submitted earlier keep the file that the slot holds now.
        let changes = matches!(operation.kind, OpKind::Open(_) | OpKind::OpenDir | OpKind::Close);
        if changes {
            self.settle(operation.file);
        }
        let issued = self.last;
        let mut result = self.files.execute(&mut operation);
        if changes && result.is_ok() {
            result = self.mirror(operation.file);
        }
        let finished = self.tick();
        self.done.push(Completion { operation, result, due, issued, finished });
    }

    /// Waits until all submitted operations hold the file in the slot. The kernel takes hold of the file of a
    /// read or write when it receives the entry, but of a sync only when a worker thread begins it.
    fn settle(&mut self, slot: Slot) {
        loop {
            while !self.ring.submission().is_empty() {
                self.enter(0, None);
            }
            if !self.flights.sync(slot) {
                return;
            }
            // An interrupted operation is then in the queue again.
            self.enter(1, None);
            self.collect();
        }
    }

    /// Copies a slot of our table into the kernel's table.
    fn mirror(&mut self, slot: Slot) -> Result<u32, Errno> {
        if let Some(generation) = self.generations.get_mut(slot.0 as usize) {
            *generation = generation.wrapping_add(1);
        }
        let descriptor = self.files.descriptor(slot).map_or(-1, |file| file.as_raw_fd());
        match self.ring.submitter().register_files_update(slot.0, &[descriptor]) {
            Ok(_) => Ok(0),
            Err(error) => {
                // The caller of the open sees it fail, so the slot must not hold the file in our table
                // either.
                self.files.put(slot, None).ok();
                Err(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
            }
        }
    }

    /// Registers all memory with the kernel again. Nothing is in flight.
    fn pin(&mut self) -> io::Result<()> {
        // The kernel takes all regions in one call, so first give up the registered ones.
        self.memory.registered(&[]);
        // This fails if nothing was registered.
        self.ring.submitter().unregister_buffers().ok();
        let vectors = self.memory.vectors();
        if !vectors.is_empty() {
            // SAFETY: the regions are those of arenas that `memory` keeps alive until they are unregistered
            // here or the ring, dropped before `memory`, is gone.
            unsafe { self.ring.submitter().register_buffers(&vectors)? };
            self.memory.registered(&vectors);
        }
        Ok(())
    }
}

/// Builds the queue entry of a read, write or sync. Its memory is the operation's buffer.
#[inline]
fn entry(operation: &mut Operation, memory: &Memory) -> squeue::Entry {
    let Operation { kind, length, offset, ref mut buffer, .. } = *operation;
    let file = types::Fixed(operation.file.0);
    match kind {
        OpKind::Read => {
            let bytes = &mut buffer[..length as usize];
            let fixed = memory.index_of(bytes);
            // Only a fixed buffer has an index. The kernel maps unregistered memory for each operation.
            let start = bytes.as_mut_ptr();
            match fixed {
                Some(index) => opcode::ReadFixed::new(file, start, length, index).offset(offset).build(),
                None => opcode::Read::new(file, start, length).offset(offset).build(),
            }
        }
        OpKind::Write => {
            let bytes = &buffer[..length as usize];
            let start = bytes.as_ptr();
            match memory.index_of(bytes) {
                Some(index) => opcode::WriteFixed::new(file, start, length, index).offset(offset).build(),
                None => opcode::Write::new(file, start, length).offset(offset).build(),
            }
        }
        OpKind::SyncData => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        _ => opcode::Fsync::new(file).build(),
    }
}

impl Engine for Uring {
    fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.clock.now();
        self.last
    }

    #[inline]
    fn submit(&mut self, operation: Operation, due: Nanos) {
        match operation.kind {
            // To the ring, an offset of -1 is the file's own position.
            OpKind::Read | OpKind::Write if i64::try_from(operation.offset).is_ok() => {
                self.launch(operation, due);
            }
            OpKind::Sync | OpKind::SyncData => self.launch(operation, due),
            _ => self.execute(operation, due),
        }
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        match wait {
            // Operations that ran at once, or completed during another wait, are ready to return.
            _ if !self.done.is_empty() => self.look(),
            Wait::Poll => self.look(),
            Wait::ForOne => self.wait_for_one(),
            Wait::News => self.wait_for_news(),
            Wait::Until(time) => self.wait_until(time),
        }
        if done.is_empty() {
            std::mem::swap(&mut self.done, done);
        } else {
            done.append(&mut self.done);
        }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.bell.waker()
    }

    /// Waits for all operations in flight. If the kernel refuses (the memory counts against `ulimit -l`), the
    /// engine works without registration.
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        if self.memory.holds(arena) {
            return Ok(());
        }
        while self.flights.count() > 0 {
            self.enter(1, None);
            self.collect();
        }
        self.memory.push(arena.clone());
        let outcome = self.pin();
        if outcome.is_err() {
            self.memory.pop();
            // If the kernel refuses even the memory it had before, nothing is registered, and `memory`
            // reflects that.
            self.pin().ok();
        }
        outcome.map_err(setup("keep memory mapped (raise `ulimit -l`)"))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Buffers can be freed only when the kernel is done with them, but hung storage must not block this
        // thread.
        let end = self.clock.now() + LAST_WAIT;
        while self.flights.count() > 0 && self.clock.now() < end {
            match self.try_enter(1, Some(end.since(self.clock.now()))) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME)) => break,
                _ => self.collect(),
            }
        }
        self.flights.abandon();
    }
}

#[cfg(test)]
mod tests;
