//! A file for each position of a scan: whatever becomes of frames and disks, a file holds the frames of its position only,
//! each at its place.

use nilometer_model::{Nanos, Seed, Storing};
use nilometer_recording::reader::Trust;
use nilometer_ring::WhenFull;

use crate::lab::{Lab, PAGE, Run, disk};

/// Frames of a position.
const POSITION: u64 = 8;
/// With some room between frames in memory, and none in files.
const FRAME: u64 = PAGE;

fn lab(seed: u64) -> Lab {
    let mut stream = Seed(seed).named("positions").stream();
    let mut devices = [2_000, 3_000, 5_000].map(|base| disk(Nanos(base))).to_vec();
    if stream.below(2) == 0 {
        devices[stream.below(3) as usize].dead_from = Nanos(10_000 + stream.below(300_000));
    }
    Lab {
        frame_size: FRAME,
        frames: 300,
        period: Nanos(500 + stream.below(1500)),
        slots: 20 + stream.below(60) as usize,
        depth: 1 + stream.below(4) as usize,
        frames_per_file: POSITION,
        storing: Storing::Positions,
        together: if stream.below(2) == 0 { 0 } else { 3 * FRAME as u32 },
        when_full: WhenFull::ALL[1 + stream.below(2) as usize],
        devices,
        ..Lab::default()
    }
}

/// Positions that have a file with their number, and what is wrong with these.
fn positions(lab: &Lab, run: &Run) -> (usize, Vec<String>) {
    let (mut found, mut wrong) = (0, Vec::new());
    for target in 0..run.targets.len() {
        for name in run.names(target) {
            let number = name.strip_prefix("n_r.").and_then(|name| name.strip_suffix(".raw"));
            let Some(Ok(position)) = number.map(str::parse::<u64>) else { continue };
            found += 1;
            let bytes = run.read(target, &name);
            let frames = bytes.len() / FRAME as usize;
            for (at, frame) in (0..).zip(bytes.chunks(FRAME as usize)) {
                let hole = frame.iter().all(|byte| *byte == 0);
                let right = lab.pattern().verify(position * POSITION + at, frame).is_ok();
                // Behind the last frame there is nothing, but where nobody could cut the file.
                let ends = at as usize + 1 == frames && run.lanes[target].fault.is_none();
                let fits = at < POSITION && (right || hole && !ends);
                wrong.extend((!fits).then(|| format!("frame {at} of position {position}")));
            }
        }
    }
    (found, wrong)
}

#[test]
fn a_file_has_the_frames_of_its_position_at_their_places() {
    let (mut files, mut lost, mut failed) = (0, 0, 0);
    for seed in 0..200 {
        let lab = lab(seed);
        let run = lab.run(Nanos::MAX);
        let back = run.back();
        let index = back.index(Trust::Acknowledged);
        let missing: u64 = index.missing().iter().map(|(_, count)| count).sum();
        assert_eq!(missing, run.ring.books().lost(), "seed {seed}");
        assert_eq!(back.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "seed {seed}");
        let (found, wrong) = positions(&lab, &back);
        assert_eq!(wrong, Vec::<String>::new(), "seed {seed}");
        (files, lost) = (files + found, lost + missing);
        failed += run.lanes.iter().filter(|lane| lane.fault.is_some()).count();
    }
    assert!(files > 200 * 25 && lost > 200 && failed > 20, "{files} files, {lost} frames, {failed} disks");
}

#[test]
fn what_was_called_durable_survives_the_loss_of_power() {
    let mut promised = 0;
    for seed in 0..200 {
        let lab = lab(seed);
        let run = lab.run(Nanos(20_000 + seed * 2_000));
        let before = run.back().index(Trust::Acknowledged);
        for (target, number) in run.targets.iter().zip(0..) {
            target.crash(Seed(seed).part(number));
        }
        let (back, is_dead) = (run.back(), |lane: usize| run.lanes[lane].fault.is_some());
        let index = back.index(Trust::Durable);
        let durable = before.frames.iter().filter(|(_, place)| {
            let lane = before.heads[place.lane].lane as usize;
            !is_dead(lane) && run.durable[lane].0.is_some_and(|last| place.file() <= last)
        });
        for (number, _) in durable {
            assert!(index.frames.contains(number), "seed {seed}: frame {number} is gone");
            promised += 1;
        }
        assert_eq!(back.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "seed {seed}");
    }
    assert!(promised > 1000, "only {promised} frames were called durable");
}
