//! What became of values that were joined to frames, in words.

use nilometer_acquisition::joined::{JoinRefusal, JoinedTally};

/// Names that are shown, at the most.
const SHOWN: usize = 8;

/// A line, if any came.
pub(super) fn joined_line(tally: &JoinedTally) -> Option<String> {
    let refused: Vec<_> = JoinRefusal::ALL
        .into_iter()
        .map(|why| (tally.refused(why), why.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if tally.joined == 0 && tally.messages == 0 && refused.is_empty() {
        return None;
    }
    let shown: Vec<_> = tally.names.iter().take(SHOWN).map(String::as_str).collect();
    let more = tally.names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = if shown.is_empty() { String::new() } else { format!(" of {}{more}", shown.join(", ")) };
    let joined = format!("metadata    {} values{names}", tally.joined);
    if refused.is_empty() {
        return Some(joined);
    }
    let fault = tally.fault.as_ref().map_or_else(String::new, |fault| format!("; the last: {fault}"));
    Some(format!("{joined}; refused: {}{fault}", refused.join(", ")))
}

#[cfg(test)]
mod tests {
    use nilometer_acquisition::joined::{JoinPlan, JoinedValues};

    use super::*;

    #[test]
    fn what_was_refused_is_said_with_its_reason() {
        let values = JoinedValues::default();
        assert_eq!(joined_line(&values.tally()), None);
        values.begin(JoinPlan { channels: 1, images: Some(2), ..JoinPlan::default() });
        values.put_message(b"no JSON");
        values.put_message(b"{\"frame\": 7, \"a\": 1}");
        let line = joined_line(&values.tally()).expect("something came");
        assert_eq!(
            line,
            "metadata    0 values; refused: 1 no JSON object with a `frame`, 1 of frames that are not there; the last: \
             there is no frame 7"
        );
    }
}
