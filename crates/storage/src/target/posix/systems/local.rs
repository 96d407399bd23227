//! Local file systems: what survives the loss of a disk is said by the devices below.

use std::path::Path;

use nilometer_model::{BlockLayer, BlockLayerKind, FileSystemKind, StorageProfile};

use super::{
    super::{layers::btrfs_profile, mounts::Mount, recognise::SYS},
    SystemFindings,
};

pub(super) fn ask(findings: &mut SystemFindings, mount: &Mount, profile: &StorageProfile) {
    if profile.kind == FileSystemKind::Btrfs {
        let name = profile.layers.first().map(|layer| layer.name.as_str());
        let data = name.and_then(|name| btrfs_profile(Path::new(SYS), name));
        findings.add("data profile", data.as_ref());
        findings.redundancy = data.map(|data| redundancy_of_btrfs(&data, profile.layers.len()));
    } else if profile.kind.is_certainly_local() && !profile.layers.is_empty() {
        findings.redundancy =
            profile.layers.iter().find_map(redundancy_of_layers).or_else(|| Some("none known".into()));
    }
    let quotas = ["usrquota", "grpquota", "prjquota", "uquota", "gquota", "pquota", "quota"];
    let on: Vec<_> = mount.options.split(',').filter(|option| quotas.contains(option)).collect();
    findings.add("quota", (!on.is_empty()).then(|| format!("on ({})", on.join(", "))));
}

fn redundancy_of_btrfs(data: &str, devices: usize) -> String {
    match data {
        "raid0" | "single" => format!("none ({data} over {devices})"),
        other => format!("btrfs {other} over {devices}"),
    }
}

/// Of the first array on the way down that has some.
fn redundancy_of_layers(layer: &BlockLayer) -> Option<String> {
    let mut layers = layer.all().into_iter();
    layers.find_map(|layer| match &layer.kind {
        BlockLayerKind::Md { level, members, .. } if level == "raid0" || level == "linear" => {
            Some(format!("none (md {level} of {members})"))
        }
        BlockLayerKind::Md { level, members, degraded, .. } => {
            let state = if *degraded > 0 { ", DEGRADED" } else { "" };
            Some(format!("md {level} of {members}{state}"))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_say_what_survives() {
        let md = |level: &str, degraded| BlockLayer {
            name: "md0".into(),
            kind: BlockLayerKind::Md { level: level.into(), members: 3, chunk: None, degraded },
            rotational: None,
            write_cache: None,
            below: Vec::new(),
        };
        assert_eq!(redundancy_of_layers(&md("raid5", 1)).as_deref(), Some("md raid5 of 3, DEGRADED"));
        assert_eq!(redundancy_of_layers(&md("raid0", 0)).as_deref(), Some("none (md raid0 of 3)"));
        assert_eq!(redundancy_of_btrfs("raid0", 4), "none (raid0 over 4)");
    }
}
