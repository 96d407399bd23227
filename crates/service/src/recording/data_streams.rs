//! Data streams: a recording of its own for each label among the addresses for packets. The recordings of a scan have
//! the names of jive5ab, `<scan>_ds<label>`, for their directories and files.
//!
//! Source in the repository of jive5ab at 971c3d6: `net_port = [<host>@]<port>=<suffix> : ..`
//! (`src/mk5command/net_port.cc`), and the names (`src/threadfns/chunkmakers.h`, `src/libvbs.cc`).
//!
//! ```text
//! listen = ["udp://127.0.0.1:46227=A", "udp://127.0.0.1:46228=B"]
//! port 46227 -> recorder of A -> scan_dsA/scan_dsA.00000000 ..
//! port 46228 -> recorder of B -> scan_dsB/scan_dsB.00000000 ..
//! ```

use nilometer_model::{Bytes, packets::Packets};
use nilometer_storage::target::run_id;

use super::{
    addresses::ListenAddress, options::RecordOptions, settings::RecordingSettings, source::RecordedSource,
};
use crate::error::{ServiceError, require};

/// The most data streams of a recorder.
const STREAMS_MAX: usize = 16;

/// The settings of one data stream's recording.
#[derive(Debug)]
pub struct StreamSettings {
    /// The name of the whole scan, without the data stream's suffix.
    pub scan: String,
    /// The settings of this data stream's recording.
    pub settings: RecordingSettings,
}

impl RecordOptions {
    /// The suffixes of the data streams' names, in the order of their first addresses. Empty without labels.
    pub(crate) fn stream_suffixes(&self) -> Vec<String> {
        let mut suffixes = Vec::new();
        for suffix in self.listen.iter().filter_map(stream_of).map(suffix) {
            if !suffixes.contains(&suffix) {
                suffixes.push(suffix);
            }
        }
        suffixes
    }

    /// Checks that either all addresses for packets have a label, or none.
    pub(super) fn check_streams(&self) -> Result<(), ServiceError> {
        let unlabelled = self.listen.iter().find(|listen| stream_of(listen).is_none());
        let streams = self.stream_suffixes().len();
        require(streams <= STREAMS_MAX, || {
            format!("--listen: {streams} labels make as many recordings, and {STREAMS_MAX} is the most")
        })?;
        match unlabelled.filter(|_| streams > 0) {
            None => Ok(()),
            Some(listen) => Err(ServiceError::AskedWrongly(format!(
                "--listen {listen}: other addresses have a label; write one for each, such as {listen}=A, or none"
            ))),
        }
    }

    /// The options of the data stream with this suffix, one of `count` that share the memory.
    fn of_stream(&self, scan: &str, suffix_of_stream: &str, count: u64) -> Self {
        let own = |listen: &ListenAddress| match listen {
            ListenAddress::Packets(address)
                if stream_of(listen).map(suffix).as_deref() == Some(suffix_of_stream) =>
            {
                Some(ListenAddress::Packets(address.without_stream()))
            }
            _ => None,
        };
        let share = |bytes: Bytes| Bytes(bytes.0 / count);
        RecordOptions {
            name: Some(format!("{scan}{suffix_of_stream}")),
            listen: self.listen.iter().filter_map(own).collect(),
            buffer: self.buffer.map(share),
            memory: self.memory.map(share),
            ..self.clone()
        }
    }
}

impl RecordingSettings {
    /// The settings of each data stream's recording. Empty if the options name no data streams.
    ///
    /// # Errors
    ///
    /// A data stream can't be recorded with these options.
    pub fn streams(&self) -> Result<Vec<StreamSettings>, ServiceError> {
        let suffixes = self.wishes.stream_suffixes();
        let RecordedSource::Packets(source) = &self.source else { return Ok(Vec::new()) };
        if suffixes.is_empty() {
            return Ok(Vec::new());
        }
        let ports = source.whole.packets.as_ref().map_or(1, Packets::ports);
        require(ports == 1, || {
            format!(
                "--listen with labels: {} sends to {ports} ports, which make one recording together; leave the labels out",
                source.whole.name
            )
        })?;
        let count = suffixes.len() as u64;
        let scan = self.name_of(run_id().0, &source.instrument.name);
        let one = |suffix: &String| {
            let settings = RecordingSettings::of(self.wishes.of_stream(&scan, suffix, count))?;
            let settings = settings.sharing_memory(self.sharing_with(count));
            Ok(StreamSettings { scan: scan.clone(), settings })
        };
        suffixes.iter().map(one).collect()
    }
}

/// The label of an address, if it has one.
fn stream_of(listen: &ListenAddress) -> Option<&str> {
    match listen {
        ListenAddress::Packets(address) => address.stream(),
        ListenAddress::Frames(_) => None,
    }
}

fn suffix(label: &str) -> String {
    format!("_ds{label}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(listen: &[&str]) -> RecordOptions {
        RecordOptions {
            listen: listen.iter().map(|text| text.parse().expect("an address")).collect(),
            mode: "VDIF_8000-512-16-2".parse().ok(),
            to: vec!["/data".into()],
            name: Some("scan".into()),
            buffer: Some(Bytes(64 << 20)),
            ..RecordOptions::default()
        }
    }

    #[test]
    fn each_label_has_a_recording_of_its_own_addresses() {
        let listen = ["udp://127.0.0.1:5=A", "udp://127.0.0.1:6=B", "udp://127.0.0.1:7=A"];
        let settings = RecordingSettings::of(wishes(&listen)).expect("possible");
        let streams = settings.streams().expect("possible");
        let of = |stream: &StreamSettings| {
            let wishes = stream.settings.wishes();
            let listen: Vec<_> = wishes.listen.iter().map(ToString::to_string).collect();
            (wishes.name.clone().unwrap_or_default(), listen.join(" "), wishes.buffer)
        };
        let half = Some(Bytes(32 << 20));
        assert_eq!(
            streams.iter().map(of).collect::<Vec<_>>(),
            [
                ("scan_dsA".into(), "udp://127.0.0.1:5 udp://127.0.0.1:7".into(), half),
                ("scan_dsB".into(), "udp://127.0.0.1:6".into(), half)
            ]
        );
        assert!(streams.iter().all(|stream| stream.scan == "scan"));
        let plain = RecordingSettings::of(wishes(&["udp://127.0.0.1:5", "udp://127.0.0.1:6"]));
        assert!(plain.expect("possible").streams().expect("none").is_empty());
    }

    #[test]
    fn all_addresses_have_a_label_or_none() {
        let refused =
            |listen: &[&str]| RecordingSettings::of(wishes(listen)).expect_err("refused").to_string();
        let told = refused(&["udp://127.0.0.1:5=A", "udp://127.0.0.1:6"]);
        assert!(told.starts_with("--listen udp://127.0.0.1:6: other addresses have a label"), "{told}");
        let many: Vec<_> = (1..=17).map(|port| format!("udp://127.0.0.1:{port}=s{port}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(refused(&many).contains("17 labels"), "{}", refused(&many));
    }
}
