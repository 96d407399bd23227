//! Addresses of sources: a port of this machine for packets, or a TCP address for frames.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use nilometer_intake::transport::{SenderNetwork, udp::Address};

use crate::error::{ServiceError, require};

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

/// An address for packets: `udp://HOST:PORT`, or `udp://SOURCE@GROUP:PORT` for those of one source to a group. With
/// `=LABEL` behind it, its packets become a recording of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketAddress {
    address: Address,
    source: Option<IpAddr>,
    /// The label of the data stream, or `None` if all addresses make one recording.
    stream: Option<String>,
}

/// The most characters of a label. With the prefix `_ds` and a scan's 64 characters it fits into a file's name.
const LABEL_MAX: usize = 32;

/// A resolved address for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketPlace {
    pub(crate) at: SocketAddr,
    /// The only source of a group's packets, if the user names one.
    pub(crate) source: Option<IpAddr>,
}

impl PacketAddress {
    /// The label of the address's data stream, if it has one.
    pub(super) fn stream(&self) -> Option<&str> {
        self.stream.as_deref()
    }

    /// The same address without a label.
    #[must_use]
    pub(super) fn without_stream(&self) -> Self {
        PacketAddress { stream: None, ..self.clone() }
    }

    /// Looks up the host.
    pub(super) fn resolve(&self) -> Result<PacketPlace, ServiceError> {
        let at = self.address.resolve().map_err(ServiceError::asked_wrongly)?;
        if let Some(source) = self.source {
            require(at.ip().is_multicast(), || {
                format!(
                    "--listen {self}: {} is no group; write --allow {source} instead of {source}@",
                    at.ip()
                )
            })?;
            require(at.is_ipv4() == source.is_ipv4(), || {
                format!("--listen {self}: write a source of the group's family, both IPv4 or both IPv6")
            })?;
        }
        Ok(PacketPlace { at, source: self.source })
    }
}

impl FromStr for PacketAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((text, label)) = text.rsplit_once('=') else { return PacketAddress::unlabelled(text) };
        let address = PacketAddress::unlabelled(text)?;
        if !is_stream_label(label) {
            return Err(format!(
                "`{text}={label}`: write a label of 1 to {LABEL_MAX} letters, digits, - and +, such as {text}=A"
            ));
        }
        Ok(PacketAddress { stream: Some(label.into()), ..address })
    }
}

impl PacketAddress {
    fn unlabelled(text: &str) -> Result<Self, String> {
        let stream = None;
        let Some((source, rest)) = text.strip_prefix("udp://").and_then(|rest| rest.split_once('@')) else {
            let address =
                text.parse().map_err(|error| format!("{error}; or tcp://ADDRESS:PORT for frames"))?;
            return Ok(PacketAddress { address, source: None, stream });
        };
        let wrong =
            || format!("`{text}`: write udp://SOURCE@GROUP:PORT, such as udp://10.0.0.7@232.1.1.1:46227");
        let bare = source.strip_prefix('[').and_then(|source| source.strip_suffix(']')).unwrap_or(source);
        let source = bare.parse().map_err(|_| wrong())?;
        let address = format!("udp://{rest}").parse().map_err(|_| wrong())?;
        Ok(PacketAddress { address, source: Some(source), stream })
    }
}

impl fmt::Display for PacketAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address.to_string();
        match self.source {
            None => formatter.write_str(&address),
            Some(IpAddr::V4(source)) => {
                formatter.write_str(&address.replacen("//", &format!("//{source}@"), 1))
            }
            Some(IpAddr::V6(source)) => {
                formatter.write_str(&address.replacen("//", &format!("//[{source}]@"), 1))
            }
        }?;
        self.stream.as_ref().map_or(Ok(()), |label| write!(formatter, "={label}"))
    }
}

/// Returns true if a data stream can have this label. jive5ab finds the data streams of a scan by `_ds[^_\.]+`
/// (src/libvbs.cc).
pub(crate) fn is_stream_label(label: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-+".contains(&byte);
    (1..=LABEL_MAX).contains(&label.len()) && label.bytes().all(is_plain)
}

/// The senders of a data stream: `LABEL=ADDRESS` or `LABEL=NETWORK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledSender {
    /// The label of the data stream.
    pub(crate) label: String,
    /// Its senders, or some of them.
    pub(crate) senders: SenderNetwork,
}

/// Senders that never reach their data stream, because an earlier data stream has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HiddenSender<'a> {
    /// The senders.
    pub(crate) hidden: &'a LabelledSender,
    /// The senders of the earlier data stream.
    pub(crate) by: &'a LabelledSender,
}

impl<'a> HiddenSender<'a> {
    /// The first such senders, if there are any. A packet goes to the first data stream that has its sender, in the
    /// order in which `all` names the labels.
    pub(crate) fn find(all: &'a [LabelledSender]) -> Option<Self> {
        let place = |sender: &LabelledSender| all.iter().position(|other| other.label == sender.label);
        all.iter().find_map(|hidden| {
            let is_before = |by: &&LabelledSender| place(by) < place(hidden);
            let by = all.iter().filter(is_before).find(|by| by.senders.includes(&hidden.senders))?;
            Some(HiddenSender { hidden, by })
        })
    }
}

impl fmt::Display for HiddenSender<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HiddenSender { hidden, by } = self;
        write!(
            formatter,
            "{hidden}: all packets of these senders go to {by}; give each data stream senders of its own, or write {} \
             before {}",
            hidden.label, by.label
        )
    }
}

impl fmt::Display for LabelledSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.label, self.senders)
    }
}

impl FromStr for LabelledSender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}; write LABEL=SENDER, such as A=10.0.2.20");
        let (label, senders) = text.split_once('=').ok_or_else(|| wrong("there is no ="))?;
        if !is_stream_label(label) {
            return Err(wrong(&format!("a label has 1 to {LABEL_MAX} letters, digits, - and +")));
        }
        let senders = senders.parse::<SenderNetwork>().map_err(|why| wrong(&why))?;
        Ok(LabelledSender { label: label.into(), senders })
    }
}

/// An address at which this machine listens.
#[derive(Debug, Clone, PartialEq)]
pub enum ListenAddress {
    /// For packets.
    Packets(PacketAddress),
    /// For connections that carry frames.
    Frames(StreamAddress),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("tcp://") {
            return text.parse().map(ListenAddress::Frames);
        }
        text.parse().map(ListenAddress::Packets)
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
        let right = [
            "udp://127.0.0.1:5",
            "udp://10.0.0.7@232.1.1.1:5",
            "udp://[fd00::7]@[ff35::1]:5",
            "udp://127.0.0.1:5=A",
            "udp://10.0.0.7@232.1.1.1:5=board-2",
            "tcp://*:31001",
            "tcp://detector:9999",
            "tcp://[::1]:9999",
        ];
        for right in right {
            assert_eq!(is(right).as_deref(), Ok(right));
        }
        for wrong in ["udp://@232.1.1.1:5", "udp://host@232.1.1.1:5", "udp://10.0.0.7@232.1.1.1"] {
            assert!(is(wrong).is_err_and(|error| error.contains("udp://SOURCE@GROUP:PORT")), "{wrong}");
        }
        for wrong in ["udp://127.0.0.1:5=", "udp://127.0.0.1:5=a_b", "udp://127.0.0.1:5=a.b"] {
            assert!(is(wrong).is_err_and(|error| error.contains("such as udp://127.0.0.1:5=A")), "{wrong}");
        }
        for wrong in ["h:5", "tcp://h", "tcp://:5", "tcp://h:port", "tcp://h:70000"] {
            assert!(is(wrong).is_err_and(|error| error.contains("tcp://")), "{wrong}");
        }
    }

    #[test]
    fn a_data_stream_has_a_label_and_senders() {
        let is = |text: &str| text.parse::<LabelledSender>().map(|stream| stream.label);
        assert_eq!(is("A=10.0.2.20"), Ok("A".into()));
        assert_eq!(is("board-2=fd00::/8"), Ok("board-2".into()));
        for wrong in ["A", "=10.0.0.1", "a_b=10.0.0.1", "A=host", "A=10.0.0.1/24", "A="] {
            assert!(is(wrong).is_err_and(|error| error.contains("such as A=10.0.2.20")), "{wrong}");
        }
    }

    #[test]
    fn only_a_group_has_a_source_and_of_its_own_family() {
        let resolved = |text: &str| text.parse::<PacketAddress>().expect(text).resolve();
        let place = resolved("udp://10.0.0.7@232.1.1.1:5").expect("a group");
        let (at, source) = ("232.1.1.1:5".parse().expect("an address"), "10.0.0.7".parse().ok());
        assert_eq!(place, PacketPlace { at, source });
        let refused = |text: &str| resolved(text).expect_err(text).to_string();
        assert!(refused("udp://10.0.0.7@127.0.0.1:5").contains("write --allow 10.0.0.7"));
        assert!(refused("udp://[::1]@232.1.1.1:5").contains("both IPv4 or both IPv6"));
    }
}
