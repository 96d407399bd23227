//! Data streams: a recording of its own for each label among the addresses for packets, or among the senders. The
//! recordings of a scan have the names of jive5ab, `<scan>_ds<label>`, for their directories and files.
//!
//! Source in the repository of jive5ab at 971c3d6: `net_port = [<host>@]<port>=<suffix> : ..`
//! (`src/mk5command/net_port.cc`), and the names (`src/threadfns/chunkmakers.h`, `src/libvbs.cc`).
//!
//! ```text
//! listen = ["udp://127.0.0.1:46227=A", "udp://127.0.0.1:46228=B"]
//! port 46227 -> recorder of A -> scan_dsA/scan_dsA.00000000 ..
//! port 46228 -> recorder of B -> scan_dsB/scan_dsB.00000000 ..
//!
//! data_stream = ["A=10.0.2.20", "B=10.0.2.21"]
//! one port -> thread that routes by sender -+-> recorder of A
//!                                           +-> recorder of B
//! ```

use nilometer_intake::transport::SenderNetwork;
use nilometer_model::{Bytes, packets::Packets};
use nilometer_storage::target::run_id;

use super::{
    addresses::{HiddenSender, ListenAddress},
    options::RecordOptions,
    routes::StreamRoute,
    settings::RecordingSettings,
    source::RecordedSource,
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
    /// The suffixes of the data streams' names, in the order in which the options name them. Empty without data
    /// streams.
    pub(crate) fn stream_suffixes(&self) -> Vec<String> {
        let mut suffixes = Vec::new();
        let by_port = self.listen.iter().filter_map(stream_of);
        let by_sender = self.data_stream.iter().map(|stream| stream.label.as_str());
        for suffix in by_port.chain(by_sender).map(suffix) {
            if !suffixes.contains(&suffix) {
                suffixes.push(suffix);
            }
        }
        suffixes
    }

    /// Checks that either addresses or senders tell data streams apart, and that each of these has one.
    pub(super) fn check_streams(&self) -> Result<(), ServiceError> {
        let labelled = self.listen.iter().find(|listen| stream_of(listen).is_some());
        let unlabelled = self.listen.iter().find(|listen| stream_of(listen).is_none());
        let streams = self.stream_suffixes().len();
        require(streams <= STREAMS_MAX, || {
            format!("data streams: {streams} labels make as many recordings, and {STREAMS_MAX} is the most")
        })?;
        if let (Some(_), Some(listen)) = (labelled, unlabelled) {
            return Err(ServiceError::AskedWrongly(format!(
                "--listen {listen}: other addresses have a label; write one for each, such as {listen}=A, or none"
            )));
        }
        if self.data_stream.is_empty() {
            return Ok(());
        }
        require(labelled.is_none(), || {
            "--data-stream: the addresses of --listen have labels already; leave one of the two out".into()
        })?;
        if let Some(hidden) = HiddenSender::find(&self.data_stream) {
            return Err(ServiceError::AskedWrongly(format!("--data-stream {hidden}")));
        }
        require(self.allow.is_empty(), || {
            "--allow: --data-stream names the senders already; leave one of the two out".into()
        })?;
        require(self.receive_threads.is_none_or(|threads| threads == 1), || {
            "--receive-threads: one thread receives for all of --data-stream; leave it out".into()
        })
    }

    /// The options of the data stream with this suffix, one of `count` that share the memory.
    fn of_stream(&self, scan: &str, suffix_of_stream: &str, count: u64) -> Self {
        let share = |bytes: Bytes| Bytes(bytes.0 / count);
        RecordOptions {
            name: Some(format!("{scan}{suffix_of_stream}")),
            listen: self.listen.iter().filter_map(|listen| listen_of(listen, suffix_of_stream)).collect(),
            data_stream: Vec::new(),
            buffer: self.buffer.map(share),
            memory: self.memory.map(share),
            ..self.clone()
        }
    }

    /// The senders of the data stream with this suffix.
    fn senders_of(&self, suffix_of_stream: &str) -> Vec<SenderNetwork> {
        let own = self.data_stream.iter().filter(|stream| suffix(&stream.label) == suffix_of_stream);
        own.map(|stream| stream.senders).collect()
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
                "data streams: {} sends to {ports} ports, which make one recording together; leave out --data-stream \
                 and labels of --listen",
                source.whole.name
            )
        })?;
        let count = suffixes.len() as u64;
        let scan = self.name_of(run_id().0, &source.instrument.name);
        let senders = suffixes.iter().map(|suffix| self.wishes.senders_of(suffix)).collect();
        let by_sender = !self.wishes.data_stream.is_empty();
        let routes = StreamRoute::all(senders).into_iter().map(|route| by_sender.then_some(route));
        let of = |suffix: &String| self.wishes.of_stream(&scan, suffix, count);
        let mut streams = Vec::new();
        for (suffix, route) in suffixes.iter().zip(routes) {
            let settings = RecordingSettings::of(of(suffix))?.sharing_memory(self.sharing_with(count));
            let mut settings = settings.with_preview(self.has_preview);
            settings.route = route;
            settings.of_scan = count;
            streams.push(StreamSettings { scan: scan.clone(), settings });
        }
        Ok(streams)
    }
}

/// The label of an address, if it has one.
fn stream_of(listen: &ListenAddress) -> Option<&str> {
    match listen {
        ListenAddress::Packets(address) => address.stream(),
        ListenAddress::Frames(_) => None,
    }
}

/// The address for the data stream with this suffix; `None` if it is another's. Addresses without a label are for all.
fn listen_of(listen: &ListenAddress, suffix_of_stream: &str) -> Option<ListenAddress> {
    match (listen, stream_of(listen)) {
        (ListenAddress::Packets(address), Some(label)) => {
            (suffix(label) == suffix_of_stream).then(|| ListenAddress::Packets(address.without_stream()))
        }
        (listen, _) => Some(listen.clone()),
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
    fn each_sender_has_a_recording_of_its_own_at_the_same_addresses() {
        let streams = ["A=10.0.2.20", "B=10.0.2.21", "A=10.0.2.22"];
        let data_stream = streams.iter().map(|text| text.parse().expect("a data stream")).collect();
        let wishes = RecordOptions { data_stream, ..wishes(&["udp://127.0.0.1:5"]) };
        let settings = RecordingSettings::of(wishes.clone()).expect("possible");
        let streams = settings.streams().expect("possible");
        let names: Vec<_> = streams.iter().filter_map(|one| one.settings.wishes().name.clone()).collect();
        assert_eq!(names, ["scan_dsA", "scan_dsB"]);
        assert!(
            streams.iter().all(|one| one.settings.route.is_some() && one.settings.wishes().listen.len() == 1)
        );
        let refused = |wishes| RecordingSettings::of(wishes).expect_err("refused").to_string();
        let allow = "10.0.2.20".parse().into_iter().collect();
        assert!(refused(RecordOptions { allow, ..wishes.clone() }).starts_with("--allow: "));
        assert!(refused(RecordOptions { receive_threads: Some(2), ..wishes.clone() }).contains("one thread"));
        let listen = "udp://127.0.0.1:5=A".parse().into_iter().collect();
        assert!(refused(RecordOptions { listen, ..wishes }).contains("have labels already"));
    }

    #[test]
    fn senders_that_never_reach_their_data_stream_are_refused() {
        let of = |streams: &[&str]| {
            let data_stream = streams.iter().map(|text| text.parse().expect("a data stream")).collect();
            RecordingSettings::of(RecordOptions { data_stream, ..wishes(&["udp://127.0.0.1:5"]) })
        };
        let told = of(&["A=10.0.0.0/8", "B=10.0.2.21"]).expect_err("B stays empty").to_string();
        assert!(
            told.starts_with("--data-stream B=10.0.2.21: ") && told.contains("go to A=10.0.0.0/8"),
            "{told}"
        );
        assert!(of(&["A=10.0.2.21", "B=10.0.2.21"]).is_err(), "the same sender");
        assert!(of(&["A=10.0.2.20", "B=10.0.2.21", "A=10.0.0.0/8"]).is_err(), "the label A comes first");
        of(&["B=10.0.2.21", "A=10.0.0.0/8"]).expect("the rest is for A");
        of(&["A=10.0.0.0/8", "A=10.0.2.21"]).expect("one data stream");
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
