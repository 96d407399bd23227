//! The seconds of VLBI formats. They count from 2000-01-01 00:00 UTC, without leap seconds.

/// Seconds from 1970-01-01 to 2000-01-01 00:00 UTC.
pub const EPOCH: u64 = 946_684_800;
pub(super) const DAY: u64 = 86_400;
/// The modified Julian day of 2000-01-01.
pub(super) const MJD_2000: u64 = 51_544;
/// Number of reference epochs, which have six bits. The last begins on 2031-07-01.
const EPOCHS: u8 = 64;

/// Start of a reference epoch of VDIF, which counts half-years since 2000.
pub(super) fn epoch_begins(epoch: u8) -> u64 {
    let year = u64::from(epoch / 2);
    let leap = u64::from(year.is_multiple_of(4));
    let half = u64::from(epoch % 2) * (181 + leap);
    (365 * year + year.div_ceil(4) + half) * DAY
}

/// Returns the latest reference epoch that has begun.
pub(super) fn epoch_of(second: u64) -> u8 {
    (0..EPOCHS).rev().find(|epoch| epoch_begins(*epoch) <= second).unwrap_or(0)
}

/// Returns the day since 2000 nearest to a second, of the days whose modified Julian day has these last three
/// digits.
pub(super) fn day_near(second: u64, digits: u32) -> Option<u64> {
    let near = MJD_2000 + second / DAY;
    let lower = (near + 500).saturating_sub(999);
    let day = lower + (u64::from(digits) + 1000 - lower % 1000) % 1000;
    day.checked_sub(MJD_2000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_begin_in_january_and_july() {
        // The output of `date -u -d 2014-01-01 +%s` for each date, less that of 2000-01-01.
        for (epoch, unix) in [
            (0, 946_684_800),
            (1, 962_409_600),
            (2, 978_307_200),
            (28, 1_388_534_400),
            (33, 1_467_331_200),
            (53, 1_782_864_000),
            (63, 1_940_630_400),
        ] {
            let begins = unix - 946_684_800;
            assert_eq!(epoch_begins(epoch), begins, "{epoch}");
            assert_eq!(epoch_of(begins), epoch);
            assert_eq!(epoch_of(begins.saturating_sub(1)), epoch.saturating_sub(1));
        }
        assert_eq!(epoch_of(u64::MAX), 63);
        assert_eq!(MJD_2000 + epoch_begins(28) / DAY, 56_658, "2014-01-01");
    }
}
