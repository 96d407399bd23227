//! The rate of a recording over time, from acknowledgements that come in batches.
//!
//! A journal acknowledges many frames at once, and neighbouring bins then have one batch and none, or two and one.
//! A line through such bins zigzags at a steady rate. A window therefore begins and ends at an acknowledgement:
//!
//! ```text
//! bins       . . B . . . B . . B . . . B . . B
//! windows   |-----------------|---------------|
//! ```
//!
//! Its rate is the data of its batches, divided by the time between its ends. The error is at most a bin at each
//! end, which is small beside [`BINS_LEAST`] bins. A stall is a window of its own without data, so that neither its
//! neighbours nor the batch that ends it hide it:
//!
//! ```text
//! bins       . B . B . B . . . . . . . . . . . . B . B . B
//! windows   |-----------|---------------------|-----------|
//! ```

use nilometer_model::{Bin, Series};

/// Frames and batches that a window has at least, if the recording has enough of them.
const FRAMES_LEAST: u64 = 10;
const BATCHES_LEAST: usize = 2;

/// Bins that a window has at least. Its ends are then exact to a tenth.
const BINS_LEAST: usize = 10;

/// A recording has this number of windows at least, if it has as many frames in pairs.
const WINDOWS_LEAST: u64 = 4;

/// A batch that comes after this many times the usual time between batches ends a stall.
const STALL_LEAST: usize = 4;

/// A stretch of a recording between two acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RateWindow {
    /// The first bin.
    first: usize,
    /// Number of bins.
    bins: usize,
    batches: usize,
    frames: u64,
    bytes: u64,
    is_stall: bool,
}

impl RateWindow {
    /// The ends in nanoseconds, for bins of this width.
    pub(super) fn ends(&self, width: f64) -> [f64; 2] {
        [self.first as f64 * width, (self.first + self.bins) as f64 * width]
    }

    /// Bytes per second, for bins of this width in nanoseconds.
    pub(super) fn rate(&self, width: f64) -> f64 {
        self.bytes as f64 / (self.bins as f64 * width * 1e-9)
    }

    /// Takes the last bins of the stall before it, up to half of them, until it has enough.
    fn begin_earlier(&mut self, stall: &mut RateWindow) {
        let bins = (BINS_LEAST - self.bins).min(stall.bins / 2);
        stall.bins -= bins;
        self.first -= bins;
        self.bins += bins;
    }

    /// Adds the window that follows.
    fn extend(&mut self, next: &RateWindow) {
        self.bins += next.bins;
        self.batches += next.batches;
        self.frames += next.frames;
        self.bytes += next.bytes;
    }
}

/// The windows of a recording, from its start to its last acknowledgement.
pub(super) fn windows(series: &Series) -> Vec<RateWindow> {
    let batches = with_stalls(&batches(series.bins()));
    let frames: u64 = batches.iter().map(|batch| batch.frames).sum();
    let frames_least = (frames / WINDOWS_LEAST).clamp(BATCHES_LEAST as u64, FRAMES_LEAST);
    let is_full = |window: &RateWindow| {
        window.bins >= BINS_LEAST && window.batches >= BATCHES_LEAST && window.frames >= frames_least
    };
    let mut windows: Vec<RateWindow> = Vec::new();
    for batch in &batches {
        match windows.last_mut() {
            Some(last) if !batch.is_stall && !last.is_stall && !is_full(last) => last.extend(batch),
            _ => windows.push(*batch),
        }
    }
    joined_rests(windows, is_full)
}

/// Each acknowledgement with the bins without one before it.
fn batches(bins: &[Bin]) -> Vec<RateWindow> {
    let mut batches = Vec::new();
    let mut first = 0;
    for (number, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.operations > 0) {
        let bins = number + 1 - first;
        let Bin { operations: frames, bytes } = *bin;
        batches.push(RateWindow { first, bins, batches: 1, frames, bytes, is_stall: false });
        first = number + 1;
    }
    batches
}

/// Splits each batch that came far later than is usual: into the stall before it, and a batch of the usual length.
fn with_stalls(batches: &[RateWindow]) -> Vec<RateWindow> {
    let mut lengths: Vec<usize> = batches.iter().map(|batch| batch.bins).collect();
    lengths.sort_unstable();
    let Some(usual) = lengths.get(lengths.len() / 2).copied() else { return Vec::new() };
    let is_late = |batch: &RateWindow| batch.bins >= BINS_LEAST && batch.bins >= STALL_LEAST * usual;
    let split = |batch: &RateWindow| {
        let bins = batch.bins - usual;
        let stall = RateWindow { first: batch.first, bins, is_stall: true, ..RateWindow::default() };
        [stall, RateWindow { first: batch.first + bins, bins: usual, ..*batch }]
    };
    let parts = batches.iter().map(|batch| if is_late(batch) { split(batch).to_vec() } else { vec![*batch] });
    parts.flatten().collect()
}

/// Joins each rest that is not full with the window before it. Behind a stall it stays, and takes as much of the
/// stall as it needs to have a rate.
fn joined_rests(windows: Vec<RateWindow>, is_full: impl Fn(&RateWindow) -> bool) -> Vec<RateWindow> {
    let mut joined: Vec<RateWindow> = Vec::with_capacity(windows.len());
    for mut window in windows {
        match joined.last_mut() {
            Some(before) if !window.is_stall && !before.is_stall && !is_full(&window) => {
                before.extend(&window);
            }
            Some(stall) if !window.is_stall && window.bins < BINS_LEAST => {
                window.begin_earlier(stall);
                joined.push(window);
            }
            _ => joined.push(window),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use nilometer_model::Nanos;

    const SECOND: u64 = 1_000_000_000;
    const FRAME: u64 = 1_000_000;

    /// `rate` frames a second between two whole seconds, acknowledged `batch` at a time.
    fn acknowledge(series: &mut Series, rate: u64, batch: u64, seconds: Range<u64>) {
        let end = seconds.end * SECOND;
        for number in 0..(seconds.end - seconds.start) * rate {
            let last_of_batch = (number / batch + 1) * batch;
            let at = seconds.start * SECOND + last_of_batch * SECOND / rate;
            if at <= end {
                series.add(Nanos(at), FRAME);
            }
        }
    }

    fn rates(series: &Series) -> Vec<f64> {
        let width = series.width().0 as f64;
        windows(series).iter().map(|window| window.rate(width)).collect()
    }

    fn spread(rates: &[f64]) -> f64 {
        let most = rates.iter().copied().fold(0.0, f64::max);
        most / rates.iter().copied().fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn batches_at_a_steady_rate_are_a_flat_line() {
        for (rate, seconds) in [(133, 10), (500, 15), (987, 40), (2000, 7), (5000, 60)] {
            for batch in [1, 7, 64] {
                let mut series = Series::new(Nanos(0));
                acknowledge(&mut series, rate, batch, 0..seconds);
                let rates = rates(&series);
                let inside = &rates[1..rates.len() - 1];
                let told = format!("{rate} Hz by {batch}: {inside:?}");
                assert!(inside.len() >= 2 && spread(inside) < 1.3, "{told}");
                let mean = inside.iter().sum::<f64>() / inside.len() as f64;
                assert!((mean / (rate * FRAME) as f64 - 1.0).abs() < 0.05, "{told}");
            }
        }
    }

    #[test]
    fn a_stall_of_two_seconds_is_a_gap() {
        for (rate, batch) in [(133, 64), (500, 64), (2000, 64), (2000, 1)] {
            let mut series = Series::new(Nanos(0));
            acknowledge(&mut series, rate, batch, 0..6);
            acknowledge(&mut series, rate, batch, 8..15);
            let width = series.width().0 as f64;
            let steady = (rate * FRAME) as f64;
            let windows = windows(&series);
            let low: Vec<&RateWindow> =
                windows.iter().filter(|window| window.rate(width) < 0.3 * steady).collect();
            let told = format!("{rate} Hz by {batch}: {windows:?}");
            let [gap] = low[..] else { panic!("{told}") };
            let [from, to] = gap.ends(width);
            assert!(to - from > 1.9e9 && to - from < 2.9e9, "{told}");
            let others = windows.iter().filter(|window| *window != gap).map(|window| window.rate(width));
            assert!(spread(&others.collect::<Vec<_>>()) < 1.6, "{told}");
        }
    }

    #[test]
    fn a_stall_is_seen_though_all_that_waited_comes_at_once() {
        let mut series = Series::new(Nanos(0));
        acknowledge(&mut series, 15, 1, 0..6);
        (0..30).for_each(|_| series.add(Nanos(8 * SECOND), FRAME));
        acknowledge(&mut series, 15, 1, 8..15);
        let width = series.width().0 as f64;
        let windows = windows(&series);
        let empty: Vec<&RateWindow> = windows.iter().filter(|window| window.bytes == 0).collect();
        let [stall] = empty[..] else { panic!("{windows:?}") };
        let [from, to] = stall.ends(width);
        assert!(to - from > 1.8e9 && from > 5.9e9 && to < 8.1e9, "{windows:?}");
        let most = rates(&series).into_iter().fold(0.0, f64::max);
        assert!(most > 1.5 * (15 * FRAME) as f64, "what waited is in the window behind it: {windows:?}");
    }

    #[test]
    fn a_rest_between_stalls_is_no_peak_of_one_bin() {
        let mut series = Series::new(Nanos(0));
        acknowledge(&mut series, 100, 1, 0..10);
        for stall in 1..4 {
            (0..100).for_each(|_| series.add(Nanos((10 + stall) * SECOND), FRAME));
        }
        let width = series.width().0 as f64;
        let windows = windows(&series);
        assert_eq!(windows.iter().filter(|window| window.bytes == 0).count(), 3, "{windows:?}");
        assert!(windows.iter().all(|window| window.bins >= BINS_LEAST), "{windows:?}");
        let bins = (SECOND as f64 / width).round();
        let most = rates(&series).into_iter().fold(0.0, f64::max);
        assert!(most <= 1.1 * bins / BINS_LEAST as f64 * (100 * FRAME) as f64, "{most}: {windows:?}");
    }

    #[test]
    fn a_slow_detector_has_a_line_from_the_start_to_the_last_frame() {
        let mut series = Series::new(Nanos(0));
        acknowledge(&mut series, 5, 1, 0..10);
        let width = series.width().0 as f64;
        let windows = windows(&series);
        assert!(windows.len() >= 4, "{windows:?}");
        let first = windows.first().expect("windows").ends(width)[0];
        let last = windows.last().expect("windows").ends(width)[1];
        assert!(first.abs() < 1.0 && last >= 9.99e9, "{first} {last}");
        assert!(windows.windows(2).all(|pair| pair[0].first + pair[0].bins == pair[1].first), "{windows:?}");
        assert!(spread(&rates(&series)) < 1.2);
    }

    #[test]
    fn every_byte_is_in_one_window() {
        let mut series = Series::new(Nanos(0));
        acknowledge(&mut series, 313, 17, 0..3);
        acknowledge(&mut series, 1500, 3, 5..6);
        acknowledge(&mut series, 40, 1, 6..9);
        let bytes: u64 = windows(&series).iter().map(|window| window.bytes).sum();
        assert_eq!(bytes, series.bins().iter().map(|bin| bin.bytes).sum::<u64>());
        assert_eq!(windows(&Series::new(Nanos(0))), []);
    }
}
