//! Commands and replies between stations and Mark 5 recorders (VSI-S). `record = on : name ;` is a command,
//! `record ?` a query, and `!record = 0 ;` a reply whose first field is a return code. There is no I/O here.
//!
//! Sources in the repository of jive5ab:
//!
//! - its documentation: "VSI-S Command, Query and Response Syntax" (doc/source/vsi-s-commands.rst) and "jive5ab
//!   command set"
//! - the Mark 5C command set 2.1 (doc/Mark5C_command_set-2.1.pdf)
//! - the splitting of input (src/test.cc)

use std::fmt;

/// A command or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark5Command {
    /// The keyword in lower case: case is irrelevant.
    pub(super) keyword: String,
    pub(super) query: bool,
    /// The fields without white space, which is irrelevant.
    pub(super) fields: Vec<String>,
}

/// The return codes of VSI-S.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReturnCode {
    /// Done.
    Done = 0,
    /// Initiated or enabled, but not completed.
    Begun = 1,
    /// Not implemented or not relevant.
    Irrelevant = 2,
    /// Neither a command nor a query.
    Syntax = 3,
    /// The recorder tried and failed.
    Failed = 4,
    /// Too busy; try again later.
    Busy = 5,
    /// In conflict with the current state.
    Conflict = 6,
    /// No such keyword.
    Unknown = 7,
    /// A parameter is invalid.
    Parameter = 8,
}

/// A reply to a command or query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark5Reply {
    keyword: String,
    query: bool,
    code: ReturnCode,
    fields: Vec<String>,
}

impl Mark5Reply {
    /// A reply to a command or query, without fields yet.
    pub(super) fn to(command: &Mark5Command, code: ReturnCode) -> Self {
        Mark5Reply { keyword: command.keyword.clone(), query: command.query, code, fields: Vec::new() }
    }

    /// The reply to text that is no command.
    pub(super) fn no_command(why: &str) -> Self {
        let fields = vec![plain(why)];
        Mark5Reply { keyword: "syntax".into(), query: false, code: ReturnCode::Syntax, fields }
    }

    /// Adds a field. Characters that end fields and replies become commas.
    #[must_use]
    pub(super) fn field(mut self, text: impl fmt::Display) -> Self {
        self.fields.push(plain(&text.to_string()));
        self
    }
}

fn plain(text: &str) -> String {
    text.replace([':', ';'], ",").replace(|character: char| character.is_control(), " ")
}

impl fmt::Display for Mark5Reply {
    /// `!record? 0 : on : 1 : name ;`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.query { '?' } else { '=' };
        write!(f, "!{}{mark} {}", self.keyword, self.code as u8)?;
        for field in &self.fields {
            write!(f, " : {field}")?;
        }
        f.write_str(" ;")
    }
}

/// The most characters of a command. It suffices for a label of 64 characters and other fields of 32.
const LENGTH_MAX: usize = 1024;

/// Parses the text between two semicolons. Empty text is no command, and no error.
pub(super) fn parse(text: &str) -> Option<Result<Mark5Command, &'static str>> {
    let plain: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    if plain.is_empty() {
        return None;
    }
    if plain.len() > LENGTH_MAX {
        return Some(Err("too long"));
    }
    let Some(at) = plain.find(['?', '=']) else { return Some(Err("not a command or query")) };
    let (keyword, rest) = plain.split_at(at);
    if keyword.is_empty() {
        return Some(Err("no keyword"));
    }
    if !keyword.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Some(Err("not a command or query"));
    }
    let query = rest.starts_with('?');
    let fields = &rest[1..];
    let fields = if fields.is_empty() { Vec::new() } else { fields.split(':').map(str::to_owned).collect() };
    Some(Ok(Mark5Command { keyword: keyword.to_ascii_lowercase(), query, fields }))
}

/// The text of a client without an answer yet.
#[derive(Debug, Default)]
pub(super) struct CommandReader(Vec<u8>);

/// The most bytes without the end of a command.
const HEARD_MAX: usize = 8 << 10;

impl CommandReader {
    /// Takes in received bytes, and returns all text that is complete. Commands end with a semicolon or their
    /// line. It fails if the text has no end, or is such as no station sends.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<Option<Mark5Line>, &'static str> {
        self.0.extend_from_slice(bytes);
        let Some(end) = self.0.iter().rposition(|byte| matches!(byte, b';' | b'\n')) else {
            return if self.0.len() > HEARD_MAX { Err("too long") } else { Ok(None) };
        };
        let rest = self.0.split_off(end + 1);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.0, rest)).into_owned();
        if text.starts_with(HANDSHAKE) || text.lines().any(is_request) {
            return Err("no commands from browsers");
        }
        Ok(Some(Mark5Line { returns: text.contains("\r\n"), text }))
    }
}

/// The first byte of TLS.
const HANDSHAKE: char = '\x16';

/// Returns true for a line like a browser's request, `POST /path HTTP/1.1`. Anybody's web page could otherwise
/// send commands in the body or the path. A command has `=` or `?` after its first word.
fn is_request(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_method = words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let is_path = words.next().is_some_and(|word| word.starts_with('/'));
    is_method && (is_path || words.next().is_some_and(|word| word.starts_with("HTTP/")))
}

/// Commands that arrived together; their replies form one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark5Line {
    text: String,
    /// True if lines end in CR LF, as those of telnet do.
    returns: bool,
}

impl Mark5Line {
    /// The replies to all commands; empty if there are none.
    pub(super) fn answer(&self, mut reply: impl FnMut(&Mark5Command) -> Mark5Reply) -> String {
        let commands = self.text.split([';', '\n']).filter_map(parse);
        let replies = commands.map(|command| match command {
            Ok(command) => reply(&command).to_string(),
            Err(why) => Mark5Reply::no_command(why).to_string(),
        });
        let replies: String = replies.collect();
        let end = if self.returns { "\r\n" } else { "\n" };
        if replies.is_empty() { replies } else { replies + end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(text: &str) -> Mark5Command {
        parse(text).expect("something").expect(text)
    }

    #[test]
    fn commands_and_queries_are_told_apart() {
        let on = command(" Record = on : exp_st_scan-1 : : EF ");
        assert_eq!((on.keyword.as_str(), on.query), ("record", false));
        assert_eq!(on.fields, ["on", "exp_st_scan-1", "", "EF"]);
        let port = command("net_port = 10.0.0.1@46227 = x");
        assert_eq!(port.fields, ["10.0.0.1@46227=x"]);
        let query = command("DTS_id?");
        assert_eq!((query.keyword.as_str(), query.query, query.fields.len()), ("dts_id", true, 0));
        assert_eq!(parse(" \r "), None);
        for wrong in ["record", "=on", "?", "ré=1", "a b"] {
            assert!(parse(wrong).expect("something").is_err(), "{wrong}");
        }
    }

    #[test]
    fn replies_are_written_as_clients_read_them() {
        let query = command("record?");
        assert_eq!(
            Mark5Reply::to(&query, ReturnCode::Done).field("on").field(5).to_string(),
            "!record? 0 : on : 5 ;"
        );
        assert_eq!(Mark5Reply::to(&command("mode=x"), ReturnCode::Parameter).to_string(), "!mode= 8 ;");
        let text = Mark5Reply::to(&query, ReturnCode::Failed).field("/data: full;\r\nsorry").to_string();
        assert_eq!(text, "!record? 4 : /data, full,  sorry ;");
    }

    #[test]
    fn what_comes_in_pieces_or_together_is_answered_once() {
        let ok = |command: &Mark5Command| Mark5Reply::to(command, ReturnCode::Done);
        let mut heard = CommandReader::default();
        assert_eq!(heard.add(b"stat"), Ok(None));
        let line = heard.add(b"us?; mode?;\r\nrec").expect("short").expect("two");
        assert_eq!(line.answer(ok), "!status? 0 ;!mode? 0 ;\r\n");
        let line = heard.add(b"ord?\n").expect("short").expect("one without a semicolon");
        assert_eq!(line.answer(ok), "!record? 0 ;\n");
        assert_eq!(heard.add(b"\n").expect("short").expect("a line").answer(ok), "", "nothing to nothing");
        let line = heard.add(b"nonsense;").expect("short").expect("one");
        assert_eq!(line.answer(ok), "!syntax= 3 : not a command or query ;\n");
        assert_eq!(heard.add(&[b'x'; HEARD_MAX + 1]), Err("too long"));
    }

    #[test]
    fn what_browsers_say_is_no_line_of_commands() {
        for said in [
            "POST / HTTP/1.1\r\nHost: x\r\n\r\nrecord=off;\n",
            "GET /;record=off; HTTP/1.1\r\n",
            "GET /;",
            "CONNECT host:2620 HTTP/1.1\r\n",
            "version?;\nOPTIONS * HTTP/1.1\n",
            "\x16\x03\x01\nrecord=off;",
        ] {
            assert_eq!(
                CommandReader::default().add(said.as_bytes()),
                Err("no commands from browsers"),
                "{said:?}"
            );
        }
        for said in ["record = on : /HTTP/ ;", "mode ? ; /", "/ /\n", "status /"] {
            assert!(CommandReader::default().add(said.as_bytes()).is_ok(), "{said:?}");
        }
    }

    #[test]
    fn commands_that_are_almost_valid_are_read_or_refused() {
        let said = [
            &b"record=on:exp_st_scan-1::EF; status?;\n"[..],
            b"net_port = 10.0.0.1@46227 ; mode = VDIF_8000-4096-16-2;\r\n",
            b"scan_set=1:+1s:-1s;DTS_id?;evlbi=%t %l;",
        ];
        nilometer_fuzz::fuzz("mark5", said.map(<[u8]>::to_vec).to_vec(), |input| {
            let mut heard = CommandReader::default();
            for piece in input.chunks(7) {
                // The service closes a connection after an error.
                let Ok(line) = heard.add(piece) else { break };
                if let Some(line) = line {
                    line.answer(|command| {
                        Mark5Reply::to(command, ReturnCode::Unknown).field(&command.keyword)
                    });
                }
            }
        });
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_replies_are_whole(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut heard = CommandReader::default();
            for piece in pieces {
                if let Ok(Some(line)) = heard.add(&piece) {
                    let text = line.answer(|command| Mark5Reply::to(command, ReturnCode::Unknown).field(&command.keyword));
                    prop_assert!(text.is_empty() || text.starts_with('!') && text.ends_with('\n'));
                    prop_assert_eq!(text.matches('!').count(), text.matches(" ;").count());
                }
            }
        }

        #[test]
        fn a_command_comes_back_as_it_was_said(keyword in "[a-z_0-9]{1,12}", query in any::<bool>(), fields in prop::collection::vec("[a-zA-Z0-9_.@+-]{1,8}", 0..5)) {
            let mark = if query { "?" } else { "=" };
            let text = format!(" {keyword} {mark} {}", fields.join(" : "));
            prop_assert_eq!(command(&text), Mark5Command { keyword, query, fields });
        }
    }
}
