//! Finds the file system of a path, in `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).

use std::path::{Path, PathBuf};

/// A line of the mount table.
#[expect(clippy::struct_field_names, reason = "a mount point is called so")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Its number among all mounts; an open file reports it too (`mnt_id` of `/proc/self/fdinfo`).
    pub(crate) id: u64,
    /// `8:1` for a file system on a block device; the first number is 0 for others.
    pub(crate) numbers: String,
    pub(crate) mount_point: PathBuf,
    pub(crate) file_system: String,
    pub(crate) source: String,
    pub(crate) options: String,
}

/// Reads all mounts of this process from the kernel's table, without touching any of them.
pub(crate) fn mount_table() -> Vec<Mount> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(parse).collect()
}

/// Returns the mount of a path: the longest mount point that is a prefix. If there are equal ones, the last
/// covers the others.
pub(super) fn mount_of(path: &Path, table: &str) -> Option<Mount> {
    table.lines().filter_map(parse).filter(|mount| path.starts_with(&mount.mount_point)).max_by_key(depth)
}

/// Returns the mount of this number.
pub(super) fn mount_of_id(id: u64, table: &str) -> Option<Mount> {
    table.lines().filter_map(parse).find(|mount| mount.id == id)
}

fn depth(mount: &Mount) -> usize {
    mount.mount_point.components().count()
}

/// Parses `36 35 98:0 /root /mount/point options optional... - type source super-options`.
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let id = before.next()?.parse().ok()?;
    let numbers = before.nth(1)?.to_owned();
    let mount_point = unescape(before.nth(1)?);
    let options = before.next()?;
    let mut after = after.split(' ');
    let file_system = after.next()?.to_owned();
    let source = unescape(after.next()?);
    let options = match after.next() {
        Some(more) if more != options => format!("{options},{more}"),
        _ => options.to_owned(),
    };
    Some(Mount { id, numbers, mount_point: mount_point.into(), file_system, source, options })
}

/// Decodes a field: the kernel writes space, tab, newline, backslash and hash as a backslash and three octal
/// digits.
fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        text.push(code.map_or('\\', char::from));
        rest = &rest[at + if code.is_some() { 4 } else { 1 }..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:26 / /mnt/a\040b rw,nosuid shared:1 - fuse mfs\04310.77.0.1:9421 rw,user_id=0
31 22 0:27 / /mnt rw - tmpfs tmpfs rw
32 31 0:28 / /mnt rw - xfs /dev/loop0 rw";

    #[test]
    fn the_longest_prefix_wins_and_escapes_are_undone() {
        let of = |path: &str| mount_of(Path::new(path), TABLE).expect("the root covers all");
        assert_eq!(of("/home").file_system, "ext4");
        let spaced = of("/mnt/a b/c");
        assert_eq!((spaced.file_system.as_str(), spaced.source.as_str()), ("fuse", "mfs#10.77.0.1:9421"));
        assert_eq!((of("/mnt/a").source.as_str(), of("/mnt/a").numbers.as_str()), ("/dev/loop0", "0:28"));
        assert_eq!(of("/mntx").file_system, "ext4");
        // Mounts below one that was mounted later are covered, though their path is longer.
        assert_eq!(mount_of_id(32, TABLE).map(|mount| mount.file_system), Some("xfs".into()));
        assert_eq!(mount_of_id(5, TABLE), None);
    }
}
