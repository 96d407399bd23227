//! Addresses of sources: a port of this machine for packets, or a TCP address for frames.

use std::{fmt, str::FromStr};

use nilometer_intake::transport::udp::Address;

/// One end of a stream of frames over TCP: `tcp://HOST:PORT`. To listen on all addresses, the host may be `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamAddress(String);

impl StreamAddress {
    /// The text as the user wrote it.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
        let known = place.filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        known.map(|_| StreamAddress(text.to_owned())).ok_or_else(|| {
            format!("`{text}`: write tcp://HOST:PORT, such as tcp://detector:31001 or tcp://*:31001")
        })
    }
}

impl fmt::Display for StreamAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An address at which this machine listens.
#[derive(Debug, Clone, PartialEq)]
pub enum ListenAddress {
    /// For packets.
    Packets(Address),
    /// For connections that carry frames.
    Frames(StreamAddress),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("tcp://") {
            return text.parse().map(ListenAddress::Frames);
        }
        text.parse()
            .map(ListenAddress::Packets)
            .map_err(|error| format!("{error}; or tcp://ADDRESS:PORT for frames"))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Packets(address) => address.fmt(formatter),
            ListenAddress::Frames(address) => address.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_packets_or_of_frames() {
        let is = |text: &str| text.parse::<ListenAddress>().map(|address| address.to_string());
        for right in ["udp://127.0.0.1:5", "tcp://*:31001", "tcp://detector:9999", "tcp://[::1]:9999"] {
            assert_eq!(is(right).as_deref(), Ok(right));
        }
        for wrong in ["h:5", "tcp://h", "tcp://:5", "tcp://h:port", "tcp://h:70000"] {
            assert!(is(wrong).is_err_and(|error| error.contains("tcp://")), "{wrong}");
        }
    }
}
