//! The lines of the recorder's page about dumps, in a browser.

use nilometer_tests::{Browser, BrowserPage, FileSystem, may_mount};
use serde_json::{Value, json};

use super::{
    dumped::DumpLab,
    lab::{FRAMES_OF_BLOCK, LIMIT},
};
use crate::service::page::fits;

const BLOCK: u64 = FRAMES_OF_BLOCK as u64;
/// The blocks of the recording, of which a ring of 16 MB keeps about 15.
const BLOCKS: u64 = 60;
const WIDTH: u32 = 390;

/// Waits for a line of this dump with all these words, and returns it without the spaces between digits.
fn line(browser: &mut Browser, page: &BrowserPage, id: u64, words: &[&str]) -> String {
    let begin = format!("dump {id} of scan: ");
    let lines = "[...document.querySelectorAll(\"#dumps p\")].map(line => line.textContent.replace(/\\u202f/g, \"\"))";
    let is_it = json!([&[&begin[..]], words].concat());
    let found = browser.await_value(
        page,
        &format!("{lines}.find(line => {is_it}.every(part => line.includes(part))) ?? null"),
    );
    found.as_str().expect("a text").to_owned()
}

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"))
}

#[test]
fn the_page_shows_dumps_under_way_and_the_frames_that_the_recorder_overwrote_first() {
    if !may_mount() {
        return;
    }
    let Some(mut browser) = Browser::start() else { return };
    let disk = FileSystem::ext4(64);
    let mut lab = DumpLab::new(BLOCKS * BLOCK, "16 MB", Some(disk.path().join("dumps")));
    lab.parts.send_up_to(3 * BLOCK);
    let page = browser.open(&format!("http://{}/", lab.http), WIDTH, false);
    browser.await_value(&page, "document.getElementById(\"state\").dataset.raw === \"recording\"");
    assert_eq!(browser.evaluate(&page, "document.getElementById(\"dumps-part\").hidden"), true);
    let end = 30 * BLOCK;
    let id = lab.begin(json!({"begin": "0", "end": end.to_string(), "name": "event"}));
    let waits = line(&mut browser, &page, id, &[" frames, ", "waits for frames"]);
    assert!(
        waits.ends_with("/event.vdif") && !waits.contains(&format!(" of {end} ")),
        "its end is to come: {waits}"
    );
    // The disk of the dump stands still, and the recording goes on.
    disk.freeze();
    lab.parts.send_up_to(BLOCKS * BLOCK - 1);
    lab.await_stored(55 * BLOCK);
    disk.thaw();
    let (report, _) = lab.complete(id);
    let overtaken = number(&report, "overtaken_frames");
    assert!(overtaken > 0, "{report}");
    let counts = [format!("{end} of {end} frames (100%), "), format!(", {overtaken} overtaken, ")];
    line(&mut browser, &page, id, &["complete, ", &counts[0], &counts[1]]);
    let class = "document.querySelector(\"#dumps p\").className";
    assert_eq!(browser.evaluate(&page, class), "bad");
    // It copies one block at once, and the next one some 17 min later.
    let part_end = BLOCKS * BLOCK - 2 * BLOCK;
    let slow = lab.begin(json!({"begin": "0", "end": part_end.to_string(), "rate": "1 kB/s"}));
    let known = lab.await_report(slow, "a known part", |report| report["part_frames"].is_u64());
    let part = number(&known, "part_frames");
    assert_eq!(part, part_end - number(&known, "first_frame"), "{known}");
    let copied = [format!("{BLOCK} of {part} frames ("), "B/s, into ".to_owned()];
    line(&mut browser, &page, slow, &[&copied[0], &copied[1]]);
    fits(&mut browser, &page, WIDTH);
    lab.json(200, "DELETE", &format!("/dumps/{slow}"), &json!(null));
    line(&mut browser, &page, slow, &["cancelled, "]);
    assert_eq!(browser.complaints(&page), [""; 0]);
    lab.parts.send_up_to(BLOCKS * BLOCK);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
}
