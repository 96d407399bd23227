//! Moments as people write them: UTC by the calendar.

/// `2026-07-01T00:00:01.500000000`, from seconds since 2000-01-01 00:00 UTC and nanoseconds of the second.
pub(crate) fn utc(second: u64, nanos: u64) -> String {
    let (year, month, day) = date(second / 86_400);
    let clock = second % 86_400;
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}")
}

/// Year, month and day that begin so many days after 2000-01-01: by years that begin in March, so that a leap day is the last
/// of its year (Hinnant, "chrono-compatible low-level date algorithms").
fn date(days: u64) -> (u64, u64, u64) {
    // From 2000-03-01 of the 400 years before.
    let days = days + 146_097 - 60;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (1600 + 400 * era + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use nilometer_acquisition::format::EPOCH;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -u -d ... +%s`.
        for (unix, text) in [
            (946_684_800, "2000-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_402_898_167, "2014-06-16T05:56:07"),
            (1_782_863_999, "2026-06-30T23:59:59"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(utc(unix - EPOCH, 5), format!("{text}.000000005"));
        }
    }
}
