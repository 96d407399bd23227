//! 4 KiB random reads past the page cache, 32 in flight through `io_uring`.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt, path::Path};

use nilometer_campaign::workload::Direction;
use nilometer_model::EngineKind;

use crate::{
    bare::Ring,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Driving, Ours, SEED},
    peers, place, read_sync,
};

const NAME: &str = "n_file";
const BLOCK: usize = 4096;
const SIZE: u64 = 512 << 20;
const DEPTH: u32 = 32;
const OPERATIONS: u64 = 100_000;

const BARE: &str = "bare io_uring loop, fixed buffers and file";
const OURS: &str = "nilometer, engine io_uring, recorded";
const FIO: &str = "fio io_uring, fixedbufs, registerfiles, latencies on";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::on_disk()?;
    let ours = Ours::at(place.path(), 1)?;
    ours.lay_out(NAME, SIZE)?;
    ours.chill(NAME)?;
    let path = ours.directory().join(NAME);
    let driving = Driving { engine: EngineKind::IoUring, depth: DEPTH, block: BLOCK };
    let contest = Contest {
        title: format!(
            "read-4k-uring: 4 KiB random reads, depth 32, O_DIRECT, 512 MiB on {}",
            ours.file_system()
        ),
        quantity: Quantity::CpuPerOperation,
        phases: &["read"],
        rounds: 25,
        contestants: vec![
            Contestant::new(BARE, || bare(&path)),
            Contestant::new(OURS, || {
                let order = read_sync::order(SIZE, OPERATIONS);
                Ok(vec![ours.transfer(NAME, order, Direction::Read, (driving, true))?])
            }),
            Contestant::new(FIO, || fio(&path)),
        ],
        bounds: vec![
            Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.05) },
            Bound { subject: OURS, peer: FIO, limit: Limit::Below },
        ],
    };
    contest.run(stop)
}

fn bare(path: &Path) -> anyhow::Result<Vec<Cost>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut ring = Ring::new(file.into(), DEPTH as usize, BLOCK)?;
    let reads = || {
        ring.random_reads(SIZE / BLOCK as u64, OPERATIONS, SEED.stream())?;
        Ok(())
    };
    Ok(vec![measure::here(OPERATIONS as f64, reads)?])
}

/// Hands over all that is free and takes all that is done, as the others do.
fn fio(path: &Path) -> anyhow::Result<Vec<Cost>> {
    let options = [
        "--ioengine=io_uring",
        "--direct=1",
        "--fixedbufs=1",
        "--registerfiles=1",
        "--iodepth=32",
        "--iodepth_batch_submit=32",
        "--iodepth_batch_complete_min=1",
        "--iodepth_batch_complete_max=32",
    ];
    Ok(vec![peers::fio(path, SIZE, OPERATIONS, &options)?])
}
