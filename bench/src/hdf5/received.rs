//! A series of a detector from loopback into an HDF5 file on the disk until it is synced: `nilometer record`, beside what
//! sites write for it with pyzmq, cbor2 and h5py (see `received.py`).
//!
//! Both take compressed images from the same sender, which is libzmq's, as fast as it sends, and put them into the file as they
//! came. Times are from when the sender sends to the end of the process.

use std::{path::Path, process::Command};

use anyhow::Context;
use nilometer_storage::{Clock, target::probe};
use nilometer_tests::{python, root};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    messages::{Files, IMAGES},
    place,
};

const PEER: &str = "pyzmq, cbor2, H5Dwrite_chunk by h5py";
const OURS: &str = "nilometer record";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let program = place::program()?;
    let files = Files::make()?;
    let file_system = probe(place::on_disk()?.path())?.file_system;
    let contest = Contest {
        title: format!("hdf5-received: {IMAGES} compressed images of 1 MiB into HDF5 on {file_system}"),
        quantity: Quantity::WallPerGib,
        phases: &["receive and write"],
        rounds: 7,
        contestants: vec![
            Contestant::new(PEER, || timed(&files, peer)),
            Contestant::new(OURS, || timed(&files, |from, to| Ok(ours(&program, from, to)))),
        ],
        bounds: vec![Bound { subject: OURS, peer: PEER, limit: Limit::Times(1.0) }],
    };
    let less = Bound { subject: OURS, peer: PEER, limit: Limit::Times(1.0) };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, vec![less]))
}

/// A receiver that writes into a directory of its own, from when the sender begins. Its processor time is that of the whole
/// process. The directory is gone, and the disk at rest, before the next begins.
fn timed(
    files: &Files,
    receiver: impl FnOnce(&str, &Path) -> anyhow::Result<Command>,
) -> anyhow::Result<Vec<Cost>> {
    let home = place::on_disk()?;
    place::touch_memory((IMAGES as usize) << 20);
    let mut sender = files.sender()?;
    let mut command = receiver(&sender.endpoint, home.path())?;
    let amount = files.gib();
    let running = std::thread::spawn(move || measure::child(amount, &mut command));
    sender.await_begin()?;
    let clock = Clock::start();
    let (cost, _) = running.join().ok().context("the receiver's thread panicked")??;
    let wall = clock.now().seconds();
    sender.end()?;
    std::fs::remove_dir_all(home.path().join("series"))?;
    rustix::fs::syncfs(std::fs::File::open(home.path())?)?;
    Ok(vec![Cost { wall, ..cost }])
}

fn ours(program: &Path, from: &str, to: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["record", "--from", from, "--name", "series", "--buffer", "512 MiB", "--to"]).arg(to);
    command
}

fn peer(from: &str, to: &Path) -> anyhow::Result<Command> {
    let modules = ["h5py", "hdf5plugin", "zmq", "cbor2"];
    let mut command = python(&modules).context("no Python with hdf5plugin: scripts/bootstrap test")?;
    let directory = to.join("series");
    std::fs::create_dir(&directory)?;
    command.arg(root().join("bench/src/hdf5/received.py")).arg(from).arg(directory.join("series.h5"));
    Ok(command)
}
