//! Commands about parts that other recorders have and this one has not: banks of disk modules, boards for them,
//! and further runtimes. Procedures of the Field System send them. The replies
//! say truthfully that there is nothing.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), the sections
//! of these commands; `src/mk5command/{bankinfoset,get_stats,reset_vbs}.cc` for order and codes.

use super::{
    commands::Mark5Session,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

/// The name of the only runtime, which jive5ab calls so too.
const RUNTIME: &str = "0";

impl Mark5Session {
    /// The reply about a part that is absent here, or `None` for other keywords.
    pub(super) fn about_absent_parts(&self, command: &Mark5Command) -> Option<Mark5Reply> {
        Some(match command.keyword.as_str() {
            "bank_set" => bank(command),
            "vsn" => conflict(command, "no disk module, recordings are in directories"),
            "get_stats" if command.query => conflict(command, "no disk pack mounted"),
            "ss_rev" | "get_stats" => irrelevant(command, "no StreamStor board"),
            "runtime" => runtime(command),
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

/// `bank_set?`: `- : : - :`, neither bank is ready. The command has code 6, as jive5ab documents it for a recorder
/// without an active bank.
fn bank(command: &Mark5Command) -> Mark5Reply {
    if !command.query {
        return conflict(command, "no bank, recordings are in directories");
    }
    ["-", "", "-", ""].into_iter().fold(Mark5Reply::to(command, ReturnCode::Done), Mark5Reply::field)
}

/// `runtime?`: `0 : 1`, the name of the only runtime and their number. A command can select that one only.
fn runtime(command: &Mark5Command) -> Mark5Reply {
    let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
    if command.query {
        return Mark5Reply::to(command, ReturnCode::Done).field(RUNTIME).field(1);
    }
    match (field(0), field(1)) {
        ("", _) => Mark5Reply::to(command, ReturnCode::Parameter).field("write the name of a runtime"),
        (RUNTIME, "" | "exists" | "transient") => Mark5Reply::to(command, ReturnCode::Done),
        (RUNTIME, "new") => conflict(command, "runtime 0 exists"),
        _ => irrelevant(command, "there is one runtime, 0; start another service for another recording"),
    }
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

    #[test]
    fn there_is_one_runtime() {
        assert_eq!(replied("runtime?", runtime), "!runtime? 0 : 0 : 1 ;");
        for (text, code) in
            [("0", 0), ("0:exists", 0), ("0:new", 6), ("0:delete", 2), ("x", 2), ("", 8), ("x:transient", 2)]
        {
            let reply = replied(&format!("runtime={text}"), runtime);
            assert!(reply.starts_with(&format!("!runtime= {code}")), "{reply}");
        }
    }
}
