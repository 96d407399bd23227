//! Layouts of `BeeGFS`, through `beegfs-ctl` of version 7 and `beegfs` of version 8 (`BeeGFS` documentation,
//! "Striping").

use std::path::Path;

use nilometer_model::StripeLayout;

use super::{super::tool::Tool, bytes, call, options, word_behind};

pub(super) fn asked(path: &Path) -> Tool {
    Tool::new("beegfs-ctl", &["--getentryinfo"]).on(path)
}

/// Asks for the format of version 7, which version 8 offers to programs like this one.
pub(super) fn asked_by_8(path: &Path) -> Tool {
    Tool::new("beegfs", &["entry", "info", "--retro"]).on(path)
}

pub(super) fn set(asked: &StripeLayout, directory: &Path) -> Vec<Tool> {
    let pairs = options(["--numtargets", "--chunksize", "--storagepoolid"], asked);
    let pattern = pattern(asked, "--pattern=buddymirror");
    let joined: Vec<String> = pairs.iter().map(|pair| pair.join("=")).chain(pattern).collect();
    call("beegfs-ctl", &["--setpattern"], &joined, directory)
}

pub(super) fn set_by_8(asked: &StripeLayout, directory: &Path) -> Vec<Tool> {
    let pairs = options(["--num-targets", "--chunk-size", "--pool"], asked);
    let pattern = pattern(asked, "--pattern=mirrored");
    let joined: Vec<String> = pairs.iter().map(|pair| pair.join("=")).chain(pattern).collect();
    call("beegfs", &["entry", "set"], &joined, directory)
}

/// Returns the pattern option. Two copies are a pair of buddies, the only number available; reading back
/// shows it.
fn pattern(asked: &StripeLayout, mirrored: &str) -> Option<String> {
    let replicas = asked.replicas?;
    Some((if replicas > 1 { mirrored } else { "--pattern=raid0" }).to_owned())
}

/// Removes a pool and a pattern that the directory has already: only root may set these, even to the same
/// value.
pub(super) fn without_what_is(wanted: &StripeLayout, is: &StripeLayout) -> StripeLayout {
    StripeLayout {
        pool: wanted.pool.clone().filter(|_| wanted.pool != is.pool),
        replicas: wanted.replicas.filter(|_| wanted.replicas != is.replicas),
        ..wanted.clone()
    }
}

/// Parses the output of either tool. It shows a file's actual number of targets, and a directory's desired
/// one.
pub(super) fn read(text: &str) -> StripeLayout {
    let number = |key| word_behind(text, key).and_then(|word| word.parse().ok());
    let replicas =
        word_behind(text, "+ Type:").and_then(|pattern| match pattern.to_ascii_lowercase().as_str() {
            "raid0" => Some(1),
            "buddy" | "buddymirror" | "mirrored" => Some(2),
            _ => None,
        });
    StripeLayout {
        stripe_count: number("actual:").or_else(|| number("desired:")),
        stripe_size: word_behind(text, "Chunksize:").and_then(bytes),
        pool: word_behind(text, "Storage Pool:").map(str::to_owned),
        replicas,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn of_pool(stripe_count: u32, stripe_size: u64) -> StripeLayout {
        StripeLayout { pool: Some("1".into()), replicas: Some(1), ..spread(stripe_count, stripe_size) }
    }

    #[test]
    fn replay_of_directories_and_files() {
        let read = |command: &str| read(&recorded(BEEGFS, command).0);
        assert_eq!(read("beegfs-ctl --getentryinfo ."), of_pool(4, 512 << 10));
        assert_eq!(read("beegfs-ctl --getentryinfo d4"), of_pool(4, 1 << 20));
        let file = StripeLayout { replicas: Some(1), ..spread(4, 1 << 20) };
        assert_eq!(read("beegfs-ctl --getentryinfo d4/f"), file);
        assert_eq!(read("beegfs-ctl --getentryinfo --verbose d4/f"), file);
        // The second time the directory was set to use nine of four targets.
        let later = BEEGFS.split_once("--numtargets=9 d4").expect("it was asked").1;
        let said = recorded(later, "beegfs-ctl --getentryinfo d4").0;
        assert_eq!(super::read(&said).stripe_count, Some(9), "a directory says what is desired only");
        assert_eq!(super::read(&said.replace("desired: 9", "desired: 9; actual: 4")).stripe_count, Some(4));
        assert_eq!(super::read("Unable to retrieve"), StripeLayout::default());
    }

    #[test]
    fn what_is_asked_for_is_said_as_the_documentation_has_it() {
        let asked = StripeLayout { pool: Some("2".into()), replicas: Some(2), ..spread(4, 1 << 20) };
        let seven = "beegfs-ctl --setpattern --numtargets=4 --chunksize=1048576 --storagepoolid=2 --pattern=buddymirror /d";
        assert_eq!(words(&set(&asked, Path::new("/d"))), seven);
        let eight = "beegfs entry set --num-targets=4 --chunk-size=1048576 --pool=2 --pattern=mirrored /d";
        assert_eq!(words(&set_by_8(&asked, Path::new("/d"))), eight);
        let is = StripeLayout { pool: Some("2".into()), replicas: Some(1), ..spread(1, 1 << 20) };
        let rest = without_what_is(&StripeLayout { replicas: Some(1), ..asked }, &is);
        assert_eq!(
            words(&set_by_8(&rest, Path::new("/d"))),
            "beegfs entry set --num-targets=4 --chunk-size=1048576 /d"
        );
    }
}
