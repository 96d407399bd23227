//! The measurements of each choice of chunks as a table, and the advice that follows.

use std::fmt;

use nilometer_acquisition::Outcome as Recorded;
use nilometer_hdf5_recording::ReadingTotals;
use nilometer_model::{ByteRate, Bytes, Coldness, FrameCompression, Nanos, statistics::Summary};

use super::{ChunkChoice, ChunkTrial, WeighedWay};

/// The measurements of a choice, one value for each repeat.
#[derive(Debug, Default)]
pub(super) struct MeasuredChoice {
    /// Bytes of frames a second, until all are durable.
    rates: Vec<f64>,
    /// The size of the frames divided by the bytes that were written.
    smaller: f64,
    /// The seconds that each way of reading took.
    seconds: Vec<Vec<f64>>,
    cold: Vec<Coldness>,
}

impl MeasuredChoice {
    pub(super) fn wrote(&mut self, outcome: &Recorded, frame: Bytes) {
        let bytes = outcome.stored() * frame.0;
        self.rates.push(ByteRate::of(bytes, outcome.wall).0);
        self.smaller = bytes as f64 / outcome.written().max(1) as f64;
    }

    /// Adds the time of a way of reading. With `one`, the time of a single frame.
    pub(super) fn read(&mut self, way: usize, totals: ReadingTotals, cold: Coldness, one: bool) {
        if self.seconds.len() <= way {
            self.seconds.resize(way + 1, Vec::new());
        }
        let parts = if one { totals.frames.max(1) } else { 1 };
        self.seconds[way].push(totals.took.seconds() / parts as f64);
        self.cold.push(cold);
    }
}

/// All choices with their measurements.
pub(super) struct ChunkTable {
    choices: Vec<ChunkChoice>,
    pub(super) measured: Vec<MeasuredChoice>,
    ways: Vec<WeighedWay>,
    /// A frame in the form of a chunk's shape.
    frame: String,
    instrument: String,
    /// The mean rate of the instrument.
    rate: ByteRate,
}

impl ChunkTable {
    pub(super) fn new(trial: &ChunkTrial, choices: &[ChunkChoice]) -> Self {
        let sides: Vec<_> = trial.instrument.shape.iter().map(u64::to_string).collect();
        ChunkTable {
            choices: choices.to_vec(),
            measured: choices.iter().map(|_| MeasuredChoice::default()).collect(),
            ways: trial.ways.clone(),
            frame: sides.join("x"),
            instrument: trial.instrument.name.clone(),
            rate: trial.instrument.mean_rate(),
        }
    }

    /// The table, and the advice.
    pub(super) fn text(&self) -> String {
        let ways: Vec<_> =
            self.ways.iter().map(|WeighedWay { way, .. }| format!(" {:>13}", way.name())).collect();
        let head = format!("{:<14} {:<7} {:>16} {:>7}{}", "chunk", "", "written", "smaller", ways.concat());
        let mut lines = vec![String::new(), head];
        lines.extend(
            self.choices.iter().zip(&self.measured).map(|(choice, measured)| self.line(*choice, measured)),
        );
        let all = self.measured.iter().flat_map(|measured| measured.cold.iter().copied());
        let cold = all.max_by_key(|cold| cold.severity()).unwrap_or(Coldness::NotProvable);
        lines.push(format!("\nread        {}", words_of(cold)));
        lines.extend(
            self.ways.iter().map(|WeighedWay { way, .. }| format!("{:<11} {}", way.name(), way.words())),
        );
        lines.push(String::new());
        lines.extend(self.advice());
        lines.join("\n") + "\n"
    }

    fn line(&self, choice: ChunkChoice, measured: &MeasuredChoice) -> String {
        let chunk = choice.chunk.map_or_else(|| self.frame.clone(), |chunk| chunk.to_string());
        let rate = summary(&measured.rates);
        let rate = format!("{} {}", ByteRate(rate.mean), spread(&rate));
        let smaller = measured.smaller;
        let compression = choice.compression.name();
        let times = measured.seconds.iter().map(|seconds| {
            let seconds = summary(seconds);
            let cell = format!("{} {}", time(seconds.mean), spread(&seconds));
            format!(" {cell:>13}")
        });
        let times: Vec<_> = times.collect();
        format!("{chunk:<14} {compression:<7} {rate:>16} {smaller:>7.2}{}", times.concat())
    }

    /// The choices that write as fast as the instrument delivers frames, in all repeats.
    fn carrying(&self) -> Vec<usize> {
        let carries = |at: &usize| self.measured[*at].rates.iter().all(|rate| *rate >= self.rate.0);
        (0..self.choices.len()).filter(carries).collect()
    }

    /// The seconds of reading for each time that the frames are written, one value for each repeat.
    fn reading(&self, choice: usize) -> Vec<f64> {
        let measured = &self.measured[choice];
        let repeats = measured.rates.len();
        let of = |repeat: usize| -> f64 {
            measured.seconds.iter().zip(&self.ways).map(|(seconds, way)| seconds[repeat] * way.times).sum()
        };
        (0..repeats).map(of).collect()
    }

    fn advice(&self) -> Vec<String> {
        let all: Vec<usize> = (0..self.choices.len()).collect();
        let written = best(&all, |at| -summary(&self.measured[at].rates).mean);
        let mut lines = vec![format!("written fastest     {}", self.name(written))];
        for (at, WeighedWay { way, .. }) in self.ways.iter().enumerate() {
            let read = best(&all, |choice| summary(&self.measured[choice].seconds[at]).mean);
            lines.push(format!("{:<19} {}", format!("{way} fastest"), self.name(read)));
        }
        let carrying = self.carrying();
        let needed = format!("the {} of {}", self.rate, self.instrument);
        if carrying.is_empty() {
            let written = self.name(written);
            lines.push(format!(
                "advised             {written}: none was written at {needed} in each repeat, and this is nearest"
            ));
            return lines;
        }
        let chosen = best(&carrying, |at| summary(&self.reading(at)).mean);
        let seconds = summary(&self.reading(chosen));
        let weighed = self.weighed();
        lines.push(format!(
            "advised             {}: fastest to read ({weighed}) of all choices that write {needed} or more: \
             {} {}",
            self.name(chosen),
            time(seconds.mean),
            spread(&seconds)
        ));
        let alike = carrying.into_iter().filter(|at| *at != chosen && self.is_alike(chosen, *at));
        let alike: Vec<_> = alike.map(|at| self.name(at)).collect();
        if !alike.is_empty() {
            lines.push(format!("no difference shown {}", alike.join("; ")));
        }
        lines
    }

    /// The weights of the ways, in words.
    fn weighed(&self) -> String {
        let ways = self.ways.iter().map(|WeighedWay { way, times }| format!("{times} x {way}"));
        ways.collect::<Vec<_>>().join(", ")
    }

    /// True if the repeats of both overlap: neither proved to be faster.
    fn is_alike(&self, one: usize, other: usize) -> bool {
        let longest = self.reading(one).into_iter().fold(0.0, f64::max);
        let shortest = self.reading(other).into_iter().fold(f64::INFINITY, f64::min);
        shortest <= longest
    }

    fn name(&self, choice: usize) -> String {
        self.choices[choice].to_string()
    }
}

/// The choice with the least value.
fn best(among: &[usize], of: impl Fn(usize) -> f64) -> usize {
    let least = among.iter().copied().min_by(|one, other| of(*one).total_cmp(&of(*other)));
    least.expect("something was measured")
}

fn summary(values: &[f64]) -> Summary {
    Summary::of(values).expect("each was measured once at least")
}

/// The standard deviation over the repeats, as a share of the mean.
fn spread(summary: &Summary) -> String {
    summary.spread().map_or_else(|| "±?".into(), |spread| format!("±{:.0}%", spread * 100.0))
}

fn time(seconds: f64) -> Nanos {
    #[expect(clippy::cast_sign_loss, reason = "no time is less than none")]
    Nanos((seconds * 1e9) as u64)
}

fn words_of(cold: Coldness) -> &'static str {
    match cold {
        Coldness::Proved | Coldness::NeverSeen => "from a cold cache: nothing of the file was in it",
        Coldness::NotProvable => "the cache was dropped; this storage can't show that nothing stayed in it",
        Coldness::Contradicted => {
            "NOT from a cold cache: parts of the files stayed in it, so that times may be too short"
        }
    }
}

impl fmt::Display for ChunkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunk {
            Some(chunk) => write!(f, "{chunk}")?,
            None => f.write_str("a frame")?,
        }
        match self.compression {
            FrameCompression::None => f.write_str(", not compressed"),
            compression => write!(f, ", {}", compression.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::ReadingWay;

    use super::*;

    fn measured(rate: f64, line: f64, pixel: f64) -> MeasuredChoice {
        let repeats = |value: f64| vec![value, value * 1.01];
        let seconds = vec![repeats(line), repeats(pixel)];
        MeasuredChoice { rates: repeats(rate), smaller: 1.0, seconds, cold: vec![Coldness::Proved] }
    }

    fn table(pixels: f64) -> ChunkTable {
        let choice = |sides: &[u64]| ChunkChoice {
            chunk: nilometer_model::ChunkShape::of(sides),
            compression: FrameCompression::None,
        };
        let way = |way, times| WeighedWay { way, times };
        ChunkTable {
            choices: vec![choice(&[8, 8]), choice(&[1, 8]), choice(&[4, 4])],
            // The second writes too slowly for the instrument.
            measured: vec![measured(9e8, 2.0, 0.01), measured(1e8, 0.1, 0.2), measured(5e8, 1.0, 0.05)],
            ways: vec![way(ReadingWay::Line, 1.0), way(ReadingWay::Pixel, pixels)],
            frame: "8x8".into(),
            instrument: "camera".into(),
            rate: ByteRate(4e8),
        }
    }

    #[test]
    fn what_is_advised_carries_the_instrument_and_follows_the_weights() {
        let text = table(1.0).text();
        assert!(text.contains("written fastest     8x8"), "{text}");
        assert!(text.contains("line fastest        1x8"), "{text}");
        assert!(text.contains("advised             4x4") && text.contains("1 x line, 1 x pixel"), "{text}");
        assert!(table(100.0).text().contains("advised             8x8"), "pixels decide now");
        let fast = ChunkTable { rate: ByteRate(2e9), ..table(1.0) };
        assert!(fast.text().contains("advised             8x8") && fast.text().contains("this is nearest"));
    }

    #[test]
    fn choices_whose_repeats_overlap_are_not_told_apart() {
        let mut table = table(1.0);
        table.measured[0] = measured(9e8, 1.005, 0.05);
        let text = table.text();
        assert!(
            text.contains("advised             4x4") && text.contains("no difference shown 8x8"),
            "{text}"
        );
    }
}
