//! The address of a recorder's HTTP server, as a user writes it. Pure.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::error::ServiceError;

/// The address of a recorder's HTTP server: `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderAddress {
    has_tls: bool,
    /// A name or an address. An address of IPv6 has no brackets here.
    host: String,
    port: u16,
}

impl RecorderAddress {
    pub(super) fn has_tls(&self) -> bool {
        self.has_tls
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns true if no other machine sees the bytes.
    pub(super) fn is_loopback(&self) -> bool {
        let is_own = self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_own || self.host.eq_ignore_ascii_case("localhost")
    }

    /// The host and the port, as the header `Host` has them.
    pub(super) fn authority(&self) -> String {
        let RecorderAddress { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for RecorderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl FromStr for RecorderAddress {
    type Err = ServiceError;

    fn from_str(text: &str) -> Result<Self, ServiceError> {
        read(text).ok_or_else(|| {
            ServiceError::AskedWrongly(format!(
                "`{text}` is no address of a recorder: write HOST:PORT, http://HOST:PORT or https://HOST:PORT"
            ))
        })
    }
}

fn read(text: &str) -> Option<RecorderAddress> {
    let secured = text.strip_prefix("https://");
    let rest = secured.or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':')?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_name =
        |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    let host = match bracketed {
        Some(inner) if inner.parse::<std::net::Ipv6Addr>().is_ok() => inner,
        None if !host.is_empty() && is_name(host) => host,
        _ => return None,
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    Some(RecorderAddress { has_tls: secured.is_some(), host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_a_recorder_prints() {
        for (text, shown) in [
            ("127.0.0.1:9620", "http://127.0.0.1:9620"),
            ("http://rec-1.site:80/", "http://rec-1.site:80"),
            ("https://[fe80::1]:9620", "https://[fe80::1]:9620"),
        ] {
            let address: RecorderAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_with_the_forms() {
        for text in [
            "",
            "host",
            "host:",
            "host:0",
            "host:70000",
            "::1:9620",
            "[x]:1",
            "ftp://host:1",
            "a/b:1",
            "a b:1",
        ] {
            let why = text.parse::<RecorderAddress>().expect_err(text).to_string();
            assert!(why.contains("https://HOST:PORT"), "{why}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |text: &str| text.parse::<RecorderAddress>().expect(text).is_loopback();
        assert!(is("127.0.0.7:1") && is("[::1]:1") && is("LOCALHOST:1"));
        assert!(!is("10.0.0.1:1") && !is("localhost.example:1"));
    }
}
