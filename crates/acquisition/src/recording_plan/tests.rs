//! Tables of the plan's choices.

use nilometer_model::{Capabilities, Capability, DirectIo, Nanos};
use nilometer_storage::{
    Target,
    clock::VirtualClock,
    testing::{Device, Memory, Simulated},
};

use super::*;

const MIB: u64 = 1 << 20;

fn disk() -> TargetDescription {
    let disk = Simulated::new(Device::default(), VirtualClock::default());
    let mut description = disk.description().clone();
    description.space.free = Bytes(1 << 40);
    description
}

fn memory() -> TargetDescription {
    Memory::new(Bytes(1 << 40)).description().clone()
}

fn frames(size: u64, storing: Storing) -> StoredFrames {
    StoredFrames { storing, packets: false, padded: true, ..StoredFrames::blocks_of(size, Format::Raw) }
}

fn packets() -> StoredFrames {
    StoredFrames::blocks(8032, Format::Vdif)
}

fn latest(gibibytes: u64) -> LayoutOptions {
    let retention = Retention::Latest(Bytes(gibibytes << 30));
    LayoutOptions { retention, ..LayoutOptions::with_buffer(Bytes(1 << 30)) }
}

#[test]
fn packets_go_into_one_file_into_chunks_or_into_one_that_is_overwritten() {
    let all = LayoutOptions::with_buffer(Bytes(1 << 30));
    for (onto, options, storing, lanes) in [
        (vec![disk()], all, Storing::Shared, 1),
        (vec![memory()], all, Storing::Shared, 1),
        (vec![disk(), memory()], all, Storing::Scattered, 2),
        (vec![disk()], latest(2), Storing::Ring, 1),
        (vec![disk(), disk()], latest(2), Storing::Ring, 2),
    ] {
        let plan = RecordingPlan::of(packets(), &onto, &options);
        assert_eq!((plan.storing(), plan.lanes()), (storing, lanes), "{plan}");
        assert_eq!(plan.spacing().stride, plan.frames.size, "nothing between blocks: {plan}");
        assert_eq!(plan.is_bounded(), storing == Storing::Ring);
        assert_eq!(plan.layout("n", 7, 0).durability, Durability::EachFile, "{plan}");
    }
}

#[test]
fn what_is_kept_of_packets_is_there_whichever_part_is_overwritten() {
    for gibibytes in [1, 2, 100] {
        for onto in [vec![disk()], vec![disk(); 3]] {
            let plan = RecordingPlan::of(packets(), &onto, &latest(gibibytes));
            let keep = plan.keep.expect("only the latest stay") - 1;
            let all = keep * plan.file_size() * u64::from(plan.lanes());
            assert!(all >= gibibytes << 30, "{plan}");
            let size = plan.ring_size().expect("it is overwritten").0 * onto.len() as u64;
            assert!(size < (gibibytes << 30) * 11 / 10 + 300 * MIB * onto.len() as u64, "{plan}");
            assert_eq!(plan.space(u64::MAX), plan.ring_size().expect("the same"));
        }
    }
}

#[test]
fn an_instruments_frames_are_stored_as_it_says() {
    let options = latest(2);
    for (onto, storing, lanes, keep) in [
        (disk(), Storing::Files, 1, Some(8)),
        (memory(), Storing::Files, 2, Some(4)),
        (disk(), Storing::Growing, 1, None),
        (memory(), Storing::Growing, 2, None),
        (disk(), Storing::Shared, 2, None),
        (disk(), Storing::Scattered, 1, None),
    ] {
        let plan = RecordingPlan::of(frames(MIB, storing), &[onto], &options);
        assert_eq!((plan.storing(), plan.lanes(), plan.keep), (storing, lanes, keep), "{plan}");
        assert_eq!(plan.slots(), 1024, "{plan}");
    }
}

#[test]
fn writers_are_as_many_as_asked_or_as_directories_that_copy() {
    let buffer = LayoutOptions::with_buffer(Bytes(1 << 30));
    let lanes = |onto: &[TargetDescription], options: &LayoutOptions| {
        RecordingPlan::of(frames(MIB, Storing::Files), onto, options).lanes()
    };
    assert_eq!(lanes(&[memory()], &buffer), 2);
    assert_eq!(lanes(&[memory(), memory()], &buffer), 2, "one each copies too");
    let three = LayoutOptions { writers: Some(3), ..buffer };
    assert_eq!((lanes(&[disk()], &three), lanes(&[disk(), disk()], &three)), (3, 6));
}

#[test]
fn all_writers_of_a_directory_share_a_file_of_hdf5_if_somebody_completes_it() {
    let hdf5 = StoredFrames { format: Format::Hdf5, ..frames(MIB, Storing::Shared) };
    let storing = |onto: usize, options: &LayoutOptions| {
        RecordingPlan::of(hdf5, &vec![disk(); onto], options).storing()
    };
    let alone = LayoutOptions { writers: Some(3), ..LayoutOptions::with_buffer(Bytes(1 << 30)) };
    let completed = LayoutOptions { completes_shared: true, ..alone };
    assert_eq!((storing(1, &alone), storing(1, &completed)), (Storing::Positions, Storing::Shared));
    assert_eq!(storing(2, &completed), Storing::Positions, "two directories have no file in common");
    let kept = LayoutOptions { retention: Retention::Latest(Bytes(1 << 30)), ..completed };
    assert_eq!(storing(1, &kept), Storing::Shared, "nothing is removed from it");
}

#[test]
fn chunks_leave_room_in_memory_for_every_lane() {
    let options = LayoutOptions::with_buffer(Bytes(64 * MIB));
    let plan = RecordingPlan::of(frames(MIB, Storing::Scattered), &vec![disk(); 4], &options);
    assert_eq!(plan.frames_per_file, 8);
    let asked = StoredFrames { per_file: Some(100), ..frames(MIB, Storing::Scattered) };
    assert_eq!(RecordingPlan::of(asked, &[disk()], &options).frames_per_file, 100, "as it was asked for");
}

#[test]
fn a_line_of_a_scan_leaves_room_for_every_writer_or_is_refused() {
    let plan = |together: u64, disks: usize, mebibytes: u64| {
        let hdf5 = StoredFrames { format: Format::Hdf5, together, ..frames(MIB, Storing::Files) };
        RecordingPlan::of(hdf5, &vec![disk(); disks], &LayoutOptions::with_buffer(Bytes(mebibytes * MIB)))
    };
    for (together, disks, mebibytes, is_fine) in [
        (1, 4, 4, true),
        (100, 1, 4, true),
        (8, 2, 32, true),
        (8, 2, 31, false),
        (9, 2, 32, false),
        (8, 3, 47, false),
        (8, 3, 48, true),
        (u64::MAX, 2, 48, false),
    ] {
        let plan = plan(together, disks, mebibytes);
        let checked = plan.check_lines();
        assert_eq!(checked.is_ok(), is_fine, "{together} frames on {disks} disks: {checked:?}");
        let each = plan.frames_per_file.saturating_mul(MIB * 2 * disks as u64);
        assert!(!is_fine || disks == 1 || each <= mebibytes * MIB || together == 1, "{plan}");
    }
    let refused = plan(9, 2, 32).check_lines().expect_err("it is too long");
    assert!(
        refused.contains("9 frames") && refused.contains("2 writers") && refused.contains("36 MiB"),
        "{refused}"
    );
}

#[test]
fn little_storage_has_small_parts() {
    let mut little = disk();
    little.space.free = Bytes(1 << 30);
    let options = LayoutOptions { reserve: Bytes(512 * MIB), ..LayoutOptions::with_buffer(Bytes(1 << 30)) };
    let in_one_file = StoredFrames { format: Format::Hdf5, ..frames(MIB, Storing::Files) };
    for frames in [packets(), in_one_file] {
        let plan = RecordingPlan::of(frames, &[little.clone()], &options);
        assert!(plan.file_size() <= 32 * MIB, "{plan}");
    }
}

#[test]
fn it_says_in_words_what_lies_there() {
    let all = LayoutOptions::with_buffer(Bytes(1 << 30));
    let words =
        |frames, onto, options: &LayoutOptions| RecordingPlan::of(frames, &[onto], options).to_string();
    let growing = words(packets(), disk(), &all);
    assert!(growing.starts_with("one growing file, synced every 2"), "{growing}");
    let ring = words(packets(), disk(), &latest(2));
    assert!(ring.contains("that is overwritten from its beginning"), "{ring}");
    let pictures = words(StoredFrames { format: Format::Cbf, ..frames(MIB, Storing::Files) }, disk(), &all);
    assert!(pictures.starts_with("a file for each frame, of "), "{pictures}");
    assert_eq!(
        words(frames(MIB, Storing::Files), memory(), &latest(2)),
        "one file after the other, per writer, of 256 MiB each, the last 8 kept; through the cache, \
         2 writers, 1 GiB of memory"
    );
}

/// Returns an object store, and the file system of Hadoop.
fn stores() -> [TargetDescription; 2] {
    let places = [Capability::WriteAnywhere, Capability::Resize];
    let object = [&places[..], &[Capability::Append, Capability::Rename]].concat();
    let hadoop = [&places[..], &[Capability::Sync]].concat();
    [object, hadoop].map(|lacking| TargetDescription {
        capabilities: Capabilities::all().without(&lacking),
        direct: DirectIo::Refused("it is no disk".into()),
        ..disk()
    })
}

#[test]
fn what_is_put_whole_goes_into_files_that_fit_into_memory() {
    let all = LayoutOptions::with_buffer(Bytes(256 << 20));
    for onto in stores() {
        let onto = std::slice::from_ref(&onto);
        let plan = RecordingPlan::of(packets(), onto, &all);
        assert_eq!((plan.storing(), plan.check_storage(onto)), (Storing::Scattered, Ok(())), "{plan}");
        assert!(plan.file_size() <= WHOLE && 2 * plan.frames_per_file <= plan.slots() as u64, "{plan}");
        let layout = plan.layout("n", 7, 0);
        let syncs = onto[0].capabilities.has(Capability::Sync);
        assert_eq!(layout.durability == Durability::EachFile, syncs, "what is not synced is not durable");
        assert!(layout.whole_files && !layout.direct && !layout.preallocate);
        let said = LayoutOptions { chunk_size: Some(Bytes(8 << 20)), ..all };
        let held = |options| RecordingPlan::of(packets(), onto, &options).layout("n", 7, 0).checkpoint;
        assert_eq!((held(all), held(said)), (Nanos::from_millis(1000), Nanos::MAX));
        let kept = LayoutOptions { retention: Retention::Latest(Bytes(1 << 30)), ..all };
        let plan = RecordingPlan::of(packets(), onto, &kept);
        assert!(plan.storing() == Storing::Files && plan.is_bounded(), "nothing is overwritten: {plan}");
        let plan = RecordingPlan::of(frames(MIB, Storing::Files), onto, &all);
        assert_eq!((plan.frames_per_file, plan.lanes()), (64, 2), "{plan}");
    }
}

#[test]
fn what_can_not_be_put_whole_is_refused_with_what_can() {
    let all = LayoutOptions::with_buffer(Bytes(64 << 20));
    for onto in stores() {
        let onto = std::slice::from_ref(&onto);
        let refused = |frames: StoredFrames| RecordingPlan::of(frames, onto, &all).check_storage(onto);
        for storing in [Storing::Growing, Storing::Shared] {
            let why = refused(frames(MIB, storing)).expect_err("it is written in places");
            assert!(why.contains("writing at any offset") && why.contains("`files` or `scattered`"), "{why}");
        }
        let positions = |count| StoredFrames { per_file: Some(count), ..frames(MIB, Storing::Positions) };
        assert!(
            refused(positions(1)).is_ok() && refused(positions(9)).is_err(),
            "one leaves its place empty"
        );
        let hdf5 = StoredFrames { format: Format::Hdf5, ..frames(MIB, Storing::Files) };
        assert!(refused(hdf5).expect_err("it has an index").contains("an HDF5 file"));
        let of = |count| StoredFrames { per_file: Some(count), ..frames(MIB, Storing::Files) };
        let why = refused(of(40)).expect_err("two lanes, each with two files of 40 frames, in 64 slots");
        assert!(why.contains("160 MiB"), "{why}");
        assert!(refused(of(16)).is_ok() && refused(of(17)).is_err(), "while one is put the next one comes");
    }
    assert_eq!(
        RecordingPlan::of(frames(MIB, Storing::Shared), &[disk()], &all).check_storage(&[disk()]),
        Ok(())
    );
}

#[test]
fn a_frame_that_is_aligned_to_stripes_takes_whole_stripes() {
    let frames = |mib: u64, format| StoredFrames {
        size: mib * MIB,
        format,
        packets: false,
        storing: Storing::Files,
        padded: true,
        ..packets()
    };
    let options = LayoutOptions { align: Some(Bytes(16 * MIB)), ..latest(2) };
    for (mib, format, room) in
        [(17, Format::Hdf5, 32), (16, Format::Hdf5, 16), (4, Format::Hdf5, 4), (17, Format::Raw, 17)]
    {
        let plan = RecordingPlan::of(frames(mib, format), &[disk()], &options);
        assert_eq!(plan.file_size(), plan.frames_per_file * room * MIB, "{mib} MiB: {plan}");
        let keep = plan.keep.expect("only the latest stay");
        assert!(keep * plan.file_size() <= 2 << 30, "{mib} MiB: {plan}");
    }
    let all = LayoutOptions { align: Some(Bytes(16 * MIB)), ..LayoutOptions::with_buffer(Bytes(1 << 30)) };
    let plan = RecordingPlan::of(frames(17, Format::Hdf5), &[disk()], &all);
    assert_eq!(plan.space(100), Bytes(3200 * MIB), "{plan}");
}
