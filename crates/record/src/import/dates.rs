//! Parses dates of other programs. None of them names a time zone: they are local times of the machine that
//! measured, and import takes them as UTC.

use nilometer_model::{Moment, Nanos};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Time since 1970 of `2026-05-22`, `2026-05-22T16:09:38`, `2026-05-22 16:09:38.123` or `...Z`.
pub(super) fn iso(text: &str) -> Option<Nanos> {
    let text = text.trim().trim_end_matches('Z');
    let date = text.get(..10)?;
    let rest = text.get(10..)?;
    let time = match rest {
        "" => "00:00:00",
        // The decimals, and the zone that follows them, say nothing that a history needs.
        _ => rest.trim_start_matches(['T', ' ']).get(..8)?,
    };
    moment(date, time)
}

/// Time since 1970 of `Thu Jan  1 10:00:00 2026`, as C's `ctime` writes it.
pub(super) fn ctime(text: &str) -> Option<Nanos> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let day: u32 = day.parse().ok()?;
    moment(&format!("{year}-{month:02}-{day:02}"), time)
}

/// Time since 1970 of `01/31/2026 10:00:00`: mdtest writes the month first.
pub(super) fn month_first(text: &str) -> Option<Nanos> {
    let (date, time) = text.trim().split_once(' ')?;
    let parts: Vec<&str> = date.split('/').collect();
    let [month, day, year] = parts[..] else { return None };
    moment(&format!("{year}-{month}-{day}"), time.trim())
}

fn moment(date: &str, time: &str) -> Option<Nanos> {
    format!("{date}T{time}Z").parse::<Moment>().ok().map(|moment| moment.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_is_read_in_each_way_of_writing_it() {
        let wanted = moment("2026-01-31", "10:00:05");
        assert!(wanted.is_some());
        assert_eq!(ctime("Sat Jan 31 10:00:05 2026"), wanted);
        assert_eq!(month_first("01/31/2026 10:00:05"), wanted);
        for text in ["2026-01-31T10:00:05", "2026-01-31 10:00:05", "2026-01-31T10:00:05.123+0100"] {
            assert_eq!(iso(text), wanted, "{text}");
        }
        assert_eq!(iso("2026-01-31"), moment("2026-01-31", "00:00:00"));
        for text in ["", "yesterday", "2026-13-01", "31.01.2026", "2026-01-31 ten"] {
            assert_eq!(iso(text), None, "{text}");
        }
        assert_eq!(ctime("Sat Xxx 31 10:00:05 2026"), None);
        assert_eq!(month_first("31/01/2026 10:00:05"), None);
    }
}
