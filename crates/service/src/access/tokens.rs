//! Tokens that identify clients. A client sends `Authorization: Bearer TOKEN` (RFC 6750), or a name with the
//! token as its password (RFC 7617), for which browsers prompt their users.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use subtle::ConstantTimeEq;

use super::secret;
use crate::error::ServiceError;

/// All token holders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessTokens(Vec<TokenHolder>);

/// A client that has a token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    pub(crate) name: String,
    token: String,
    /// True if the holder may give commands; otherwise it may only query.
    pub(crate) may_command: bool,
}

/// The fewest characters of a token; nobody guesses one of this length.
const TOKEN_LEAST: usize = 20;
const FORM: &str = "write NAME TOKEN, or NAME TOKEN read for a client without commands";

impl AccessTokens {
    /// Reads a file with a line for each holder: `NAME TOKEN`, or `NAME TOKEN read`. Lines that begin with `#`
    /// are comments.
    pub(super) fn read(path: &Path) -> Result<Self, ServiceError> {
        let wrong = |why: String| ServiceError::AskedWrongly(format!("the tokens {}: {why}", path.display()));
        let text = String::from_utf8(secret(path, "tokens")?);
        let text = text.map_err(|_| wrong("no text in UTF-8".into()))?;
        AccessTokens::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut holders: Vec<TokenHolder> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let holder = TokenHolder::parse(line).map_err(|why| format!("line {number}: {why}"))?;
            if holders.iter().any(|other| other.name == holder.name || other.token == holder.token) {
                return Err(format!("line {number}: its name or its token is on an earlier line too"));
            }
            holders.push(holder);
        }
        if holders.is_empty() {
            return Err(format!("the file has no token: {FORM}"));
        }
        Ok(AccessTokens(holders))
    }

    /// The sender of a request with this `Authorization` header, or `None` if no holder has such a token.
    pub(crate) fn holder(&self, authorization: &str) -> Option<&TokenHolder> {
        let (scheme, credentials) = authorization.split_once(' ')?;
        let credentials = credentials.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.0.iter().find(|holder| holder.has(credentials));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let plain = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
        let (name, token) = plain.split_once(':')?;
        self.0.iter().find(|holder| holder.name == name && holder.has(token))
    }
}

impl TokenHolder {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(token), right, None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(FORM.into());
        };
        if right.is_some_and(|right| right != "read") {
            return Err(FORM.into());
        }
        if name.contains(':') || name.chars().any(char::is_control) {
            return Err("a name has neither a colon nor control characters".into());
        }
        if token.len() < TOKEN_LEAST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "a token has at least {TOKEN_LEAST} letters, digits and signs of ASCII; `openssl rand -hex 16` makes one"
            ));
        }
        Ok(TokenHolder { name: name.to_owned(), token: token.to_owned(), may_command: right.is_none() })
    }

    /// Compares in constant time, so that timing does not reveal the first difference.
    fn has(&self, token: &str) -> bool {
        self.token.as_bytes().ct_eq(token.as_bytes()).into()
    }
}

impl std::fmt::Debug for TokenHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenHolder").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# of the beamline\n\ncontrol 0123456789abcdef0123\n prometheus  ABCDEFGHIJKLMNOPQRST read\n";

    #[test]
    fn a_token_says_who_asks() {
        let tokens = AccessTokens::parse(TEXT).expect("two lines");
        let who =
            |header: &str| tokens.holder(header).map(|holder| (holder.name.as_str(), holder.may_command));
        assert_eq!(who("Bearer 0123456789abcdef0123"), Some(("control", true)));
        assert_eq!(who("bearer ABCDEFGHIJKLMNOPQRST"), Some(("prometheus", false)));
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(who(&basic("control:0123456789abcdef0123")), Some(("control", true)));
        for wrong in [
            "Bearer 0123456789abcdef0124",
            "Bearer 0123456789abcdef012",
            "Bearer ",
            "Bearer",
            "",
            "Digest 0123456789abcdef0123",
            "Basic 0123456789abcdef0123",
            "Basic ====",
            &basic("prometheus:0123456789abcdef0123"),
            &basic("control"),
            &basic(":0123456789abcdef0123"),
        ] {
            assert_eq!(who(wrong), None, "{wrong}");
        }
        assert!(!format!("{tokens:?}").contains("0123456789"), "no token gets into a log");
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_with_its_line() {
        for (text, part) in [
            ("", "NAME TOKEN"),
            ("# nobody\n", "NAME TOKEN"),
            ("control\n", "line 1: write NAME TOKEN"),
            ("\ncontrol 0123456789abcdef0123 write\n", "line 2: write NAME TOKEN"),
            ("control 0123456789abcdef0123 read more\n", "line 1: write"),
            ("control short\n", "openssl rand -hex 16"),
            ("control 0123456789abcdef012\u{e9}\n", "openssl"),
            ("a:b 0123456789abcdef0123\n", "colon"),
            ("a 0123456789abcdef0123\nb 0123456789abcdef0123\n", "line 2: its name or its token"),
            ("a 0123456789abcdef0123\na 0123456789abcdef0124\n", "line 2: its name or its token"),
        ] {
            let why = AccessTokens::parse(text).expect_err(text);
            assert!(why.contains(part), "{text:?}: {why}");
        }
    }
}
