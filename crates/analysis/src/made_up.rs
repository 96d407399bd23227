//! Cells made up for tests.

use nilometer_model::{
    Bytes, DirectIo, FileSystemSpace, FlowEnd, FlowSample, Instrument, Nanos, NetworkMachine, NetworkResults,
    NetworkSample, NetworkStage, PatternKind, StorageProfile, TargetDescription,
    plan::{Cell, NetworkRun, PlannedCampaign, RecordingRun, ResolvedPlan, parse},
};

/// The cells of one stage; `text` is what follows its name in a plan.
pub(crate) fn stage(name: &str, text: &str) -> Vec<Cell> {
    let plan = format!("title = \"t\"\n[[stage]]\nname = \"s\"\n{text}");
    let mut cells = parse(&plan, "t.toml", 1.0).expect("a valid plan").cells;
    for cell in &mut cells {
        cell.stage = name.into();
    }
    cells
}

/// A cell that writes files of 64 MiB, with blocks of this size and so many workers.
pub(crate) fn writes(stage_name: &str, block: &str, workers: u32) -> Cell {
    let text = format!(
        "workers = {workers}\n[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"{block}\"\n\
         access = \"direct\"\n"
    );
    stage(stage_name, &text).remove(0)
}

/// 100 frames of 1 MB a second.
pub(crate) fn camera(name: &str) -> RecordingRun {
    let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                frame_rate = \"100 Hz\"\n";
    let instrument = Instrument::parse(text, "camera").expect("valid");
    RecordingRun::new(Instrument { name: name.into(), ..instrument })
}

/// So many cells with recordings of the same camera.
pub(crate) fn cameras(name: &str, count: usize) -> Vec<Cell> {
    vec![Cell::recording(name, camera(name)); count]
}

/// An XFS file system of 1 KiB, without stripes.
pub(crate) fn described(path: &str) -> TargetDescription {
    let space = Bytes(1024);
    TargetDescription {
        address: std::path::Path::new(path).into(),
        capabilities: nilometer_model::Capabilities::all(),
        file_system: "xfs".into(),
        mount_point: path.into(),
        source: "/dev/sda1".into(),
        options: "rw".into(),
        device: None,
        space: FileSystemSpace { size: space, free: space, used: None, inodes: None, free_inodes: None },
        writable: true,
        direct: DirectIo::Real { alignment: 512 },
        striping: None,
        stripe_size: None,
        profile: StorageProfile::default(),
        facts: Vec::new(),
    }
}

/// What two machines sent to each other, each way alone: one flow of so many bytes in a second, three times.
pub(crate) fn network_stage(bytes: u64) -> NetworkStage {
    let run =
        NetworkRun { flows: vec![1], patterns: vec![PatternKind::Pairs], ..NetworkRun::usual("between") };
    let machine = |name: &str, rank| NetworkMachine {
        name: name.into(),
        ranks: vec![rank],
        addresses: vec![format!("10.1.0.{rank}")],
    };
    let end = FlowEnd { bytes, last: Nanos(1_000_000_000), ..FlowEnd::default() };
    let flow = FlowSample { from: 0, to: 1, sent: end.clone(), received: end };
    let sample = |repeat: u32, cell| NetworkSample { cell, repeat, asked: None, flows: vec![flow.clone()] };
    let results = NetworkResults {
        machines: vec![machine("node1", 0), machine("node2", 1)],
        cells: run.cells(2),
        samples: (0..3).flat_map(|repeat| [sample(repeat, 0), sample(repeat, 1)]).collect(),
    };
    NetworkStage { stage: "between".into(), results }
}

/// A campaign of these cells on no target, with seed 77.
pub(crate) fn planned(cells: Vec<Cell>, repeats: u32) -> PlannedCampaign {
    let text = "title = \"t\"\nseed = 77\n[[stage]]\nname = \"s\"\n[stage.workload.walk]\nlevels = 1\nbranching = 2\n\
                files = 10\n";
    let plan = parse(text, "t.toml", 1.0).expect("a valid plan");
    let plan = ResolvedPlan { cells, repeats, ..plan };
    PlannedCampaign::new(plan, Vec::new())
}
