//! Local file systems: the devices below show if they survive the loss of a disk.

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
        findings.redundancy = data.map(|data| redundancy_of_btrfs(&data, &profile.layers));
    } else if profile.kind.is_certainly_local() && !profile.layers.is_empty() {
        let known = profile.layers.iter().find_map(redundancy_of_layers);
        findings.redundancy = known.or_else(|| Some("none known".into()));
    }
    let quotas = ["usrquota", "grpquota", "prjquota", "uquota", "gquota", "pquota", "quota"];
    let on: Vec<_> = mount.options.split(',').filter(|option| quotas.contains(option)).collect();
    findings.add("quota", (!on.is_empty()).then(|| format!("on ({})", on.join(", "))));
}

fn redundancy_of_btrfs(data: &str, layers: &[BlockLayer]) -> String {
    let devices = layers.len();
    match data {
        // It may be on an array that has redundancy.
        "raid0" | "single" => {
            let below =
                layers.iter().find_map(redundancy_of_layers).filter(|below| !below.starts_with("none"));
            below.unwrap_or_else(|| format!("none ({data} over {devices})"))
        }
        other => format!("btrfs {other} over {devices}"),
    }
}

/// Returns the redundancy of the first array on the way down that has some, or notes an array that has none.
fn redundancy_of_layers(layer: &BlockLayer) -> Option<String> {
    let mut none = None;
    for layer in layer.all() {
        let BlockLayerKind::Md { level, members, degraded, .. } = &layer.kind else { continue };
        if level == "raid0" || level == "linear" {
            none.get_or_insert_with(|| format!("none (md {level} of {members})"));
            continue;
        }
        let state = if *degraded > 0 { ", DEGRADED" } else { "" };
        return Some(format!("md {level} of {members}{state}"));
    }
    none
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_say_what_survives() {
        let over = |level: &str, degraded, below: Vec<BlockLayer>| BlockLayer {
            name: "md0".into(),
            kind: BlockLayerKind::Md { level: level.into(), members: 3, chunk: None, degraded },
            rotational: None,
            write_cache: None,
            pcie: Vec::new(),
            below,
        };
        let md = |level: &str, degraded| over(level, degraded, Vec::new());
        assert_eq!(redundancy_of_layers(&md("raid5", 1)).as_deref(), Some("md raid5 of 3, DEGRADED"));
        assert_eq!(redundancy_of_layers(&md("raid0", 0)).as_deref(), Some("none (md raid0 of 3)"));
        let both = over("raid0", 0, vec![md("raid6", 0), md("raid6", 0)]);
        assert_eq!(redundancy_of_layers(&both).as_deref(), Some("md raid6 of 3"));
        assert_eq!(redundancy_of_btrfs("single", &[md("raid6", 0)]), "md raid6 of 3");
        assert_eq!(redundancy_of_btrfs("raid0", &[md("raid0", 0), md("linear", 0)]), "none (raid0 over 2)");
    }
}
