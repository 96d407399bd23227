//! Commands about parts that other recorders have and this one has not: banks of disk modules, and boards for them.
//! Procedures of the Field System send them. The replies say truthfully that there is nothing.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), the sections
//! of these commands; `src/mk5command/{bankinfoset,get_stats,reset_vbs}.cc` for order and codes.

use super::{
    commands::Mark5Session,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

impl Mark5Session {
    /// The reply about a part that is absent here, or `None` for other keywords.
    pub(super) fn about_absent_parts(&self, command: &Mark5Command) -> Option<Mark5Reply> {
        Some(match command.keyword.as_str() {
            "bank_set" | "bank_info" => bank(command),
            "vsn" => conflict(command, "no disk module, recordings are in directories"),
            "get_stats" if command.query => conflict(command, "no disk pack mounted"),
            "ss_rev" | "get_stats" => irrelevant(command, "no StreamStor board"),
            "reset" => self.reset(command),
            _ => return None,
        })
    }

    /// `reset = abort` ends a running `disk2file`. All other resets have code 6, as on a `FlexBuff`.
    fn reset(&self, command: &Mark5Command) -> Mark5Reply {
        if command.query {
            return irrelevant(command, "only implemented as command");
        }
        match command.fields.first().map_or("", String::as_str) {
            "abort" if self.shared.copy().abort() => Mark5Reply::to(command, ReturnCode::Done),
            "abort" => conflict(command, "nothing running to abort"),
            "" => conflict(command, "reset needs an argument, write reset = abort"),
            other => conflict(command, &format!("{other} does not apply to directories")),
        }
    }
}

fn conflict(command: &Mark5Command, why: &str) -> Mark5Reply {
    Mark5Reply::to(command, ReturnCode::Conflict).field(why)
}

fn irrelevant(command: &Mark5Command, why: &str) -> Mark5Reply {
    Mark5Reply::to(command, ReturnCode::Irrelevant).field(why)
}

/// `bank_set?` and `bank_info?`: `- : : - :`, neither bank is ready. The command has code 6, as jive5ab documents
/// it for a recorder without an active bank.
fn bank(command: &Mark5Command) -> Mark5Reply {
    if !command.query {
        return conflict(command, "no bank, recordings are in directories");
    }
    ["-", "", "-", ""].into_iter().fold(Mark5Reply::to(command, ReturnCode::Done), Mark5Reply::field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark5::syntax::parse;

    fn replied(text: &str, reply: fn(&Mark5Command) -> Mark5Reply) -> String {
        reply(&parse(text).expect("a command").expect("well-formed")).to_string()
    }

    #[test]
    fn no_bank_is_ready() {
        assert_eq!(replied("bank_set?", bank), "!bank_set? 0 : - :  : - :  ;");
        assert!(replied("bank_set=inc", bank).starts_with("!bank_set= 6 : no bank"));
    }
}
