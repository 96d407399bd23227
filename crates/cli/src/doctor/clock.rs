//! The machine's clock: recordings have its time, and only a time service keeps it right.

use nilometer_model::observed::ClockReading;
use nilometer_report::{MachineFinding, Sufficiency};
use nilometer_storage::clock::clock_reading;

const WHAT: &str = "clock";

pub(super) fn finding() -> MachineFinding {
    of(clock_reading())
}

/// A clock without a time service loses no packet, so it is a note.
fn of(reading: Option<ClockReading>) -> MachineFinding {
    let Some(reading) = reading else {
        return MachineFinding::new(
            WHAT,
            Sufficiency::Note,
            "the kernel does not say whether it is synchronised",
        );
    };
    if reading.synchronised {
        return MachineFinding::new(WHAT, Sufficiency::Good, reading.to_string());
    }
    MachineFinding::new(
        WHAT,
        Sufficiency::Note,
        format!("{reading}: start times and dates of recordings may be wrong"),
    )
    .by("systemctl enable --now chronyd    (or another service of NTP or PTP)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_no_service_synchronises_is_noted_with_a_command() {
        let right = ClockReading {
            synchronised: true,
            offset_ns: 1000,
            error_max_ns: 2_000_000,
            error_estimate_ns: 5000,
        };
        let good = of(Some(right));
        assert_eq!((good.sufficiency, good.command), (Sufficiency::Good, None));
        assert_eq!(good.found, "synchronised to within 2 ms, offset 1 us, estimated error 5 us");
        let free = of(Some(ClockReading { synchronised: false, ..right }));
        assert!(free.sufficiency == Sufficiency::Note && free.command.is_some(), "{free:?}");
        assert_eq!(of(None).sufficiency, Sufficiency::Note);
    }
}
