//! The ring against a real kernel.

use std::{os::fd::OwnedFd, time::Duration};

use super::{
    setups::{SETUPS, usable},
    *,
};
use crate::{
    Buffer,
    operation::Open,
    testing::trial::{self, FILE},
};

fn engine(depth: u32) -> (tempfile::TempDir, Uring) {
    let (directory, root) = trial::directory();
    let engine = Uring::new(root.into(), 4, depth, Clock::start()).expect("io_uring is permitted here");
    (directory, engine)
}

/// An engine whose slot 1 is the read end of an empty pipe.
fn with_pipe(depth: u32) -> (Uring, OwnedFd) {
    let (_directory, mut engine) = engine(depth);
    let (reader, writer) = io::pipe().expect("a pipe");
    engine.files.put(FILE, Some(reader.into())).expect("a slot");
    engine.mirror(FILE).expect("the ring has the slot too");
    (engine, writer.into())
}

#[test]
fn what_is_written_is_read_at_any_depth() {
    for depth in [1, 2, 7, 32, 4096] {
        for (direct, registered) in [(false, false), (false, true), (true, false), (true, true)] {
            if depth == 4096 && !registered {
                continue;
            }
            let (_directory, mut engine) = engine(depth);
            trial::round_trip(&mut engine, depth.min(100), direct, registered);
            assert_eq!(engine.flights.count(), 0);
        }
    }
}

#[test]
fn setups_of_older_kernels_do_the_same() {
    for setup in SETUPS {
        let mut builder = IoUring::builder();
        setup(&mut builder);
        let (_directory, mut engine) = engine(7);
        let ring = builder.build(8).expect("this kernel knows them all");
        let root = engine.files.descriptor(crate::ROOT).expect("the root").as_raw_fd();
        ring.submitter().register_files(&[root, -1, -1, -1]).expect("four files");
        engine.ring = ring;
        trial::round_trip(&mut engine, 7, true, true);
        trial::waits(&mut engine);
        for wait in [Wait::Poll, Wait::News] {
            engine.submit(Operation::on(OpKind::Sync, crate::ROOT, Buffer::empty()), Nanos(0));
            let mut done = Vec::new();
            while done.is_empty() {
                engine.reap(wait, &mut done);
            }
            assert_eq!(done[0].result, Ok(0));
        }
    }
}

#[test]
fn faults_are_data() {
    trial::faults(&mut engine(2).1);
}

#[test]
fn waits_end_in_time_and_are_broken_by_a_wake() {
    trial::within(Duration::from_mins(1), || trial::waits(&mut engine(2).1));
    trial::within(Duration::from_mins(1), || {
        let (mut engine, _writer) = with_pipe(2);
        engine.submit(Operation::read(FILE, 0, 8, Buffer::alone(8)), Nanos(0));
        trial::waits(&mut engine);
    });
}

#[test]
fn a_wake_does_not_end_the_wait_for_a_completion() {
    trial::within(Duration::from_mins(1), || {
        let (mut engine, writer) = with_pipe(2);
        engine.submit(Operation::read(FILE, 0, 8, Buffer::alone(8)), Nanos(0));
        let mut done = Vec::new();
        engine.waker().wake();
        engine.reap(Wait::News, &mut done);
        engine.waker().wake();
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            rustix::io::write(&writer, b"abc").expect("the pipe takes it");
        });
        engine.reap(Wait::ForOne, &mut done);
        assert_eq!(done[0].result, Ok(3));
        assert_eq!(&done[0].operation.buffer[..3], b"abc");
        done.clear();
        engine.reap(Wait::News, &mut done);
        assert!(done.is_empty(), "the second wake is not lost");
        late.join().expect("it wrote");
    });
}

#[test]
fn without_a_waker_nothing_is_watched() {
    let (_directory, mut engine) = engine(2);
    let time = engine.tick() + Nanos::from_millis(2);
    engine.reap(Wait::Until(time), &mut Vec::new());
    assert!(engine.bell.watch().is_none());
    drop(engine.waker());
    assert!(engine.bell.watch().is_some());
}

#[test]
fn registered_memory_is_used_as_such() {
    let (_directory, mut engine) = engine(2);
    let (first, mut buffers) = Arena::shared_out(2, 8192);
    let (second, more) = Arena::shared_out(1, 4096);
    for arena in [&first, &second, &first] {
        engine.register(arena).expect("little memory");
    }
    buffers.extend(more);
    for buffer in buffers {
        let length = buffer.len() as u32;
        let mut read = Operation::read(FILE, 0, length, buffer);
        assert_eq!(entry(&mut read, &engine.memory).get_opcode(), u32::from(opcode::ReadFixed::CODE));
        let mut write = Operation::write(FILE, 0, length, read.buffer);
        assert_eq!(entry(&mut write, &engine.memory).get_opcode(), u32::from(opcode::WriteFixed::CODE));
    }
    let mut other = Operation::read(FILE, 0, 512, Buffer::alone(512));
    assert_eq!(entry(&mut other, &engine.memory).get_opcode(), u32::from(opcode::Read::CODE));
}

#[test]
fn memory_in_the_kernels_hands_is_never_freed() {
    let (arena, mut buffers) = Arena::shared_out(1, 4096);
    let (mut engine, _writer) = with_pipe(2);
    engine.submit(Operation::read(FILE, 0, 8, buffers.remove(0)), Nanos(0));
    engine.reap(Wait::Poll, &mut Vec::new());
    drop(engine);
    assert_eq!(Arc::strong_count(&arena), 2, "the buffer is left to the kernel");
}

#[test]
fn where_the_ring_is_forbidden_another_engine_is_named() {
    std::thread::spawn(|| {
        forbid_rings();
        let (_directory, root) = trial::directory();
        let error = Uring::new(root.into(), 4, 2, Clock::start()).expect_err("the filter forbids it");
        assert!(
            matches!(error, EngineError::NotPermitted { instead: "sync", .. }),
            "{error}: a forbidden ring is the user's to hear of"
        );
    })
    .join()
    .expect("the thread passes");
}

#[test]
fn a_ring_of_an_older_kernel_is_none_and_another_engine_is_named() {
    assert!(matches!(usable((), true), Ok(())));
    let error = usable((), false).expect_err("Linux 5.1 to 5.10 has rings that can't wait with a limit");
    assert!(matches!(error, EngineError::NotPermitted { instead: "sync", .. }), "{error}");
    assert!(error.to_string().contains("Linux 5.11"), "{error}");
}

/// Forbids rings for the calling thread, as a container's seccomp filter does.
fn forbid_rings() {
    const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_io_uring_setup as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel copies the filter during the call; it holds for this thread only.
    let outcome = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_sync_and_a_close_behind_it_both_succeed() {
    let (_directory, mut engine) = engine(3);
    for _ in 0..200 {
        let open = trial::named(OpKind::Open(Open::CREATE), FILE, b"file");
        trial::once(&mut engine, open).result.expect("created");
        engine.submit(Operation::write(FILE, 0, 512, Buffer::alone(512)), Nanos(0));
        engine.submit(Operation::on(OpKind::SyncData, FILE, Buffer::empty()), Nanos(0));
        engine.submit(Operation::on(OpKind::Close, FILE, Buffer::empty()), Nanos(0));
        let mut done = Vec::new();
        while done.len() < 3 {
            engine.reap(Wait::ForOne, &mut done);
        }
        assert!(done.iter().all(|completion| completion.result.is_ok()), "{done:?}");
        trial::once(&mut engine, trial::named(OpKind::Unlink, crate::ROOT, b"file")).result.expect("gone");
    }
}

/// An engine whose slot 1 is a file with three bytes.
fn with_file() -> (tempfile::TempDir, Uring) {
    let (directory, mut engine) = engine(2);
    std::fs::write(directory.path().join("file"), "abc").expect("space");
    trial::once(&mut engine, trial::named(OpKind::Open(Open::READ), FILE, b"file"))
        .result
        .expect("it is there");
    (directory, engine)
}

/// A read of slot 1 in flight, which the kernel gives up with EINTR, as it does on SMB. Returns its number.
fn interrupted_read(engine: &mut Uring) -> u64 {
    let operation = Operation::read(FILE, 0, 512, Buffer::alone(512));
    let generation = engine.generations[FILE.0 as usize];
    let flight = Flight { operation, due: Nanos(0), issued: engine.last, generation, interruptions: 0 };
    u64::from(engine.flights.put(flight).0)
}

#[test]
fn what_the_kernel_gives_up_is_handed_over_again() {
    trial::within(Duration::from_mins(1), || {
        let (_directory, mut engine) = with_file();
        let number = interrupted_read(&mut engine);
        engine.repeat(number, Errno::EINTR);
        assert!(engine.done.is_empty(), "it is in the queue");
        let mut done = Vec::new();
        engine.reap(Wait::ForOne, &mut done);
        assert_eq!((done[0].result, &done[0].operation.buffer[..3]), (Ok(3), &b"abc"[..]));
        assert_eq!(engine.flights.count(), 0);
    });
}

#[test]
fn what_the_kernel_gives_up_for_ever_becomes_a_system_call() {
    let (_directory, mut engine) = with_file();
    let number = interrupted_read(&mut engine);
    engine.flights.get_mut(number).interruptions = INTERRUPTIONS_MAX;
    engine.repeat(number, Errno::EINTR);
    assert_eq!(engine.done[0].result, Ok(3), "without the ring");
    assert_eq!(engine.flights.count(), 0);
}

#[test]
fn an_interrupted_operation_never_reaches_another_file() {
    let (_directory, mut engine) = with_file();
    let number = interrupted_read(&mut engine);
    let other = trial::named(OpKind::Open(Open::CREATE), FILE, b"other");
    trial::once(&mut engine, other).result.expect("created");
    engine.repeat(number, Errno::EINTR);
    assert_eq!(engine.done[0].result, Err(Errno::EINTR));
}
