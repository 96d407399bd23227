//! Made-up cells, samples and results for tests.

mod elements;
pub mod packets;

pub use elements::LinkedElements;

use nilometer_model::{
    Bytes, DirectIo, FileSystemSpace, FlowEnd, FlowSample, Instrument, Nanos, NetworkMachine, NetworkResults,
    NetworkSample, NetworkStage, PatternKind, StorageProfile, TargetDescription,
    observed::{
        DiskCounters, LinkCounters, ObservedDisk, ObservedHeader, ObservedLink, ObservedLog, ObservedLook,
        ObservedRange, ProcessorCounters, ProcessorTimes,
    },
};
use nilometer_plan::{Cell, Measured, NetworkRun, PlannedCampaign, RecordingRun, ResolvedPlan, parse};

/// The cells of one stage; `text` follows its name in the plan.
pub fn stage(name: &str, text: &str) -> Vec<Cell> {
    let plan = format!("title = \"t\"\n[[stage]]\nname = \"s\"\n{text}");
    let mut cells = parse(&plan, "t.toml", 1.0).expect("a valid plan").cells;
    for cell in &mut cells {
        cell.stage = name.into();
    }
    cells
}

/// A cell that writes files of 64 MiB, with blocks of this size and `workers` workers.
pub fn writes(stage_name: &str, block: &str, workers: u32) -> Cell {
    let text = format!(
        "workers = {workers}\n[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"{block}\"\n\
         access = \"direct\"\n"
    );
    stage(stage_name, &text).remove(0)
}

/// 100 frames of 1 MB a second.
pub fn camera(name: &str) -> RecordingRun {
    let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                frame_rate = \"100 Hz\"\n";
    let instrument = Instrument::parse(text, "camera").expect("valid");
    RecordingRun::new(Instrument { name: name.into(), ..instrument })
}

/// `count` cells with recordings of the same camera.
pub fn cameras(name: &str, count: usize) -> Vec<Cell> {
    vec![Cell::recording(name, camera(name)); count]
}

/// An XFS file system of 1 KiB, without stripes.
pub fn described(path: &str) -> TargetDescription {
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

fn machine_of(name: &str, rank: u32) -> NetworkMachine {
    let addresses = vec![format!("10.1.0.{rank}")];
    NetworkMachine { name: name.into(), ranks: vec![rank], addresses, ..NetworkMachine::default() }
}

/// The traffic between two machines, each way alone: one flow of `bytes` in a second, three times.
pub fn network_stage(bytes: u64) -> NetworkStage {
    let run =
        NetworkRun { flows: vec![1], patterns: vec![PatternKind::Pairs], ..NetworkRun::usual("between") };
    let end = FlowEnd { bytes, last: Nanos(1_000_000_000), ..FlowEnd::default() };
    let flow = FlowSample { from: 0, to: 1, sent: end.clone(), received: end };
    let base = NetworkSample { flows: vec![flow], ..NetworkSample::default() };
    let sample = |repeat, cell| NetworkSample { cell, repeat, ..base.clone() };
    let results = NetworkResults {
        machines: vec![machine_of("node1", 0), machine_of("node2", 1)],
        cells: run.cells(2),
        samples: (0..3).flat_map(|repeat| [sample(repeat, 0), sample(repeat, 1)]).collect(),
    };
    NetworkStage { stage: "between".into(), results }
}

/// A campaign of these cells on no target, with seed 77.
pub fn planned(cells: Vec<Cell>, repeats: u32) -> PlannedCampaign {
    let text = "title = \"t\"\nseed = 77\n[[stage]]\nname = \"s\"\n[stage.workload.walk]\nlevels = 1\nbranching = 2\n\
                files = 10\n";
    let plan = parse(text, "t.toml", 1.0).expect("a valid plan");
    let plan = ResolvedPlan { cells, repeats, ..plan };
    PlannedCampaign::new(plan, Vec::new())
}

/// A server that is observed each second, with one card of 1 GB/s, a disk and an array of it.
#[derive(Debug, Clone)]
pub struct MadeUpServer {
    /// Its name.
    pub host: String,
    /// Bytes per second that it receives, and writes to its disk.
    pub rate: u64,
    /// Milliseconds per second during which its disk has a request.
    pub disk_busy: u64,
    /// Milliseconds per second during which the first of its two processors works.
    pub busy: u64,
}

impl MadeUpServer {
    /// A server whose first processor works 30 % of the time.
    pub fn new(host: &str, rate: u64, disk_busy: u64) -> Self {
        MadeUpServer { host: host.into(), rate, disk_busy, busy: 300 }
    }

    /// Its looks from one second to another.
    pub fn log(&self, from: u64, to: u64) -> ObservedLog {
        let second = |second: u64| Nanos(second * 1_000_000_000);
        ObservedLog {
            name: format!("{}.jsonl", self.host),
            header: self.header(),
            looks: (from..=to).map(|second| self.look(second)).collect(),
            range: Some(ObservedRange { from: second(from), to: second(to) }),
            ..ObservedLog::default()
        }
    }

    fn disk(name: &str, made_of: &[&str]) -> ObservedDisk {
        ObservedDisk {
            name: name.into(),
            kind: "disk".into(),
            size_bytes: 1 << 40,
            rotational: Some(true),
            made_of: made_of.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn header(&self) -> ObservedHeader {
        let card = ObservedLink {
            name: "eth0".into(),
            is_card: true,
            speed_bytes_per_second: Some(1e9),
            ..ObservedLink::default()
        };
        ObservedHeader {
            host: self.host.clone(),
            interval_s: 1.0,
            processors: 2,
            links: vec![card],
            disks: vec![Self::disk("md0", &["sda"]), Self::disk("sda", &[])],
            ..ObservedHeader::default()
        }
    }

    fn look(&self, second: u64) -> ObservedLook {
        let disk = DiskCounters {
            written_bytes: self.rate * second,
            busy_ms: self.disk_busy * second,
            queue_ms: 2 * self.disk_busy * second,
            ..DiskCounters::default()
        };
        let link = LinkCounters { received_bytes: self.rate * second, ..LinkCounters::default() };
        let busy_ms = self.busy * second;
        let all = ProcessorTimes { busy_ms, idle_ms: 2000 * second - busy_ms, ..ProcessorTimes::default() };
        ObservedLook {
            time_us: second * 1_000_000,
            running_us: second * 1_000_000,
            clock_error_us: Some(500),
            processors: ProcessorCounters { all, each_busy_ms: vec![busy_ms, 0] },
            links: [("eth0".to_owned(), link)].into(),
            disks: ["md0", "sda"].map(|name| (name.to_owned(), disk)).into(),
            ..ObservedLook::default()
        }
    }
}

/// Measures samples one after the other from the hundredth second on, for `seconds` each.
pub fn measured_in_turn(samples: &mut [Measured], seconds: u64) {
    for (number, measured) in samples.iter_mut().enumerate() {
        measured.sample.started = Nanos((100 + number as u64 * (seconds + 1)) * 1_000_000_000);
        measured.sample.wall = Nanos(seconds * 1_000_000_000);
    }
}
