//! The description of a target in rows, a name and a value each, for the documents of `describe`.

use super::{
    Capabilities, FileSystemSpace, StripeControl, TargetDescription, mount_options::option_meanings,
};
use crate::Bytes;

/// A fact about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionRow {
    /// The name of the fact, such as `file system`.
    pub name: String,
    /// Its value in words.
    pub value: String,
}

impl DescriptionRow {
    fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        DescriptionRow { name: name.into(), value: value.into() }
    }
}

impl TargetDescription {
    /// The facts about the storage, the path first.
    pub fn rows(&self) -> Vec<DescriptionRow> {
        let mut rows = self.place_rows();
        rows.extend(self.space_rows());
        rows.extend(self.ability_rows());
        let facts = self.facts.iter().map(|(name, value)| DescriptionRow::new(name, value));
        rows.extend(facts);
        let options = option_meanings(self.profile.kind, &self.options).into_iter();
        rows.extend(options.map(|(option, meaning)| DescriptionRow::new(option, meaning)));
        rows
    }

    /// The features of the file system: as published, or as a trial found them.
    pub fn feature_rows(&self) -> Vec<DescriptionRow> {
        let features = self.profile.features.iter();
        features.map(|finding| DescriptionRow::new(finding.feature.name(), finding.to_string())).collect()
    }

    fn place_rows(&self) -> Vec<DescriptionRow> {
        let memory = if self.is_memory() { " (memory: nothing here survives the loss of power)" } else { "" };
        let mut rows = vec![
            DescriptionRow::new("path", self.address.to_string()),
            DescriptionRow::new("file system", format!("{}{memory}{}", self.file_system, self.recognised())),
            DescriptionRow::new("source", &self.source),
        ];
        if self.directory().is_some() {
            let mounted = format!("{} ({})", self.mount_point.display(), self.options);
            rows.push(DescriptionRow::new("mounted at", mounted));
        }
        rows.extend(self.profile.layers.iter().map(|layer| DescriptionRow::new("device", layer.to_string())));
        if self.profile.layers.is_empty() {
            rows.push(DescriptionRow::new(
                "device",
                self.device.as_deref().unwrap_or("none on this machine"),
            ));
        }
        rows
    }

    fn space_rows(&self) -> [DescriptionRow; 2] {
        let FileSystemSpace { size, free, inodes, free_inodes, .. } = self.space;
        let full = 100.0 * self.space.fullness();
        let reserved = size.0.saturating_sub(self.space.usable().0);
        let reserved = match reserved {
            0 => String::new(),
            bytes => format!(", {} reserved for the system", Bytes(bytes)),
        };
        let inodes = match (inodes, free_inodes) {
            (Some(all), Some(free)) => format!("{free} free of {all}"),
            _ => "not known: the file system does not count them".into(),
        };
        [
            DescriptionRow::new("space", format!("{free} free of {size}, {full:.0} % full{reserved}")),
            DescriptionRow::new("inodes", inodes),
        ]
    }

    fn ability_rows(&self) -> Vec<DescriptionRow> {
        let has_stripes = self.striping.is_some_and(StripeControl::has_stripe_count);
        let mut rows = vec![
            DescriptionRow::new("writable", if self.writable { "yes" } else { "no" }),
            DescriptionRow::new("O_DIRECT", self.direct.to_string()),
            DescriptionRow::new("stripe count", if has_stripes { "can be chosen" } else { "no choice here" }),
        ];
        if let Some(layout) = &self.profile.layout {
            rows.push(DescriptionRow::new("layout", layout.to_string()));
        } else if let Some(size) = self.stripe_size {
            rows.push(DescriptionRow::new("stripe size", size.to_string()));
        }
        let redundancy = self.profile.redundancy.iter();
        rows.extend(redundancy.map(|redundancy| DescriptionRow::new("redundancy", redundancy)));
        let lacking = self.capabilities.lacking(&Capabilities::all());
        if !lacking.is_empty() {
            let names: Vec<_> = lacking.iter().map(|capability| capability.name()).collect();
            rows.push(DescriptionRow::new("no", names.join(", ")));
        }
        let engine = self.profile.engines.iter();
        rows.extend(
            engine.map(|trial| DescriptionRow::new("engine", format!("{}: {trial}", trial.suited().name()))),
        );
        rows
    }
}
