//! The capabilities of a target. A workload lists those that it needs; the campaign skips it on targets that
//! lack one.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A capability that some targets lack.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All of them.
            pub const ALL: &'static [Capability] = &[$(Capability::$name),*];

            /// Its name in messages.
            pub const fn name(self) -> &'static str {
                match self { $(Capability::$name => $word,)* }
            }
        }
    };
}

capabilities! {
    /// Data persist under their name after writing, and can be read.
    Keep = "keeping written data",
    /// Reads at any offset.
    Read = "reading",
    /// Writes a file once, from beginning to end. Any number of writes may be in flight, submitted in that
    /// order.
    Write = "writing",
    /// A file exists from its open on, and after a sync you can read it and write on at its end. Without this
    /// it appears as a whole, at its first sync or its close.
    Append = "appending",
    /// Writes at any offset, in any order, and a completed write has arrived. Without this it may still be on
    /// its way; the size is certain only after a sync or the close.
    WriteAnywhere = "writing at any offset",
    /// Sets the size of a file, and reserves space before writing.
    Resize = "setting the size of a file",
    /// Renames files and directories.
    Rename = "renaming",
    /// Removes files and directories one by one.
    Remove = "removing",
    /// Makes directories.
    Directories = "making directories",
    /// Lists directories and stats their entries.
    List = "listing",
    /// Synced data survive a loss of power.
    Sync = "syncing",
    /// A removed file stays readable while it is open.
    OpenRemoved = "keeping a file that is removed while it is open",
    /// Names are strict: making an existing directory fails, and so does removing a missing one. No call
    /// removes a directory as a file, or makes one for a file put into it.
    StrictNames = "refusing to make existing names and to remove missing ones",
    /// Files have paths on this machine: other libraries open them, and engines copy from directories that are mounted.
    Mounted = "being mounted",
}

/// The capabilities of a target, or the ones that a workload needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// All capabilities: those of a POSIX file system.
    pub fn all() -> Self {
        Capabilities(Capability::ALL.iter().copied().collect())
    }

    /// Only these.
    pub fn of(some: &[Capability]) -> Self {
        Capabilities(some.iter().copied().collect())
    }

    /// Removes some.
    #[must_use]
    pub fn without(mut self, some: &[Capability]) -> Self {
        self.0.retain(|capability| !some.contains(capability));
        self
    }

    /// Each of them.
    pub fn all_of_them(&self) -> Vec<Capability> {
        self.0.iter().copied().collect()
    }

    /// Returns true if it contains `capability`.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// The capabilities in `needed` that are missing here, in order.
    pub fn lacking(&self, needed: &Capabilities) -> Vec<Capability> {
        needed.0.difference(&self.0).copied().collect()
    }
}

impl Default for Capabilities {
    /// All capabilities, since older records describe targets without this field.
    fn default() -> Self {
        Capabilities::all()
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|capability| capability.name()).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_and_not_there_is_named() {
        let archive = Capabilities::all().without(&[Capability::WriteAnywhere, Capability::Rename]);
        let needed = Capabilities::of(&[Capability::Write, Capability::Rename]);
        assert_eq!(archive.lacking(&needed), [Capability::Rename]);
        assert!(archive.has(Capability::Write) && !archive.has(Capability::Rename));
        assert_eq!(Capabilities::all().lacking(&Capabilities::all()), []);
        let text = serde_json::to_string(&needed).expect("plain data");
        assert_eq!(text, r#"["write","rename"]"#);
        assert_eq!(serde_json::from_str::<Capabilities>(&text).ok(), Some(needed));
    }
}
