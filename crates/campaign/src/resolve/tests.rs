//! Tests the checks of a plan against its targets, and their messages.

use super::*;
use nilometer_model::{FileSystemKind, Format, Instrument, Nanos, StripeControl, catalogue};
use nilometer_plan::{Cell, RecordingRun, parse};

const COPIES: &str = r#"
title = "copies"
repeats = 1
reserve = "0 B"
source = "/source"

[[stage]]
name = "copies"
volumes = "alone"
[stage.workload.stream]
file_size = "1 GiB"
block_size = "1 MiB"
access = "buffered"
source = "disk"
"#;

fn plan(volumes: &str) -> ResolvedPlan {
    parse(&COPIES.replace("alone", volumes), "copies", 1.0).expect("a valid plan")
}

/// A directory of a file system with `free` GiB free.
fn target(mount_point: &str, free: u64) -> TargetDescription {
    let probed = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let space = FileSystemSpace { free: Bytes(free << 30), free_inodes: None, ..probed.space };
    TargetDescription { mount_point: mount_point.into(), device: None, space, ..probed }
}

#[test]
fn targets_on_one_file_system_that_are_written_together_need_the_space_of_both() {
    let fits = |volumes, free| resolve(plan(volumes), vec![target("/a", free), target("/a", free)]).is_ok();
    assert_eq!([fits("alone", 1), fits("together", 1), fits("together", 2)], [true, false, true]);
    assert!(resolve(plan("together"), vec![target("/a", 1), target("/b", 1)]).is_ok());
}

#[test]
fn the_first_targets_at_once_need_the_space_of_those_that_share_it() {
    let fits = |count: u32, targets: &[(&str, u64)]| {
        let volumes = format!("volumes = {count}");
        let plan = COPIES.replace("volumes = \"alone\"", &format!("volumes = [\"alone\", {count}]"));
        let plan = parse(&plan, "copies", 1.0).unwrap_or_else(|error| panic!("{volumes}: {error}"));
        resolve(plan, targets.iter().map(|(mount_point, free)| target(mount_point, *free)).collect()).is_ok()
    };
    assert!(
        fits(2, &[("/a", 1), ("/b", 1), ("/a", 1)]),
        "the first and the third are never at work together"
    );
    assert!(!fits(3, &[("/a", 1), ("/b", 1), ("/a", 1)]));
    assert!(fits(3, &[("/a", 2), ("/b", 1), ("/a", 2)]));
    assert!(fits(4, &[("/a", 1), ("/b", 1), ("/a", 1)]), "there are no four");
}

#[test]
fn a_target_that_is_in_no_number_of_the_plan_is_refused_with_what_would_do() {
    let said = |targets: usize| {
        let plan = parse(&COPIES.replace("\"alone\"", "2"), "copies", 1.0).expect("a valid plan");
        let targets = (0..targets).map(|index| target(&format!("/{index}"), 9)).collect();
        resolve(plan, targets).err().map(|error| error.to_string())
    };
    assert_eq!(said(2), None);
    for targets in [1, 3] {
        let error = said(targets).expect("refused");
        assert!(
            error.contains("no volume of the plan includes") && error.contains("name as many"),
            "{error}"
        );
    }
}

#[test]
fn a_source_on_the_file_system_of_its_target_takes_from_the_same_space() {
    let fits = |volumes, targets: &[&str], free| {
        let targets = targets.iter().map(|mount_point| target(mount_point, 9)).collect();
        let campaign = resolve(plan(volumes), targets).expect("room for all");
        with_source(campaign, target("/a", free)).is_ok()
    };
    assert_eq!(
        [fits("alone", &["/b"], 1), fits("alone", &["/a"], 1), fits("alone", &["/a"], 2)],
        [true, false, true]
    );
    assert!(fits("alone", &["/a", "/a"], 2), "one after the other");
    assert!(
        !fits("together", &["/a", "/a"], 3) && fits("together", &["/a", "/a"], 4),
        "two copies of two sources"
    );
}

#[test]
fn one_device_mounted_twice_is_one_file_system() {
    let [mut one, mut other] = ["/a", "/b"].map(|mount_point| target(mount_point, 1));
    assert!(!one.shares_space_with(&other));
    [one.device, other.device] = [Some("sda1".into()), Some("sda1".into())];
    assert!(one.shares_space_with(&other));
}

#[test]
fn a_recording_that_does_not_fit_is_told_what_would_help() {
    let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                  frame_rate = \"1 Hz\"\n";
    let ingest = RecordingRun {
        duration: Nanos(1),
        buffer: Bytes(4 << 20),
        keep: Bytes(2 << 30),
        ..RecordingRun::new(Instrument::parse(camera, "camera").expect("valid"))
    };
    let mut plan = plan("alone");
    plan.cells = vec![Cell::recording("images", ingest)];
    assert!(resolve(plan.clone(), vec![target("/a", 9)]).is_ok());
    let error = resolve(plan, vec![target("/a", 1)]).expect_err("2 GiB stay").to_string();
    assert!(error.contains("`camera`") && error.contains("frames_per_file"), "{error}");
    assert!(!error.contains("--scale"), "a scale changes nothing: {error}");
}

#[test]
fn lines_of_a_scan_that_leave_no_room_for_the_other_writer_are_refused_before_anything_is_recorded() {
    let detector = catalogue::instruments().into_iter().find(|one| one.name == "jungfrau-4m");
    let mut detector = detector.expect("it is in the catalogue");
    detector.recording.format = Format::Hdf5;
    detector.recording.scan = Some("30x4".parse().expect("a scan"));
    let resolved = |writers: u32, buffer: u64| {
        let mut run = RecordingRun {
            duration: Nanos::from_millis(1000),
            buffer: Bytes(buffer << 20),
            keep: Bytes(1 << 40),
            ..RecordingRun::new(detector.clone())
        };
        run.swept.writers = Some(writers);
        let mut plan = plan("alone");
        plan.cells = vec![Cell::recording("images", run)];
        resolve(plan, vec![target("/a", 100)]).map_err(|error| error.to_string())
    };
    assert!(resolved(1, 64).is_ok(), "one has all lines");
    assert!(resolved(2, 256).is_ok(), "each has two");
    let why = resolved(2, 64).expect_err("one line fills half of it");
    for part in ["`jungfrau-4m", "--buffer 64 MiB", "writers of 4 frames each", "give 128 MiB", "writers = 1"]
    {
        assert!(why.contains(part), "`{part}`: {why}");
    }
}

#[test]
fn stripes_of_a_recording_are_refused_where_nobody_can_choose_them() {
    let camera = catalogue::instruments().into_iter().find(|one| one.name == "pco-edge");
    let mut run = RecordingRun {
        keep: Bytes(1 << 30),
        buffer: Bytes(64 << 20),
        ..RecordingRun::new(camera.expect("it is in the catalogue"))
    };
    run.swept.stripe_count = Some(4);
    let asked = |run: &RecordingRun| ResolvedPlan {
        cells: vec![Cell::recording("images", run.clone())],
        ..plan("alone")
    };
    let on = |path: &str, kind, striping| {
        let mut on = target(path, 9);
        on.address = std::path::Path::new(path).into();
        on.striping = striping;
        on.profile.kind = kind;
        on
    };
    let lustre = || on("/lustre", FileSystemKind::Lustre, Some(StripeControl::Lustre));
    let beegfs = || on("/beegfs", FileSystemKind::BeeGfs, Some(StripeControl::BeeGfs));
    let accepted = resolve(asked(&run), vec![lustre(), beegfs()]).expect("both have stripes");
    assert!(accepted.applies(0, 0) && accepted.applies(0, 1));
    let xfs = on("/xfs", FileSystemKind::Xfs, None);
    let why = resolve(asked(&run), vec![lustre(), xfs.clone()]).expect_err("XFS has none").to_string();
    for part in ["stage `images`: stripe_count = 4: /xfs is on xfs", "leave it out", "Lustre, BeeGFS"] {
        assert!(why.contains(part), "`{part}`: {why}");
    }
    let without_lfs = vec![on("/lustre", FileSystemKind::Lustre, None)];
    let tool = resolve(asked(&run), without_lfs).expect_err("no lfs").to_string();
    assert!(tool.contains("this machine has no lfs: install it"), "{tool}");
    run.volumes = vec![Volumes::Together];
    resolve(asked(&run), vec![lustre(), beegfs()]).expect("each member has stripes");
    let why = resolve(asked(&run), vec![lustre(), xfs]).expect_err("one of two has none").to_string();
    assert!(why.contains("/xfs is on xfs"), "{why}");
}

#[test]
fn a_compressibility_out_of_reach_is_refused_with_the_range_before_anything_starts() {
    let camera = catalogue::instruments().into_iter().find(|one| one.name == "pco-edge");
    let mut run =
        RecordingRun { keep: Bytes(1 << 30), ..RecordingRun::new(camera.expect("it is in the catalogue")) };
    let resolved = |run: &RecordingRun| {
        let plan = ResolvedPlan { cells: vec![Cell::recording("images", run.clone())], ..plan("alone") };
        resolve(plan, vec![target("/a", 9)]).map(drop).map_err(|error| error.to_string())
    };
    for (factor, reached) in [(2.5, true), (500.0, false)] {
        run.instrument.data.set_compressibility(factor).expect("a factor");
        run.swept.compressibility = Some(factor);
        let why = resolved(&run).err();
        let is_named =
            |why: &String| why.contains("stage `images`: pco-edge: compressibility = 500: tomography");
        assert!(why.is_none() == reached && why.iter().all(is_named), "{factor}: {why:?}");
    }
}

#[test]
fn a_scale_that_fits_is_one_digit_and_does_fit() {
    let fits = |scale, needed, room| fitting(scale, Bytes(needed), Bytes(room));
    for (scale, needed, room, expected) in [
        (1.0, 100, 35, 0.3),
        (1.0, 1_000_000, 9_999, 0.009),
        (0.5, 10, 5, 0.2),
        (1.0, 20 << 30, 1 << 30, 0.05),
    ] {
        let found = fits(scale, needed, room);
        assert!((found - expected).abs() < 1e-12, "{found} for {needed} in {room}");
    }
    assert!(fits(1.0, 100, 0) > 0.0, "never a scale of nothing");
}

const OVER_NODES: &str = r#"
title = "nodes"
repeats = 1
reserve = "0 B"
[[stage]]
name = "scaling"
nodes = [1, 2]
processes = [1, 2]
[stage.workload.stream]
file_size = "1 GiB"
block_size = "1 MiB"
access = "buffered"
"#;

/// Resolves a plan for nodes with these numbers of processes.
fn over(text: &str, counts: &[u32], free: u64) -> Result<PlannedCampaign, String> {
    let plan = parse(text, "nodes", 1.0).expect("a valid plan");
    let plan = ResolvedPlan { ranks: counts.iter().sum(), node_ranks: counts.into(), ..plan };
    resolve(plan, vec![target("/a", free)]).map_err(|error| error.to_string())
}

#[test]
fn too_few_processes_are_refused_with_what_is_there_and_what_is_asked() {
    assert!(over(OVER_NODES, &[2, 2], 4).is_ok());
    assert!(over(OVER_NODES, &[2, 2], 3).is_err_and(|why| why.contains("needs 4")), "four write at once");
    assert!(over(OVER_NODES, &[3, 2, 2], 4).is_ok(), "three others sleep");
    let refused = |text: &str, counts: &[u32]| over(text, counts, 9).expect_err("too few");
    let why = refused(OVER_NODES, &[1]);
    assert!(
        why.contains("stage `scaling` asks for nodes = 1, processes = 2: there is 1 process on 1 node"),
        "{why}"
    );
    let why = refused(OVER_NODES, &[2, 1]);
    assert!(
        why.contains("nodes = 2, processes = 2: there are 3 processes on 2 nodes, the fewest 1 on one"),
        "{why}"
    );
    assert!(why.contains("start more with mpirun or srun"), "{why}");
}

#[test]
fn a_shift_by_nodes_needs_as_many_on_each_and_visibility_two() {
    let shifted = OVER_NODES
        .replace("nodes = [1, 2]\nprocesses = [1, 2]\n", "")
        .replace("access", "shift = \"node\"\naccess");
    assert!(over(&shifted, &[2, 2], 4).is_ok() && over(&shifted, &[3], 3).is_ok());
    let why = over(&shifted, &[2, 1], 9).expect_err("they are uneven");
    assert!(why.contains("as many processes on each node: there are 2, 1 on them"), "{why}");
    let begin = &OVER_NODES[..OVER_NODES.find("nodes = [1").expect("it is there")];
    let visible = format!("{begin}[stage.workload.visibility]\nrounds = 1\nfile_size = \"1 kB\"\n");
    assert!(over(&visible, &[1, 1], 1).is_ok());
    let why = over(&visible, &[1], 1).expect_err("nobody looks");
    assert!(why.contains("`visibility`, which needs 2 processes: there is 1"), "{why}");
}

/// A plan of one recording over several targets, of which the first two are on one file system.
fn over_several(volumes: &[Volumes], keep: u64) -> ResolvedPlan {
    let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                  frame_rate = \"1 Hz\"\n";
    let run = RecordingRun {
        buffer: Bytes(4 << 20),
        keep: Bytes(keep << 30),
        volumes: volumes.to_vec(),
        ..RecordingRun::new(Instrument::parse(camera, "camera").expect("valid"))
    };
    ResolvedPlan { cells: vec![Cell::recording("disks", run)], ..plan("alone") }
}

fn disks(free: u64) -> Vec<TargetDescription> {
    let named = |path: &str, mount_point: &str| TargetDescription {
        address: std::path::Path::new(path).into(),
        ..target(mount_point, free)
    };
    vec![named("/a/one", "/a"), named("/a/two", "/a"), named("/b", "/b")]
}

#[test]
fn what_is_recorded_over_several_targets_is_a_target_behind_them() {
    let volumes = [Volumes::Alone, Volumes::First(2), Volumes::First(4), Volumes::Together];
    let resolved = resolve(over_several(&volumes, 1), disks(9)).expect("there is room");
    let names: Vec<String> = resolved.targets.iter().map(|target| target.address.to_string()).collect();
    assert_eq!(names, ["/a/one", "/a/two", "/b", "/a/one + /a/two", "/a/one + /a/two + /b"]);
    assert_eq!((resolved.members(3), resolved.members(2)), (vec![0, 1], Vec::new()));
    assert!((0..5).all(|target| resolved.applies(0, target)));
    let again = resolve(resolved.plan.clone(), resolved.targets.clone()).expect("it goes on");
    assert_eq!(again, resolved, "what a record has is not made twice");
    let together = resolve(over_several(&[Volumes::Together], 1), disks(9)).expect("there is room");
    let on: Vec<usize> = (0..together.targets.len()).filter(|&target| together.applies(0, target)).collect();
    assert_eq!(on, [3], "on each alone nothing was asked for");
    assert_eq!(with_ceiling(together.clone()), together, "a recording has no ceiling");
}

#[test]
fn a_recording_over_several_has_room_on_each_and_is_made_by_one_process() {
    let fits =
        |keep, free| resolve(over_several(&[Volumes::First(2)], keep), disks(free)[..2].to_vec()).is_ok();
    // Each of the two has a half of the 8 GiB, and both are on one file system.
    assert_eq!([fits(8, 12), fits(8, 7), fits(4, 7)], [true, false, true]);
    let ranks = ResolvedPlan { ranks: 2, ..over_several(&[Volumes::Alone, Volumes::Together], 1) };
    let why = resolve(ranks, disks(9)).expect_err("several processes").to_string();
    assert!(why.contains("stage `disks`: volumes: one process makes a recording"), "{why}");
    let why =
        resolve(over_several(&[Volumes::First(4)], 1), disks(9)).expect_err("there are three").to_string();
    assert!(why.contains("needs 4 directories") && why.contains("\"alone\""), "{why}");
}
