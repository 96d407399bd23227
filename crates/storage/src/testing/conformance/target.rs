//! The rules for a target of a run: engines on one directory, which is emptied on request.

use nilometer_model::{EngineKind, StripeLayout};

use super::checked::{Checked, NAMES};
use crate::{
    Arena, Buffer, Clock, Errno, OpKind, Open, Operation, ROOT, Slot, Target,
    buffer::{ALIGNMENT, Alignment},
    engine::Options,
};

const FILE: Slot = Slot(1);
const LENGTH: u32 = ALIGNMENT as u32;

/// Checks a target on which nothing was made yet. It calls `remove` at the end.
pub fn target_suite(target: &dyn Target) {
    let description = target.description();
    let address = description.address.to_string();
    assert!(address.parse().as_ref() == Ok(&description.address) && description.writable, "{address}");
    let space = target.space().expect("it knows its space");
    assert!(space.free <= space.size && space.free.0 > 0, "{space:?}");
    if description.keeps() {
        check_kept(target);
    }
    target.lay_out(&StripeLayout::default()).expect("as before");
    target.clear().expect("it can be emptied");
    target.remove().expect("it can be removed");
}

/// Checks that all engines see a new file until the target is emptied.
fn check_kept(target: &dyn Target) {
    let description = target.description();
    let mut one = attached(target);
    let mut other = attached(target);
    assert!(!has_files(&mut one), "nothing was made yet");
    write(&mut one, Open::CREATE);
    assert_eq!(read(&mut other), Ok(LENGTH), "both engines are on one directory");
    target.chill("n_f").expect("a file that is there can be dropped from the cache");
    if description.direct_alignment().is_some() {
        write(&mut one, Open::WRITE.direct_if(true));
        assert_eq!(read(&mut other), Ok(LENGTH), "data written past the cache are there");
    }
    target.clear().expect("it can be emptied");
    let mut again = attached(target);
    assert!(!has_files(&mut again), "it was emptied");
    assert_eq!(read(&mut again), Err(Errno::ENOENT));
    write(&mut again, Open::CREATE);
}

fn attached(target: &dyn Target) -> Checked {
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: 2, clock: Clock::start() };
    Checked::new(target.engine(&options).expect("the least that any engine needs"))
}

/// Returns true if there is a file of the run. Such names begin with `n_`, unlike the directory's marker.
fn has_files(engine: &mut Checked) -> bool {
    engine.list(ROOT, NAMES).iter().any(|(name, _)| name.starts_with(b"n_"))
}

fn page(byte: u8) -> Buffer {
    let (_, mut pages) = Arena::aligned(1, ALIGNMENT, Alignment::Page);
    let mut page = pages.pop().expect("one was made");
    page.fill(byte);
    page
}

/// Writes a page into the file.
fn write(engine: &mut Checked, open: Open) {
    engine.expect_named(OpKind::Open(open), FILE, b"n_f", Ok(0));
    engine.expect("a page", Operation::write(FILE, 0, LENGTH, page(7)), Ok(LENGTH));
    engine.expect("synced", Operation::on(OpKind::SyncData, FILE, Buffer::alone(16)), Ok(0));
    engine.expect("closed", Operation::on(OpKind::Close, FILE, Buffer::alone(16)), Ok(0));
}

/// Reads the page back, if the file exists; returns the number of bytes.
fn read(engine: &mut Checked) -> Result<u32, Errno> {
    let open = Operation::named(OpKind::Open(Open::READ), ROOT, FILE, b"n_f", Buffer::alone(16));
    engine.run(open).0?;
    let (read, bytes) = engine.run(Operation::read(FILE, 0, LENGTH, page(0)));
    assert!(bytes.iter().all(|byte| *byte == 7), "reads return the written data");
    engine.expect("closed", Operation::on(OpKind::Close, FILE, Buffer::alone(16)), Ok(0));
    read
}
