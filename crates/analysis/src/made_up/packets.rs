//! Recordings of packets for a second, with known results.

use nilometer_model::{Bytes, Ingest, Invalid, Nanos, PacketTotals, Phase, Sample};
use nilometer_plan::{Cell, Key, Measured, Onto, RecordingRun, Results};

use super::camera;

/// A second of packets with this rate and size, some of which are lost.
#[expect(clippy::cast_sign_loss, reason = "rates are above zero")]
pub fn measured(cell: usize, size: u64, rate: f64, lost: u64, invalid: Option<Invalid>) -> Measured {
    let due = (rate / size as f64) as u64;
    let packets = PacketTotals {
        size: Bytes(size),
        due,
        came: due - lost,
        stored: due - lost,
        ..PacketTotals::default()
    };
    let ingest = Ingest {
        frame_size: Bytes(1_000_000),
        period: Nanos::from_seconds(1e6 / rate),
        due: (rate / 1e6) as u64,
        count: 1,
        packets: Some(packets),
        ..Ingest::default()
    };
    // 2 us a packet.
    let user = Nanos(2000 * (due - lost));
    let sample = Sample { user, invalid, ingest: Some(ingest), ..Sample::new(Nanos(0)) };
    Measured { key: Key { target: 0, cell, repeat: 0, phase: Phase::Ingest }, sample }
}

/// The results of a cell onto nothing and one onto the target.
pub fn results(samples: Vec<Measured>) -> Results {
    let cell = |onto| Cell::recording("packets", RecordingRun { onto, ..camera("camera") });
    let cells = vec![cell(Onto::Nothing), cell(Onto::Target)];
    Results { cells, samples, ..Results::default() }
}
