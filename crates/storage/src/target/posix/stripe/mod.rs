//! How files are spread over storage devices. The layout is set on the run's directory, for new files, and
//! read back from a file made there. Some systems silently give fewer stripes than requested (Lustre and
//! `BeeGFS` do), and report the requested number for a directory.

mod beegfs;
mod ceph;
mod eos;
mod lustre;
mod moosefs;
mod xtreemfs;

pub(super) use lustre::parts;

use std::path::Path;

use nilometer_model::{Bytes, FileSystemKind, StripeControl, StripeLayout};

use super::{
    super::TargetError,
    tool::{Tool, installed},
};

/// Returns a file system's control over layouts, if its tool is installed here.
pub(super) fn stripe_control(kind: FileSystemKind) -> Option<StripeControl> {
    match kind {
        FileSystemKind::Lustre => installed("lfs").then_some(StripeControl::Lustre),
        FileSystemKind::BeeGfs if installed("beegfs-ctl") => Some(StripeControl::BeeGfs),
        FileSystemKind::BeeGfs => installed("beegfs").then_some(StripeControl::BeeGfs8),
        FileSystemKind::MooseFs => installed("mfssetgoal").then_some(StripeControl::MooseFs),
        FileSystemKind::CephFs => Some(StripeControl::CephFs),
        FileSystemKind::Eos => installed("eos").then_some(StripeControl::Eos),
        FileSystemKind::XtreemFs => installed("xtfsutil").then_some(StripeControl::XtreemFs),
        _ => None,
    }
}

/// Returns the missing tool, if a file system has layouts that can't be queried without it.
pub(super) fn missing_tool(kind: FileSystemKind) -> Option<&'static str> {
    let tool = match kind {
        FileSystemKind::Lustre => "lfs",
        FileSystemKind::BeeGfs => "beegfs-ctl or beegfs",
        FileSystemKind::MooseFs => "mfssetgoal",
        FileSystemKind::Eos => "eos",
        FileSystemKind::XtreemFs => "xtfsutil",
        _ => return None,
    };
    stripe_control(kind).is_none().then_some(tool)
}

/// Returns the layout of a file, or of new files in a directory.
pub(super) fn layout(control: StripeControl, path: &Path) -> Result<StripeLayout, TargetError> {
    let found = match control {
        StripeControl::Lustre => lustre::layout(path)?,
        StripeControl::BeeGfs => beegfs::read(&beegfs::asked(path).said()?),
        StripeControl::BeeGfs8 => beegfs::read(&beegfs::asked_by_8(path).said()?),
        StripeControl::MooseFs => moosefs::layout(path)?,
        StripeControl::CephFs => ceph::layout(path)?,
        StripeControl::Eos => eos::layout(path)?,
        StripeControl::XtreemFs => xtreemfs::layout(path)?,
        // `stripe_control` never returns this: HDFS is not mounted.
        StripeControl::Hdfs => StripeLayout::default(),
    };
    // Directories of these systems may have no layout of their own.
    let may_be_none = matches!(control, StripeControl::CephFs | StripeControl::Eos);
    if found == StripeLayout::default() && !may_be_none {
        let message = "the layout tool said nothing of a layout".into();
        return Err(TargetError::Probe { path: path.into(), message });
    }
    Ok(found)
}

/// Restores the layout that files got before the first layout was set on the run's directory, which is below
/// `parent`. Returns true if that is certain.
pub(super) fn restore_layout(
    control: StripeControl,
    parent: &Path,
    directory: &Path,
) -> Result<bool, TargetError> {
    match control {
        StripeControl::CephFs => ceph::unset(directory).map(|()| true),
        // `StripeLayout` holds only the last of several components, so the tool copies all of them.
        StripeControl::Lustre if lustre::parts(parent).is_some() => {
            lustre::copy(parent, directory).said().map(|_| true)
        }
        _ => Ok(false),
    }
}

/// Returns the parts of the earlier layout that stay when another one is requested.
pub(super) fn kept_beside(
    control: StripeControl,
    asked: &StripeLayout,
    before: StripeLayout,
) -> StripeLayout {
    if control == StripeControl::Eos { eos::kept_beside(asked, before) } else { before }
}

/// Sets the requested values and leaves the rest.
pub(super) fn set_layout(
    control: StripeControl,
    directory: &Path,
    wanted: &StripeLayout,
) -> Result<(), TargetError> {
    let is_beegfs = matches!(control, StripeControl::BeeGfs | StripeControl::BeeGfs8);
    let wanted =
        if is_beegfs { &beegfs::without_what_is(wanted, &layout(control, directory)?) } else { wanted };
    let calls = match control {
        StripeControl::Lustre => lustre::set(wanted, directory),
        StripeControl::BeeGfs => beegfs::set(wanted, directory),
        StripeControl::BeeGfs8 => beegfs::set_by_8(wanted, directory),
        StripeControl::MooseFs => moosefs::set(wanted, directory),
        StripeControl::CephFs => return ceph::set(wanted, directory),
        StripeControl::Eos => eos::set(wanted, directory)?,
        StripeControl::XtreemFs => xtreemfs::set(wanted, &xtreemfs::layout(directory)?, directory)?,
        StripeControl::Hdfs => Vec::new(),
    };
    calls.iter().try_for_each(|tool| tool.said().map(drop))
}

/// Returns `2 copies`.
pub(super) fn copies_in_words(copies: u32) -> String {
    StripeLayout { replicas: Some(copies), ..StripeLayout::default() }.to_string()
}

/// Builds the options of a call: each of the tool's option names whose value is present.
fn options(names: [&str; 3], asked: &StripeLayout) -> Vec<[String; 2]> {
    let values = [
        asked.stripe_count.map(|count| count.to_string()),
        asked.stripe_size.map(|size| size.0.to_string()),
        asked.pool.clone(),
    ];
    let given = names.into_iter().zip(values);
    given.filter_map(|(name, value)| Some([name.to_owned(), value?])).collect()
}

/// Builds one call with options, or none if there are no options.
fn call(program: &str, mode: &[&str], options: &[String], directory: &Path) -> Vec<Tool> {
    if options.is_empty() {
        return Vec::new();
    }
    let arguments: Vec<&str> = mode.iter().copied().chain(options.iter().map(String::as_str)).collect();
    vec![Tool::new(program, &arguments).on(directory)]
}

/// Returns the word after the first `key` in a text.
fn word_behind<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split(|c: char| c.is_whitespace() || c == ';').find(|word| !word.is_empty())
}

/// Parses a number of bytes, or one with a suffix `k`, `M` or `G` for powers of 1024, as `BeeGFS` writes it.
fn bytes(word: &str) -> Option<Bytes> {
    let word = word.trim_end_matches("iB").trim_end_matches('B');
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &word[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}

/// Recorded on real systems (Lustre 2.17, `BeeGFS` 7.4.7): tests with them are replays.
#[cfg(test)]
pub(super) mod recordings {
    pub(crate) const LUSTRE: &str = include_str!("../../../../fixtures/lustre-2.17-striping.txt");
    pub(crate) const BEEGFS: &str = include_str!("../../../../fixtures/beegfs-7.4.7-striping.txt");
}

#[cfg(test)]
mod tests {
    pub(super) use super::recordings::{BEEGFS, LUSTRE};
    use super::*;

    /// The output of a recorded command, and its exit code.
    pub(super) fn recorded(recording: &str, command: &str) -> (String, i32) {
        let behind = recording.split_once(&format!("$ {command}\n")).expect("it was recorded").1;
        let (said, rest) = behind.split_once("rc=").expect("an exit code");
        let code = rest.lines().next().expect("a number");
        (said.to_owned(), code.parse().expect("a number"))
    }

    pub(super) fn spread(stripe_count: u32, stripe_size: u64) -> StripeLayout {
        StripeLayout {
            stripe_count: Some(stripe_count),
            stripe_size: Some(Bytes(stripe_size)),
            ..StripeLayout::default()
        }
    }

    pub(super) fn words(tools: &[Tool]) -> String {
        tools.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn sizes_are_read_as_tools_write_them() {
        let known =
            [("65536", 65536), ("512k", 512 << 10), ("512K", 512 << 10), ("1M", 1 << 20), ("4MiB", 4 << 20)];
        for (word, size) in known {
            assert_eq!(bytes(word), Some(Bytes(size)), "{word}");
        }
        for word in ["", "M", "1X", "99999999999999999999"] {
            assert_eq!(bytes(word), None, "{word}");
        }
    }

    #[test]
    fn local_file_systems_have_no_stripes() {
        for kind in [FileSystemKind::Ext4, FileSystemKind::Nfs, FileSystemKind::Unknown] {
            assert_eq!((stripe_control(kind), missing_tool(kind)), (None, None), "{kind}");
        }
    }
}
