//! The rate in a mode of VLBI: a number of Mbit/s, which need not be whole.

use std::fmt;

use crate::ByteRate;

/// The rate of a mode, such as `4096`, `102.4` or `307/3` Mbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeRate {
    /// Bits in a period, without a common divisor with `seconds`.
    bits: u64,
    /// Seconds of the period.
    seconds: u64,
}

/// Bits of a megabit.
const MEGA: u64 = 1_000_000;
/// The limit of a rate, in Mbit/s.
const MEGABITS_MAX: u64 = 1_000_000;
/// The most seconds of a period.
const SECONDS_MAX: u64 = 1_000_000;
/// Decimals of a megabit that are whole bits.
const DECIMALS: usize = 6;

impl ModeRate {
    /// Reads a whole number, a decimal number or a fraction of whole numbers. `None` if the text is none of
    /// them, or out of range.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (bits, seconds) = match text.split_once('/') {
            Some((megabits, seconds)) => (number(megabits)?.checked_mul(MEGA)?, number(seconds)?),
            None => (decimal(text)?, 1),
        };
        Self::reduced(bits, seconds)
    }

    /// Returns the rate closest to a number of bytes a second, as a fraction if its period is short.
    pub(super) fn of(rate: ByteRate) -> Self {
        const PERIODS: u64 = 1000;
        let bits = rate.0 * 8.0;
        let is_whole = |bits: f64| (bits - bits.round()).abs() <= bits * 1e-12;
        let megabits = |seconds: &u64| is_whole(bits * 1e-6 * *seconds as f64);
        let seconds = if is_whole(bits) { 1 } else { (1..=PERIODS).find(megabits).unwrap_or(1) };
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let bits = (bits * seconds as f64).round() as u64;
        Self::reduced(bits, seconds).unwrap_or(ModeRate { bits, seconds })
    }

    fn reduced(bits: u64, seconds: u64) -> Option<Self> {
        let is_valid = (1..=SECONDS_MAX).contains(&seconds) && bits > 0;
        if !is_valid || bits / seconds > MEGABITS_MAX * MEGA {
            return None;
        }
        let common = common_divisor(bits, seconds);
        Some(ModeRate { bits: bits / common, seconds: seconds / common })
    }

    /// The rate in Mbit/s.
    pub fn megabits(self) -> f64 {
        self.bits as f64 / self.seconds as f64 / MEGA as f64
    }
}

/// Reads a number above 0, of digits only.
pub(super) fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?.filter(|number| *number > 0)
}

/// Reads a number of megabits with at most six decimals, in bits.
fn decimal(text: &str) -> Option<u64> {
    let Some((whole, decimals)) = text.split_once('.') else {
        return number(text)?.checked_mul(MEGA);
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    let bits: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(MEGA)?.checked_add(bits)
}

fn common_divisor(first: u64, second: u64) -> u64 {
    if second == 0 { first } else { common_divisor(second, first % second) }
}

impl fmt::Display for ModeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModeRate { bits, seconds } = *self;
        if seconds > 1 {
            // The period is a factor of the divisor, so that the numerator is a whole number of megabits.
            let common = common_divisor(bits, MEGA);
            return write!(f, "{}/{}", bits / common, u128::from(seconds) * u128::from(MEGA / common));
        }
        write!(f, "{}", bits / MEGA)?;
        if bits % MEGA > 0 {
            let decimals = format!("{:06}", bits % MEGA);
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        Ok(())
    }
}
