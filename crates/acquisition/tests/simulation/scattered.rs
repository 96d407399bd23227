//! Recordings scattered over disks in chunks: whatever becomes of the disks, the chunks that are there, put together in the
//! order of their numbers as VLBI readers do, are the frames in order.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_acquisition::sink::{Numbering, Streamer};
use nilometer_model::{Nanos, Seed, Storing};
use nilometer_recording::{
    instrument::Pattern,
    reader::{Index, Trust},
};
use nilometer_ring::WhenFull;
use nilometer_storage::{OpKind, testing::Device};

use crate::{
    lab::{Lab, PAGE, Run, disk},
    pretending::Pretending,
};

const CHUNK: u64 = 12;

/// Three disks of different speed that together carry a little more than what comes.
fn lab() -> Lab {
    Lab {
        frame_size: PAGE,
        frames: 400,
        period: Nanos(1_000),
        slots: 100,
        depth: 3,
        frames_per_file: CHUNK,
        storing: Storing::Scattered,
        devices: [2_000, 3_000, 5_000].map(|base| disk(Nanos(base))).to_vec(),
        ..Lab::default()
    }
}

/// Chunks by their numbers, and on which disk each is.
type Found = BTreeMap<u32, (usize, Vec<u8>)>;

/// What a reader of scattered recordings finds. It refuses one in which a number is there twice.
fn chunks(run: &Run) -> Result<Found, String> {
    let mut chunks = BTreeMap::new();
    for target in 0..run.targets.len() {
        for name in run.names(target) {
            let Some(number) = name.strip_prefix("n_r.").filter(|number| number.len() == 8) else { continue };
            let Ok(number) = number.parse() else { continue };
            let other = chunks.insert(number, (target, run.read(target, &name)));
            if other.is_some() {
                return Err(format!("chunk {number} is there twice"));
            }
        }
    }
    Ok(chunks)
}

/// The number of the frame that these bytes are.
fn number(pattern: &Pattern, bytes: &[u8]) -> Option<u64> {
    let first = u64::from_le_bytes(*bytes.first_chunk()?);
    // The inverse of the multiplier of marks, modulo 2^64.
    let multiplier = 0x9e37_79b9_7f4a_7c15_u64;
    let inverse =
        (0..6).fold(multiplier, |x, _| x.wrapping_mul(2_u64.wrapping_sub(multiplier.wrapping_mul(x))));
    let number = first.wrapping_mul(inverse).wrapping_sub(1);
    (number < 1 << 40 && pattern.verify(number, bytes).is_ok()).then_some(number)
}

/// Which frames are in a chunk; none for what is no frame.
fn frames(pattern: &Pattern, bytes: &[u8]) -> Vec<Option<u64>> {
    bytes.chunks(PAGE as usize).map(|frame| number(pattern, frame)).collect()
}

/// How many frames of each chunk are acknowledged, by the disk's lane and the chunk's name.
fn acknowledged(index: &Index) -> BTreeMap<(usize, String), usize> {
    let mut counts = BTreeMap::new();
    for number in index.frames.numbers(0..u64::MAX) {
        for place in index.places(number) {
            for name in index.file_names("n_r", place) {
                *counts.entry((index.heads[place.lane].lane as usize, name)).or_default() += 1;
            }
        }
    }
    counts
}

/// Frames in the order of the chunks; of those on these disks only what is acknowledged, since they could not be cut.
fn in_order(
    run: &Run,
    index: &Index,
    pattern: &Pattern,
    uncut: impl Fn(usize) -> bool,
) -> Result<Vec<u64>, String> {
    let (acknowledged, mut all) = (acknowledged(index), Vec::new());
    for (number, (target, bytes)) in chunks(run)? {
        let found = frames(pattern, &bytes);
        let lane = (target * run.writers, format!("n_r.{number:08}"));
        let count = acknowledged.get(&lane).copied().unwrap_or(0);
        let count = if uncut(target) { count } else { found.len() };
        let known = found.iter().take(count).copied().collect::<Option<Vec<_>>>();
        all.extend(known.ok_or_else(|| format!("in chunk {number} something is no frame: {found:?}"))?);
    }
    if !all.is_sorted_by(|one, next| one < next) {
        return Err(format!("chunks are not in order: {all:?}"));
    }
    Ok(all)
}

/// Chunks that have no number, on any disk.
fn unnumbered(run: &Run) -> usize {
    let names = (0..run.targets.len()).flat_map(|target| run.names(target));
    names.filter(|name| name.rsplit_once('.').is_some_and(|(_, suffix)| suffix == "raw")).count()
}

#[test]
fn healthy_disks_hold_one_stream_in_dense_chunks() {
    for (writers, devices) in [(1, 1), (1, 2), (1, 3), (2, 2)] {
        let all = lab();
        let period = Nanos(3_000 / (writers * devices) as u64 + 400);
        let lab = Lab { devices: all.devices[..devices].to_vec(), writers, period, slots: 400, ..all };
        let run = lab.run(Nanos::MAX);
        assert_eq!(run.ring.books().lost(), 0);
        let index = run.index(Trust::Durable);
        assert_eq!((index.missing(), index.ended), (vec![], writers * devices));
        assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new());
        assert!(index.chunks.values().all(|names| names.before.is_none()), "nothing is renamed");
        let chunks = chunks(&run).expect("each is there once");
        assert!(chunks.keys().copied().eq(0..34), "{:?}", chunks.keys());
        let used: BTreeSet<usize> = chunks.values().map(|(target, _)| *target).collect();
        assert_eq!(used.len(), devices, "every disk has some");
        let bytes: Vec<u8> = chunks.into_values().flat_map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes.len() as u64, 400 * PAGE);
        let numbers: Vec<_> = frames(&lab.pattern(), &bytes);
        assert!(numbers.into_iter().eq((0..400).map(Some)));
    }
}

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 20_000 } else { 400 }
}

/// One or two of three to five disks die, fill up or stand still at random moments.
fn troubled(seed: u64) -> Lab {
    let mut stream = Seed(seed).named("trouble").stream();
    let all = lab();
    let count = 3 + stream.below(3) as usize;
    let mut devices: Vec<Device> =
        (0..count).map(|_| all.devices[stream.below(3) as usize].clone()).collect();
    for _ in 0..=stream.below(2) {
        let which = stream.below(count as u64) as usize;
        let at = Nanos(10_000 + stream.below(500_000));
        let device = &mut devices[which];
        match stream.below(4) {
            0 | 1 => device.dead_from = at,
            2 => device.capacity = (5 + stream.below(100)) * PAGE,
            _ => device.stalls = vec![(at, at + Nanos(stream.below(400_000)))],
        }
    }
    let reserve = (stream.below(2) == 0).then_some(PAGE);
    let (slots, depth) = (30 + stream.below(400) as usize, 1 + stream.below(4) as usize);
    let period = Nanos(700 + stream.below(1500));
    let when_full = WhenFull::ALL[1 + stream.below(2) as usize];
    // Half of them write small frames together.
    let together = if seed % 4 < 2 { 0 } else { 5 * PAGE as u32 };
    Lab { period, slots, depth, together, devices, when_full, reserve, ..all }
}

/// What is wrong with a recording that came to its end.
fn fault(lab: &Lab, run: &Run) -> Result<(), String> {
    let (pattern, back) = (lab.pattern(), run.back());
    let index = back.index(Trust::Acknowledged);
    let missing: u64 = index.missing().iter().map(|(_, count)| count).sum();
    expect(missing == run.ring.books().lost(), || format!("{missing} are missing"))?;
    expect(index.copies.is_empty(), || format!("{:?} are in two places", index.copies))?;
    let wrong = back.wrong(&index, &pattern);
    expect(wrong.is_empty(), || format!("{wrong:?} are wrong"))?;
    let died =
        |target: usize| run.lanes[target].fault.is_some() && lab.devices[target].dead_from < Nanos::MAX;
    let all = in_order(&back, &index, &pattern, died)?;
    let (chunks, unnumbered) = (chunks(&back)?, unnumbered(&back));
    expect(unnumbered > 0 || all.len() == index.frames.len(), || format!("only {all:?} are in chunks"))?;
    let gone = run.lanes.iter().filter(|lane| lane.fault.is_some() || lane.full).count();
    expect(unnumbered == 0 || gone > 0, || format!("{unnumbered} have no number"))?;
    let dense = chunks.keys().copied().eq(0..chunks.len() as u32);
    expect(dense || gone > 0, || format!("{:?} are not dense", chunks.keys()))
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Files that were renamed.
fn renamed(run: &Run) -> usize {
    let index = run.back().index(Trust::Acknowledged);
    index.chunks.values().filter(|names| names.before.is_some()).count()
}

#[test]
fn whatever_becomes_of_disks_their_chunks_are_the_frames_in_order() {
    let (mut moved, mut without) = (0, 0);
    for seed in 0..seeds() {
        let lab = troubled(seed);
        let run = lab.run(Nanos::MAX);
        assert_eq!(fault(&lab, &run), Ok(()), "seed {seed}");
        moved += renamed(&run);
        without += unnumbered(&run.back());
    }
    assert!(moved as u64 > seeds() / 4, "only {moved} files were renamed");
    assert!((without as u64) < seeds() / 10, "{without} chunks have no number");
}

/// The processes die, or the power is lost.
fn crash(lab: &Lab, seed: u64, until: Nanos) -> Result<usize, String> {
    let run = lab.run(until);
    let power = seed.is_multiple_of(2);
    let trust = if power { Trust::Durable } else { Trust::Acknowledged };
    let promised = run.back().index(Trust::Acknowledged);
    for (target, number) in run.targets.iter().zip(0..) {
        if power { target.crash(Seed(seed).part(number)) } else { target.kill() }
    }
    let (back, pattern) = (run.back(), lab.pattern());
    let index = back.index(trust);
    let durable = |lane: usize, file: u64| run.durable[lane].0.is_some_and(|last| file <= last);
    let lost = promised.frames.iter().filter(|(number, place)| {
        let kept = !power || durable(promised.heads[place.lane].lane as usize, place.file());
        kept && !index.frames.contains(*number)
    });
    let lost: Vec<_> = lost.map(|(number, _)| number).collect();
    expect(lost.is_empty(), || format!("{lost:?} are lost"))?;
    let wrong = back.wrong(&index, &pattern);
    expect(wrong.is_empty(), || format!("{wrong:?} are wrong"))?;
    in_order(&back, &index, &pattern, |_| true).map(|all| all.len())
}

#[test]
fn at_any_moment_each_number_is_there_once_and_in_order() {
    let mut seen = 0;
    for seed in 0..2 * seeds() {
        let lab = troubled(seed);
        let until = Nanos(Seed(seed).named("moment").stream().below(700_000));
        let found = crash(&lab, seed, until);
        seen += found.unwrap_or_else(|fault| panic!("seed {seed} at {until}: {fault}"));
    }
    assert!(seen as u64 > 100 * seeds(), "only {seen} frames were recorded");
}

#[test]
fn lanes_that_rename_nothing_or_number_by_themselves_are_found_out() {
    let found = |change: fn(Lab) -> Lab| {
        let labs = (0..seeds() / 2).map(|seed| change(troubled(seed)));
        labs.filter(|lab| fault(lab, &lab.run(Nanos::MAX)).is_err()).count() as u64
    };
    let idle = found(|lab| Lab {
        wrap: |engine| Box::new(Pretending { engine, kind: OpKind::Rename, instead: OpKind::Sync }),
        ..lab
    });
    assert!(idle > seeds() / 20, "without renaming, only {idle} runs were wrong");
    let alone = found(|lab| Lab { numbering: |_| Numbering::default(), ..lab });
    assert!(alone > seeds() / 4, "with numbers of its own for each lane, only {alone} runs were wrong");
}

#[test]
fn a_disk_that_stands_still_leaves_its_chunk_to_the_others() {
    let mut devices = vec![lab().devices[0].clone(); 3];
    devices[1].stalls = vec![(Nanos(100_000), Nanos(50_000_000))];
    let lab = Lab { devices, slots: 18, frames: 4000, period: Nanos(4_000), ..lab() };
    let run = lab.run(Nanos::MAX);
    assert_eq!((run.ring.books().lost(), fault(&lab, &run)), (0, Ok(())));
    assert!(renamed(&run) > 0, "chunks behind what was left over move up");
    assert!(run.lanes[1].stored > 0 && run.lanes[1].longest > Nanos(40_000_000), "{:?}", run.lanes[1]);
}

#[test]
fn vlbistreamer_is_told_what_is_there_on_each_disk() {
    let streamer = Some(Streamer { packet_size: 512, stripped: 8 });
    let lab = Lab { streamer, ..lab() };
    let run = lab.run(Nanos::MAX);
    assert_eq!(fault(&lab, &run), Ok(()));
    for target in 0..3 {
        let text = String::from_utf8(run.read(target, "n_r.cfg")).expect("text");
        assert_eq!(
            text,
            "packet_size = 512L;\noffset_onwrite = 8;\ncumul = 34L;\ntotal_packets = 3200L;\nbuf_division = 1;\n"
        );
    }
}
