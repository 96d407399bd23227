//! `nilometer instrument`: lists the instruments, and shows the data of one.

mod packets;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use nilometer_analysis::Study;
use nilometer_model::{
    Burst, ByteRate, Data, DataKind, Format, Instrument, Storing,
    catalogue::{BuiltIn, INSTRUMENTS, instruments},
};
use nilometer_storage::user_file::{NamedText, find, instrument};

use crate::{Blame, Outcome, show::ShownFile, tell};

/// List the instruments of the catalogue, or show the data of one
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List names, rates and titles
    List {
        /// List only instruments that every target of this record should carry, the fastest writer first:
        /// candidates for `evaluate --for`. Leaves out those over a network and those with compression: they
        /// depend on more than storage
        #[arg(long, value_name = "RECORD")]
        carried_by: Option<PathBuf>,
    },
    /// Show an instrument's data and storing, and the sources of the figures
    Show(ShownFile),
}

impl Command {
    pub(crate) fn execute(&self) -> Outcome {
        match &self.action {
            Action::List { carried_by: None } => tell::result(list().input()?),
            Action::List { carried_by: Some(record) } => tell::result(carried_by(record).input()?),
            Action::Show(ShownFile { name, toml: true }) => {
                let NamedText { name: file, text } = find(name, &INSTRUMENTS, "instrument").input()?;
                Instrument::parse(&text, &file).input()?;
                tell::result_to_copy(text);
            }
            Action::Show(ShownFile { name, toml: false }) => {
                tell::result(tell::visible(&shown(&instrument(name).input()?)));
            }
        }
        Ok(())
    }
}

/// The instruments that a record's figures predict as carried.
fn carried_by(record: &Path) -> anyhow::Result<String> {
    let results = nilometer_record::read(record)?;
    let study = Study::of(&results).with_catalogue(&instruments());
    let targets = 0..results.targets.len();
    // The rows ascend by rate.
    let carried = study.predictions.rows.iter().rev().filter(|row| row.are_promising(targets.clone()));
    Ok(carried.filter_map(|row| instrument(&row.instrument).ok()).map(|found| line(&found)).collect())
}

/// A row of the list: mean rates of the bytes that reach the storage, and of all pixels.
fn line(instrument: &Instrument) -> String {
    let mean = instrument.mean_rate();
    let written = ByteRate(instrument.written_rate().0 * mean.0 / instrument.rate().0);
    let [written, pixels] = [written, mean].map(|rate| rate.to_string());
    format!("{:<20} {written:>9} {pixels:>9}  {}\n", instrument.name, instrument.title)
}

fn list() -> anyhow::Result<String> {
    let mut text = format!(
        "{:<20} {:>9} {:>9}  (mean rates: `instrument show` has those of bursts)\n",
        "name", "written", "pixels"
    );
    for BuiltIn { name, .. } in INSTRUMENTS {
        let instrument = instrument(name)?;
        text.push_str(&line(&instrument));
    }
    Ok(text)
}

fn shown(instrument: &Instrument) -> String {
    let Instrument { name, title, source, shape, pixel, frame_rate, streams, recording, .. } = instrument;
    let sides: Vec<_> = shape.iter().rev().map(ToString::to_string).collect();
    let streams = if *streams == 1 { String::new() } else { format!(", {streams} streams in step") };
    let files = match (recording.storing, recording.frames_per_file) {
        (Storing::Files, _) if recording.format == Format::Cbf => "a CBF file a frame".into(),
        (_, Some(frames)) if recording.format == Format::Hdf5 => format!("HDF5 files of {frames} frames"),
        (_, None) if recording.format == Format::Hdf5 => "an HDF5 file".into(),
        (Storing::Files, Some(1)) => "a file a frame".into(),
        (Storing::Files, Some(frames)) => format!("{frames} frames a file"),
        (Storing::Files, None) => "files of about 256 MiB".into(),
        (storing, Some(frames)) => format!("{}, {frames} frames each", storing.kind().words),
        (storing, None) if storing.is_many_files() => format!("{} of about 256 MiB", storing.kind().words),
        (storing, None) => storing.kind().words.into(),
    };
    // A receiver delivers samples in blocks, a camera pixels in pictures.
    let (frame, rate_of, elements) = match instrument.data.kind {
        DataKind::Vlbi => ("block", "block rate", "samples"),
        _ => ("frame", "frame rate", "pixels"),
    };
    let mut rows = vec![
        ("name", name.clone()),
        ("title", title.clone()),
        (frame, format!("{} {elements} of {}, {}", sides.join(" x "), pixel.name(), instrument.frame_size())),
        (rate_of, format!("{frame_rate}{streams}")),
    ];
    if let Some(Burst { frames, pause }) = instrument.burst {
        rows.push(("bursts", format!("{frames} frames, then none for {pause}: {}", instrument.rate())));
    }
    rows.push(("rate", instrument.mean_rate().to_string()));
    rows.extend(written(instrument).map(|written| ("written", written)));
    rows.push(("data", data(&instrument.data)));
    rows.push(("stored as", files));
    rows.extend((!instrument.cbf.is_empty()).then(|| ("cbf header", instrument.cbf.to_string())));
    rows.extend(packets::rows(instrument));
    rows.push(("source", source.clone()));
    let assumed =
        if instrument.assumed.is_empty() { "nothing".into() } else { instrument.assumed.join(", ") };
    rows.push(("assumed", assumed));
    let lines: Vec<_> = rows.iter().map(|(key, value)| format!("{key:<11} {value}")).collect();
    lines.join("\n") + "\n"
}

/// The bytes of compressed frames that reach the storage; `None` without compression.
fn written(instrument: &Instrument) -> Option<String> {
    let compressed = match (instrument.compressed, instrument.recording.packs()) {
        (true, _) => "compressed by the detector",
        (false, true) => "compressed by the recorder",
        (false, false) => return None,
    };
    let assumed = if instrument.assumed_of_rate().is_empty() { "" } else { ", assumed" };
    Some(format!("{}, {compressed}{assumed}", instrument.written_rate()))
}

/// The contents of the frames.
fn data(Data { kind, intensity, compressibility, distinct }: &Data) -> String {
    let mut parts = vec![kind.to_string()];
    if let Some(compressibility) = compressibility {
        parts.push(format!("{compressibility} times smaller by bitshuffle with LZ4"));
    }
    if let Some(intensity) = intensity.or(kind.usual_intensity()).filter(|_| compressibility.is_none()) {
        parts.push(format!("{intensity} {}", unit(kind)));
    }
    parts.extend(distinct.map(|distinct| format!("{distinct} distinct frames")));
    parts.join(", ")
}

/// The unit of an intensity.
fn unit(kind: &DataKind) -> &'static str {
    match kind {
        DataKind::Diffraction => "photons a pixel",
        DataKind::Tomography => "electrons a pixel",
        DataKind::LiquidArgon => "counts of noise",
        DataKind::Incompressible | DataKind::Vlbi | DataKind::Files(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instrument_delivers_at_the_rate_that_was_published() {
        // Bytes a second, from the sources that the files name; the tolerance is that of their rounding.
        for (name, published, tolerance) in [
            ("pco-4000", 100e6, 0.08),
            ("pco-edge", 700e6, 0.01),
            ("excalibur-3m", 600.0 * 1_048_576.0, 1e-9),
            ("fila10g-512m", 512e6 / 8.0, 1e-9),
            ("fila10g-1g", 1024e6 / 8.0, 1e-9),
            ("fila10g-2g", 2048e6 / 8.0, 1e-9),
            ("fila10g-4g", 4056e6 / 8.0, 1e-9),
            ("vlbi-16g", 16e9 / 8.0, 1e-9),
            ("vgos-16g", 16e9 / 8.0, 1e-9),
            ("vgos-32g", 32e9 / 8.0, 1e-9),
            ("eht-64g", 64e9 / 8.0, 0.03),
            ("meerkat-visibilities", 32768.0 * 8320.0 * 10.0 / 8.0, 1e-9),
            ("jungfrau-4m-2khz", 17e9, 0.02),
            ("jungfrau-9m", 36e9, 0.05),
            // The source prints GB, and GiB fit.
            ("citius-840k", 27.0 * 1_073_741_824.0, 0.01),
            ("timepix4", 160e9 / 8.0, 1e-9),
            ("wa105-raw", 130e9 / 8.0, 1e-6),
            ("wa105-compressed", 20e9 / 8.0, 1e-9),
            ("small-files", 20.0 * 100.0 * 65536.0, 1e-9),
        ] {
            let rate = instrument(name).expect(name).mean_rate().0;
            assert!((rate / published - 1.0).abs() <= tolerance, "{name}: {rate} B/s");
        }
        // Rates without the pauses.
        for (name, published) in [("dune-readout-unit", 10e9), ("stem-480g", 480e9 / 8.0)] {
            let rate = instrument(name).expect(name).rate().0;
            assert!((rate / published - 1.0).abs() <= 0.04, "{name}: {rate} B/s");
        }
        for name in ["eiger-4m", "eiger2-16m"] {
            let rate = instrument(name).expect(name).mean_rate().0 * 8.0;
            assert!((10e9..100e9).contains(&rate), "{name}: {rate} bit/s");
        }
    }

    /// The comment above a line.
    fn comment_above(text: &str, line: &str) -> String {
        let before: Vec<&str> = text.lines().take_while(|one| *one != line).collect();
        let comment = before.iter().rev().take_while(|line| line.starts_with('#'));
        comment.copied().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_template_has_every_word_that_an_instrument_may_say() {
        let text = find("template", &INSTRUMENTS, "instrument").expect("built in").text;
        for line in ["storing = \"files\"", "format = \"raw\"", "pixel = \"uint16\"", "kind = \"tomography\""]
        {
            let (key, _) = line.split_once(" =").expect("a key");
            let wrong = text.replacen(&format!("\n{line}\n"), &format!("\n{key} = \"no such word\"\n"), 1);
            let said = Instrument::parse(&wrong, "template").expect_err("an unknown word").to_string();
            // The valid words follow the unknown one.
            let words: Vec<&str> = said.split('`').skip(1).step_by(2).skip(1).collect();
            let comment = comment_above(&text, line);
            let missing: Vec<_> =
                words.iter().filter(|word| !comment.contains(word.trim_end_matches("PATH"))).collect();
            assert!(words.len() > 1 && missing.is_empty(), "{key}: {missing:?} not in {comment}");
        }
    }

    /// The header of the template.
    const HEADER: &str = "cbf header  detector distance 0.2 m, wavelength 1.0332 A, exposure time 9 ms, exposure period 10 ms, \
                          pixels of 172 um, silicon of 320 um, beam at 512, 512\n";

    #[test]
    fn what_is_assumed_is_said() {
        let text = shown(&instrument("template").expect("built in"));
        for part in [
            "2048 x 1024 pixels of uint16, 4 MiB",
            "2 streams in step",
            "then none for 2 s",
            "assumed",
            HEADER,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(shown(&instrument("pco-edge").expect("built in")).contains("assumed     frame_rate, data\n"));
    }

    #[test]
    fn what_is_written_of_compressed_frames_is_said() {
        for (name, said) in [
            ("pilatus-6m", "written     156 MB/s, compressed by the recorder, assumed\n"),
            ("eiger2-16m", "written     507 MB/s, compressed by the detector, assumed\n"),
        ] {
            let text = shown(&instrument(name).expect(name));
            assert!(text.contains(said), "{text}");
        }
        assert!(!shown(&instrument("pco-edge").expect("built in")).contains("\nwritten"));
    }

    #[test]
    fn what_is_in_the_frames_is_said() {
        for (name, said) in [
            ("pilatus-6m", "diffraction, 0.5 photons a pixel, 4 distinct frames"),
            ("eiger-4m", "diffraction, 10 times smaller by bitshuffle with LZ4, 4 distinct frames"),
            ("vlbi-16g", "vlbi"),
            ("wa105-raw", "liquid_argon, 3 counts of noise, 4 distinct frames"),
            ("small-files", "incompressible"),
        ] {
            let text = shown(&instrument(name).expect(name));
            assert!(text.contains(&format!("data        {said}\n")), "{name}: {text}");
        }
    }
}
