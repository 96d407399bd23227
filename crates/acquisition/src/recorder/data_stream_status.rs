//! The state of a data stream of a scan, as services and operators see it.

use schemars::JsonSchema;
use serde::Serialize;

/// The state of a data stream of a scan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DataStreamStatus {
    /// The name of its recording.
    pub name: String,
    /// `listening` before its first packet, then `recording`, and `ended` if no more packets are recorded.
    pub state: &'static str,
    /// The reason of its end, as `ended_by` of the whole recording. `None` before.
    pub ended_by: Option<&'static str>,
    /// Packets that have their position in the recording.
    pub received_packets: u64,
    /// Bytes kept of them.
    pub received_bytes: u64,
    /// Missing packets.
    pub missing_packets: u64,
    /// Packets that came after its end, while others went on. Nobody recorded them.
    pub packets_after_end: u64,
    /// Seconds without a packet of this data stream while others came. `None` if it sends, and after its end.
    pub silent_seconds: Option<f64>,
    /// Share of its buffer that is in use now, from 0 to 1.
    pub buffer_share: f64,
}

impl DataStreamStatus {
    /// The lines about this data stream that an operator has to see, without figures that change.
    pub fn warnings(&self) -> Vec<String> {
        let name = &self.name;
        let mut warnings = Vec::new();
        if self.silent_seconds.is_some() {
            warnings.push(format!("{name} is SILENT"));
        }
        if let Some(reason) = self.ended_by {
            warnings.push(format!("{name} has ENDED ({reason})"));
        }
        if self.packets_after_end > 0 {
            warnings.push(format!("packets still come to {name}, which has ended, and are NOT RECORDED"));
        }
        warnings
    }
}
