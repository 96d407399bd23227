//! Commands about parts that other recorders have and this one has not: banks of disk modules, boards for them,
//! further runtimes, and recordings split by data stream. Procedures of the Field System send them. The replies
//! say truthfully that there is nothing.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), the sections
//! of these commands; `src/mk5command/{bankinfoset,get_stats,datastream,reset_vbs}.cc` for order and codes.

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
            "datastream" => datastream(command),
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

/// `datastream = clear` and `datastream = reset` succeed, since no data stream is ever defined. `datastream = add`
/// has code 2: recordings are split by port only, with the labels of `net_port`. `datastream?`: `0`, the number of data streams.
fn datastream(command: &Mark5Command) -> Mark5Reply {
    let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
    let wrong = |why: &str| Mark5Reply::to(command, ReturnCode::Parameter).field(why);
    if command.query {
        return match field(0) {
            "" => Mark5Reply::to(command, ReturnCode::Done).field(0),
            name => wrong(&format!("the data stream {name} is not defined")),
        };
    }
    let specified = command.fields.iter().skip(2).any(|field| !field.is_empty());
    match (field(0), field(1)) {
        ("clear" | "reset", _) => Mark5Reply::to(command, ReturnCode::Done),
        ("", _) => wrong("write add, remove, reset or clear"),
        ("add" | "remove", "") => wrong("write the name of a data stream"),
        ("add", _) if !specified => wrong("write which frames belong to the data stream, such as *"),
        ("add", _) => irrelevant(
            command,
            "streams are told apart by port, write net_port = <port>=<label>, one for each",
        ),
        ("remove", name) => wrong(&format!("the data stream {name} is not defined")),
        (other, _) => irrelevant(command, &format!("{other} does not apply to datastream")),
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

    #[test]
    fn no_data_stream_can_be_defined_and_that_is_no_success() {
        assert_eq!(replied("datastream?", datastream), "!datastream? 0 : 0 ;");
        for (text, code) in [
            ("clear", 0),
            ("reset", 0),
            ("add:ds{thread}:*", 2),
            ("add:ds", 8),
            ("add", 8),
            ("remove:ds", 8),
            ("", 8),
            ("list", 2),
        ] {
            let reply = replied(&format!("datastream={text}"), datastream);
            assert!(reply.starts_with(&format!("!datastream= {code}")), "{reply}");
        }
        assert!(replied("datastream?ds", datastream).starts_with("!datastream? 8 : the data stream ds"));
    }
}
