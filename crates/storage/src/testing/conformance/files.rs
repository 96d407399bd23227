//! Data and slots: the rules for open files.

use nilometer_model::Capability::{
    Append, Keep, List, OpenRemoved, Read, Remove, Resize, Sync, Write, WriteAnywhere,
};

use super::checked::{Check, Checked};
use crate::{Buffer, Errno, OpKind, Open, Operation, ROOT, SOURCE, Slot};

/// The checks, each for an engine with one slot besides the directory's, with the capabilities it needs.
pub(super) const ALL: [Check; 11] = [
    (data_comes_back, &[Keep, Read, WriteAnywhere]),
    (holes_are_zeros, &[Keep, Read, WriteAnywhere]),
    (sizes_change, &[Keep, Read, Write, Resize]),
    (access_is_kept_to, &[Keep, Read, WriteAnywhere]),
    (who_shares_a_file_keeps_what_is_in_it, &[Keep, Read, WriteAnywhere]),
    (empty_slots_are_refused, &[Keep, Resize, Sync, List]),
    (the_directory_stays_open, &[Keep, Write, Append, List]),
    (slots_are_used_again, &[Keep, Read, Write, Append]),
    (an_open_file_stays_when_its_name_goes, &[Keep, Read, Write, Remove, OpenRemoved]),
    (as_many_as_the_depth_are_in_flight, &[Keep, Read, WriteAnywhere]),
    (nothing_is_asked_by_a_nop, &[]),
];

const FILE: Slot = Slot(1);
const CREATE: OpKind = OpKind::Open(Open::CREATE);
const READ: OpKind = OpKind::Open(Open::READ);
const WRITE: OpKind = OpKind::Open(Open::WRITE);
const READ_WRITE: OpKind = OpKind::Open(Open::READ_WRITE);
const SHARED: OpKind = OpKind::Open(Open::SHARED);

fn nothing_is_asked_by_a_nop(engine: &mut Checked) {
    for slot in [ROOT, FILE, SOURCE] {
        assert_eq!(engine.on(OpKind::Nop, slot, 0), Ok(0), "a nop fails on {slot:?}, which may be closed");
    }
}

fn data_comes_back(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 0, &[1; 5000]), Ok(5000), "a write takes all");
    assert_eq!(engine.write(FILE, 4000, &[2; 5000]), Ok(5000), "an overlapping write takes all");
    assert_eq!(engine.write(FILE, 9000, &[]), Ok(0), "a write of nothing");
    assert_eq!(engine.on(OpKind::Sync, FILE, 0), Ok(0), "sync");
    assert_eq!(engine.on(OpKind::SyncData, FILE, 0), Ok(0), "sync of data");
    engine.expect_named(READ, FILE, b"f", Ok(0));
    let expected = [[1; 4000].as_slice(), &[2; 5000]].concat();
    assert!(engine.read(FILE, 0, 9000).expect("readable") == expected, "other data was read than written");
    assert_eq!(engine.read(FILE, 3999, 2), Ok(vec![1, 2]), "a read at an odd offset");
    assert_eq!(engine.read(FILE, 8990, 100), Ok(vec![2; 10]), "a read across the end is short");
    assert_eq!(engine.read(FILE, 9000, 100), Ok(vec![]), "a read at the end gives nothing");
    assert_eq!(engine.read(FILE, 1 << 40, 100), Ok(vec![]), "a read far beyond the end gives nothing");
    assert_eq!(engine.on(OpKind::Sync, FILE, 0), Ok(0), "a file that was opened to read can be synced");
    assert_eq!(engine.on(OpKind::Sync, ROOT, 0), Ok(0), "a directory can be synced");
}

fn holes_are_zeros(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 100_000, b"end"), Ok(3), "a write beyond the end");
    engine.expect_named(READ, FILE, b"f", Ok(0));
    let expected = [vec![0; 100_000].as_slice(), b"end"].concat();
    assert!(engine.read(FILE, 0, 100_100).expect("readable") == expected, "unwritten ranges read as zeros");
}

fn sizes_change(engine: &mut Checked) {
    let size = |engine: &mut Checked| engine.stat(b"f").expect("it exists").size;
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    assert_eq!(size(engine), 0, "a new file is empty");
    let allocated = engine.on(OpKind::Allocate, FILE, 10_000);
    assert!(matches!(allocated, Ok(0) | Err(Errno::EOPNOTSUPP)), "allocate: {allocated:?}");
    assert_eq!(size(engine), 0, "reserving space leaves the size");
    assert_eq!(engine.on(OpKind::Allocate, FILE, 0), Err(Errno::EINVAL), "reserving nothing");
    assert_eq!(engine.write(FILE, 0, &[7; 1000]), Ok(1000));
    assert_eq!(size(engine), 1000, "a write makes the file longer");
    assert_eq!(engine.on(OpKind::Truncate, FILE, 10), Ok(0), "a file can be cut");
    assert_eq!(size(engine), 10, "a cut file is shorter");
    assert_eq!(engine.on(OpKind::Truncate, FILE, 20), Ok(0), "a file can be made longer");
    engine.expect_named(READ, FILE, b"f", Ok(0));
    let expected = [[7; 10], [0; 10]].concat();
    assert_eq!(engine.read(FILE, 0, 100), Ok(expected), "cut data do not come back");
}

fn access_is_kept_to(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    assert_eq!(engine.read(FILE, 0, 1), Err(Errno::EBADF), "a file that was opened to write can't be read");
    engine.expect_named(WRITE, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 0, b"x"), Ok(1), "an existing file can be written");
    engine.expect_named(READ, FILE, b"f", Ok(0));
    assert_eq!(
        engine.write(FILE, 0, b"y"),
        Err(Errno::EBADF),
        "a file that was opened to read can't be written"
    );
    assert_eq!(engine.on(OpKind::Truncate, FILE, 0), Err(Errno::EINVAL), "nor cut");
    assert_eq!(engine.read(FILE, 0, 1), Ok(vec![b'x']));
    engine.expect_named(READ_WRITE, FILE, b"none", Err(Errno::ENOENT));
    engine.expect_named(READ_WRITE, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 1, b"z"), Ok(1), "a file that was opened for both can be written");
    assert_eq!(engine.read(FILE, 0, 3), Ok(b"xz".to_vec()), "and read");
    engine.expect_named(READ_WRITE, FILE, b".", Err(Errno::EISDIR));
    assert_eq!(engine.read(ROOT, 0, 1), Err(Errno::EISDIR), "a directory can't be read");
    assert_eq!(engine.write(ROOT, 0, b"y"), Err(Errno::EBADF), "a directory can't be written");
}

fn who_shares_a_file_keeps_what_is_in_it(engine: &mut Checked) {
    engine.expect_named(SHARED, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 1, b"second"), Ok(6), "the first to open it made it");
    engine.expect_named(SHARED, FILE, b"f", Ok(0));
    assert_eq!(engine.write(FILE, 0, b"1"), Ok(1));
    assert_eq!(engine.read(FILE, 0, 1), Err(Errno::EBADF), "it is opened to write");
    engine.expect_named(READ, FILE, b"f", Ok(0));
    assert_eq!(engine.read(FILE, 0, 9), Ok(b"1second".to_vec()), "the second open left the old content");
    engine.expect_named(SHARED, FILE, b".", Err(Errno::EISDIR));
    engine.expect_named(SHARED, FILE, b"../f", Err(Errno::EINVAL));
}

fn empty_slots_are_refused(engine: &mut Checked) {
    for slot in [FILE, Slot(2), SOURCE] {
        assert_eq!(engine.read(slot, 0, 1), Err(Errno::EBADF), "read of the empty {slot:?}");
        assert_eq!(engine.write(slot, 0, b"x"), Err(Errno::EBADF), "write to the empty {slot:?}");
        for kind in
            [OpKind::Sync, OpKind::SyncData, OpKind::Allocate, OpKind::Truncate, OpKind::Close, OpKind::List]
        {
            assert_eq!(engine.on(kind, slot, 1), Err(Errno::EBADF), "{kind:?} on the empty {slot:?}");
        }
        let stat = Operation::named(OpKind::Stat, slot, ROOT, b"f", Buffer::alone(16));
        engine.expect("looking up a name in an empty slot", stat, Err(Errno::EBADF));
    }
    engine.expect_named(CREATE, Slot(2), b"f", Err(Errno::EBADF));
}

fn the_directory_stays_open(engine: &mut Checked) {
    assert_eq!(engine.on(OpKind::Close, ROOT, 0), Err(Errno::EBADF), "the run's directory must stay open");
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    engine.expect_named(READ, ROOT, b"f", Err(Errno::EBADF));
    engine.expect_named(OpKind::OpenDir, ROOT, b".", Err(Errno::EBADF));
    engine.expect_named(CREATE, ROOT, b"g", Err(Errno::EBADF));
    assert!(engine.stat(b"f").is_ok(), "the run's directory was replaced");
}

fn slots_are_used_again(engine: &mut Checked) {
    for name in [b"a", b"b"] {
        engine.expect_named(CREATE, FILE, name, Ok(0));
        assert_eq!(engine.write(FILE, 0, name), Ok(1), "the next open closes the file in the slot");
    }
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0), "an open slot can be closed");
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Err(Errno::EBADF), "a closed slot is empty");
    engine.expect_named(READ, FILE, b"none", Err(Errno::ENOENT));
    assert_eq!(engine.read(FILE, 0, 1), Err(Errno::EBADF), "a failed open leaves an empty slot empty");
    engine.expect_named(READ, FILE, b"a", Ok(0));
    engine.expect_named(READ, FILE, b"none", Err(Errno::ENOENT));
    assert_eq!(engine.read(FILE, 0, 1), Ok(vec![b'a']), "a failed open leaves the file in the slot");
}

fn an_open_file_stays_when_its_name_goes(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"a", Ok(0));
    assert_eq!(engine.write(FILE, 0, b"a"), Ok(1));
    engine.expect_named(READ, FILE, b"a", Ok(0));
    engine.expect_named(OpKind::Unlink, ROOT, b"a", Ok(0));
    assert_eq!(engine.read(FILE, 0, 1), Ok(vec![b'a']), "an open file stays when its name goes");
}

fn as_many_as_the_depth_are_in_flight(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    let depth = engine.engine.depth() as u64;
    for round in 0..5_u8 {
        let block = |number: u64| {
            let mut buffer = Buffer::alone(512);
            buffer.fill(round + number as u8);
            Operation::write(FILE, number * 512, 512, buffer)
        };
        for completion in engine.run_all((0..depth).map(block).collect()) {
            assert_eq!(completion.result, Ok(512), "one of {depth} writes in flight");
        }
    }
    engine.expect_named(READ, FILE, b"f", Ok(0));
    let reads =
        (0..depth).map(|number| Operation::read(FILE, number * 512, 512, Buffer::alone(512))).collect();
    for (number, completion) in engine.run_all(reads).into_iter().enumerate() {
        let data = &completion.operation.buffer;
        assert!(data.iter().all(|&byte| byte == 4 + number as u8), "the data of another write was read");
    }
}
