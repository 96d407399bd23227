//! Orders by HTTP: the JSON of a request becomes an order, and its outcome an answer.

use std::time::Duration;

use nilometer_model::plain_serde_message;
use serde_json::{Map, Value};

use super::answers::{HttpResponse, refusal, refused, report};
use crate::{
    console::{Console, OrderOutcome},
    recording::options::RecordOptions,
    state::{RecorderOrder, RefusedOrder},
};

/// How long an answer waits for the outcome of an order.
const ORDER: Duration = Duration::from_secs(10);

/// A JSON object. An empty body is an empty object.
fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|error| no_object(&error))
}

/// The refusal of a body that is no JSON object of the wanted keys.
pub(super) fn no_object(error: &serde_json::Error) -> String {
    format!("write a JSON object: {}", reason(error))
}

fn reason(error: &serde_json::Error) -> String {
    plain_serde_message(&error.to_string())
}

/// The options in a request, with the keys of the configuration.
pub(super) fn wishes(body: &[u8]) -> Result<RecordOptions, String> {
    options(&object(body)?)
}

/// The options of these keys. The message names the key whose value is wrong.
fn options(keys: &Map<String, Value>) -> Result<RecordOptions, String> {
    let read = |keys: Map<String, Value>| serde_json::from_value::<RecordOptions>(Value::Object(keys));
    let alone = |key: &String, value: &Value| read(Map::from_iter([(key.clone(), value.clone())]));
    read(keys.clone()).map_err(|error| {
        let found = keys.iter().find_map(|(key, value)| Some((key, reason(&alone(key, value).err()?))));
        match found {
            Some((key, why)) if why.contains(&format!("`{key}`")) => why,
            Some((key, why)) => format!("{key}: {why}"),
            None => reason(&error),
        }
    })
}

/// The options in a request, and its `metadata`.
pub(super) fn arm(body: &[u8]) -> Result<RecorderOrder, String> {
    let mut keys = object(body)?;
    let metadata = keys.remove("metadata").map(serde_json::from_value).transpose();
    let metadata = metadata.map_err(|error| format!("metadata: {}", reason(&error)))?.unwrap_or_default();
    Ok(RecorderOrder::Arm(options(&keys)?, metadata))
}

pub(super) fn ordered(console: &Console, order: Result<RecorderOrder, String>) -> HttpResponse {
    let order = match order {
        Ok(order) => order,
        Err(why) => return refusal(400, &why),
    };
    match console.order(order, ORDER) {
        Ok(OrderOutcome::Done(now)) => report(200, &now),
        Ok(OrderOutcome::UnderWay(now)) => report(202, &now),
        Err(RefusedOrder::WrongState(why)) => refused(409, &why, &console.report()),
        Err(RefusedOrder::AskedWrongly(why)) => refused(400, &why, &console.report()),
        Err(RefusedOrder::Failed(why)) => refused(500, &why, &console.report()),
        Err(RefusedOrder::Busy) => refused(503, "the service is busy: ask again", &console.report()),
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;
    use serde_json::json;

    use super::*;
    use crate::recording::settings::RecordingSettings;

    #[test]
    fn wishes_that_are_almost_valid_are_read_or_refused() {
        let all = "{\"instrument\": \"x\", \"mode\": \"VDIF_8000-4096-16-2\", \"to\": [\"/a\", \"/b\"], \"listen\": \"udp://h:5\", \
                   \"start\": \"2026y326d18h00m00s\", \"stop\": \"2026-11-22T19:00:00Z\", \"duration\": \"5 s\", \"packets\": 7, \
                   \"window\": 8, \"buffer\": \"1 MiB\", \"cpus\": [0, 1], \"missing\": \"fill\", \"metadata\": {\"PI\": [1, null]}}";
        nilometer_fuzz::fuzz("wishes", vec![all.into(), b"{}".to_vec()], |input| {
            drop(arm(input));
            drop(wishes(input).map(RecordingSettings::of));
        });
    }

    #[test]
    fn what_is_wished_has_the_keys_of_the_configuration() {
        assert_eq!(wishes(b" \r\n"), Ok(RecordOptions::default()));
        let wished =
            wishes(b"{\"instrument\": \"x\", \"packets\": 5, \"duration\": \"3 s\"}").expect("valid");
        assert_eq!((wished.packets, wished.duration), (Some(5), Some(Nanos::from_millis(3000))));
        assert!(wishes(b"{\"paket\": 5}").expect_err("a typo").contains("`packets`"));
        let wrong = wishes(b"{\"packets\": 1, \"duration\": \"10\"}").expect_err("no unit");
        assert!(wrong.starts_with("duration: `10` has no unit"), "{wrong}");
        let Ok(RecorderOrder::Arm(wished, metadata)) =
            arm(b"{\"name\": \"n\", \"metadata\": {\"PI\": \"A. B.\"}}")
        else {
            panic!("valid")
        };
        assert_eq!((wished.name.as_deref(), &metadata["PI"]), (Some("n"), &json!("A. B.")));
        for wrong in [&b"[]"[..], b"{", b"{\"metadata\": 5}", b"5", b"{\"name\": 5}"] {
            assert!(arm(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
