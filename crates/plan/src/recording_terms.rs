//! The terms of a recording: the route and the destination of frames, the space to fill, the state of the target.

use nilometer_model::{Bytes, Nanos, read_toml};
use serde::{Deserialize, Serialize};

use crate::plan_table::plan_table;

/// The destination of a recorder's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Onto {
    /// On the target.
    #[default]
    Target,
    /// Nowhere: writes do nothing and always succeed. The rest is the cost of the recorder itself.
    Nothing,
}

/// The route of an instrument's frames to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// The recorder's process makes the frames in its memory.
    #[default]
    InPlace,
    /// In packets that the instrument sends over this machine's own network.
    Loopback,
    /// In packets that the instrument sends from another machine over the network.
    Network,
}

impl Route {
    /// A description in words, to follow a verb.
    pub const fn words(self) -> &'static str {
        match self {
            Route::InPlace => "in place",
            Route::Loopback => "over loopback",
            Route::Network => "over the network",
        }
    }

    /// True if frames come over a network, in packets.
    pub const fn has_packets(self) -> bool {
        matches!(self, Route::Loopback | Route::Network)
    }
}

/// The level up to which a target is kept full: a buffer of days that always holds the latest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// The share of the usable space that files may take, including those already there: above 0, at most 1.
    pub level: f64,
    /// The share of each of this cell's recorders in the space up to that level.
    pub share: f64,
}

impl Fill {
    /// Bytes that each recorder may keep on a target, given its usable space (without the part reserved for
    /// the system) and its free space.
    pub fn keep(&self, usable: Bytes, free: Bytes) -> Bytes {
        let used = usable.0.saturating_sub(free.0) as f64;
        let room = self.share * (self.level * usable.0 as f64 - used);
        #[expect(clippy::cast_sign_loss, reason = "it is clamped")]
        Bytes(room.clamp(0.0, usable.0 as f64) as u64)
    }
}

plan_table! {
    /// A state that the user's own commands bring a target into: one element lost, rebuilding, a link down.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    Condition {
        /// The condition's name in reports.
        name: String,
        /// Start the condition with this command. A shell runs it, with the target's path in
        /// `NILOMETER_TARGET`.
        enter: String as "a command",
        /// End the condition with this command, in the same way. It also runs after a failure, and at
        /// `--resume` after a kill.
        leave: String as "a command",
        /// Wait for this time after `enter`.
        settle: Nanos = Nanos(0),
        /// End either command if it takes longer.
        time_limit: Nanos = Nanos::from_millis(600_000),
    }
}

impl Condition {
    /// Reads a condition's file. Messages call it `file`.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let condition: Condition = read_toml(text).map_err(|error| format!("{file}: {error}"))?;
        condition.check().map_err(|why| format!("{file}: {why}"))?;
        Ok(condition)
    }

    /// Refuses values that make no sense; the message says how to correct them.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.time_limit.0 == 0 {
            return Err("time_limit is zero: write more, or leave it out".into());
        }
        let Condition { name, enter, leave, .. } = self;
        let mut texts = [("name", name), ("enter", enter), ("leave", leave)].into_iter();
        match texts.find(|(_, value)| value.trim().is_empty()) {
            Some((key, _)) => Err(format!("{key} is empty: write a name, or a command")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_filled_up_to_its_level() {
        let fill = |level, share| Fill { level, share }.keep(Bytes(1000), Bytes(700));
        assert_eq!((fill(0.9, 1.0), fill(0.9, 0.25), fill(0.2, 1.0)), (Bytes(600), Bytes(150), Bytes(0)));
    }

    #[test]
    fn a_condition_needs_a_way_in_and_a_way_out() {
        let text = "name = \"one disk lost\"\nenter = \"true\"\nleave = \"false\"\nsettle = \"10 s\"\n";
        let condition = Condition::parse(text, "c.toml").expect("valid");
        assert_eq!((condition.leave.as_str(), condition.settle), ("false", Nanos::from_millis(10_000)));
        assert_eq!(condition.time_limit, Nanos::from_millis(600_000));
        for (from, to, part) in [
            ("\"false\"", "\" \"", "leave is empty"),
            ("leave", "undo", "`leave`"),
            ("settle = \"10 s\"", "time_limit = \"0 s\"", "time_limit is zero"),
            ("name = \"one disk lost\"\n", "", "the key `name` is missing"),
        ] {
            let error = Condition::parse(&text.replace(from, to), "c.toml").expect_err(to);
            assert!(error.contains(part) && error.contains("c.toml"), "{error}");
        }
    }
}
