//! Frames from a prepared pool into slots, each with its stamp, beside a bare copy of the same frames: what a simulated
//! instrument costs while the clock runs.

use std::hint::black_box;

use nilometer_model::{Data, DataKind, PixelType, Seed};
use nilometer_recording::instrument::Content;
use nilometer_storage::{Arena, Buffer};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
};

/// A Pilatus 6M: 24.9 MB a frame, 8 distinct ones and 8 slots, far more than the processor's cache.
const SHAPE: [u64; 2] = [2527, 2463];
const DISTINCT: usize = 8;
const FRAMES: usize = 16;

const BARE: &str = "bare copy";
const OURS: &str = "nilometer, copy and stamp";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let data = Data { distinct: Some(DISTINCT as u64), ..DataKind::Diffraction.into() };
    let content = Content::prepare(&data, &SHAPE, PixelType::Int32, Seed(1))?;
    let size = content.frame_size();
    let mut slots = Arena::shared_out(DISTINCT, size).1;
    let frames: Vec<Vec<u8>> = (0..DISTINCT).map(|number| frame(&content, number as u64)).collect();
    for slot in &mut slots {
        content.prepare_slot(slot);
    }
    let slots = std::cell::RefCell::new(slots);
    let copying = Contest {
        title: "data: frames of 24.9 MB from a prepared pool".into(),
        quantity: Quantity::CpuPerGib,
        phases: &["copy"],
        rounds: 11,
        contestants: vec![
            Contestant::new(BARE, || {
                each(&mut slots.borrow_mut(), size, |number, slot| {
                    slot.copy_from_slice(&frames[number % DISTINCT]);
                })
            }),
            Contestant::new(OURS, || {
                each(&mut slots.borrow_mut(), size, |number, slot| content.fill(number as u64, slot))
            }),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.25) }],
    };
    copying.run(stop)
}

fn frame(content: &Content, number: u64) -> Vec<u8> {
    let mut frame = vec![0; content.frame_size()];
    content.prepare_slot(&mut frame);
    content.fill(number, &mut frame);
    frame
}

/// Makes all frames, one after the other in the slots; the amount is in GiB.
fn each(
    slots: &mut [Buffer],
    size: usize,
    mut make: impl FnMut(usize, &mut [u8]),
) -> anyhow::Result<Vec<Cost>> {
    let amount = (FRAMES * size) as f64 / f64::from(1 << 30);
    let cost = measure::here(amount, || {
        for number in 0..FRAMES {
            let slot = &mut slots[number % DISTINCT];
            make(number, &mut slot[..size]);
            black_box(&slot);
        }
        Ok(())
    })?;
    Ok(vec![cost])
}
