//! Options that replace values of an instrument's file: `--frame-rate`, `--compressibility`, `--frames-per-file`.

use anyhow::anyhow;
use clap::Args;
use nilometer_model::{Frequency, Instrument, Seed};
use nilometer_recording::instrument::Content;

/// Values in place of those in the instrument's file.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "The instrument")]
pub(crate) struct InstrumentChanges {
    /// Let each stream deliver this many frames a second, instead of the instrument's: "133 Hz"
    #[arg(long, value_name = "FREQUENCY")]
    frame_rate: Option<Frequency>,
    /// Make frames that bitshuffle with LZ4 compresses by this factor, instead of the instrument's
    #[arg(long, value_name = "FACTOR")]
    compressibility: Option<f64>,
    /// Put N frames into each file, instead of the instrument's number
    #[arg(long, value_name = "N")]
    frames_per_file: Option<u64>,
}

impl InstrumentChanges {
    /// True if `--frame-rate` is given.
    pub(crate) fn has_frame_rate(&self) -> bool {
        self.frame_rate.is_some()
    }

    /// Changes the instrument. The message names it if it can't be so.
    pub(crate) fn apply(&self, instrument: &mut Instrument) -> anyhow::Result<()> {
        if *self == InstrumentChanges::default() {
            return Ok(());
        }
        let name = instrument.name.clone();
        if let Some(rate) = self.frame_rate {
            instrument.frame_rate = rate;
            instrument.published = None;
        }
        if let Some(factor) = self.compressibility {
            let set = instrument.data.set_compressibility(factor);
            set.map_err(|why| anyhow!("{name}: --compressibility {factor}: {why}"))?;
            let Instrument { data, shape, pixel, .. } = &*instrument;
            Content::check(data, shape, *pixel, Seed(0)).map_err(|why| anyhow!("{name}: {why}"))?;
        }
        if self.frames_per_file.is_some() {
            instrument.recording.frames_per_file = self.frames_per_file;
        }
        instrument.check().map_err(|why| anyhow!("{name}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::user_file;

    #[test]
    fn changes_replace_the_values_of_the_file() {
        let mut instrument = user_file::instrument("eiger2-16m").expect("it is in the catalogue");
        let (rate, file) = (instrument.written_rate(), instrument.clone());
        InstrumentChanges::default().apply(&mut instrument).expect("nothing changes");
        assert_eq!(instrument, file);
        let changes = InstrumentChanges {
            frame_rate: Some(Frequency(file.frame_rate.0 / 2.0)),
            compressibility: file.data.compressibility.map(|factor| factor * 1.25),
            frames_per_file: Some(100),
        };
        changes.apply(&mut instrument).expect("all of them make sense");
        assert!((instrument.written_rate().0 * 2.5 / rate.0 - 1.0).abs() < 1e-6);
        assert_eq!(instrument.recording.frames_per_file, Some(100));
        let wrong = InstrumentChanges { compressibility: Some(0.0), ..InstrumentChanges::default() };
        let error = wrong.apply(&mut instrument).expect_err("no factor").to_string();
        assert!(error.contains("eiger2-16m: --compressibility 0: "), "{error}");
    }
}
