//! The settings of a trial's flows: the processes that take part, and options of their sockets.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Settings of flows of TCP. `None` leaves the kernel's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSettings {
    /// The most processes of a machine that share its flows to another; `None` for all processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// The congestion control of senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionControl>,
    /// The buffer of each socket, of senders and receivers, as a program asks for it (`SO_SNDBUF`, `SO_RCVBUF`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
}

/// A congestion control of TCP by the kernel's name for it: `cubic`, `reno`, `bic`, `htcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CongestionControl {
    /// The name, padded with zeros.
    name: [u8; NAME_MAX],
}

/// The longest name: `TCP_CA_NAME_MAX` of the kernel's `net/tcp.h` without the zero behind it.
const NAME_MAX: usize = 15;

/// A text that names no congestion control.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no congestion control: write a name as in /proc/sys/net/ipv4/tcp_available_congestion_control"
)]
pub struct CongestionControlError(String);

impl FlowSettings {
    /// Returns true if the kernel decides everything.
    pub fn is_default(&self) -> bool {
        *self == FlowSettings::default()
    }

    /// Returns true if an option of the sockets may hold flows back: a buffer, or a congestion control other than
    /// the kernel's. Programs without the option may be faster.
    pub fn may_throttle(&self) -> bool {
        self.congestion.is_some() || self.buffer.is_some()
    }
}

impl fmt::Display for FlowSettings {
    /// `2 processes, bic, buffer 4 MiB`; empty if the kernel decides everything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = self.processes.map(|count| match count {
            1 => "1 process".to_owned(),
            _ => format!("{count} processes"),
        });
        let congestion = self.congestion.map(|congestion| congestion.to_string());
        let buffer = self.buffer.map(|bytes| format!("buffer {bytes}"));
        let words: Vec<String> = [processes, congestion, buffer].into_iter().flatten().collect();
        f.write_str(&words.join(", "))
    }
}

impl CongestionControl {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        let length = self.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
        std::str::from_utf8(&self.name[..length]).expect("a name has letters of ASCII only")
    }
}

impl FromStr for CongestionControl {
    type Err = CongestionControlError;

    fn from_str(text: &str) -> Result<Self, CongestionControlError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(is_letter) {
            return Err(CongestionControlError(text.into()));
        }
        let mut name = [0; NAME_MAX];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(CongestionControl { name })
    }
}

impl TryFrom<String> for CongestionControl {
    type Error = CongestionControlError;

    fn try_from(text: String) -> Result<Self, CongestionControlError> {
        text.parse()
    }
}

impl From<CongestionControl> for String {
    fn from(congestion: CongestionControl) -> String {
        congestion.name().to_owned()
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_keeps_its_name_and_other_texts_are_refused() {
        for name in ["cubic", "dctcp", "fifteen_letters"] {
            assert_eq!(name.parse::<CongestionControl>().expect(name).to_string(), name);
        }
        for wrong in ["", "sixteen_letters_", "two words", "bbr\0", "über"] {
            assert!(wrong.parse::<CongestionControl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_named_in_words_unless_the_kernel_decides() {
        let settings = FlowSettings {
            processes: Some(6),
            congestion: Some("htcp".parse().expect("a name")),
            buffer: Some(Bytes(4 << 20)),
        };
        assert_eq!(settings.to_string(), "6 processes, htcp, buffer 4 MiB");
        assert_eq!(FlowSettings::default().to_string(), "");
    }
}
