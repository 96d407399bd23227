//! The seconds of VLBI formats, on two scales that both begin at 2000-01-01 00:00 UTC.
//!
//! Seconds of UTC give each day 86 400 seconds, as Unix time does. Seconds *elapsed* include leap seconds. VDIF
//! counts every second since its reference epoch (VDIF specification 1.1.1, section 4, word 0), and so do
//! readers such as `baseband`. On this scale, successive frames always have successive numbers.
//!
//! ```text
//! UTC           23:59:59  23:59:60  00:00:00      the end of 2005
//! seconds of UTC   n - 1     n - 1         n
//! elapsed          n - 1         n     n + 1
//! ```

/// Seconds from 1970-01-01 to 2000-01-01 00:00 UTC.
pub const EPOCH: u64 = 946_684_800;
pub(super) const DAY: u64 = 86_400;
/// The modified Julian day of 2000-01-01.
pub(super) const MJD_2000: u64 = 51_544;
/// Number of reference epochs, which have six bits. The last begins on 2031-07-01.
const EPOCHS: u8 = 64;
/// Seconds of UTC at which leap seconds end: 2006-01-01, 2009-01-01, 2012-07-01, 2015-07-01 and 2017-01-01.
///
/// Source: the file `leap-seconds.list` of IERS and tzdata, valid until 28 June 2026. IERS announces further
/// ones half a year before, in Bulletin C.
const LEAP_SECONDS: [u64; 5] = [189_388_800, 284_083_200, 394_416_000, 489_024_000, 536_544_000];

/// Converts seconds of UTC since 2000 to elapsed seconds.
pub(super) fn elapsed(utc: u64) -> u64 {
    let leaps = LEAP_SECONDS.iter().filter(|end| **end <= utc).count();
    utc.saturating_add(leaps as u64)
}

/// Converts elapsed seconds since 2000 to seconds of UTC. A leap second repeats the second before it, as on
/// Linux.
pub(super) fn utc(elapsed: u64) -> u64 {
    let before = (0_u64..).zip(LEAP_SECONDS).filter(|(earlier, end)| end + earlier <= elapsed);
    elapsed - before.count() as u64
}

/// Start of a reference epoch of VDIF, in elapsed seconds.
pub(super) fn epoch_elapsed(epoch: u8) -> u64 {
    elapsed(epoch_begins(epoch))
}

/// Start of a reference epoch of VDIF, which counts half-years since 2000, in seconds of UTC.
pub(super) fn epoch_begins(epoch: u8) -> u64 {
    let year = u64::from(epoch / 2);
    let leap = u64::from(year.is_multiple_of(4));
    let half = u64::from(epoch % 2) * (181 + leap);
    (365 * year + year.div_ceil(4) + half) * DAY
}

/// Returns the latest reference epoch that has begun after this number of elapsed seconds.
pub(super) fn epoch_of(elapsed: u64) -> u8 {
    (0..EPOCHS).rev().find(|epoch| epoch_elapsed(*epoch) <= elapsed).unwrap_or(0)
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
            let begins = elapsed(begins);
            assert_eq!(epoch_of(begins), epoch);
            assert_eq!(epoch_of(begins.saturating_sub(1)), epoch.saturating_sub(1));
        }
        assert_eq!(epoch_of(u64::MAX), 63);
        assert_eq!(MJD_2000 + epoch_begins(28) / DAY, 56_658, "2014-01-01");
    }

    /// The Unix time of a second of a reference epoch.
    fn unix(epoch: u8, second: u64) -> u64 {
        EPOCH + utc(epoch_elapsed(epoch) + second)
    }

    #[test]
    fn seconds_since_an_epoch_include_leap_seconds() {
        // The dates of `VDIFHeader.get_time` of the Python package baseband 4.3.0, as Unix times. Its 23:59:60 is
        // the repeated second here.
        for (epoch, second, expected) in [
            (0, 514_629_935, 1_461_314_731),
            (11, 15_897_599, 1_136_073_599),
            (11, 15_897_600, 1_136_073_599),
            (11, 15_897_601, 1_136_073_600),
            (12, 0, 1_136_073_600),
            (17, 15_897_600, 1_230_767_999),
            (17, 15_897_601, 1_230_768_000),
            (0, 536_500_804, 1_483_185_600),
            (28, 14_363_767, 1_402_898_167),
            (33, 15_897_600, 1_483_228_799),
            (33, 15_897_601, 1_483_228_800),
            (30, 63_158_402, 1_483_228_800),
            (34, 0, 1_483_228_800),
            (53, 5, 1_782_864_005),
            (0, 800_000_000, 1_746_684_795),
        ] {
            assert_eq!(unix(epoch, second), expected, "epoch {epoch}, second {second}");
        }
    }

    #[test]
    fn seconds_of_utc_become_elapsed_ones_and_back() {
        for end in LEAP_SECONDS {
            assert!(end.is_multiple_of(DAY), "{end}");
            for second in end - 3..end + 3 {
                assert_eq!(utc(elapsed(second)), second);
            }
            assert_eq!(elapsed(end) - elapsed(end - 1), 2, "the leap second is between them");
            assert_eq!(utc(elapsed(end) - 1), end - 1, "it repeats the second before");
        }
        assert_eq!((elapsed(0), elapsed(u64::MAX), utc(u64::MAX)), (0, u64::MAX, u64::MAX - 5));
    }
}
