//! What a target can do: a workload names what it needs, and is not run where that is missing.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Something that not every target can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All of them.
            pub const ALL: &'static [Capability] = &[$(Capability::$name),*];

            /// What it is, as messages say it.
            pub const fn name(self) -> &'static str {
                match self { $(Capability::$name => $word,)* }
            }
        }
    };
}

capabilities! {
    /// What was written is there afterwards, under its name, and can be read.
    Keep = "keeping what is written",
    /// Files are read at any offset.
    Read = "reading",
    /// Files are written from their beginning to their end, each once; as many writes may be in flight as are submitted in
    /// that order.
    Write = "writing",
    /// A file is there from the moment it is opened, and is read and written on behind its end after a sync. Without this it is
    /// there, as a whole, when it is first synced or closed.
    Append = "appending",
    /// Files are written at any offset, in any order, and a write that is done has arrived. Without this it may be on its way,
    /// and what a file has is told when it is synced or closed.
    WriteAnywhere = "writing at any offset",
    /// The size of a file is set, and space is reserved before it is written.
    Resize = "setting the size of a file",
    /// Files and directories get other names.
    Rename = "renaming",
    /// Files and directories are removed one by one.
    Remove = "removing",
    /// Directories are made.
    Directories = "making directories",
    /// Directories are listed, and what is in them is looked at.
    List = "listing",
    /// What was synced survives the loss of power.
    Sync = "syncing",
    /// A file that is removed can be read for as long as it is open.
    OpenRemoved = "keeping a file that is removed while it is open",
    /// A directory that is there is not made again, one that is not there not removed, none is removed as a file, and none is made
    /// for a file that is put into it.
    StrictNames = "refusing to make what is there and to remove what is not",
    /// Files have paths on this machine: other libraries open them, and engines copy from directories that are mounted.
    Mounted = "being mounted",
}

/// What a target can do, or what a workload needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// Everything: what a POSIX file system can do.
    pub fn all() -> Self {
        Capabilities(Capability::ALL.iter().copied().collect())
    }

    /// Only these.
    pub fn of(some: &[Capability]) -> Self {
        Capabilities(some.iter().copied().collect())
    }

    /// The same without some.
    #[must_use]
    pub fn without(mut self, some: &[Capability]) -> Self {
        self.0.retain(|capability| !some.contains(capability));
        self
    }

    /// Each of them.
    pub fn all_of_them(&self) -> Vec<Capability> {
        self.0.iter().copied().collect()
    }

    /// Whether it is among them.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// What of `needed` is not among them, in order.
    pub fn lacking(&self, needed: &Capabilities) -> Vec<Capability> {
        needed.0.difference(&self.0).copied().collect()
    }
}

impl Default for Capabilities {
    /// Everything, as targets have it that were described before this was asked for.
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
