//! Packets over this machine's own network: an instrument evaluated with the recorder of packets, what packets cost over
//! their size and rate, and modules that send to ports of their own.

use std::{fs, path::Path, time::Duration};

use nilometer_model::{Goal, Ingest, Instrument, Seed};
use nilometer_plan::Results;
use nilometer_recording::instrument::Content;
use nilometer_tests::{Ended, RECORDINGS_ONLY, address, await_packets, free_ports, run, start};
use rustix::process::Signal;
use tempfile::TempDir;

/// Long enough for everything on a slow machine.
const LIMIT: Duration = Duration::from_mins(5);

/// 16 MB/s in packets of 8040 B.
const TELESCOPE: &str = r#"
name = "telescope"
title = "for tests"
source = "none"
shape = [32000]
pixel = "uint2"
frame_rate = "2 kHz"
data = "vlbi"
packets.format.vdif = { payload = "8000 B", threads = [0] }
"#;

/// 2 MiB a frame from two modules, each with a port of its own.
fn detector(port: u16) -> String {
    format!(
        r#"
name = "detector"
title = "for tests"
source = "none"
shape = [512, 2048]
pixel = "uint16"
frame_rate = "20 Hz"
packets = {{ port = {port}, format = {{ excalibur = {{ modules = 2 }} }} }}
"#
    )
}

/// A directory with an instrument and a target.
fn home(instrument: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("it.toml"), instrument).expect("space");
    fs::create_dir(home.path().join("target")).expect("space");
    home
}

/// Evaluates the target with a plan that does little.
fn evaluated(home: &Path, plan: &str, options: &[&str]) -> (Ended, Results) {
    fs::write(home.join("plan.toml"), plan).expect("space");
    let common = ["evaluate", "target", "--plan", "./plan.toml"];
    let ended = start(home, &[&common[..], options].concat()).end(LIMIT);
    let results = nilometer_record::read(&home.join("evaluation.sqlite"));
    (ended, results.expect("a record"))
}

fn of(results: &Results, goal: Goal) -> Vec<&Ingest> {
    let ingests = results.samples.iter().filter_map(|measured| measured.sample.ingest.as_ref());
    ingests.filter(|ingest| ingest.goal == goal).collect()
}

fn report(home: &Path, format: &str) -> String {
    let to = home.join("report");
    let to = to.to_str().expect("a plain name");
    let ended = start(home, &["report", "evaluation.sqlite", "--format", format, "--output", to]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::read_to_string(to).expect("a text")
}

#[test]
fn an_instrument_of_packets_is_evaluated_over_loopback() {
    let home = home(TELESCOPE);
    let options = ["--for", "./it.toml", "--duration", "2 s", "--buffer", "64 MiB", "--keep", "64 MiB"];
    let (ended, results) = evaluated(home.path(), RECORDINGS_ONLY, &options);
    // The verdict says so too, unless a busy machine leaves it undecided.
    assert!(ended.stderr.contains("over loopback"), "{ended:?}");
    assert!(of(&results, Goal::Limit).iter().all(|ingest| ingest.packets.is_none()), "made in place");
    let [ingest] = of(&results, Goal::Pace)[..] else { panic!("one at its pace") };
    let packets = ingest.packets.expect("it was of packets");
    // 4000 packets come in 2 s, and a block has 128.
    assert_eq!((packets.size.0, packets.due), (8040, 31 * 128));
    assert_eq!(packets.stored + packets.lost() + packets.unsent, packets.due, "{packets:?}");
    assert!(ingest.readers.iter().all(|reader| reader.wrong == 0), "{:?}", ingest.readers);
    assert!(ingest.readers.iter().any(|reader| reader.after && reader.frames > 0), "{:?}", ingest.readers);
    let json: serde_json::Value = serde_json::from_str(&report(home.path(), "json")).expect("valid");
    let told = &json["packets"][0];
    assert_eq!((&told["packets_due"], &told["goal"]), (&(31 * 128).into(), &"pace".into()), "{told}");
    assert!(report(home.path(), "csv").contains(",packets_lost_in_kernel,packets_lost_in_ring,"));
    assert!(ended.code == Some(4) || report(home.path(), "html").contains("over loopback"));
}

#[test]
fn frames_are_made_in_place_if_asked() {
    let home = home(TELESCOPE);
    let options = ["--for", "./it.toml", "--duration", "500 ms", "--buffer", "16 MiB", "--in-place"];
    let (ended, results) = evaluated(home.path(), RECORDINGS_ONLY, &options);
    assert!(ended.has_answered(), "{ended:?}");
    let [ingest] = of(&results, Goal::Pace)[..] else { panic!("one at its pace") };
    assert_eq!((ingest.packets, ingest.due), (None, 1000));
    assert!(!ended.stdout.contains("loopback"), "{ended:?}");
}

#[test]
fn what_packets_cost_is_a_table_over_size_and_rate() {
    let home = home(TELESCOPE);
    let plan = r#"
title = "packets"
repeats = 1
reserve = "0 B"
[[stage]]
name = "onto nothing"
[stage.ingest]
instrument = "./it.toml"
payload = ["1000 B", "8000 B"]
rate = ["1 kHz", "2 kHz"]
duration = "500 ms"
onto = "nothing"
buffer = "32 MiB"
"#;
    let (ended, results) = evaluated(home.path(), plan, &[]);
    assert!(ended.has_answered(), "{ended:?}");
    let sizes: Vec<u64> = of(&results, Goal::Pace)
        .iter()
        .map(|ingest| ingest.packets.map_or(0, |packets| packets.size.0))
        .collect();
    assert_eq!(sizes, [1040, 1040, 8040, 8040]);
    assert!(ended.stdout.contains("PACKETS OVER LOOPBACK ONTO NOTHING"), "{ended:?}");
    assert!(!ended.stdout.contains("VERDICT"), "nothing was stored: that says nothing of the target");
    let rows: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("Mbit/s")).collect();
    assert!(rows.iter().any(|row| row.trim_start().starts_with("64.3 Mbit/s")), "{rows:?}");
    assert!(report(home.path(), "html").contains("id=\"packets\""));
}

/// Records the detector while `simulated` sends to that port and those behind it: what was recorded.
fn recorded_detector(simulated: impl FnOnce(&Path, &str) -> Ended) -> (TempDir, Vec<u8>) {
    let port = free_ports(2);
    let home = home(&detector(port));
    let record = ["record", "it.toml", "--to", ".", "--name", "run", "--buffer", "64 MiB"];
    let record = [&record[..], &["--http", "127.0.0.1:0"]].concat();
    let mut recording = start(home.path(), &record);
    recording.await_said("recording run");
    let sent = simulated(home.path(), &format!("udp://127.0.0.1:{port}"));
    assert!(sent.has_sent_all(), "{sent:?}");
    // Of each module two sub-frames of 66 packets.
    await_packets(address(&recording, "http"), 5280);
    recording.signal(Signal::TERM);
    let ended = recording.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("recorded    5280 packets"), "{ended:?}");
    assert!(ended.stdout.contains("reordered   none"), "each module has an order of its own: {ended:?}");
    let bytes = fs::read(home.path().join("run/run.raw")).expect("the recording");
    (home, bytes)
}

#[test]
fn modules_that_send_to_ports_of_their_own_are_one_recording_and_are_sent_again_so() {
    let (frames, seed) = (20, Seed(5));
    let (home, file) = recorded_detector(|home, to| {
        let it = home.join("it.toml");
        run(&["simulate", it.to_str().expect("a plain name"), "--to", to, "--frames", "20", "--seed", "5"])
    });
    let Instrument { data, shape, pixel, .. } =
        Instrument::parse(&detector(1), "it.toml").expect("a valid instrument");
    let content =
        Content::prepare(&data, &shape, pixel, seed.named("content").part(0)).expect("it can be made");
    assert_eq!(file.len(), frames * (2 << 20), "pixels, and nothing of what is behind them");
    for (number, frame) in (0..).zip(file.chunks_exact(2 << 20)) {
        assert_eq!(content.verify(number, frame), Ok(()), "frame {number}");
    }
    let first = home.path().join("run");
    let first = first.to_str().expect("a plain name");
    let (_, again) = recorded_detector(|_, to| run(&["replay", first, "--to", to, "--rate", "40 MB/s"]));
    assert!(again == file, "what was behind the pixels is made again");
}
