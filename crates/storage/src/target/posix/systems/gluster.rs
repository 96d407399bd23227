//! `GlusterFS`: layouts belong to the volume. Its tool shows all of them if a server runs on this machine.
//! Elsewhere an attribute shows the location of a directory, to root only.

use std::path::Path;

use super::{super::stripe::copies_in_words, super::tool::Tool, SystemFindings, attribute};

pub(super) fn ask(findings: &mut SystemFindings, source: &str, directory: &Path) {
    let (server, volume) = source.split_once(":/").unwrap_or((source, ""));
    findings.add("servers", Some(server));
    let version = Tool::new("glusterfs", &["--version"]).said().ok();
    findings.add("version", version.and_then(|text| text.split_whitespace().nth(1).map(str::to_owned)));
    let volume = volume.split('/').next().unwrap_or_default();
    // A mount's source may be any text, even an option.
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('-');
    if !is_name(server) || !is_name(volume) {
        return;
    }
    let remote = format!("--remote-host={server}");
    match Tool::new("gluster", &["--mode=script", &remote, "volume", "info", volume, "--xml"]).said() {
        Ok(xml) => tell(findings, &xml),
        Err(error) => findings.add("not asked", Some(format!("the volume: {error}"))),
    }
    let places = ["trusted.glusterfs.pathinfo", "glusterfs.pathinfo"];
    let path = places.iter().find_map(|name| attribute(directory, name));
    findings.add("bricks", path.as_deref().map(bricks).filter(|bricks| !bricks.is_empty()));
}

/// Returns the text between the first tags of this name.
fn tag<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    xml.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

/// The geometry of a volume (`gluster volume info VOLUME --xml`).
fn tell(findings: &mut SystemFindings, xml: &str) {
    let number = |name: &str| tag(xml, name).and_then(|text| text.trim().parse::<u32>().ok());
    findings.add("volume", tag(xml, "typeStr"));
    findings.redundancy = match (number("disperseCount"), number("redundancyCount"), number("replicaCount")) {
        (Some(all), Some(spare), _) if spare > 0 && spare < all => {
            Some(format!("erasure code {}+{spare}", all - spare))
        }
        (_, _, Some(copies)) if copies > 0 => Some(copies_in_words(copies)),
        _ => None,
    };
    findings.add("bricks in all", number("brickCount").map(|count| count.to_string()));
    let option = |wanted: &str| {
        let mut options = xml.split("<option>").skip(1);
        options.find(|option| tag(option, "name") == Some(wanted)).and_then(|option| tag(option, "value"))
    };
    let shard = option("features.shard").filter(|on| matches!(*on, "on" | "enable" | "true"));
    let size = option("features.shard-block-size").unwrap_or("64MB");
    findings.add("shards", shard.map(|_| size));
    for name in ["features.quota", "performance.write-behind", "performance.io-cache", "network.remote-dio"] {
        findings.add(name, option(name));
    }
}

/// Returns the bricks in the attribute's value: `<POSIX(/data/b2/d):host:/data/b2/d/r>`.
fn bricks(text: &str) -> String {
    let places = text.split("<POSIX(").skip(1);
    let names = places.filter_map(|place| {
        let (brick, rest) = place.split_once("):")?;
        Some(format!("{}:{brick}", rest.split(':').next()?))
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_of_the_geometry_of_volumes() {
        let told = |xml: &str| {
            let mut findings = SystemFindings::default();
            tell(&mut findings, xml);
            findings
        };
        let dispersed = told(
            "<volume><name>ec</name><brickCount>3</brickCount><distCount>3</distCount><replicaCount>1</replicaCount>\
             <disperseCount>3</disperseCount><redundancyCount>1</redundancyCount><typeStr>Disperse</typeStr></volume>",
        );
        assert_eq!(dispersed.redundancy.as_deref(), Some("erasure code 2+1"));
        let sharded = told(
            "<brickCount>3</brickCount><replicaCount>1</replicaCount><disperseCount>0</disperseCount>\
             <redundancyCount>0</redundancyCount><typeStr>Distribute</typeStr><options><option>\
             <name>features.shard-block-size</name><value>64MB</value></option><option><name>features.shard</name>\
             <value>on</value></option></options>",
        );
        assert_eq!(sharded.redundancy.as_deref(), Some("1 copy"));
        assert!(sharded.facts.contains(&("shards".into(), "64MB".into())), "{sharded:?}");
        assert_eq!(told("no XML"), SystemFindings::default());
    }

    #[test]
    fn replay_of_where_a_file_lies() {
        let text = "(<DISTRIBUTE:dist-dht> <POSIX(/data/b2/d):vm:/data/b2/d/r>)";
        assert_eq!(bricks(text), "vm:/data/b2/d");
        assert_eq!(bricks("nothing"), "");
    }
}
