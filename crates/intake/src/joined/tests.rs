//! Values find their frames, whichever arrives first; values without a frame are counted.

use super::{
    names::{TEXT_ROOM, WAITING_MAX},
    *,
};

fn plan(columns: &[&str], others: Option<&str>) -> JoinPlan {
    let columns = columns.iter().map(|name| ((*name).to_owned(), ColumnElement::FLOAT)).collect();
    JoinPlan { columns, others: others.map(String::from), channels: 1, ..JoinPlan::default() }
}

fn put(values: &JoinedValues, text: &str) {
    values.put_message(text.as_bytes());
}

fn numbers(taken: Vec<NamedValue>) -> Vec<ColumnValue> {
    taken.into_iter().map(|value| value.said).collect()
}

#[test]
fn values_wait_for_their_frames_and_the_later_of_two_stays() {
    let values = JoinedValues::default();
    put(&values, r#"{"frame": 2, "Angle": 1}"#);
    values.begin(plan(&["Angle"], None));
    put(&values, r#"{"frame": 2, "Angle": 1.5}"#);
    put(&values, r#"{"frame": 3, "Angle": 2}"#);
    assert_eq!(numbers(values.take(2)), [1.5.into()]);
    assert_eq!(numbers(values.take(2)), []);
    let came = Ranges::from_iter([2, 3]);
    let late = values.take_those(0..9, &came);
    assert_eq!(late.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), [3]);
    let tally = values.tally();
    assert_eq!((tally.messages, tally.joined, tally.names), (3, 2, vec!["Angle".to_owned()]));
}

#[test]
fn a_value_of_an_image_is_one_of_all_its_channels() {
    let values = JoinedValues::default();
    put(&values, r#"{"frame": 2, "Angle": 1.5}"#);
    values.begin(JoinPlan { channels: 3, images: Some(4), ..plan(&["Angle"], None) });
    for frame in 6..9 {
        assert_eq!(numbers(values.take(frame)), [1.5.into()], "{frame}");
    }
    put(&values, r#"{"frame": 4, "Angle": 1.5}"#);
    assert_eq!(values.tally().refused(JoinRefusal::UnknownFrame), 1);
    assert!(!values.is_complete(12));
    for image in 0..4 {
        put(&values, &format!(r#"{{"frame": {image}, "Angle": 0}}"#));
    }
    assert!(values.is_complete(12));
}

#[test]
fn names_without_a_column_are_kept_until_the_file_is_closed_or_refused() {
    let kept = JoinedValues::default();
    kept.begin(plan(&[], Some("/g")));
    put(&kept, r#"{"frame": 0, "Angle": 1}"#);
    assert_eq!(numbers(kept.take(0)), []);
    assert_eq!(kept.take_all(0..1).len(), 1);
    let refused = JoinedValues::default();
    put(&refused, r#"{"frame": 0, "Before": 1}"#);
    refused.begin(plan(&["Angle"], None));
    put(&refused, r#"{"frame": 0, "After": 1}"#);
    put(&refused, r#"{"frame": 0, "Angle": ["a list"]}"#);
    put(&refused, r#"{"frame": 0, "Angle": null}"#);
    put(&refused, "Angle 5");
    let tally = refused.tally();
    let counts = [JoinRefusal::UnknownName, JoinRefusal::NoValue, JoinRefusal::Malformed];
    assert_eq!(counts.map(|why| tally.refused(why)), [2, 1, 1], "{tally:?}");
    for name in ["", ".", "..", "a/b"] {
        put(&kept, &format!(r#"{{"frame": 0, "{name}": 1}}"#));
    }
    assert_eq!(kept.tally().refused(JoinRefusal::UnknownName), 4);
}

#[test]
fn whole_numbers_are_asked_for_by_the_layout() {
    let values = JoinedValues::default();
    let columns = vec![("Key".to_owned(), ColumnElement::INT)];
    values.begin(JoinPlan { columns, channels: 1, ..JoinPlan::default() });
    put(&values, r#"{"frame": 0, "Key": 2.0}"#);
    put(&values, r#"{"frame": 1, "Key": 2.5}"#);
    assert_eq!(numbers(values.take(0)), [2.into()]);
    assert_eq!(values.tally().refused(JoinRefusal::NoWholeNumber), 1);
}

#[test]
fn a_name_is_of_texts_or_of_numbers_by_its_first_value_or_by_the_layout() {
    let values = JoinedValues::default();
    put(&values, r#"{"frame": 0, "Sample": "lysozyme", "Angle": 1.5}"#);
    put(&values, r#"{"frame": 0, "State": 2}"#);
    let first = |name: &str| values.names().into_iter().find(|(known, _)| known == name).map(|(_, of)| of);
    assert_eq!(first("Sample"), Some(ColumnElement::TEXT));
    assert_eq!(first("State"), Some(ColumnElement::FLOAT));
    let columns =
        [("Sample", ColumnElement::TEXT), ("State", ColumnElement::TEXT), ("Angle", ColumnElement::FLOAT)];
    let columns = columns.map(|(name, element)| (name.to_owned(), element)).into();
    values.begin(JoinPlan { columns, others: Some("/g".into()), channels: 1, ..JoinPlan::default() });
    put(&values, r#"{"frame": 1, "Sample": 12, "State": "open", "Angle": "east"}"#);
    let mut taken = numbers(values.take(0));
    taken.sort_by_key(|said| format!("{said:?}"));
    assert_eq!(taken, [1.5.into(), "2".into(), "lysozyme".into()]);
    let mut taken = numbers(values.take(1));
    taken.sort_by_key(|said| format!("{said:?}"));
    assert_eq!(taken, ["12".into(), "open".into()]);
    assert_eq!(values.tally().refused(JoinRefusal::NoNumber), 1);
}

#[test]
fn texts_are_cut_to_the_room_of_a_column_and_counted_once() {
    let values = JoinedValues::default();
    let long = "x".repeat(300);
    put(&values, &format!(r#"{{"frame": 0, "Path": "{long}"}}"#));
    values.begin(JoinPlan {
        columns: vec![("Path".into(), ColumnElement::TEXT)],
        channels: 2,
        ..JoinPlan::default()
    });
    put(&values, &format!(r#"{{"frame": 1, "Path": "{}"}}"#, &long[..256]));
    for frame in 0..4 {
        assert_eq!(numbers(values.take(frame)), [ColumnValue::from(&long[..256])], "{frame}");
    }
    assert_eq!(values.tally().cut, 1);
    assert_eq!(values.tally().line().expect("some came"), "4 values of Path; cut to 256 B: 1");
    assert_eq!(values.lock().waiting_room, 0);
}

#[test]
fn texts_that_wait_have_no_more_memory_than_numbers() {
    let values = JoinedValues::default();
    values.begin(JoinPlan {
        columns: vec![("Name".into(), ColumnElement::TEXT)],
        channels: (WAITING_MAX / TEXT_ROOM) as u64,
        ..JoinPlan::default()
    });
    put(&values, r#"{"frame": 0, "Name": "one"}"#);
    put(&values, r#"{"frame": 1, "Name": "one too many"}"#);
    assert_eq!(values.tally().refused(JoinRefusal::NoRoom), 1, "{:?}", values.tally());
}

#[test]
fn nobody_says_what_the_recorder_or_the_detector_says() {
    let values = JoinedValues::default();
    put(&values, r#"{"frame": 0, "start_time": 7, "Angle": 1}"#);
    values.begin(JoinPlan {
        of_images: vec!["start_time".into()],
        ..plan(&["start_time", "Angle"], Some("/g"))
    });
    values.put_of_image(0, &[("start_time", Some(0.5))]);
    put(&values, r#"{"frame": 0, "flag": 0}"#);
    values.put_user_data(0, &[("NDArrayUniqueId".into(), 3.into()), ("start_time".into(), 3.into())]);
    let mut taken = numbers(values.take(0));
    taken.sort_by_key(|number| format!("{number:?}"));
    assert_eq!(taken, [0.5.into(), 1.into()]);
    assert_eq!(values.tally().refused(JoinRefusal::ReservedName), 4);
}

#[test]
fn the_greatest_number_of_a_frame_is_refused_and_the_one_before_waits() {
    let values = JoinedValues::default();
    values.begin(plan(&["Angle"], None));
    put(&values, r#"{"frame": 18446744073709551615, "Angle": 1}"#);
    put(&values, r#"{"frame": 18446744073709551614, "Angle": 1}"#);
    assert_eq!(values.tally().refused(JoinRefusal::UnknownFrame), 1);
    assert_eq!(numbers(values.take(u64::MAX - 1)), [1.into()]);
}

#[test]
fn what_was_refused_is_said_with_its_reason() {
    let values = JoinedValues::default();
    assert_eq!(values.tally().line(), None);
    values.begin(JoinPlan { channels: 1, images: Some(2), ..JoinPlan::default() });
    put(&values, "no JSON");
    put(&values, r#"{"frame": 7, "a": 1}"#);
    assert_eq!(
        values.tally().line().expect("something came"),
        "0 values; refused: 1 no JSON object with a `frame`, 1 for frames that are not there; the last: there is no frame 7"
    );
}
