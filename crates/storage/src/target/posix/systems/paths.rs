//! The ways between a file system and its disks: volumes that use one array at a time, and links of PCI Express that
//! several disks share. Both limit a rate that the disks alone would reach.

use std::collections::BTreeMap;

use nilometer_model::{BlockLayer, BlockLayerKind, ByteRate, PcieLink};

use super::{super::tool::Tool, SystemFindings};

/// Adds a fact for each linear volume over several devices, and for each link that several disks share.
pub(super) fn ask(findings: &mut SystemFindings, layers: &[BlockLayer]) {
    for layer in layers.iter().flat_map(BlockLayer::all) {
        if let Some(name) = may_be_linear(layer) {
            let table = Tool::new("dmsetup", &["table", name]).said().map_err(|error| error.to_string());
            findings.add("volume", volume(layer, name, table.as_deref()));
        }
    }
    for path in shared_paths(layers) {
        findings.add("shared path", Some(path));
    }
}

/// The name of a volume over several devices if `/sys` does not show stripes. `/sys` can't tell linear from striped
/// over members that are striped themselves.
fn may_be_linear(layer: &BlockLayer) -> Option<&str> {
    match &layer.kind {
        BlockLayerKind::Mapped { by, name, stripes: None, .. } if by == "lvm" && layer.below.len() > 1 => {
            Some(name)
        }
        _ => None,
    }
}

/// The fact about a volume, from the table of the device mapper: a line is `BEGIN LENGTH TARGET ARGUMENTS`
/// (Documentation/admin-guide/device-mapper/linear.rst and striped.rst of Linux). `None` if it is striped.
fn volume(layer: &BlockLayer, name: &str, table: Result<&str, &String>) -> Option<String> {
    let members: Vec<_> = layer.below.iter().map(|below| below.name.as_str()).collect();
    let over = format!("{name} over {}", members.join(" + "));
    let advice = format!("lvcreate --stripes {} spreads a file over all", members.len());
    let table = match table {
        Ok(table) => table,
        Err(why) => {
            return Some(format!("{over} may be linear, then a file is on one of them ({why}); {advice}"));
        }
    };
    let is_linear = table.lines().any(|line| line.split_whitespace().nth(2) == Some("linear"));
    is_linear.then(|| {
        format!(
            "WARNING: {over} is linear: a file is on one of them, and their rates do not add up; {advice}"
        )
    })
}

/// A link, and the disks behind it.
struct SharedPcieLink<'a> {
    link: &'a PcieLink,
    disks: Vec<&'a BlockLayer>,
}

/// A sentence for each link that several disks share, if they may be faster together. A link further from the disks
/// is left out if the same disks share a nearer one that is no faster.
fn shared_paths(layers: &[BlockLayer]) -> Vec<String> {
    let mut disks: Vec<&BlockLayer> = layers.iter().flat_map(BlockLayer::all).collect();
    disks.retain(|layer| !layer.pcie.is_empty());
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks.dedup_by(|a, b| a.name == b.name);
    let mut links: BTreeMap<&str, SharedPcieLink<'_>> = BTreeMap::new();
    for disk in &disks {
        for link in &disk.pcie {
            let shared = links.entry(&link.address).or_insert(SharedPcieLink { link, disks: Vec::new() });
            shared.disks.push(disk);
        }
    }
    let links: Vec<_> = links.into_values().filter(|shared| shared.disks.len() > 1).collect();
    let mut paths: Vec<_> = links.iter().filter(|shared| !is_implied(shared, &links)).collect();
    paths.retain(|shared| rate_of_disks(shared).is_none_or(|rate| rate > shared.link.rate()));
    paths.into_iter().map(path_in_words).collect()
}

/// True if the same disks share a nearer link that is no faster.
fn is_implied(far: &SharedPcieLink<'_>, links: &[SharedPcieLink<'_>]) -> bool {
    let place = |link: &PcieLink| far.disks[0].pcie.iter().position(|one| one.address == link.address);
    let names =
        |shared: &SharedPcieLink<'_>| shared.disks.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>();
    links.iter().any(|near| {
        let is_nearer = place(near.link).is_some_and(|near| Some(near) < place(far.link));
        is_nearer && names(near) == names(far) && near.link.rate() <= far.link.rate()
    })
}

/// The rate of the disks' own links together; `None` if a disk has none: it hangs on a shared card.
fn rate_of_disks(shared: &SharedPcieLink<'_>) -> Option<ByteRate> {
    let own =
        shared.disks.iter().map(|disk| disk.pcie.first().filter(|link| link.address != shared.link.address));
    own.map(|link| Some(link?.rate().0)).sum::<Option<f64>>().map(ByteRate)
}

fn path_in_words(shared: &SharedPcieLink<'_>) -> String {
    let SharedPcieLink { link, disks } = shared;
    let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
    format!(
        "{} share {} ({link}): {} at most in each direction",
        names.join(" + "),
        link.address,
        link.rate()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, kind: BlockLayerKind, below: Vec<BlockLayer>) -> BlockLayer {
        BlockLayer { name: name.into(), kind, rotational: None, write_cache: None, pcie: Vec::new(), below }
    }

    fn link(address: &str, width: u32) -> PcieLink {
        PcieLink {
            address: address.into(),
            width,
            megatransfers: 8000,
            width_max: width,
            megatransfers_max: 8000,
        }
    }

    fn disk(name: &str, pcie: &[PcieLink]) -> BlockLayer {
        BlockLayer { pcie: pcie.to_vec(), ..layer(name, BlockLayerKind::Disk, Vec::new()) }
    }

    fn linear(below: Vec<BlockLayer>) -> BlockLayer {
        let kind =
            BlockLayerKind::Mapped { by: "lvm".into(), name: "vg-data".into(), stripes: None, chunk: None };
        layer("dm-0", kind, below)
    }

    #[test]
    fn a_linear_volume_over_two_arrays_is_warned_of() {
        let md = |name: &str| {
            let kind = BlockLayerKind::Md { level: "raid6".into(), members: 8, chunk: None, degraded: 0 };
            layer(name, kind, Vec::new())
        };
        let both = linear(vec![md("md0"), md("md1")]);
        let name = may_be_linear(&both).expect("its stripes are not known");
        // As dmsetup 1.02.185 prints it.
        let said = volume(&both, name, Ok("0 6291456 linear 9:0 2048\n6291456 6291456 linear 9:1 2048\n"));
        let expected = "WARNING: vg-data over md0 + md1 is linear: a file is on one of them, and their rates do not \
                        add up; lvcreate --stripes 2 spreads a file over all";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(volume(&both, name, Ok("0 12582912 striped 2 512 9:0 2048 9:1 2048\n")), None);
        let refused =
            volume(&both, name, Err(&"`dmsetup` is not installed".into())).expect("it is not known");
        assert!(refused.contains("may be linear") && refused.contains("not installed"), "{refused}");
        assert_eq!(may_be_linear(&linear(vec![md("md0")])), None, "on one array there is nothing to add up");
    }

    #[test]
    fn disks_of_one_card_share_its_link() {
        let card = link("0000:01:00.0", 8);
        let port = link("0000:00:01.0", 16);
        let disks: Vec<_> =
            ["sdb", "sda", "sdc"].iter().map(|name| disk(name, &[card.clone(), port.clone()])).collect();
        let expected =
            "sda + sdb + sdc share 0000:01:00.0 (PCIe 8.0 GT/s x8): 7.88 GB/s at most in each direction";
        assert_eq!(
            shared_paths(&[linear(disks)]),
            [expected],
            "the wider port behind it limits nothing more"
        );
        assert!(shared_paths(&[disk("sda", &[card])]).is_empty(), "one disk shares nothing");
    }

    #[test]
    fn a_switch_is_a_limit_only_if_it_is_narrower_than_its_disks_together() {
        let behind = |uplink: u32| {
            let disks = ["nvme0n1", "nvme1n1"].iter().enumerate().map(|(index, name)| {
                disk(name, &[link(&format!("0000:0{}:00.0", index + 3), 4), link("0000:01:00.0", uplink)])
            });
            shared_paths(&disks.collect::<Vec<_>>())
        };
        assert!(behind(8).is_empty(), "two times four lanes fit");
        let narrow = behind(4);
        assert!(narrow[0].starts_with("nvme0n1 + nvme1n1") && narrow[0].contains("3.94 GB/s"), "{narrow:?}");
    }
}
