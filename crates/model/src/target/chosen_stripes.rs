//! Checks that storage lets a recorder choose the stripes of files, before anything is made.

use super::{FileSystemKind, StripeLayout, TargetDescription};

/// The part of a layout that nobody can choose on a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {why}")]
pub struct StripesRefused {
    /// The key of a plan for it: `stripe_count` or `stripe_size`.
    pub key: &'static str,
    /// The requested value, as a plan has it.
    pub value: String,
    /// The reason, with a remedy.
    pub why: String,
}

impl StripesRefused {
    /// The same for a user who wrote an option: `--stripe-count 4: ...`.
    pub fn of_option(&self) -> String {
        let StripesRefused { key, value, why } = self;
        format!("--{} {}: {why}", key.replace('_', "-"), value.trim_matches('"'))
    }
}

impl TargetDescription {
    /// Checks that you can choose the stripe count and the stripe size of files there.
    pub fn check_stripes(&self, asked: &StripeLayout) -> Result<(), StripesRefused> {
        let choosable = self.striping.map(|control| control.choosable(asked)).unwrap_or_default();
        let refused = |key, value| StripesRefused { key, value, why: self.why_no_stripes() };
        if let Some(count) = asked.stripe_count.filter(|_| choosable.stripe_count.is_none()) {
            return Err(refused("stripe_count", count.to_string()));
        }
        if let Some(size) = asked.stripe_size.filter(|_| choosable.stripe_size.is_none()) {
            return Err(refused("stripe_size", format!("\"{size}\"")));
        }
        Ok(())
    }

    fn why_no_stripes(&self) -> String {
        let kind = self.profile.kind;
        let tool = match kind {
            FileSystemKind::Lustre => Some("lfs"),
            FileSystemKind::BeeGfs => Some("beegfs-ctl or beegfs"),
            FileSystemKind::Eos => Some("eos"),
            FileSystemKind::XtreemFs => Some("xtfsutil"),
            _ => None,
        };
        let place = &self.address;
        match tool.filter(|_| self.striping.is_none()) {
            Some(tool) => format!(
                "{place} is on {kind}, and this machine has no {tool}: install it, or leave the key out"
            ),
            None => format!(
                "{place} is on {kind}, where nobody can choose it: leave it out, or name a directory on Lustre, BeeGFS, \
                 CephFS, EOS or XtreemFS"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, StripeControl};

    use super::*;

    fn on(kind: FileSystemKind, striping: Option<StripeControl>) -> TargetDescription {
        let text = format!(
            r#"{{"address": "/data", "file_system": "{kind}", "mount_point": "/data", "source": "x", "options": "rw",
            "device": null, "writable": true, "direct": "unknown", "striping": null,
            "space": {{"size": "8 GiB", "free": "4 GiB", "inodes": null, "free_inodes": 100}},
            "profile": {{"kind": "{kind}"}}}}"#
        );
        let described = serde_json::from_str(&text).expect("a description");
        TargetDescription { striping, ..described }
    }

    #[test]
    fn storage_without_a_choice_of_stripes_is_refused_with_a_remedy() {
        let asked = StripeLayout {
            stripe_count: Some(4),
            stripe_size: Some(Bytes(1 << 20)),
            ..StripeLayout::default()
        };
        let refused = |kind, control| on(kind, control).check_stripes(&asked);
        for (kind, control) in [
            (FileSystemKind::Lustre, StripeControl::Lustre),
            (FileSystemKind::BeeGfs, StripeControl::BeeGfs),
            (FileSystemKind::CephFs, StripeControl::CephFs),
        ] {
            assert_eq!(refused(kind, Some(control)), Ok(()), "{kind}");
        }
        let xfs = refused(FileSystemKind::Xfs, None).expect_err("XFS has none");
        assert!(
            xfs.to_string().starts_with("stripe_count = 4: ") && xfs.why.contains("Lustre, BeeGFS"),
            "{xfs}"
        );
        assert!(xfs.of_option().starts_with("--stripe-count 4: "), "{}", xfs.of_option());
        let without = refused(FileSystemKind::Lustre, None).expect_err("it has no lfs");
        assert!(without.why.contains("has no lfs"), "{without}");
        let moose = refused(FileSystemKind::MooseFs, Some(StripeControl::MooseFs)).expect_err("copies alone");
        assert_eq!(moose.key, "stripe_count");
        let hdfs = on(FileSystemKind::Hdfs, Some(StripeControl::Hdfs));
        let size = StripeLayout { stripe_count: None, ..asked.clone() };
        assert_eq!(hdfs.check_stripes(&size), Ok(()), "blocks have a size");
        assert_eq!(hdfs.check_stripes(&StripeLayout::default()), Ok(()));
        let of_size = StripesRefused { key: "stripe_size", value: "\"1 MiB\"".into(), why: "none".into() };
        assert_eq!(of_size.of_option(), "--stripe-size 1 MiB: none");
    }
}
