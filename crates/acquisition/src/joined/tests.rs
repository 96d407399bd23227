//! Values find their frames, whichever comes first; what finds none is counted.

use super::*;

fn plan(columns: &[&str], others: Option<&str>) -> JoinPlan {
    let columns = columns.iter().map(|name| ((*name).to_owned(), NumberType::Float64)).collect();
    JoinPlan { columns, others: others.map(String::from), channels: 1, ..JoinPlan::default() }
}

fn put(values: &JoinedValues, text: &str) {
    values.put_message(text.as_bytes());
}

fn numbers(taken: Vec<NamedNumber>) -> Vec<ColumnNumber> {
    taken.into_iter().map(|value| value.number).collect()
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
    put(&refused, r#"{"frame": 0, "Angle": "a text"}"#);
    put(&refused, r#"{"frame": 0, "Angle": null}"#);
    put(&refused, "Angle 5");
    let tally = refused.tally();
    let counts = [JoinRefusal::UnknownName, JoinRefusal::NoNumber, JoinRefusal::Malformed];
    assert_eq!(counts.map(|why| tally.refused(why)), [2, 1, 1], "{tally:?}");
    for name in ["", ".", "..", "a/b"] {
        put(&kept, &format!(r#"{{"frame": 0, "{name}": 1}}"#));
    }
    assert_eq!(kept.tally().refused(JoinRefusal::UnknownName), 4);
}

#[test]
fn whole_numbers_are_asked_for_by_the_layout() {
    let values = JoinedValues::default();
    let columns = vec![("Key".to_owned(), NumberType::Int64)];
    values.begin(JoinPlan { columns, channels: 1, ..JoinPlan::default() });
    put(&values, r#"{"frame": 0, "Key": 2.0}"#);
    put(&values, r#"{"frame": 1, "Key": 2.5}"#);
    assert_eq!(numbers(values.take(0)), [2.into()]);
    assert_eq!(values.tally().refused(JoinRefusal::NoWholeNumber), 1);
}
