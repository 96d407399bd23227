//! Layouts of Lustre, through `lfs` (Lustre manual, "Managing File Layout and Free Space").

use std::path::Path;

use nilometer_model::{Bytes, StripeLayout};

use super::{super::tool::Tool, TargetError, call, options};

/// A component of a file, with one layout. A file without components counts as a single one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LustreComponent {
    /// Its end, in the format of `lfs`; `None` for a file without components.
    end: Option<String>,
    /// The number of stripes; -1 means all.
    count: Option<i64>,
    size: Option<Bytes>,
    pool: Option<String>,
}

/// The output of `lfs getstripe` for a file or a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LustreLayout {
    mirrors: Option<u32>,
    components: Vec<LustreComponent>,
}

/// Returns the layout of a file or a directory. If it has components, the last one counts, which holds all
/// beyond the others.
pub(super) fn layout(path: &Path) -> Result<StripeLayout, TargetError> {
    let read = read(&asked(path).said()?);
    let counted = || Tool::new("lfs", &["osts"]).on(path).said().ok().map(|text| targets(&text));
    Ok(read.as_layout(counted))
}

/// Describes the components, if there are several: `1 x 1 MiB to 4 MiB, then 4 x 4 MiB`.
pub(in super::super) fn parts(path: &Path) -> Option<String> {
    read(&asked(path).said().ok()?).in_words()
}

/// Asks for the layout; for a directory, for the one that its new files get.
fn asked(path: &Path) -> Tool {
    let arguments: &[&str] = if path.is_dir() { &["getstripe", "-d"] } else { &["getstripe"] };
    Tool::new("lfs", arguments).on(path)
}

/// Sets the whole layout: options left out would become the file system's defaults. One copy is a file
/// without mirrors.
pub(super) fn set(asked: &StripeLayout, directory: &Path) -> Vec<Tool> {
    let options = options(["-c", "-S", "-p"], asked).concat();
    let mirrors = asked.replicas.filter(|&mirrors| mirrors > 1).map(|mirrors| format!("-N{mirrors}"));
    let options: Vec<String> = mirrors.into_iter().chain(options).collect();
    call("lfs", &["setstripe"], &options, directory)
}

/// Copies the layout of another directory with all its components (lfs-setstripe(1), `--copy`).
pub(super) fn copy(from: &Path, directory: &Path) -> Tool {
    Tool::new("lfs", &["setstripe", &format!("--copy={}", from.display())]).on(directory)
}

fn read(text: &str) -> LustreLayout {
    let mut layout = LustreLayout::default();
    let mut part = LustreComponent::default();
    let mut words = text.split_whitespace();
    while let Some(key) = words.next() {
        // For a directory the keys have no prefix and are on one line.
        match key.trim_start_matches("lmm_") {
            "lcme_id:" => layout.components.extend(std::mem::take(&mut part).if_said()),
            "lcm_mirror_count:" => layout.mirrors = words.next().and_then(|word| word.parse().ok()),
            "lcme_extent.e_end:" => part.end = words.next().map(str::to_owned),
            "stripe_count:" => part.count = words.next().and_then(|word| word.parse().ok()),
            "stripe_size:" => part.size = words.next().and_then(|word| word.parse().ok()).map(Bytes),
            "pool:" => part.pool = words.next().map(str::to_owned),
            _ => {}
        }
    }
    layout.components.extend(part.if_said());
    layout
}

impl LustreComponent {
    fn if_said(self) -> Option<Self> {
        (self.count.is_some() || self.size.is_some()).then_some(self)
    }

    fn in_words(&self) -> String {
        let count = self.count.map_or_else(|| "?".into(), |count| count.to_string()).replace("-1", "all");
        let size = self.size.map_or_else(|| "?".into(), |size| size.to_string());
        let end = self.end.as_ref().filter(|end| *end != "EOF").and_then(|end| end.parse().ok().map(Bytes));
        let end = end.map(|end| format!(" to {end}")).unwrap_or_default();
        format!("{count} x {size}{end}")
    }
}

impl LustreLayout {
    /// Converts the layout. `counted` returns the number of targets, which replaces a count of -1.
    fn as_layout(&self, counted: impl FnOnce() -> Option<u32>) -> StripeLayout {
        let Some(last) = self.components.last() else { return StripeLayout::default() };
        let stripe_count = match last.count {
            // All targets of a pool are not all targets of the file system.
            Some(-1) if last.pool.is_some() => None,
            Some(-1) => counted(),
            count => count.and_then(|count| u32::try_from(count).ok()),
        };
        StripeLayout {
            stripe_count,
            stripe_size: last.size,
            pool: last.pool.clone(),
            replicas: self.mirrors.filter(|&mirrors| mirrors > 0),
        }
    }

    fn in_words(&self) -> Option<String> {
        let mirrors = self.mirrors.unwrap_or(1).max(1) as usize;
        let own = self.components.len() / mirrors;
        let words: Vec<_> = self.components.iter().take(own).map(LustreComponent::in_words).collect();
        (words.len() > 1).then(|| words.join(", then "))
    }
}

/// Counts the active targets in the output of `lfs osts`.
pub(in super::super) fn targets(text: &str) -> u32 {
    text.lines().filter(|line| line.trim_end().ends_with(" ACTIVE")).count() as u32
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn replayed(command: &str) -> LustreLayout {
        read(&recorded(LUSTRE, command).0)
    }

    fn layout_of(command: &str) -> StripeLayout {
        replayed(command).as_layout(|| Some(4))
    }

    #[test]
    fn replay_of_plain_layouts() {
        for command in
            ["lfs getstripe d4", "lfs getstripe -d d4", "lfs getstripe d4/f", "lfs getstripe -y d4/f"]
        {
            assert_eq!(layout_of(command), spread(4, 1 << 20), "{command}");
        }
        assert_eq!(layout_of("lfs getstripe ost13"), spread(2, 4 << 20));
        assert_eq!(layout_of("lfs getstripe all"), spread(4, 512 << 10));
        assert_eq!(replayed("lfs getstripe d4/f").in_words(), None);
    }

    #[test]
    fn replay_of_layouts_in_parts() {
        for command in ["lfs getstripe pfl/f", "lfs getstripe --yaml pfl/f"] {
            let expected = StripeLayout { replicas: Some(1), ..spread(4, 4 << 20) };
            assert_eq!(layout_of(command), expected, "{command}");
            let words = replayed(command).in_words();
            assert_eq!(
                words.as_deref(),
                Some("1 x 1 MiB to 4 MiB, then 2 x 1 MiB to 16 MiB, then 4 x 4 MiB")
            );
        }
        let mirrored = StripeLayout { replicas: Some(2), ..spread(1, 4 << 20) };
        assert_eq!(layout_of("lfs getstripe mirror"), mirrored);
        let whole = recorded(LUSTRE, "lfs getstripe -r .").0;
        let directory =
            whole.split_once("./pfl\n").expect("it is there").1.split_once("./pfl/f").expect("and behind").0;
        assert_eq!(read(directory).components.len(), 3, "of a directory it stands on lines of four");
    }

    #[test]
    fn a_count_of_all_is_how_many_there_are() {
        let said = "stripe_count:  -1 stripe_size:   1048576 pattern: raid0 stripe_offset: -1";
        let counted = || Some(targets(&recorded(LUSTRE, "lfs osts").0));
        assert_eq!(read(said).as_layout(counted), spread(4, 1 << 20));
        let of_a_pool = read(&format!("{said} pool: flash")).as_layout(counted);
        let pool = Some("flash".into());
        assert_eq!(of_a_pool, StripeLayout { pool, stripe_count: None, ..spread(4, 1 << 20) });
        assert_eq!(read("no layout").as_layout(|| None), StripeLayout::default());
    }

    #[test]
    fn what_is_asked_for_is_said_as_the_manual_has_it() {
        let asked = StripeLayout { pool: Some("flash".into()), ..spread(4, 1 << 20) };
        assert_eq!(words(&set(&asked, Path::new("/d"))), "lfs setstripe -c 4 -S 1048576 -p flash /d");
        let mirrored = StripeLayout { replicas: Some(2), ..StripeLayout::default() };
        assert_eq!(words(&set(&mirrored, Path::new("/d"))), "lfs setstripe -N2 /d");
        assert!(set(&StripeLayout::default(), Path::new("/d")).is_empty());
    }
}
