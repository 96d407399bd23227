//! Files written once from beginning to end and checked after the close. Archives of whole objects can do
//! only that, and all other storage can do it too.

use nilometer_model::Capability::{Directories, Keep, List, Read, Remove, Write};

use super::checked::{Check, Checked};
use crate::{Buffer, Errno, OpKind, Open, Operation, ROOT, Slot, listing, pieces::PIECE};

/// The checks, each for an engine with two slots besides the directory's, with the capabilities it needs.
pub(super) const ALL: [Check; 5] = [
    (what_is_closed_comes_back, &[Keep, Read, Write]),
    (writes_in_flight_stay_in_order, &[Keep, Read, Write]),
    (what_grows_is_there_after_each_write, &[Keep, Read, Write]),
    (what_is_closed_has_a_name, &[Keep, Write, Remove, List]),
    (what_is_closed_is_in_its_directory, &[Keep, Write, Remove, Directories, List]),
];

const FILE: Slot = Slot(1);
const DIR: Slot = Slot(2);
const CREATE: OpKind = OpKind::Open(Open::CREATE);
const READ: OpKind = OpKind::Open(Open::READ);
const BLOCK: usize = 512;

/// Writes a file of these bytes and closes it.
fn put(engine: &mut Checked, name: &[u8], bytes: &[u8]) {
    engine.expect_named(CREATE, FILE, name, Ok(0));
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let written = engine.write(FILE, (number * BLOCK) as u64, block);
        assert_eq!(written, Ok(block.len() as u32), "a write takes all");
    }
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0), "a file that was written is closed");
}

fn what_is_closed_comes_back(engine: &mut Checked) {
    let bytes: Vec<u8> = (0..3000_u32).map(|number| (number % 251) as u8).collect();
    put(engine, b"f", &bytes);
    engine.expect_named(READ, FILE, b"f", Ok(0));
    assert!(engine.read(FILE, 0, 3000).expect("readable") == bytes, "other data was read than written");
    assert_eq!(engine.read(FILE, 999, 3), Ok(bytes[999..1002].to_vec()), "a read at an odd offset");
    assert_eq!(engine.read(FILE, 2990, 100), Ok(bytes[2990..].to_vec()), "a read across the end is short");
    assert_eq!(engine.read(FILE, 3000, 100), Ok(vec![]), "a read at the end gives nothing");
    assert_eq!(engine.read(FILE, 1 << 40, 100), Ok(vec![]), "a read far beyond the end gives nothing");
    let nothing = Operation::read(FILE, 7, 0, Buffer::alone(16));
    engine.expect("a read of nothing", nothing, Ok(0));
    assert_eq!(
        engine.write(FILE, 0, b"x"),
        Err(Errno::EBADF),
        "a file that was opened to read can't be written"
    );
    assert_eq!(engine.on(OpKind::Sync, FILE, 0), Ok(0), "a file that was opened to read can be synced");
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0));
    engine.expect_named(READ, FILE, b"none", Err(Errno::ENOENT));
}

fn writes_in_flight_stay_in_order(engine: &mut Checked) {
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    let depth = engine.engine.depth() as u64;
    let block = |number: u64| {
        let mut buffer = Buffer::alone(BLOCK);
        buffer.fill(number as u8);
        Operation::write(FILE, number * BLOCK as u64, BLOCK as u32, buffer)
    };
    for round in 0..3 {
        for completion in engine.run_all((round * depth..(round + 1) * depth).map(block).collect()) {
            assert_eq!(completion.result, Ok(BLOCK as u32), "one of {depth} writes in flight");
        }
    }
    assert_eq!(engine.on(OpKind::Sync, FILE, 0), Ok(0), "written data are synced");
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0));
    engine.expect_named(READ, FILE, b"f", Ok(0));
    let reads = (0..depth)
        .map(|number| Operation::read(FILE, number * BLOCK as u64, BLOCK as u32, Buffer::alone(BLOCK)));
    for (number, completion) in engine.run_all(reads.collect()).into_iter().enumerate() {
        assert_eq!(completion.result, Ok(BLOCK as u32), "one of {depth} reads in flight");
        let data = &completion.operation.buffer;
        assert!(data.iter().all(|&byte| byte == number as u8), "the data of another write was read");
    }
}

/// Writes one record, a few, and runs across one or more ends of pieces; others see each once it completes.
fn what_grows_is_there_after_each_write(engine: &mut Checked) {
    const RECORD: usize = 64;
    let mut all = Vec::new();
    engine.expect_named(OpKind::Open(Open::GROW), FILE, b"j", Ok(0));
    for records in [1, 3, PIECE as usize / RECORD - 2, 5, 2 * PIECE as usize / RECORD] {
        let bytes: Vec<u8> = (0..records * RECORD).map(|place| ((all.len() + place) % 251) as u8).collect();
        assert_eq!(engine.write(FILE, all.len() as u64, &bytes), Ok(bytes.len() as u32), "a write takes all");
        all.extend(bytes);
        assert!(grown(engine) == all, "{} bytes are not there as they were written", all.len());
    }
    assert_eq!(engine.on(OpKind::SyncData, FILE, 0), Ok(0), "grown files are synced");
    assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0));
    assert!(grown(engine) == all, "nothing is lost by closing it");
    engine.expect_named(OpKind::Open(Open::GROWN), FILE, b"none", Err(Errno::ENOENT));
}

/// Reads all of the growing file through a second open.
fn grown(engine: &mut Checked) -> Vec<u8> {
    let mut all = Vec::new();
    engine.expect_named(OpKind::Open(Open::GROWN), DIR, b"j", Ok(0));
    loop {
        let read = engine.read(DIR, all.len() as u64, 50_000).expect("readable");
        if read.is_empty() {
            break;
        }
        all.extend(read);
    }
    assert_eq!(engine.on(OpKind::Close, DIR, 0), Ok(0));
    all
}

fn what_is_closed_has_a_name(engine: &mut Checked) {
    assert_eq!(engine.stat(b"f"), Err(Errno::ENOENT), "a name that is not there");
    put(engine, b"f", b"");
    assert_eq!(engine.stat(b"f"), Ok(listing::Stat { size: 0, directory: false }));
    put(engine, b"g", &[7; 1000]);
    assert_eq!(engine.stat(b"g"), Ok(listing::Stat { size: 1000, directory: false }));
    engine.expect_named(OpKind::OpenDir, DIR, b"g", Err(Errno::ENOTDIR));
    engine.expect_named(OpKind::Unlink, ROOT, b"f", Ok(0));
    engine.expect_named(READ, FILE, b"f", Err(Errno::ENOENT));
    assert_eq!(engine.list(ROOT, 4096), [(b"g".to_vec(), listing::FILE)], "removed files are not listed");
}

fn what_is_closed_is_in_its_directory(engine: &mut Checked) {
    engine.expect_named(OpKind::MakeDir, ROOT, b"d", Ok(0));
    assert!(engine.stat(b"d").expect("it exists").directory, "a directory says that it is one");
    engine.expect_named(OpKind::OpenDir, DIR, b"d", Ok(0));
    assert_eq!(engine.list(DIR, 4096), [], "an empty directory lists nothing");
    let in_it = |kind, name| Operation::named(kind, DIR, FILE, name, Buffer::alone(16));
    let mut names: Vec<_> =
        (0..20).map(|number| format!("{number:0$}", number % 7 + 3).into_bytes()).collect();
    names.sort();
    for name in &names {
        engine.expect("a file in a directory", in_it(CREATE, name), Ok(0));
        assert_eq!(engine.on(OpKind::Close, FILE, 0), Ok(0));
    }
    assert_eq!(engine.stat(&names[0]), Err(Errno::ENOENT), "a name is in its own directory only");
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Err(Errno::ENOTEMPTY));
    engine.expect_named(OpKind::OpenDir, DIR, b"d", Ok(0));
    let listed: Vec<_> = engine.list(DIR, 64).into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, names, "another listing");
    for name in &names {
        engine.expect("a file in a directory", in_it(OpKind::Unlink, name), Ok(0));
    }
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Ok(0));
    assert_eq!(engine.stat(b"d"), Err(Errno::ENOENT), "a directory that was removed");
}
