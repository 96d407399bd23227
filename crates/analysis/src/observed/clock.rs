//! The agreement of an observed machine's clock with that of the machine that measured: from both time services,
//! or because both are the same machine.

use nilometer_model::{
    Nanos,
    observed::{ClockState, ObservedLog},
};
use nilometer_plan::Results;

/// The agreement of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockAgreement {
    /// It is one clock: both records name the same boot of the same machine.
    SameMachine,
    /// They differ by at most this time, by the estimates of both time services.
    Within(Nanos),
    /// The observed machine's clock was not synchronised all the time.
    ObservedFree,
    /// The clock of the machine that measured was not synchronised.
    MeasuringFree,
    /// The record does not contain it.
    NotRecorded,
}

impl ClockAgreement {
    pub(super) fn of(results: &Results, log: &ObservedLog) -> Self {
        let fact = |key: &str| {
            let mut facts = results.environment.iter();
            facts.find(|(known, _)| known == key).map(|(_, value)| value.as_str())
        };
        let boot = &log.header.boot_id;
        if !boot.is_empty() && fact("boot id") == Some(boot) {
            return ClockAgreement::SameMachine;
        }
        let errors = log.looks.iter().map(|look| look.clock_error_us);
        let worst = errors.reduce(|one, other| Some(one?.max(other?))).flatten();
        let Some(observed) = worst.map(|micros| Nanos(micros.saturating_mul(1000))) else {
            return ClockAgreement::ObservedFree;
        };
        match fact(ClockState::FACT).and_then(|text| text.parse::<ClockState>().ok()) {
            Some(ClockState::Synchronised(measuring)) => ClockAgreement::Within(measuring + observed),
            Some(ClockState::Unsynchronised) => ClockAgreement::MeasuringFree,
            None => ClockAgreement::NotRecorded,
        }
    }

    /// Returns true if figures may belong to another moment than the stated one.
    pub fn is_doubtful(self) -> bool {
        match self {
            ClockAgreement::SameMachine => false,
            ClockAgreement::Within(error) => error > DOUBTFUL,
            _ => true,
        }
    }
}

/// More than the usual interval of looks.
const DOUBTFUL: Nanos = Nanos::from_millis(1000);

/// The words about the alignment of a machine's times with the record's, including the user's offset.
pub(super) fn clock_words(agreement: ClockAgreement, host: &str, offset: i64) -> String {
    let said = match agreement {
        ClockAgreement::SameMachine => "it is the machine that measured: one clock".to_owned(),
        ClockAgreement::Within(error) => {
            format!("joined by the machines' clocks, which agree within {error}, as their time services say")
        }
        ClockAgreement::ObservedFree => {
            format!("joined by the machines' clocks, and that of {host} was not synchronised")
        }
        ClockAgreement::MeasuringFree => {
            "joined by the machines' clocks, and that of the machine that measured was not synchronised"
                .into()
        }
        ClockAgreement::NotRecorded => {
            "joined by the machines' clocks; the record does not say whether its own was synchronised".into()
        }
    };
    match offset {
        0 if agreement.is_doubtful() => {
            format!("{said}: the figures may belong to another moment; `--offset {host}=+0.35s` corrects it")
        }
        0 => said,
        offset => format!("{said}; {} was added to its times by --offset", signed(offset)),
    }
}

fn signed(nanos: i64) -> String {
    format!("{}{}", if nanos < 0 { "-" } else { "+" }, Nanos(nanos.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use nilometer_model::observed::{ObservedHeader, ObservedLook};

    use super::*;

    fn results(facts: &[(&str, &str)]) -> Results {
        let environment = facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Results { environment: environment.collect(), ..Results::default() }
    }

    fn log(errors: &[Option<u64>]) -> ObservedLog {
        let look = |error: &Option<u64>| ObservedLook { clock_error_us: *error, ..ObservedLook::default() };
        let header = ObservedHeader { boot_id: "b".into(), ..ObservedHeader::default() };
        ObservedLog { header, looks: errors.iter().map(look).collect(), ..ObservedLog::default() }
    }

    #[test]
    fn clocks_agree_as_far_as_both_are_known() {
        let good = [("clock", "synchronised to within 2 ms"), ("boot id", "a")];
        let of = |facts: &[(&str, &str)], errors: &[Option<u64>]| {
            ClockAgreement::of(&results(facts), &log(errors))
        };
        assert_eq!(of(&good, &[Some(500), Some(1500), Some(1000)]), ClockAgreement::Within(Nanos(3_500_000)));
        assert_eq!(of(&good, &[Some(500), None, Some(500)]), ClockAgreement::ObservedFree, "for a time");
        assert_eq!(of(&good, &[]), ClockAgreement::ObservedFree);
        assert_eq!(of(&[("clock", "not synchronised")], &[Some(1)]), ClockAgreement::MeasuringFree);
        assert_eq!(of(&[], &[Some(1)]), ClockAgreement::NotRecorded);
        assert_eq!(
            of(&[("boot id", "b"), ("clock", "not synchronised")], &[None]),
            ClockAgreement::SameMachine
        );
    }

    #[test]
    fn an_offset_that_was_asked_for_is_stated_and_one_that_may_be_needed_is_shown() {
        let words = |agreement, offset| clock_words(agreement, "oss1", offset);
        assert!(
            words(ClockAgreement::Within(Nanos(3_500_000)), 0)
                .ends_with("within 3.5 ms, as their time services say")
        );
        assert!(words(ClockAgreement::ObservedFree, 0).contains("`--offset oss1=+0.35s` corrects it"));
        assert!(
            words(ClockAgreement::ObservedFree, -350_000_000)
                .ends_with("; -350 ms was added to its times by --offset")
        );
        assert!(ClockAgreement::Within(Nanos::from_millis(16_000)).is_doubtful());
    }
}
