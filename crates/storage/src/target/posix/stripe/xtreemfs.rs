//! Layouts of `XtreemFS`, through `xtfsutil`: stripes and copies of new files in a directory (`XtreemFS` user
//! guide, "Striping" and "Replication").

use std::path::Path;

use nilometer_model::{Bytes, StripeLayout};

use super::{
    super::{TargetError, tool::Tool},
    bytes, call,
};

/// Returns the layout that a directory gives to its files, or the one that a file has.
pub(super) fn layout(path: &Path) -> Result<StripeLayout, TargetError> {
    Ok(read(&Tool::new("xtfsutil", &[]).on(path).said()?))
}

/// The defaults of a volume: stripes can only be set with both numbers.
const WIDTH: u32 = 1;
const SIZE: Bytes = Bytes(128 << 10);

/// Builds the calls; `before` is the directory's present layout.
pub(super) fn set(
    asked: &StripeLayout,
    before: &StripeLayout,
    directory: &Path,
) -> Result<Vec<Tool>, TargetError> {
    let mut calls = Vec::new();
    if asked.stripe_count.is_some() || asked.stripe_size.is_some() {
        let width = asked.stripe_count.or(before.stripe_count).unwrap_or(WIDTH).to_string();
        let size = asked.stripe_size.or(before.stripe_size).unwrap_or(SIZE);
        if !size.0.is_multiple_of(1 << 10) {
            let message =
                format!("stripe_size = \"{size}\": XtreemFS counts stripes in KiB: write a multiple of that");
            return Err(TargetError::Probe { path: directory.into(), message });
        }
        let size = (size.0 >> 10).to_string();
        let numbers = ["--striping-policy-width", &width, "--striping-policy-stripe-size", &size];
        calls.extend(call("xtfsutil", &["--set-dsp"], &numbers.map(str::to_owned), directory));
    }
    if let Some(copies) = asked.replicas {
        let policy = if copies > 1 { "WqRq" } else { "NONE" };
        let factor = copies.to_string();
        let mut options = vec!["--replication-policy".to_owned(), policy.to_owned()];
        options.extend(
            (copies > 1).then_some(["--replication-factor".to_owned(), factor]).into_iter().flatten(),
        );
        calls.extend(call("xtfsutil", &["--set-drp"], &options, directory));
    }
    Ok(calls)
}

/// Returns the value of a line with this name, in the tool's columns.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim)
}

/// Parses `STRIPING_POLICY_RAID0 / 4 / 256kB`: a directory's default, or the policy of a file's first copy.
fn read(text: &str) -> StripeLayout {
    let policy = line(text, "Default Striping p.").or_else(|| line(text, "Striping policy"));
    let mut numbers = policy.unwrap_or_default().split(" / ").skip(1);
    let stripe_count = numbers.next().and_then(|width| width.trim().parse().ok());
    let stripe_size = numbers.next().and_then(|size| bytes(size.trim()));
    let copies =
        text.lines().filter(|line| line.trim().starts_with("Replica ") && !line.contains("licy")).count();
    let of_directory = line(text, "Default Repl. p.").map(|policy| {
        let factor = policy.split_once(" with ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        factor.unwrap_or(1)
    });
    let replicas = of_directory.or((copies > 0).then_some(copies as u32));
    StripeLayout { stripe_count, stripe_size, replicas, pool: None }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    const DIRECTORY: &str = "Path (on volume)     /data\nXtreemFS file Id     8c9fa62d:2\nOwner                root\n\
                             Type                 directory\n\
                             Default Striping p.  STRIPING_POLICY_RAID0 / 4 / 256kB\n\
                             Default Repl. p.     WqRq with 3 replicas\nSnapshots enabled    no\n";
    const FILE: &str = "Path (on volume)     /data/f\nType                 file\nReplication policy   WqRq\n\
                        XLoc version         0\nReplicas:\n  Replica 1\n\
                        \x20    Striping policy     STRIPING_POLICY_RAID0 / 1 / 128kB\n\
                        \x20    OSD 1               osd-1 (10.0.0.1:32640)\n  Replica 2\n\
                        \x20    Striping policy     STRIPING_POLICY_RAID0 / 1 / 128kB\n\
                        \x20    OSD 1               osd-2 (10.0.0.2:32640)\n";

    #[test]
    fn replay_of_directories_and_files() {
        assert_eq!(read(DIRECTORY), StripeLayout { replicas: Some(3), ..spread(4, 256 << 10) });
        assert_eq!(read(FILE), StripeLayout { replicas: Some(2), ..spread(1, 128 << 10) });
        let unset = "Default Striping p.  not set\nDefault Repl. p.     not set\n";
        assert_eq!(read(unset), StripeLayout { replicas: Some(1), ..StripeLayout::default() });
        assert_eq!(read("The XtreemFS call failed: x"), StripeLayout::default());
    }

    #[test]
    fn stripes_are_set_with_both_their_numbers() {
        let place = Path::new("/mnt/d");
        let asked = StripeLayout { stripe_count: Some(8), replicas: Some(2), ..StripeLayout::default() };
        let calls = set(&asked, &spread(4, 256 << 10), place).expect("it can be had");
        assert_eq!(
            words(&calls),
            "xtfsutil --set-dsp --striping-policy-width 8 --striping-policy-stripe-size 256 /mnt/d; \
             xtfsutil --set-drp --replication-policy WqRq --replication-factor 2 /mnt/d"
        );
        let single = StripeLayout { replicas: Some(1), ..StripeLayout::default() };
        let calls = set(&single, &StripeLayout::default(), place).expect("it can be had");
        assert_eq!(words(&calls), "xtfsutil --set-drp --replication-policy NONE /mnt/d");
        let odd = set(&spread(1, 1000), &StripeLayout::default(), place).expect_err("it can't be had");
        assert!(odd.to_string().contains("in KiB"), "{odd}");
    }
}
