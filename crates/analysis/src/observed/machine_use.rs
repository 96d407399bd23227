//! The use of an observed machine in a phase.

use super::{UseKey, UseKind};

/// The use of a machine in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineUse {
    /// Index into [`super::ObservedRun::machines`].
    pub machine: usize,
    /// Number of spans between looks that lie within repeats.
    pub spans: usize,
    /// Number of repeats with at least one such span.
    pub repeats: usize,
    /// Each known figure, in the order of the keys.
    pub uses: Vec<CellUse>,
}

/// A figure in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct CellUse {
    /// The kind and resource.
    pub key: UseKey,
    /// The median over repeats of the mean within each.
    pub mean: f64,
    /// The maximum over all spans.
    pub most: f64,
}

impl MachineUse {
    /// The figure of this key.
    pub fn of(&self, kind: UseKind, name: &str) -> Option<&CellUse> {
        self.uses.iter().find(|of| of.key.kind == kind && of.key.name == name)
    }

    /// All figures of this kind.
    pub fn all(&self, kind: UseKind) -> impl Iterator<Item = &CellUse> {
        self.uses.iter().filter(move |of| of.key.kind == kind)
    }
}
