//! A tree in numbers: sizes, ages, depths and entries of its directories.

use nilometer_model::{
    AgeCounts, Bytes, CENSUS_DEPTH_MAX, CENSUS_VERSION, Census, LevelCounts, OwnerCount, PowerCount,
    PowerCounts,
};
use serde_json::{Value, json};

use crate::document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Sentence, Table, Tone};

/// Every finding of a census, without a name.
pub(crate) fn census_document(census: &Census) -> Document {
    let sections = vec![
        Section::new(Heading::of("Entries"), vec![Block::list(totals(census)), Block::List(gaps(census))]),
        Section::new(Heading::of("Files by size"), vec![Block::Table(sizes(census))]),
        Section::new(Heading::of("Files by age"), vec![Block::Table(ages(census))]),
        Section::new(Heading::of("Directories by number of entries"), vec![Block::Table(entries(census))]),
        Section::new(Heading::of("Entries by depth"), vec![Block::Table(depths(census))]),
        Section::new(Heading::of("In a plan"), in_a_plan(census)),
    ];
    Document { title: "A census: counts without names".into(), sections, ..Document::default() }
}

fn totals(census: &Census) -> Vec<String> {
    let Census { directories, files, symlinks, specials, hard_links, .. } = census;
    let mut lines = vec![
        format!(
            "{} of {} in {}",
            counted(*files, "file", "files"),
            Bytes(census.bytes),
            counted(*directories, "directory", "directories")
        ),
        format!("{} allocated", Bytes(census.allocated_bytes)),
        format!("{symlinks} symbolic links, {specials} sockets, pipes and devices"),
        format!("owners: {}, {}", owners(&census.users, "user"), owners(&census.groups, "group")),
    ];
    lines.extend(offline(census));
    let linked =
        format!("{hard_links} names of files with several names; their bytes count once for each name");
    lines.extend((*hard_links > 0).then_some(linked));
    lines.extend(
        census.sizes.median_from().map(|from| format!("median size of a file: {}", size_range(from))),
    );
    lines
}

/// Files that may be on tape, or that have holes.
fn offline(census: &Census) -> Vec<String> {
    let Census { offline, offline_bytes, sparse, bytes, allocated_bytes, .. } = census;
    let mut lines = Vec::new();
    if *offline > 0 && *allocated_bytes == 0 {
        lines.push("no file has blocks: all are on tape, or the file system reports no blocks".to_owned());
    } else if *offline > 0 {
        lines.push(format!(
            "{} of {} ({} of all bytes) with hardly any blocks: on tape, or holes",
            counted(*offline, "file", "files"),
            Bytes(*offline_bytes),
            share(*offline_bytes, *bytes)
        ));
    }
    let holes = counted(*sparse, "file", "files");
    lines.extend((*sparse > 0).then(|| format!("{holes} with hardly any blocks, because of holes")));
    lines
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `12 users`, or `more than 65536 users`.
fn owners(count: &OwnerCount, one: &str) -> String {
    let more = if count.is_more() { "more than " } else { "" };
    format!("{more}{}", counted(count.count(), one, &format!("{one}s")))
}

/// The parts of the tree that the census lacks.
fn gaps(census: &Census) -> Vec<Sentence> {
    let gaps = [
        (census.vanished, "entries were removed before the census looked at them, and are not counted"),
        (census.unreadable, "entries could not be read; an unknown number below them is missing"),
        (census.other_file_systems, "directories are on other file systems, and are not entered"),
        (census.too_deep, "directories are too deep, and are not entered"),
    ];
    let there = gaps.into_iter().filter(|(count, _)| *count > 0);
    there.map(|(count, what)| Sentence::toned(Tone::Doubtful, format!("{count} {what}"))).collect()
}

fn table(columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let figures = columns[1..].iter().map(|heading| Column::figure(*heading));
    Table {
        columns: std::iter::once(Column::new(Role::Name, columns[0])).chain(figures).collect(),
        rows: rows.into_iter().map(|row| Row::of(row.into_iter().map(Cell::new))).collect(),
    }
}

fn share(part: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64)
}

/// The sizes from a power of two up to the next.
fn size_range(from: u64) -> String {
    match from {
        0 => "empty".into(),
        1 => "1 B".into(),
        _ => format!("{} to {}", Bytes(from), Bytes(from.saturating_mul(2))),
    }
}

fn sizes(census: &Census) -> Table {
    let row = |range: &PowerCount| {
        let of_files = share(range.count, census.files);
        vec![size_range(range.from), range.count.to_string(), of_files, share(range.sum, census.bytes)]
    };
    table(&["size", "files", "of files", "of bytes"], census.sizes.ranges().map(row).collect())
}

fn ages(census: &Census) -> Table {
    let younger = AgeCounts::LIMITS.iter().zip(census.ages.younger);
    let mut counts: Vec<(String, u64)> =
        younger.map(|((_, words), count)| (format!("less than {words}"), count)).collect();
    counts.push(("older".into(), census.ages.older));
    counts.push(("in the future".into(), census.ages.future));
    let there = counts.into_iter().filter(|(_, count)| *count > 0);
    let row = |(words, count): (String, u64)| vec![words, count.to_string(), share(count, census.files)];
    table(&["since the last write", "files", "of files"], there.map(row).collect())
}

fn entries(census: &Census) -> Table {
    let words = |from: u64| match from {
        0 | 1 => from.to_string(),
        _ => format!("{from} to {}", from.saturating_mul(2).saturating_sub(1)),
    };
    let row = |range: &PowerCount| {
        vec![words(range.from), range.count.to_string(), share(range.count, census.directories)]
    };
    table(&["entries", "directories", "of directories"], census.entries.ranges().map(row).collect())
}

fn depths(census: &Census) -> Table {
    let all: u64 = census.depths.iter().sum();
    let words = |depth: usize| {
        if depth == CENSUS_DEPTH_MAX { format!("{depth} and more") } else { depth.to_string() }
    };
    let row = |(depth, count): (usize, &u64)| vec![words(depth), count.to_string(), share(*count, all)];
    table(
        &["directories above", "entries", "of entries"],
        census.depths.iter().enumerate().map(row).collect(),
    )
}

/// The keys of a workload that makes a tree with these numbers.
fn in_a_plan(census: &Census) -> Vec<Block> {
    if census.files == 0 {
        return vec![Block::plain("A tree without files is no workload.")];
    }
    let about = "A workload on a tree like this one. Sizes, depths and files per directory follow the census, which \
                 --format json prints into census.json beside the plan. Write fewer files for a smaller tree.";
    let spread = "A workload with as many directories, files and bytes, but spread as in source trees. It needs no \
                  other file.";
    let partial = "The tree has more than these: a part of it could not be read.";
    let partial = census.is_partial().then(|| Block::Paragraph(Sentence::toned(Tone::Doubtful, partial)));
    let (share, [directories, files, bytes]) = numbers_of_plan(census);
    let smaller = (share < 1.0).then(|| {
        Block::plain(format!(
            "The numbers below are {:.2} % of the tree's: a plan takes smaller trees only.",
            100.0 * share
        ))
    });
    let like = format!("[stage.workload.unpack]\nlike = \"census.json\"\nfiles = {files}");
    let keys = format!(
        "[stage.workload.unpack]\ndirectories = {directories}\nfiles = {files}\nsize = \"{bytes} B\""
    );
    let by_census = [Block::plain(about), Block::Code(like)];
    let by_numbers = [Some(Block::plain(spread)), partial, Some(Block::Code(keys))];
    let by_census = by_census.into_iter().filter(|_| !census.is_partial());
    smaller.into_iter().chain(by_census).chain(by_numbers.into_iter().flatten()).collect()
}

/// The most entries of a tree that this proposes for a plan, which takes twice as many.
const PROPOSED_MOST: u64 = 10_000_000;

/// Directories, files and bytes for a plan, and their share of the census's.
fn numbers_of_plan(census: &Census) -> (f64, [u64; 3]) {
    let Census { directories, files, bytes, .. } = census;
    let share = (PROPOSED_MOST as f64 / directories.saturating_add(*files).max(1) as f64).min(1.0);
    #[expect(clippy::cast_sign_loss, reason = "counts and shares are not negative")]
    let part = |number: u64| if share < 1.0 { ((number as f64 * share) as u64).max(1) } else { number };
    (share, [directories, files, bytes].map(|number| part(*number)))
}

/// The counts as JSON.
pub fn census_json(census: &Census) -> Value {
    let mut object = json!(census);
    object["census_version"] = CENSUS_VERSION.into();
    let limits = AgeCounts::LIMITS.iter().zip(census.ages.younger);
    let younger: Vec<Value> =
        limits.map(|((limit, _), count)| json!({ "younger_than_seconds": limit, "count": count })).collect();
    let AgeCounts { future, older, .. } = census.ages;
    object["ages"] = json!({ "future": future, "younger": younger, "older": older });
    object["sizes"] = there(&census.sizes);
    object["users_is_more"] = census.users.is_more().into();
    object["groups_is_more"] = census.groups.is_more().into();
    object["entries"] = there(&census.entries);
    let level = |level: &LevelCounts| json!({ "leaves": there(&level.leaves), "inner": there(&level.inner) });
    object["levels"] = census.levels.iter().map(level).collect();
    object
}

/// The ranges with values.
fn there(counts: &PowerCounts) -> Value {
    counts.ranges().map(|range| json!(range)).collect()
}

#[cfg(test)]
mod tests {
    use nilometer_model::{CountedEntry, CountedKind};

    use super::*;
    use crate::{TextLayout, census_markdown, census_text};

    fn tree() -> Census {
        let mut census = Census { directories: 1, unreadable: 3, ..Census::default() };
        census.entries.add(3);
        for (bytes, age) in [(0, 10), (3000, 40 * 86_400), (5000, -1)] {
            let kind = CountedKind::File { bytes, allocated: 4096, age, is_linked: false, is_sparse: false };
            census.add(&CountedEntry { kind, depth: 0, user: 1234, group: 5678 });
        }
        census
    }

    #[test]
    fn a_tree_that_is_too_large_for_a_plan_is_proposed_in_a_smaller_size() {
        let census =
            Census { directories: 1_000_000, files: 999_000_000, bytes: 4_000_000_000_000, ..tree() };
        let text = census_text(&census, TextLayout::plain());
        let proposed = ["directories = 10000", "files = 9990000", "size = \"40000000000 B\""];
        for said in ["The numbers below are 1.00 % of the tree's"].iter().chain(&proposed) {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn files_without_blocks_have_their_share_of_bytes() {
        let tape = Census { offline: 2, offline_bytes: 6000, ..tree() };
        let text = census_text(&tape, TextLayout::plain());
        assert!(text.contains("2 files of 6 kB (75.0 % of all bytes) with hardly any blocks"), "{text}");
        let unknown = Census { allocated_bytes: 0, ..tape };
        assert!(
            census_text(&unknown, TextLayout::plain()).contains("no file has blocks: all are on tape, or")
        );
        assert_eq!(census_json(&unknown)["offline_bytes"], 6000);
    }

    #[test]
    fn a_tree_is_shown_by_its_counts_with_what_is_missing_and_without_owners() {
        let text = census_text(&tree(), TextLayout::plain());
        for said in [
            "3 files of 8 kB in 1 directory",
            "owners: 1 user, 1 group",
            "3 entries could not be read; an unknown number below them is missing",
            "The tree has more than these",
            "less than 90 days",
            "in the future",
            "size = \"8000 B\"",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("1234") && !text.contains("5678"), "{text}");
        assert!(census_markdown(&tree()).contains("## Files by size"));
        let json = census_json(&tree());
        assert_eq!(json["sizes"][1], json!({ "from": 2048, "count": 1, "sum": 3000 }));
        assert_eq!(json["ages"]["younger"][3], json!({ "younger_than_seconds": 90 * 86_400, "count": 1 }));
        assert_eq!((&json["users"], &json["unreadable"]), (&json!(1), &json!(3)));
    }
}
