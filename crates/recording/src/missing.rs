//! What is done about frames that do not come.

/// What stands in the recording in place of frames that do not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// A frame that is marked as invalid stands in their place, with the time that they would have had.
    #[default]
    Filled,
    /// The next frame that came follows at once.
    LeftOut,
}

impl Missing {
    /// All of them.
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
