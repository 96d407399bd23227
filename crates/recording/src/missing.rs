//! The choice between filling and leaving out missing frames.

/// Tells how the recording represents missing frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// A frame marked as invalid replaces each missing one, with the time that it would have had.
    #[default]
    Filled,
    /// The next frame received follows at once.
    LeftOut,
}

impl Missing {
    /// All choices.
    pub const ALL: [Missing; 2] = [Missing::Filled, Missing::LeftOut];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Missing::Filled => "fill",
            Missing::LeftOut => "leave-out",
        }
    }
}

impl std::str::FromStr for Missing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Missing::ALL.into_iter().find(|missing| missing.name() == text);
        named.ok_or_else(|| format!("`{text}`: write {}", Missing::ALL.map(Missing::name).join(" or ")))
    }
}
