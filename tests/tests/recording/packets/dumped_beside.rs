//! Dumps give way to the recording: they slow down and stop as the recorder's buffer fills, and cost no frame.

use nilometer_tests::{FileSystem, await_some, may_mount, run};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    dumped::DumpLab,
    lab::{FRAMES_OF_BLOCK, LIMIT, Lab},
};

const BLOCK: u64 = FRAMES_OF_BLOCK as u64;
/// Blocks on storage before it stands still.
const STORED: u64 = 20;
/// Blocks that the recorder takes before the test sends more.
const STEP: u64 = 4;

impl DumpLab {
    /// Sends whole blocks up to this one, no faster than the recorder takes them from the socket.
    fn send_blocks(&mut self, end: u64) {
        while self.parts.sent() < end * BLOCK {
            let next = (self.parts.sent() + STEP * BLOCK).min(end * BLOCK);
            self.parts.send_up_to(next);
            await_some("packets at the recorder", || {
                (self.status()["recording"]["came"]["packets"] == next).then_some(())
            });
        }
    }

    /// The slots of the recorder's buffer, and those in use.
    fn buffer(&self) -> [u64; 2] {
        let ring = &self.status()["recording"]["ring"];
        ["slots", "in_use"].map(|key| ring[key].as_u64().expect("a number"))
    }

    fn fill(&self) -> f64 {
        let [slots, in_use] = self.buffer();
        in_use as f64 / slots as f64
    }

    /// Sends blocks until they fill this share of a buffer whose storage stands still.
    fn fill_up_to(&mut self, share: f64) {
        while self.fill() < share {
            let next = self.parts.sent() / BLOCK + 1;
            self.send_blocks(next);
        }
    }

    /// Waits until all blocks but the last one are on storage, and no write is under way.
    fn await_idle(&self) {
        let sent = self.parts.sent();
        self.await_stored(sent - BLOCK);
        await_some("an empty buffer", || (self.buffer()[1] <= 1).then_some(()));
    }
}

/// A recorder onto this disk, whose dumps go onto another one.
fn recorder(disk: &FileSystem, options: &[&str]) -> DumpLab {
    let patient = ["--buffer", "64 MiB", "--hang-after", "1 h"];
    DumpLab::over(Lab::onto(2000, vec![disk.path().into()]), &[&patient, options].concat(), None)
}

/// The speed of a dump while the buffer is filled to this share, as the documentation has it.
fn documented_speed(fill: f64) -> f64 {
    ((0.75 - fill) / 0.5).clamp(0.0, 1.0)
}

#[test]
fn a_dump_slows_down_and_stops_as_the_recorders_buffer_fills() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::ext4(512);
    let mut lab = recorder(&disk, &["--keep", "128 MB"]);
    let part = json!({"begin": "0", "end": ((STORED - 1) * BLOCK).to_string()});
    lab.send_blocks(STORED);
    lab.await_idle();
    disk.freeze();
    let free = lab.begin(part.clone());
    let (free, bytes) = lab.complete(free);
    assert_eq!(free["speed_share"], 1.0, "{free}");
    // It takes more than a minute for the blocks so far, unless it has to stop.
    let slow = lab.begin(json!({"begin": "0", "rate": "300 kB/s"}));
    lab.fill_up_to(0.5);
    let fill = lab.fill();
    let half = lab.begin(part.clone());
    let (half, same) = lab.complete(half);
    let share = half["speed_share"].as_f64().expect("a number");
    assert!(share > 0.0 && (share - documented_speed(fill)).abs() < 1e-6, "{fill}: {half}");
    lab.fill_up_to(0.75);
    let stopped = lab.begin(part);
    let waits = |report: &Value| report["waits_for"] == "buffer" && report["speed_share"] == 0.0;
    let before = lab.await_report(slow, "a dump that stops", waits);
    assert!(before["frames"].as_u64() > Some(0) && before["state"] == "running", "{before}");
    let waiting = lab.await_report(stopped, "a dump that does not begin", waits);
    assert_eq!(waiting["frames"], 0, "the frames are on storage, and the buffer needs it: {waiting}");
    lab.fill_up_to(0.95);
    for (id, earlier) in [(slow, before), (stopped, waiting)] {
        let later = lab.report(id);
        assert_eq!((&later["frames"], &later["waits_for"]), (&earlier["frames"], &"buffer".into()));
    }
    disk.thaw();
    let (_, last) = lab.complete(stopped);
    assert!(bytes == same && bytes == last && bytes == lab.lab.sent((STORED - 1) * BLOCK));
    lab.json(200, "DELETE", &format!("/dumps/{slow}"), &json!(null));
    lab.await_idle();
    let status = lab.status();
    let losses = &status["recording"]["lost"];
    assert_eq!((&losses["packets"], &losses["ring_full"]), (&0.into(), &0.into()), "{losses}");
    lab.running.signal(Signal::INT);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
}

/// Fills the buffer beyond its end while the storage stands still, and returns the frames that are lost by that, as `scan` lists them.
fn lost_at_a_full_buffer(with_dumps: bool) -> Value {
    let disk = FileSystem::ext4(512);
    let mut lab = recorder(&disk, &[]);
    lab.send_blocks(STORED);
    lab.await_idle();
    let dump = |lab: &DumpLab, keys: Value| with_dumps.then(|| lab.begin(keys));
    dump(&lab, json!({"begin": "0", "name": "all"}));
    disk.freeze();
    lab.fill_up_to(0.5);
    let half = dump(&lab, json!({"begin": "0", "end": (10 * BLOCK).to_string()}));
    let slots = lab.buffer()[0];
    lab.send_blocks(STORED + slots + 10);
    let full = dump(&lab, json!({"begin": "0", "end": (10 * BLOCK).to_string()}));
    assert!(lab.status()["recording"]["lost"]["ring_full"].as_u64() > Some(0), "{}", lab.status());
    disk.thaw();
    await_some("a buffer with room", || (lab.fill() < 0.2).then_some(()));
    let end = STORED + slots + 20;
    lab.send_blocks(end);
    for id in half.into_iter().chain(full) {
        assert!(lab.complete(id).1 == lab.lab.sent(10 * BLOCK));
    }
    lab.running.signal(Signal::INT);
    assert_eq!(lab.running.end(LIMIT).code, Some(1), "frames were lost");
    let scan = run(&["scan".as_ref(), "--json".as_ref(), lab.lab.lanes()[0].as_os_str()]);
    let scan: Value = serde_json::from_str(&scan.stdout).expect("JSON");
    let lost = ["gaps", "missing_blocks", "filled_frames", "left_out_frames"].map(|key| scan[0][key].clone());
    json!(lost)
}

#[test]
fn a_full_buffer_loses_the_same_frames_with_dumps_and_without() {
    if !may_mount() {
        return;
    }
    let [without, with] = [false, true].map(lost_at_a_full_buffer);
    assert!(without[0][0]["packets"].as_u64() >= Some(BLOCK), "{without}");
    assert_eq!(with, without);
}
