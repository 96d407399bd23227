//! The user's choice of a stream, if a file or a capture does not tell it alone.

use nilometer_model::packets::VlbiMode;

/// The frames and packets that the user names.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForeignWish {
    /// The format and size of its frames; `None` if their headers tell them.
    pub mode: Option<VlbiMode>,
    /// The port of its packets in a capture; `None` if packets to all ports may be of it.
    pub port: Option<u16>,
}

impl ForeignWish {
    /// Returns true if packets to this port may be of the stream.
    pub(super) fn takes_port(&self, port: u16) -> bool {
        self.port.is_none_or(|wanted| wanted == port)
    }

    /// The options of the command line, for a message; `None` if the user named nothing.
    pub fn option(&self) -> Option<String> {
        match (self.mode, self.port) {
            (Some(mode), _) => Some(format!("--mode {mode}")),
            (None, Some(port)) => Some(format!("--port {port}")),
            (None, None) => None,
        }
    }
}
