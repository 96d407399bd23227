//! 1 MiB blocks streamed into a new file and out of it, cold, through the page cache and past it, beside dd.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nilometer_campaign::workload::{Direction, Order, Writing};
use nilometer_model::Bytes;
use nilometer_storage::Buffer;

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Driving, GIB, MIB, Ours, SEED},
    peers, place,
};

const SIZE: u64 = 512 << 20;

const DD: &str = "dd";
const BARE: &str = "bare pwrite and pread loops";
const OURS: &str = "nilometer, engine sync, recorded";

/// Through the page cache.
pub(crate) fn buffered(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::on_disk()?;
    contest(&Ours::at(place.path(), 1)?, "buffered", false).run(stop)
}

/// Past it.
pub(crate) fn direct(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::on_disk()?;
    contest(&Ours::at(place.path(), 1)?, "O_DIRECT", true).run(stop)
}

fn contest<'a>(ours: &'a Ours, access: &str, direct: bool) -> Contest<'a> {
    let bounds = vec![Bound { subject: OURS, peer: DD, limit: Limit::Times(1.05) }];
    Contest {
        title: format!("stream-1m: 512 MiB in blocks of 1 MiB, {access}, on {}", ours.file_system()),
        quantity: Quantity::CpuPerGib,
        phases: &["write", "read"],
        rounds: 15,
        contestants: vec![
            Contestant::new(DD, move || both(ours, "n_dd", |name, way| dd(ours, name, way, direct))),
            Contestant::new(BARE, move || both(ours, "n_bare", |name, way| bare(ours, name, way, direct))),
            Contestant::new(OURS, move || {
                both(ours, "n_ours", |name, way| transfer(ours, name, way, direct))
            }),
        ],
        bounds,
    }
}

const WRITE: Direction = Direction::Write(Writing::NEW);

/// Writes a new file, reads it cold, removes it. Memory that a virtual machine's host must first provide costs more
/// than the copying, so both times enough of it is touched and freed beforehand.
fn both(
    ours: &Ours,
    name: &str,
    mut one: impl FnMut(&str, Direction) -> anyhow::Result<Cost>,
) -> anyhow::Result<Vec<Cost>> {
    place::touch_memory(SIZE as usize * 3 / 2);
    let write = one(name, WRITE)?;
    ours.chill(name)?;
    place::touch_memory(SIZE as usize * 3 / 2);
    let read = one(name, Direction::Read)?;
    std::fs::remove_file(ours.directory().join(name))?;
    Ok(vec![write, read])
}

fn transfer(ours: &Ours, name: &str, direction: Direction, direct: bool) -> anyhow::Result<Cost> {
    let order = Order::sequential(Bytes(SIZE), Bytes(MIB as u64));
    ours.transfer(name, order, direction, (Driving::sync(MIB), direct))
}

fn dd(ours: &Ours, name: &str, direction: Direction, direct: bool) -> anyhow::Result<Cost> {
    let (file, gib) = (ours.directory().join(name), SIZE as f64 / GIB);
    match direction {
        Direction::Read if direct => peers::dd((gib, 1), &file, Path::new("/dev/null"), &["iflag=direct"]),
        Direction::Read => peers::dd((gib, 1), &file, Path::new("/dev/null"), &[]),
        _ if direct => peers::dd((gib, 1), Path::new("/dev/zero"), &file, &["conv=fsync", "oflag=direct"]),
        _ => peers::dd((gib, 1), Path::new("/dev/zero"), &file, &["conv=fsync"]),
    }
}

fn bare(ours: &Ours, name: &str, direction: Direction, direct: bool) -> anyhow::Result<Cost> {
    let path = ours.directory().join(name);
    let mut buffer = Buffer::alone(MIB);
    SEED.stream().fill(&mut buffer);
    measure::here(SIZE as f64 / GIB, || {
        let file = open(&path, direction, direct)?.into();
        match direction {
            Direction::Read => bare::read_file(&file, &mut buffer, SIZE)?,
            _ => bare::write_file(&file, std::slice::from_ref(&buffer), SIZE)?,
        }
        Ok(())
    })
}

fn open(path: &Path, direction: Direction, direct: bool) -> std::io::Result<File> {
    let reads = direction == Direction::Read;
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(reads).write(!reads).create_new(!reads).custom_flags(flags).open(path)
}
