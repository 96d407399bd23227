//! Nilometer side by side with bare loops of the same system calls and with other tools, in one run.
//!
//! `nilometer-bench [NAME...]` runs the comparisons whose names begin with one of these, all of them if none is given.
//! `nilometer-bench verdict` holds verdicts against known truths instead, in simulation and on real devices.
//! `nilometer-bench invalid` counts instead how often samples are INVALID on this machine.
//! `nilometer-bench aa` counts differences that are found where there is none.
//! `nilometer-bench by-url` compares a client in this program with its own program for copies.
//! `nilometer-bench index` holds the memory that reading a recording takes against a bound.
//! Exit codes: 0 every bound is met; 1 one is missed, or a comparison could not be made; 2 a name is unknown.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a comparison that nobody reads may end")]

mod aa;
mod bare;
mod between;
mod by_url;
mod codecs;
mod contest;
mod data;
mod discarded;
mod hdf5;
mod host;
mod index;
mod invalid;
mod measure;
mod messages;
mod metadata;
mod mount;
mod network;
mod ours;
mod packets;
mod peers;
mod place;
mod ranks;
mod read_sync;
mod read_uring;
mod receiving;
mod receiving_ports;
mod recorder;
mod records;
mod report;
mod ring;
mod scale;
mod sending;
mod start_up;
mod stream;
mod tally;
mod users;
mod verdict;
mod walk;

use std::process::ExitCode;

use codecs::Codec;
use contest::{Outcome, Stop};
use nilometer_model::{FrameCompression, PixelType};

/// What is compared under one name. A new comparison is its own file and a line here.
struct Comparison {
    name: &'static str,
    run: fn(&Stop) -> anyhow::Result<Outcome>,
}

const COMPARISONS: [Comparison; 68] = [
    Comparison { name: "read-4k-sync", run: read_sync::run },
    Comparison { name: "read-4k-uring", run: read_uring::run },
    Comparison { name: "stream-1m-buffered", run: stream::buffered },
    Comparison { name: "stream-1m-direct", run: stream::direct },
    Comparison { name: "walk", run: walk::run },
    Comparison { name: "walk-ext4", run: users::walk_ext4 },
    Comparison { name: "walk-xfs", run: users::walk_xfs },
    Comparison { name: "unpack-ext4", run: users::unpack_ext4 },
    Comparison { name: "unpack-xfs", run: users::unpack_xfs },
    Comparison { name: "search-ext4", run: users::search_ext4 },
    Comparison { name: "search-xfs", run: users::search_xfs },
    Comparison { name: "metadata-tmpfs", run: metadata::on_tmpfs },
    Comparison { name: "metadata-tmpfs-2", run: metadata::on_tmpfs_by_two },
    Comparison { name: "metadata-ext4", run: metadata::on_ext4 },
    Comparison { name: "metadata-ext4-2", run: metadata::on_ext4_by_two },
    Comparison { name: "metadata-xfs", run: metadata::on_xfs },
    Comparison { name: "metadata-xfs-2", run: metadata::on_xfs_by_two },
    Comparison { name: "ring", run: ring::run },
    Comparison { name: "sending", run: sending::run },
    Comparison { name: "receiving-joined", run: receiving::joined },
    Comparison { name: "receiving-single", run: receiving::single },
    Comparison { name: "receiving-ports", run: receiving_ports::run },
    Comparison { name: "messages", run: messages::run },
    Comparison { name: "packets", run: packets::run },
    Comparison { name: "packets-lasting", run: packets::lasting },
    Comparison { name: "packets-disk", run: packets::on_disk },
    Comparison { name: "packets-disk-lasting", run: packets::lasting_on_disk },
    Comparison { name: "recorder-disk", run: recorder::on_disk },
    Comparison { name: "recorder-memory", run: recorder::in_memory },
    Comparison { name: "mount", run: mount::chunks },
    Comparison { name: "mount-one", run: mount::one_file },
    Comparison { name: "data", run: data::run },
    Comparison { name: "codecs-bits-32", run: |stop| codecs::run(Codec::Bits, PixelType::Uint32, stop) },
    Comparison { name: "codecs-bits-16", run: |stop| codecs::run(Codec::Bits, PixelType::Uint16, stop) },
    Comparison {
        name: "codecs-bslz4-32",
        run: |stop| codecs::run(Codec::BitshuffleLz4, PixelType::Uint32, stop),
    },
    Comparison {
        name: "codecs-bslz4-16",
        run: |stop| codecs::run(Codec::BitshuffleLz4, PixelType::Uint16, stop),
    },
    Comparison {
        name: "codecs-bszstd-32",
        run: |stop| codecs::run(Codec::BitshuffleZstd, PixelType::Uint32, stop),
    },
    Comparison {
        name: "codecs-bszstd-16",
        run: |stop| codecs::run(Codec::BitshuffleZstd, PixelType::Uint16, stop),
    },
    Comparison { name: "codecs-lz4-32", run: |stop| codecs::run(Codec::Lz4, PixelType::Uint32, stop) },
    Comparison { name: "codecs-lz4-16", run: |stop| codecs::run(Codec::Lz4, PixelType::Uint16, stop) },
    Comparison { name: "codecs-zstd-32", run: |stop| codecs::run(Codec::Zstd, PixelType::Uint32, stop) },
    Comparison { name: "codecs-zstd-16", run: |stop| codecs::run(Codec::Zstd, PixelType::Uint16, stop) },
    Comparison { name: "hdf5-plain-32", run: |stop| hdf5::plain(PixelType::Uint32, stop) },
    Comparison { name: "hdf5-plain-16", run: |stop| hdf5::plain(PixelType::Uint16, stop) },
    Comparison { name: "hdf5-bslz4-32", run: |stop| hdf5::compressed(PixelType::Uint32, stop) },
    Comparison { name: "hdf5-bslz4-16", run: |stop| hdf5::compressed(PixelType::Uint16, stop) },
    Comparison { name: "hdf5-blocked", run: hdf5::blocked },
    Comparison { name: "hdf5-index", run: hdf5::index },
    Comparison { name: "hdf5-read-plain", run: |stop| hdf5::reading(FrameCompression::None, stop) },
    Comparison { name: "hdf5-read-bslz4", run: |stop| hdf5::reading(FrameCompression::Bslz4, stop) },
    Comparison { name: "tally", run: tally::run },
    Comparison { name: "between", run: between::run },
    Comparison { name: "network-one", run: network::one },
    Comparison { name: "network-four", run: network::four },
    Comparison { name: "network-udp", run: network::udp },
    Comparison { name: "ranks-files", run: ranks::files },
    Comparison { name: "ranks-stream", run: ranks::stream },
    Comparison { name: "ranks-mpi-io", run: ranks::independent },
    Comparison { name: "ranks-mpi-io-collective", run: ranks::collective },
    Comparison { name: "ranks-between", run: ranks::between },
    Comparison { name: "ranks-start", run: ranks::start },
    Comparison { name: "ranks-merge", run: scale::run },
    Comparison { name: "ranks-hdf5", run: hdf5::parallel },
    Comparison { name: "hdf5-received", run: hdf5::received },
    Comparison { name: "start-up", run: start_up::run },
    Comparison { name: "report", run: report::run },
    Comparison { name: "compare", run: records::compare },
    Comparison { name: "import", run: records::import },
];

/// What is held against a bound of its own and not against a peer: run by its whole name, alone. It prints what it finds.
struct Check {
    name: &'static str,
    run: fn(&Stop) -> anyhow::Result<bool>,
}

const CHECKS: [Check; 6] = [
    Check { name: verdict::NAME, run: verdict::run },
    Check { name: invalid::NAME, run: invalid::check },
    Check { name: aa::NAME, run: aa::check },
    Check { name: aa::SIMULATED, run: aa::check_simulated },
    Check { name: index::NAME, run: index::check },
    Check { name: by_url::NAME, run: by_url::check },
];

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let stop = match Stop::on_signals() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("nilometer-bench: can't listen for signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(check) = CHECKS.iter().find(|check| names == [check.name]) {
        println!("{}\n", host::description());
        return code(holds(check, &stop));
    }
    let chosen = match chosen(&names) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            eprintln!("nilometer-bench: no comparison `{unknown}`: choose from {}", all_names());
            return ExitCode::from(2);
        }
    };
    println!("{}\n", host::description());
    let results: Vec<bool> = chosen.iter().map(|comparison| is_met(comparison, &stop)).collect();
    code(!results.contains(&false))
}

fn code(met: bool) -> ExitCode {
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn holds(check: &Check, stop: &Stop) -> bool {
    (check.run)(stop).unwrap_or_else(|error| {
        println!("### {}: not measured: {error:#}\n", check.name);
        false
    })
}

fn all_names() -> String {
    let comparisons = COMPARISONS.iter().map(|comparison| comparison.name);
    comparisons.chain(CHECKS.iter().map(|check| check.name)).collect::<Vec<_>>().join(", ")
}

/// The comparisons whose names begin with one of these, in their own order; or the first that begins none.
fn chosen(names: &[String]) -> Result<Vec<&'static Comparison>, &String> {
    let begins = |name: &String, comparison: &Comparison| comparison.name.starts_with(name.as_str());
    match names.iter().find(|name| !COMPARISONS.iter().any(|comparison| begins(name, comparison))) {
        Some(unknown) => Err(unknown),
        None => Ok(COMPARISONS
            .iter()
            .filter(|comparison| names.is_empty() || names.iter().any(|name| begins(name, comparison)))
            .collect()),
    }
}

fn is_met(comparison: &Comparison, stop: &Stop) -> bool {
    eprintln!("{} ...", comparison.name);
    match (comparison.run)(stop) {
        Ok(outcome) => {
            println!("{outcome}");
            outcome.is_met()
        }
        Err(error) => {
            println!("### {}: not measured: {error:#}\n", comparison.name);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_and_unknown_ones_are_told() {
        let count = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            chosen(&names).map(|chosen| chosen.len()).map_err(Clone::clone)
        };
        assert_eq!(count(&[]), Ok(COMPARISONS.len()));
        assert_eq!(count(&["walk", "metadata"]), Ok(9));
        assert_eq!(count(&["walk", "wlak"]), Err("wlak".to_owned()));
    }
}
