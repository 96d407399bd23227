//! Files that came back from tape: the times of their first and last bytes, by the number read at a time.

use std::collections::BTreeMap;

use nilometer_model::{Bytes, Nanos, RecallTimes, RecalledFile, statistics::median};
use serde_json::{Value, json};

use crate::{
    document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Sentence, Table, Tone},
    in_line::in_line,
};

/// The version of the document as JSON. It rises if a key changes its meaning or goes.
const RECALL_VERSION: u32 = 1;
/// The most faults that a document lists.
const NAMED: usize = 20;

/// Files with the same state that were read as many at a time.
#[derive(Debug, Clone, Default)]
struct RecalledGroup {
    files: u64,
    bytes: u64,
    first: Vec<f64>,
    last: Vec<f64>,
    /// The rate of each file behind its first byte, in bytes a second.
    rates: Vec<f64>,
}

/// The files of a group. Files that were offline are first, then fewer files at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    was_on_disk: bool,
    at_once: u32,
}

fn groups(files: &[RecalledFile]) -> BTreeMap<GroupKey, RecalledGroup> {
    let mut groups: BTreeMap<GroupKey, RecalledGroup> = BTreeMap::new();
    for file in files {
        let Ok(RecallTimes { first, last }) = &file.times else { continue };
        let key = GroupKey { was_on_disk: !file.was_offline, at_once: file.at_once };
        let group = groups.entry(key).or_default();
        group.files += 1;
        group.bytes += file.bytes.0;
        group.first.push(first.seconds());
        group.last.push(last.seconds());
        let rest = last.since(*first).seconds();
        group.rates.extend((rest > 0.0).then(|| file.bytes.0 as f64 / rest));
    }
    groups
}

/// The document of a recall.
pub(crate) fn recall_document(files: &[RecalledFile]) -> Document {
    let faults = files.iter().filter_map(|file| {
        let why = file.times.as_ref().err()?;
        Some(format!("{}: {}", in_line(file.path.display()), in_line(why)))
    });
    let faults: Vec<String> = faults.collect();
    let mut told: Vec<Sentence> =
        faults.iter().take(NAMED).map(|fault| Sentence::toned(Tone::Bad, fault)).collect();
    let more = faults.len().saturating_sub(NAMED);
    told.extend((more > 0).then(|| Sentence::toned(Tone::Bad, format!("and {more} more files failed"))));
    let groups = groups(files);
    let is_warm = groups.keys().any(|key| key.was_on_disk);
    let note =
        "Files that were on disk may come from this machine's memory: their times are no times of a disk.";
    let blocks = vec![Block::Table(table(&groups)), Block::List(told)];
    let blocks = blocks.into_iter().chain(is_warm.then(|| Block::soft(note)));
    let section = Section::new(Heading::of("From tape"), blocks.collect());
    Document {
        title: "A recall: files read from their first to their last byte".into(),
        sections: vec![section],
        ..Document::default()
    }
}

const COLUMNS: [&str; 7] = ["files", "at once", "read", "first byte", "(longest)", "last byte", "(longest)"];

fn table(groups: &BTreeMap<GroupKey, RecalledGroup>) -> Table {
    let columns = COLUMNS.iter().enumerate().map(|(place, heading)| {
        if place == 0 { Column::new(Role::Name, *heading) } else { Column::figure(*heading) }
    });
    let rows = groups.iter().map(|(key, group)| row(*key, group));
    Table { columns: columns.collect(), rows: rows.collect() }
}

fn row(key: GroupKey, group: &RecalledGroup) -> Row {
    let state = if key.was_on_disk { "on disk" } else { "offline" };
    let [first, last] = [&group.first, &group.last].map(|times| {
        let time = |seconds: Option<f64>| seconds.map_or_else(String::new, shown);
        [time(median(times)), time(greatest(times))]
    });
    let head = [format!("{} {state}", group.files), key.at_once.to_string(), Bytes(group.bytes).to_string()];
    Row::of(head.into_iter().chain(first).chain(last).map(Cell::new))
}

fn shown(seconds: f64) -> String {
    Nanos::from_seconds(seconds).to_string()
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// The document for programs.
pub fn recall_json(files: &[RecalledFile]) -> Value {
    let groups: Vec<Value> = groups(files).iter().map(|(key, group)| group_value(*key, group)).collect();
    json!({
        "format": "nilometer-recall",
        "recall_version": RECALL_VERSION,
        "groups": groups,
        "files": files.iter().map(file_value).collect::<Vec<_>>(),
    })
}

fn group_value(key: GroupKey, group: &RecalledGroup) -> Value {
    json!({
        "state": if key.was_on_disk { "on_disk" } else { "offline" },
        "at_once": key.at_once,
        "files": group.files,
        "bytes": group.bytes,
        "first_byte_median_s": median(&group.first),
        "first_byte_greatest_s": greatest(&group.first),
        "last_byte_median_s": median(&group.last),
        "last_byte_greatest_s": greatest(&group.last),
        "bytes_per_second_median": median(&group.rates),
    })
}

fn file_value(file: &RecalledFile) -> Value {
    let times = file.times.as_ref().ok();
    json!({
        "path": file.path.display().to_string(),
        "bytes": file.bytes.0,
        "was_offline": file.was_offline,
        "at_once": file.at_once,
        "first_byte_s": times.map(|times| times.first.seconds()),
        "last_byte_s": times.map(|times| times.last.seconds()),
        "error": file.times.as_ref().err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TextLayout, recall_html, recall_markdown, recall_text};

    fn read(was_offline: bool, at_once: u32, seconds: [u64; 2]) -> RecalledFile {
        let [first, last] = seconds.map(|seconds| Nanos(seconds * 1_000_000_000));
        RecalledFile {
            path: "/tape/<run>\n1".into(),
            bytes: Bytes(1_000_000_000),
            was_offline,
            at_once,
            times: Ok(RecallTimes { first, last }),
        }
    }

    #[test]
    fn times_are_by_state_and_number_at_a_time_in_every_form() {
        let failed = RecalledFile { times: Err("Input/output error".into()), ..read(true, 1, [0, 0]) };
        let files = [
            read(true, 1, [60, 70]),
            read(true, 1, [80, 90]),
            read(true, 1, [600, 620]),
            read(true, 4, [100, 140]),
            read(false, 1, [0, 2]),
            failed,
        ];
        let text = recall_text(&files, TextLayout::plain());
        for said in ["3 offline", "80 s", "10 min", "1 on disk", "Input/output error", "times of a disk"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("<run>\n"), "{text}");
        assert!(recall_markdown(&files).contains("## From tape"));
        assert!(recall_html(&files).contains("&lt;run&gt;"));
        let json = recall_json(&files);
        assert_eq!(json["groups"].as_array().map(Vec::len), Some(3));
        assert_eq!(json["groups"][0]["first_byte_median_s"], 80.0);
        assert_eq!(json["groups"][0]["first_byte_greatest_s"], 600.0);
        // 1 GB in 10, 10 and 20 s behind the first byte.
        assert_eq!(json["groups"][0]["bytes_per_second_median"], 1e8);
        assert_eq!(
            (json["groups"][1]["at_once"].as_u64(), json["files"][5]["error"].is_string()),
            (Some(4), true)
        );
    }
}
