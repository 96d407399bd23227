//! The request for a dump, as a client writes it, and its checks that need no storage.

use std::path::PathBuf;

use nilometer_model::ByteRate;
use nilometer_recording::view::PartLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to save a part of the recording that runs, or that ran last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DumpRequest {
    /// Begin with the first frame at or after this time in UTC (2026-11-28T18:00:00 or 2026y332d18h00m00s). Or write
    /// a time after the oldest frame (+30s) or before the newest one (-30s). A frame (1200) and a packet (packet:1200)
    /// are possible too. Without it, begin with the oldest frame.
    #[serde(default)]
    pub begin: Option<String>,
    /// End before the first frame at or after this, written as `begin`. It may lie in the future. Without it, end
    /// with the recording.
    #[serde(default)]
    pub end: Option<String>,
    /// The directory for the file. It must be one of the directories for dumps, or lie below one.
    #[schemars(with = "String")]
    pub to: PathBuf,
    /// The name of the new file, without its suffix. Without it, the name is that of the recording with the number
    /// of the dump.
    #[serde(default)]
    pub name: Option<String>,
    /// The label of the data stream to dump, if the recording has several. Without it, dump all of them, each into a
    /// file of its own: `NAME_ds` and the label.
    #[serde(default)]
    pub data_stream: Option<String>,
    /// Write at most at this rate, such as `200 MB/s`. Dumps of several data streams share it equally.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub rate: Option<ByteRate>,
}

/// The limits of a dump, read from its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DumpLimits {
    pub(super) begin: Option<PartLimit>,
    pub(super) end: Option<PartLimit>,
}

/// The most bytes of a name with the label of a data stream, so that suffixes fit behind it.
pub(super) const NAME_MAX: usize = 200;

impl DumpRequest {
    /// Reads the limits, and checks the name and the rate. The error names the key and valid values.
    pub(super) fn limits(&self) -> Result<DumpLimits, String> {
        let name = self.name.as_deref().unwrap_or("dump");
        let has_control = name.chars().any(char::is_control);
        if name.is_empty()
            || name.len() > NAME_MAX
            || name.contains('/')
            || name.starts_with('.')
            || has_control
        {
            return Err(format!("name: write up to {NAME_MAX} bytes without `/`, and no dot at the begin"));
        }
        if self.rate.is_some_and(|rate| rate.0 <= 0.0 || !rate.0.is_finite()) {
            return Err("rate: write more than 0".into());
        }
        let begin = limit("begin", self.begin.as_deref())?;
        let end = limit("end", self.end.as_deref())?;
        if begin.zip(end).is_some_and(|(begin, end)| is_empty(begin, end)) {
            return Err("end: no frame lies between it and begin; write a later end".into());
        }
        Ok(DumpLimits { begin, end })
    }
}

/// Returns true if two limits of one kind have no frame between them.
fn is_empty(begin: PartLimit, end: PartLimit) -> bool {
    match (begin, end) {
        (PartLimit::Time(begin), PartLimit::Time(end)) => end <= begin,
        (PartLimit::After(begin), PartLimit::After(end)) => end <= begin,
        (PartLimit::BeforeEnd(begin), PartLimit::BeforeEnd(end)) => end >= begin,
        (PartLimit::Frame(begin), PartLimit::Frame(end))
        | (PartLimit::Packet(begin), PartLimit::Packet(end)) => end <= begin,
        _ => false,
    }
}

fn limit(key: &str, text: Option<&str>) -> Result<Option<PartLimit>, String> {
    text.map(str::parse).transpose().map_err(|error| format!("{key}: {error}"))
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;

    use super::*;

    fn request(json: &str) -> Result<DumpLimits, String> {
        let request: DumpRequest = serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.limits()
    }

    #[test]
    fn limits_are_those_of_an_export_and_seconds_before_now() {
        let limits = request(r#"{"begin": "-30s", "end": "packet:7", "to": "/d", "rate": "5 MB/s"}"#);
        let begin = Some(PartLimit::BeforeEnd(Nanos::from_millis(30_000)));
        assert_eq!(limits, Ok(DumpLimits { begin, end: Some(PartLimit::Packet(7)) }));
        assert_eq!(request(r#"{"to": "/d"}"#), Ok(DumpLimits::default()));
    }

    #[test]
    fn wrong_requests_are_refused_with_their_key() {
        for (json, key) in [
            (r#"{"to": "/d", "begin": "yesterday"}"#, "begin: "),
            (r#"{"to": "/d", "end": ""}"#, "end: "),
            (r#"{"to": "/d", "name": "../x"}"#, "name: "),
            (r#"{"to": "/d", "name": ".x"}"#, "name: "),
            (r#"{"to": "/d", "name": ""}"#, "name: "),
            (r#"{"to": "/d", "rate": "0 B/s"}"#, "rate: "),
            (r#"{"to": "/d", "begin": "200", "end": "100"}"#, "end: "),
            (r#"{"to": "/d", "begin": "-1s", "end": "-2s"}"#, "end: "),
            (r#"{"to": "/d", "begin": "+2s", "end": "+2s"}"#, "end: "),
            (r#"{"to": "/d", "begn": "1"}"#, "`begin`"),
            ("{}", "`to`"),
        ] {
            let why = request(json).expect_err(json);
            assert!(why.contains(key), "{json}: {why}");
        }
    }

    #[test]
    fn requests_that_are_almost_valid_are_read_or_refused() {
        let all =
            r#"{"begin": "2026y332d18h00m00s", "end": "+30s", "to": "/d", "name": "n", "rate": "1 GB/s"}"#;
        nilometer_fuzz::fuzz("dump", vec![all.into(), b"{}".to_vec()], |input| {
            drop(serde_json::from_slice::<DumpRequest>(input).map(|request| request.limits()));
        });
    }
}
