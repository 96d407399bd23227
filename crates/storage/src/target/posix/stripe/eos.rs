//! Layouts of EOS: attributes of a directory force those of its files (EOS documentation, "Space layouts").
//! They are copies, or stripes with parity.

use std::path::Path;

use nilometer_model::{Bytes, StripeLayout};

use super::{
    super::{TargetError, tool::Tool},
    bytes, word_behind,
};

/// Returns the layout that a directory forces, or the one that a file has.
pub(super) fn layout(path: &Path) -> Result<StripeLayout, TargetError> {
    if path.is_dir() {
        return Ok(read_forced(&Tool::new("eos", &["attr", "ls"]).on(path).said()?));
    }
    Ok(read_file(&Tool::new("eos", &["file", "info"]).on(path).said()?))
}

/// The layout with stripes and parity: it survives the loss of two stripes.
const STRIPED: &str = "raid6";

pub(super) fn set(asked: &StripeLayout, directory: &Path) -> Result<Vec<Tool>, TargetError> {
    let StripeLayout { stripe_count, stripe_size, replicas, pool } = asked;
    if let (Some(count), Some(copies)) = (stripe_count, replicas) {
        let message = format!(
            "stripe_count = {count} and replicas = {copies}: a file of EOS has copies, or stripes with parity: ask for one"
        );
        return Err(TargetError::Probe { path: directory.into(), message });
    }
    let kind = replicas.map(|_| "replica").or(stripe_count.map(|_| STRIPED));
    let values = [
        ("layout", kind.map(str::to_owned)),
        ("nstripes", replicas.or(*stripe_count).map(|count| count.to_string())),
        ("blocksize", stripe_size.map(in_units)),
        ("space", pool.clone()),
    ];
    let given = values.into_iter().filter_map(|(name, value)| Some(format!("sys.forced.{name}={}", value?)));
    Ok(given.map(|pair| Tool::new("eos", &["attr", "set", &pair]).on(directory)).collect())
}

/// Drops stripes if copies are requested, and copies if stripes are requested.
pub(super) fn kept_beside(asked: &StripeLayout, before: StripeLayout) -> StripeLayout {
    StripeLayout {
        stripe_count: before.stripe_count.filter(|_| asked.replicas.is_none()),
        replicas: before.replicas.filter(|_| asked.stripe_count.is_none()),
        ..before
    }
}

/// Formats a size like EOS: `4k`, `1M`.
fn in_units(size: Bytes) -> String {
    match size.0 {
        size if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        size if size.is_multiple_of(1 << 10) => format!("{}k", size >> 10),
        size => size.to_string(),
    }
}

/// Returns a layout of copies or stripes.
fn spread(kind: Option<&str>, count: Option<u32>) -> StripeLayout {
    match kind {
        Some("plain") => StripeLayout { replicas: Some(1), ..StripeLayout::default() },
        Some("replica") => StripeLayout { replicas: count, ..StripeLayout::default() },
        Some(_) => StripeLayout { stripe_count: count, ..StripeLayout::default() },
        None => StripeLayout::default(),
    }
}

/// Parses `Layout: raid6 Stripes: 10 Blocksize: 64M`.
fn read_file(text: &str) -> StripeLayout {
    let count = word_behind(text, "Stripes:").and_then(|word| word.parse().ok());
    let stripe_size = word_behind(text, "Blocksize:").and_then(bytes);
    StripeLayout { stripe_size, ..spread(word_behind(text, "Layout:"), count) }
}

/// Parses lines such as `sys.forced.nstripes="10"`.
fn read_forced(text: &str) -> StripeLayout {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("sys.forced.{name}=")));
        line.map(|value| value.trim_matches('"'))
    };
    let count = value("nstripes").and_then(|count| count.parse().ok());
    StripeLayout {
        stripe_size: value("blocksize").and_then(bytes),
        pool: value("space").map(str::to_owned),
        ..spread(value("layout"), count)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::words, *};

    #[test]
    fn replay_of_what_a_directory_forces_and_a_file_has() {
        let forced = "sys.forced.blockchecksum=\"crc32c\"\nsys.forced.blocksize=\"4M\"\nsys.forced.checksum=\"adler\"\n\
                      sys.forced.layout=\"raid6\"\nsys.forced.nstripes=\"10\"\nsys.forced.space=\"spinners\"\n";
        let striped = StripeLayout {
            stripe_count: Some(10),
            stripe_size: Some(Bytes(4 << 20)),
            pool: Some("spinners".into()),
            replicas: None,
        };
        assert_eq!(read_forced(forced), striped);
        assert_eq!(read_forced("sys.acl=\"u:1:rwx\"\n"), StripeLayout::default());
        let file = read_file("Layout: raid6 Stripes: 10 Blocksize: 64M LayoutId: 20670942\n  #Rep: 10\n");
        assert_eq!((file.stripe_count, file.stripe_size), (Some(10), Some(Bytes(64 << 20))));
        let copies = read_file("Layout: replica Stripes: 2 Blocksize: 4k LayoutId: 00100112");
        assert_eq!((copies.replicas, copies.stripe_count), (Some(2), None));
    }

    #[test]
    fn what_is_asked_is_forced() {
        let asked =
            StripeLayout { stripe_size: Some(Bytes(1 << 20)), replicas: Some(2), ..StripeLayout::default() };
        let calls = set(&asked, Path::new("/eos/d")).expect("it can be had");
        assert_eq!(
            words(&calls),
            "eos attr set sys.forced.layout=replica /eos/d; eos attr set sys.forced.nstripes=2 /eos/d; \
             eos attr set sys.forced.blocksize=1M /eos/d"
        );
        let both = StripeLayout { stripe_count: Some(6), ..asked };
        let refused = set(&both, Path::new("/eos/d")).expect_err("it can't be had").to_string();
        assert!(refused.contains("stripe_count = 6 and replicas = 2"), "{refused}");
    }
}
