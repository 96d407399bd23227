//! The data streams of a scan, seen together: which of them has ended while others go on, and which is silent while
//! others send. Pure: callers pass the time.

use nilometer_intake::senders::SilenceWatch;
use nilometer_model::Nanos;

use super::{data_stream_status::DataStreamStatus, status::Status};

/// The status of one data stream, with the name of its recording.
#[derive(Debug, Clone)]
pub struct NamedStatus {
    /// The name of its recording.
    pub name: String,
    /// Its figures.
    pub status: Status,
}

/// Adds up the status of all data streams, and finds the silent ones.
#[derive(Debug, Default)]
pub struct DataStreamWatch {
    silence: SilenceWatch,
}

impl DataStreamWatch {
    /// The status of all together, with the state of each if there are several. They keep their order from call to
    /// call. `shares_sockets` is true if all come by the same sockets.
    pub fn together(&mut self, now: Nanos, streams: Vec<NamedStatus>, shares_sockets: bool) -> Status {
        let counts: Vec<u64> = streams.iter().map(|stream| stream.status.received_packets).collect();
        let silent = self.silence.look(now, &counts);
        let states = streams.iter().zip(silent).map(|(stream, silent)| stream.state(silent));
        let data_streams = states.filter(|_| streams.len() > 1).collect();
        let add = if shares_sockets { Status::and_at_same_sockets } else { Status::and };
        let all = streams.into_iter().map(|stream| stream.status).reduce(add);
        Status { data_streams, ..all.unwrap_or_default() }
    }
}

impl NamedStatus {
    fn state(&self, silent: Option<Nanos>) -> DataStreamStatus {
        let NamedStatus { name, status } = self;
        let has_ended = status.ended_by.is_some();
        let state = match (has_ended, status.received_packets) {
            (true, _) => "ended",
            (false, 0) => "listening",
            (false, _) => "recording",
        };
        DataStreamStatus {
            name: name.clone(),
            state,
            ended_by: status.ended_by,
            received_packets: status.received_packets,
            received_bytes: status.received_bytes,
            missing_packets: status.lost.all(),
            packets_after_end: status.packets_after_end,
            silent_seconds: silent.filter(|_| !has_ended).map(Nanos::seconds),
            buffer_share: status.ring.in_use as f64 / status.ring.slots.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::RingStatus;

    fn named(name: &str, status: Status) -> NamedStatus {
        NamedStatus { name: name.into(), status }
    }

    fn received(received_packets: u64) -> Status {
        Status { received_packets, ..Status::default() }
    }

    #[test]
    fn a_data_stream_is_silent_if_another_goes_on() {
        let mut watch = DataStreamWatch::default();
        let mut look = |at, counts: [u64; 2]| {
            let streams = vec![named("s_dsA", received(counts[0])), named("s_dsB", received(counts[1]))];
            let all = watch.together(Nanos::from_millis(at), streams, true);
            assert_eq!(all.received_packets, counts[0] + counts[1]);
            all.data_streams.iter().flat_map(DataStreamStatus::warnings).collect::<Vec<_>>()
        };
        assert!(look(0, [0, 0]).is_empty());
        assert!(look(200, [50, 50]).is_empty());
        assert!(look(900, [50, 50]).is_empty(), "nobody sends");
        assert_eq!(look(1600, [50, 90]), ["s_dsA is SILENT"]);
        assert!(look(1800, [60, 100]).is_empty(), "it sends again");
    }

    #[test]
    fn a_data_stream_that_has_ended_is_neither_silent_nor_recording() {
        let mut watch = DataStreamWatch::default();
        let ended = Status {
            ended_by: Some("silence"),
            packets_after_end: 7,
            ring: RingStatus { slots: 8, in_use: 2, ..RingStatus::default() },
            ..received(50)
        };
        let streams =
            |count| vec![named("A", ended.clone()), named("B", received(count)), named("C", received(0))];
        watch.together(Nanos(0), streams(50), false);
        let all = watch.together(Nanos::from_millis(5000), streams(100), false);
        let states: Vec<_> = all.data_streams.iter().map(|stream| stream.state).collect();
        assert_eq!(states, ["ended", "recording", "listening"]);
        let [first, _, third] = &all.data_streams[..] else { panic!("three: {:?}", all.data_streams) };
        assert_eq!((first.silent_seconds, third.silent_seconds), (None, Some(5.0)));
        assert_eq!((first.packets_after_end, all.packets_after_end, all.ended_by), (7, 7, None));
        assert_eq!(first.buffer_share.to_bits(), 0.25_f64.to_bits());
        let [said, lost] = &first.warnings()[..] else { panic!("{:?}", first.warnings()) };
        assert!(said == "A has ENDED (silence)" && lost.contains("NOT RECORDED"), "{said}; {lost}");
    }

    #[test]
    fn a_recording_without_data_streams_has_none_in_its_status() {
        let all = DataStreamWatch::default().together(Nanos(0), vec![named("s", received(5))], false);
        assert_eq!((all.received_packets, all.data_streams), (5, Vec::new()));
    }
}
