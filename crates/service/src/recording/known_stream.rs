//! The facts about a stream of packets before it begins.

use nilometer_model::{Instrument, packets::Packets};
use nilometer_storage::Calendar;
use nilometer_wire::Known;

/// From 1970-01-01 to 2000-01-01 00:00 UTC, in seconds.
const YEAR_2000: u64 = 946_684_800;

/// The facts about the stream in an instrument's file, and today's date.
pub(super) fn said(instrument: &Instrument) -> Known {
    let today = (Calendar::now().time.0 / 1_000_000_000).saturating_sub(YEAR_2000);
    Known { begins: today, ..Known::of(instrument) }
}

/// The facts about a stream before it begins. If packets have serial numbers, the frames in a second follow from
/// those: the instrument may run at another rate than in its file.
pub(super) fn known(instrument: &Instrument, packets: &Packets) -> Known {
    let known = said(instrument);
    let frames_per_second = known.frames_per_second.filter(|_| packets.serial().is_none());
    Known { frames_per_second, ..known }
}
