//! Compares the data streams of a scan. All come from one kind of instrument, so each brings as much as the others. A
//! recorder can't notice that its only sender has stopped, because it has no other sender to compare it with.

use nilometer_model::{ByteRate, Bytes, Nanos};

/// The received data of one data stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamVolume {
    /// The name of its recording.
    pub name: String,
    /// Kept bytes of its packets that have a place in the recording.
    pub bytes: Bytes,
}

/// Data streams may begin and end this long after each other.
const APART: Nanos = Nanos::from_millis(2_000);

/// The data streams that brought less than another one, each with the reason to look at it. `rate` is that of a
/// stream.
pub fn with_fewer_packets(streams: &[StreamVolume], rate: ByteRate) -> Vec<(String, String)> {
    let Some(most) = streams.iter().max_by_key(|stream| stream.bytes.0) else { return Vec::new() };
    let apart = rate.0 * APART.seconds();
    let is_less = |stream: &&StreamVolume| ((most.bytes.0 - stream.bytes.0) as f64) > apart;
    streams.iter().filter(is_less).map(|stream| (stream.name.clone(), reason(stream.bytes, most))).collect()
}

fn reason(came: Bytes, most: &StreamVolume) -> String {
    format!(
        "{came} came, and {} of {}: its sender was silent for a part of the time, or sends more slowly",
        most.bytes, most.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_with_less_than_another_is_named_with_both_figures() {
        let stream = |name: &str, bytes| StreamVolume { name: name.into(), bytes: Bytes(bytes) };
        let streams = [stream("s_dsA", 24_000_000), stream("s_dsB", 80_000_000), stream("s_dsC", 79_000_000)];
        let found = with_fewer_packets(&streams, ByteRate(8e6));
        assert_eq!(found.len(), 1, "a second later is no reason: {found:?}");
        assert_eq!(found[0].0, "s_dsA");
        assert!(found[0].1.starts_with("24 MB came, and 80 MB of s_dsB: "), "{found:?}");
        assert_eq!(with_fewer_packets(&streams[1..], ByteRate(8e6)), []);
        assert_eq!(with_fewer_packets(&[], ByteRate(8e6)), []);
    }
}
