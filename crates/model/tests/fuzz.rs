//! Files that others wrote: instruments and facilities are read or refused, whatever is in them, and what
//! is read can be counted with.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
};

use nilometer_fuzz::{corpus, fuzz};
use nilometer_model::{Facility, Instrument};

fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// What a program does with an instrument that was read.
fn count_with(instrument: &Instrument) {
    let Instrument { packets, .. } = instrument;
    black_box((instrument.mean_rate(), instrument.rate(), instrument.frame_size()));
    if let Some(packets) = packets {
        drop(packets.frames_per_second(instrument.stream_rate()));
        drop(packets.detector(instrument.frame_size()));
        black_box((packets.stored(), packets.ports(), packets.serial()));
    }
}

#[test]
fn instruments_are_read_or_refused() {
    fuzz("instrument", corpus(&repository("instruments")), |input| {
        if let Ok(text) = std::str::from_utf8(input)
            && let Ok(instrument) = Instrument::parse(text, "i.toml")
        {
            count_with(&instrument);
        }
    });
}

#[test]
fn facilities_are_read_or_refused() {
    fuzz("facility", corpus(&repository("facilities")), |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            drop(Facility::parse(text, "f.toml"));
        }
    });
}

/// A parser that follows each opening by a call of its own runs out of the stack in these.
#[test]
fn texts_that_open_again_and_again_are_refused() {
    for part in ["a={", "a=[", "a=[[", "{", "a={{}", "a=[{]", "a={[]", "a.", "[a.", "[[a"] {
        let text = part.repeat(1_000_000 / part.len());
        Instrument::parse(&text, "i.toml").map(drop).expect_err(part);
        Facility::parse(&text, "f.toml").map(drop).expect_err(part);
    }
}
