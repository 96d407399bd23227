//! 4 KiB random reads at depth 1 of a file in memory, where the kernel costs least and the harness shows most.

use std::fs::File;

use nilometer_campaign::workload::{Direction, Order};
use nilometer_model::Bytes;
use nilometer_storage::Buffer;

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Driving, Ours, SEED},
    peers, place,
};

const NAME: &str = "n_file";
const BLOCK: usize = 4096;
const SIZE: u64 = 512 << 20;
const BLOCKS: u64 = SIZE / BLOCK as u64;
const OPERATIONS: u64 = 1_000_000;

const BARE: &str = "bare pread loop, one clock reading";
const OURS: &str = "nilometer, engine sync, recorded";
const FIO: &str = "fio psync, gtod_reduce=1";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::in_memory()?;
    let ours = Ours::at(place.path(), 1)?;
    ours.lay_out(NAME, SIZE)?;
    let path = ours.directory().join(NAME);
    let contest = Contest {
        title: format!("read-4k-sync: 4 KiB random reads, depth 1, 512 MiB on {}", ours.file_system()),
        quantity: Quantity::CpuPerOperation,
        phases: &["read"],
        rounds: 15,
        contestants: vec![
            Contestant::new(BARE, || {
                let file = File::open(&path)?.into();
                let mut buffer = Buffer::alone(BLOCK);
                let reads = || {
                    bare::random_reads(&file, &mut buffer, BLOCKS, OPERATIONS, SEED.stream())?;
                    Ok(())
                };
                Ok(vec![measure::here(OPERATIONS as f64, reads)?])
            }),
            Contestant::new(OURS, || {
                let how = (Driving::sync(BLOCK), false);
                Ok(vec![ours.transfer(NAME, order(SIZE, OPERATIONS), Direction::Read, how)?])
            }),
            Contestant::new(FIO, || {
                let options = ["--ioengine=psync", "--gtod_reduce=1"];
                Ok(vec![peers::fio(&path, SIZE, OPERATIONS, &options)?])
            }),
        ],
        bounds: vec![
            Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.08) },
            Bound { subject: OURS, peer: FIO, limit: Limit::Below },
        ],
    };
    contest.run(stop)
}

/// The offsets of the bare loops, in the same order.
pub(crate) fn order(size: u64, operations: u64) -> Order {
    Order::uniform(Bytes(size), Bytes(BLOCK as u64), operations, SEED.stream())
}
