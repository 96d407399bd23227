//! The rates at which a recording arrives and is stored, between two queries of stations. Callers pass the time;
//! there is no I/O here.

use nilometer_model::Nanos;

/// The counts at the last query that did not follow too soon.
#[derive(Debug, Default)]
pub(super) struct TransferRates(Option<TransferCount>);

/// Bytes of a recording, counted from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TransferCount {
    /// The recording's name.
    pub(super) name: String,
    /// The time since any fixed moment.
    pub(super) at: Nanos,
    /// The bytes of the stream received, and the bytes stored.
    pub(super) bytes: [u64; 2],
}

/// The rates since the query before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransferRate {
    /// The seconds since that query.
    pub(super) seconds: f64,
    /// The bits a second received, and those stored.
    pub(super) bits: [f64; 2],
}

/// The shortest time between queries, in seconds: the recorder updates its figures five times a second.
const LEAST: f64 = 0.25;

impl TransferRates {
    /// The rates up to this count. `None` if it is the first of a recording, or follows too soon.
    pub(super) fn since_last(&mut self, now: TransferCount) -> Option<TransferRate> {
        let Some(last) = self.0.as_ref().filter(|last| last.name == now.name) else {
            self.0 = Some(now);
            return None;
        };
        let seconds = now.at.since(last.at).seconds();
        if seconds < LEAST {
            return None;
        }
        let bits = [0, 1].map(|step| now.bytes[step].saturating_sub(last.bytes[step]) as f64 * 8.0 / seconds);
        self.0 = Some(now);
        Some(TransferRate { seconds, bits })
    }
}

/// Bits a second with the prefix that leaves at most three digits before the point, such as `2.05Gbps`.
pub(super) fn scaled(bits: f64) -> String {
    let mut value = bits;
    let mut prefixes = ["", "k", "M", "G"].into_iter();
    let mut prefix = prefixes.next();
    while value >= 1000.0
        && let Some(next) = prefixes.next()
    {
        value /= 1000.0;
        prefix = Some(next);
    }
    format!("{value:.2}{}bps", prefix.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_question_before() {
        let mut rates = TransferRates::default();
        let mut ask = |name: &str, milliseconds, bytes| {
            rates.since_last(TransferCount { name: name.into(), at: Nanos::from_millis(milliseconds), bytes })
        };
        assert_eq!(ask("a", 1000, [500, 400]), None, "the first");
        assert_eq!(ask("a", 3000, [2500, 400]), Some(TransferRate { seconds: 2.0, bits: [8000.0, 0.0] }));
        assert_eq!(ask("a", 3100, [2600, 500]), None, "too soon");
        assert_eq!(ask("a", 4000, [2500, 1400]), Some(TransferRate { seconds: 1.0, bits: [0.0, 8000.0] }));
        assert_eq!(ask("b", 9000, [1, 1]), None, "another recording");
    }

    #[test]
    fn rates_are_written_with_a_prefix() {
        let written = [0.0, 999.0, 1000.0, 2.048e9, 5e13].map(scaled);
        assert_eq!(written, ["0.00bps", "999.00bps", "1.00kbps", "2.05Gbps", "50000.00Gbps"]);
    }
}
