//! The matrix of a recording stage: the instrument with each combination of the changes in the plan.

use nilometer_model::{Bytes, Instrument};

use super::IngestSweep;
use crate::{Sweep, Swept};

impl IngestSweep {
    /// The instrument with each combination of the plan's changes.
    pub(super) fn swept(&self, mut instrument: Instrument) -> Result<Vec<(Instrument, Swept)>, String> {
        if let Some(shape) = &self.shape {
            instrument.shape.clone_from(shape);
        }
        let all = vec![(instrument, Swept::default())];
        if self.payload.is_some() {
            self.check_payload(&all[0].0)?;
        }
        let all = over(self.payload.as_ref(), all, |instrument, swept, payload| {
            if let Some(packets) = &mut instrument.packets {
                packets.set_payload(payload).expect("it was just checked");
            }
            swept.payload = Some(payload);
        });
        let all = over(self.rate.as_ref(), all, |instrument, swept, rate| {
            *instrument = instrument.at_rate(rate);
            swept.rate = Some(rate);
        });
        let all = over(self.streams.as_ref(), all, |instrument, swept, streams| {
            instrument.streams = streams;
            swept.streams = Some(streams);
        });
        self.check_compressibility(&all[0].0)?;
        let all = over(self.compressibility.as_ref(), all, |instrument, swept, factor| {
            instrument.data.set_compressibility(factor).expect("it was just checked");
            swept.compressibility = Some(factor);
        });
        Ok(self.swept_layouts(all))
    }

    /// The instruments with each combination of ways to store frames.
    fn swept_layouts(&self, all: Vec<(Instrument, Swept)>) -> Vec<(Instrument, Swept)> {
        let all = over(self.format.as_ref(), all, |instrument, swept, format| {
            instrument.recording.write_as(format);
            swept.format = Some(format);
        });
        let all = over(self.storing.as_ref(), all, |instrument, swept, storing| {
            instrument.recording.store(storing);
            swept.storing = Some(storing);
        });
        let all = over(self.frames_per_file.as_ref(), all, |instrument, swept, frames| {
            instrument.recording.frames_per_file = Some(frames);
            swept.frames_per_file = Some(frames);
        });
        let all = over(self.chunk_size.as_ref(), all, |_, swept, size| swept.chunk_size = Some(size));
        let all = over(self.encoders.as_ref(), all, |instrument, swept, encoders| {
            instrument.recording.encoders = Some(encoders);
            swept.encoders = Some(encoders);
        });
        let all = over(self.chunk.as_ref(), all, |instrument, swept, chunk| {
            instrument.recording.chunk = Some(chunk);
            swept.chunk = Some(chunk);
        });
        let all = over(self.compression.as_ref(), all, |instrument, swept, compression| {
            instrument.recording.compression = Some(compression);
            swept.compression = Some(compression);
        });
        let all = over(self.writers.as_ref(), all, |_, swept, writers| swept.writers = Some(writers));
        let all = over(self.stripe_count.as_ref(), all, |_, swept, count| swept.stripe_count = Some(count));
        over(self.stripe_size.as_ref(), all, |_, swept, size| swept.stripe_size = Some(size))
    }

    fn check_payload(&self, instrument: &Instrument) -> Result<(), String> {
        let name = &self.instrument;
        let packets = instrument.packets.clone();
        let no_packets =
            || format!("payload: nothing says how frames of {name} come over a network; leave it out");
        packets.ok_or_else(no_packets)?.set_payload(Bytes(1))
    }

    /// Checks that the instrument's frames can be made less or more compressible.
    fn check_compressibility(&self, instrument: &Instrument) -> Result<(), String> {
        let factors = self.compressibility.as_ref().map_or(&[][..], Sweep::values);
        for factor in factors {
            let mut data = instrument.data.clone();
            data.set_compressibility(*factor).map_err(|why| format!("compressibility = {factor}: {why}"))?;
        }
        let kind = &instrument.data.kind;
        if !factors.is_empty() && kind.usual_intensity().is_none() && !instrument.compressed {
            return Err(format!(
                "compressibility: {kind} data of {} have none to choose; leave it out, or write data of another \
                 kind in a .toml file of the instrument",
                self.instrument
            ));
        }
        Ok(())
    }
}

/// The matrix over values that may replace those of the instrument's file.
fn over<T: Clone>(
    sweep: Option<&Sweep<T>>,
    all: Vec<(Instrument, Swept)>,
    set: impl Fn(&mut Instrument, &mut Swept, T),
) -> Vec<(Instrument, Swept)> {
    match sweep {
        Some(sweep) => sweep.over(all, |(instrument, swept), value| set(instrument, swept, value)),
        None => all,
    }
}
