//! From the number in a packet to the number of its frame: steps, wraps, and a number in two places.
//!
//! For example, a time stamp of 12 bits goes up by 100 from frame to frame. The first packet has 3950, so 50 is the
//! remainder of this sender. Numbers are extended beyond their bits, and divided by the step, rounded to the nearest:
//!
//! ```text
//! in the packet    3950   4050     54    154   ...
//! extended         3950   4050   4150   4250   ...     4096 more after the wrap
//! less remainder   3900   4000   4100   4200   ...
//! frame              39     40     41     42   ...
//! ```
//!
//! If the step and the range are powers of two, the frame's number wraps as the packet's does, and nothing is extended.

use nilometer_model::packets::NumberedPackets;

/// An upper part: the numbers between two of its values, as a fraction with a power of two below.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpperRatio {
    above: u64,
    shift: u32,
}

/// Limit on the distance to the last number that extends a further one: an eighth of the range.
const NEAR: u64 = 8;

/// How numbers count.
#[derive(Debug, Clone)]
pub(super) struct Counting {
    step: u64,
    /// All numbers that there are; `None` means 2^64.
    modulus: Option<u64>,
    upper: Option<UpperRatio>,
    way: CountingWay,
    /// The remainder of each stream's numbers.
    remainders: Vec<StepRemainder>,
}

/// The remainder of a stream's numbers by their step: that of its first packet.
///
/// A clock may jitter by up to half of a step. A sender that began anew with a clock further off has another remainder
/// after [`STEADY`] packets.
#[derive(Debug, Clone, Copy, Default)]
struct StepRemainder {
    known: Option<u64>,
    /// Packets in a row that were further off than a quarter of a step.
    off: u8,
}

/// Packets in a row that establish another remainder.
const STEADY: u8 = 8;

#[derive(Debug, Clone)]
enum CountingWay {
    /// A power of two of all numbers, and of the step.
    Shifted {
        mask: u64,
        shift: u32,
    },
    Extended(ExtendedNumber),
}

/// The last number, extended beyond its range.
///
/// A stray packet moves it at most by a part of the range. The next packet of the stream is then still nearer than half
/// of the range, which is enough to extend it.
#[derive(Debug, Clone, Default)]
struct ExtendedNumber {
    last: Option<i64>,
    /// The last number that was far from it.
    far: Option<i64>,
}

impl UpperRatio {
    /// The number at which a value of the upper part begins.
    #[inline]
    fn begin(self, upper: u64) -> u64 {
        let UpperRatio { above, shift } = self;
        let half = (1_u128 << shift) >> 1;
        let product = u128::from(upper) * u128::from(above);
        ((product + half) >> shift) as u64
    }

    /// The value of the upper part in which a number lies.
    fn of(self, number: u64) -> u64 {
        let UpperRatio { above, shift } = self;
        let about = ((u128::from(number) << shift) / u128::from(above)) as u64;
        // Rounding moves the beginning of a value by at most one.
        if self.begin(about.wrapping_add(1)) <= number { about + 1 } else { about }
    }
}

impl Counting {
    /// The counting of checked packets.
    pub(super) fn new(packets: &NumberedPackets) -> Self {
        let step = packets.number.step;
        let all = packets.modulus();
        let is_shifted = all.is_power_of_two() && step.is_power_of_two() && packets.streams() == 1;
        let way = if is_shifted {
            CountingWay::Shifted { mask: (all - 1) as u64, shift: step.trailing_zeros() }
        } else {
            CountingWay::Extended(ExtendedNumber::default())
        };
        let upper = packets.upper.and_then(|upper| upper.ratio());
        Counting {
            step,
            modulus: u64::try_from(all).ok(),
            upper: upper.map(|(above, below)| UpperRatio { above, shift: below.trailing_zeros() }),
            way,
            remainders: vec![StepRemainder::default(); packets.streams() as usize],
        }
    }

    /// The same for another sender.
    pub(super) fn anew(&self) -> Self {
        let way = match self.way {
            CountingWay::Extended(_) => CountingWay::Extended(ExtendedNumber::default()),
            ref way @ CountingWay::Shifted { .. } => way.clone(),
        };
        Counting { way, remainders: vec![StepRemainder::default(); self.remainders.len()], ..self.clone() }
    }

    /// Bits of the numbers of frames.
    pub(super) fn bits(&self) -> u32 {
        match self.way {
            CountingWay::Shifted { mask, shift } => mask.count_ones() - shift,
            CountingWay::Extended(_) => 64,
        }
    }

    /// One number from the two in a packet.
    #[inline]
    pub(super) fn joined(&self, upper: u64, number: u64) -> u64 {
        self.upper.map_or(number, |ratio| ratio.begin(upper).wrapping_add(number))
    }

    /// The upper part and the number of a packet.
    pub(super) fn parted(&self, joined: u64) -> (u64, u64) {
        self.upper.map_or((0, joined), |ratio| {
            let upper = ratio.of(joined);
            (upper, joined - ratio.begin(upper))
        })
    }

    /// The number of a frame of a stream from that in its packets.
    #[inline]
    pub(super) fn frame(&mut self, stream: usize, number: u64) -> u64 {
        let Counting { step, modulus, way, remainders, .. } = self;
        match way {
            CountingWay::Shifted { shift: 0, .. } => number,
            CountingWay::Shifted { mask, shift } => {
                let remainder = remainders[stream].of(number & (*step - 1), *step);
                (number.wrapping_sub(remainder).wrapping_add(*step / 2) & *mask) >> *shift
            }
            CountingWay::Extended(extended) => {
                let number = extended.extend(number, *modulus);
                let size = (*step).cast_signed();
                let remainder = remainders[stream].of(number.rem_euclid(size).cast_unsigned(), *step);
                let rounded = number.wrapping_sub(remainder.cast_signed()).wrapping_add(size / 2);
                rounded.div_euclid(size).cast_unsigned()
            }
        }
    }

    /// The number in packets that are this many frames later.
    pub(super) fn later(&self, number: u64, frames: i64) -> u64 {
        let all = self.modulus.map_or(1 << 64, i128::from);
        let later = i128::from(number) + i128::from(frames) * i128::from(self.step);
        later.rem_euclid(all) as u64
    }

    /// The first multiple of the step at or behind the beginning of a value of the upper part.
    pub(super) fn at_upper(&self, upper: u64) -> u64 {
        let begin = self.upper.map_or(0, |ratio| ratio.begin(upper));
        begin.next_multiple_of(self.step)
    }

    /// The number in packets of this frame of a simulated stream.
    pub(super) fn number(&self, first: u64, frame: u64) -> u64 {
        let number = u128::from(first) + u128::from(frame) * u128::from(self.step);
        (number % self.modulus.map_or(1 << 64, u128::from)) as u64
    }
}

impl StepRemainder {
    /// Takes the remainder of a packet, and returns that of the stream.
    #[inline]
    fn of(&mut self, seen: u64, step: u64) -> u64 {
        let known = *self.known.get_or_insert(seen);
        let apart = known.abs_diff(seen);
        if apart.min(step - apart) <= step / 4 {
            self.off = 0;
            return known;
        }
        self.off += 1;
        if self.off < STEADY {
            return known;
        }
        *self = StepRemainder { known: Some(seen), off: 0 };
        seen
    }
}

impl ExtendedNumber {
    #[inline]
    fn extend(&mut self, number: u64, modulus: Option<u64>) -> i64 {
        let number = number.cast_signed();
        // Numbers of 64 bits have no room beyond, and do not wrap in a lifetime.
        let Some(all) = modulus.map(u64::cast_signed).filter(|all| *all > 0) else { return number };
        let Some(last) = self.last else {
            self.last = Some(number);
            return number;
        };
        let distance = shortest(number.wrapping_sub(last), all);
        let extended = last.wrapping_add(distance);
        let near = all / NEAR.cast_signed();
        let is_second = self.far.is_some_and(|far| shortest(number.wrapping_sub(far), all).abs() <= near);
        if distance.abs() <= near || is_second {
            self.last = Some(extended);
            self.far = None;
        } else {
            self.far = Some(number);
        }
        extended
    }
}

/// A distance the shorter way round a circle of `all` numbers.
#[inline]
fn shortest(distance: i64, all: i64) -> i64 {
    let distance = distance.rem_euclid(all);
    if distance > all / 2 { distance - all } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::packets::{PacketFormat, Packets};

    fn counting(numbers: &str) -> Counting {
        let format = format!("format.numbered = {{ header = \"16 B\", payload = \"40000 B\", {numbers} }}");
        let shape = "shape = [2, 100, 100]\npixel = \"uint16\"\nframe_rate = \"100 Hz\"\n";
        let Some(Packets { format: PacketFormat::Numbered(packets), .. }) =
            crate::tests::instrument(shape, &format).packets
        else {
            panic!("{numbers}")
        };
        Counting::new(&packets)
    }

    #[test]
    fn the_worked_example_is_right() {
        let mut counting = counting("number = { at = { offset = 0, bytes = 2, bits = 12 }, step = 4 }");
        assert_eq!(counting.bits(), 10);
        assert_eq!([4094, 2, 6].map(|number| counting.frame(0, number)), [1023, 0, 1]);
        let mut counting = counting_of(100, 1 << 12);
        assert_eq!([3950, 4050, 54, 154].map(|number| counting.frame(0, number)), [39, 40, 41, 42]);
    }

    /// A counting that no description allows, since so few numbers begin again too soon.
    fn counting_of(step: u64, modulus: u64) -> Counting {
        Counting {
            step,
            modulus: Some(modulus),
            upper: None,
            way: CountingWay::Extended(ExtendedNumber::default()),
            remainders: vec![StepRemainder::default()],
        }
    }

    #[test]
    fn a_clock_that_is_a_little_off_the_grid_counts_on() {
        let mut counting = counting("number = { at = { offset = 0, bytes = 8 }, step = 2048 }");
        let stamps = [7, 2048 + 7, 2 * 2048 + 6, 3 * 2048 + 8, 4 * 2048 + 7, 5 * 2048 - 900];
        assert_eq!(stamps.map(|stamp| counting.frame(0, stamp)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(counting.later(5, -1), 0_u64.wrapping_sub(2043));
        // It began anew with a clock that is half a step off.
        let frames: Vec<_> =
            (0..20).map(|at| counting.frame(0, (at + 9) * 2048 + 1024 + 7 - at % 2)).collect();
        assert!(frames[8..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{frames:?}");
    }

    #[test]
    fn stray_numbers_do_not_move_the_wrap() {
        let mut counting = counting_of(3, 30_000);
        let mut frame = 0;
        for at in 0..50_000_u64 {
            frame = counting.frame(0, at * 3 % 30_000);
            assert_eq!(frame, at);
            if at % 7 == 0 {
                counting.frame(0, at * 7919 * 3 % 30_000);
            }
        }
        assert_eq!(frame, 49_999);
        // The numbers were set anew: two packets that follow each other show it.
        counting.frame(0, 300);
        let next = counting.frame(0, 303);
        assert_eq!(counting.frame(0, 306), next + 1);
    }

    #[test]
    fn seconds_and_blocks_are_one_count() {
        // LOFAR at 200 MHz: 195312.5 blocks a second, of which a packet has 16.
        let mut counting = counting(
            "number = { at = { offset = 12, bytes = 4 }, step = 16 }, upper = { at = { offset = 8, bytes = 4 }, numbers = 195312.5 }",
        );
        for second in [0, 1, 2, 3, 1_600_000_001] {
            // The formula of LOFAR's receivers: (seconds x 200000000 + 512) / 1024 + block.
            let begin = (second * 200_000_000 + 512) / 1024;
            assert_eq!(counting.joined(second, 0), begin);
            assert_eq!(counting.parted(begin), (second, 0));
            assert_eq!(counting.parted(begin + 195_311), (second, 195_311));
        }
        let first = counting.at_upper(1_600_000_001);
        assert_eq!(first % 16, 0);
        let frames: Vec<u64> =
            (0..40_000).map(|frame| counting.frame(0, counting.number(first, frame))).collect();
        assert!(frames.windows(2).all(|pair| pair[1] == pair[0] + 1), "over three seconds");
    }
}
