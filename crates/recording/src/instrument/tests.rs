//! Tests content of all kinds: it meets the requested ratio, frames are distinct, and impossible requests fail.

use super::*;

const PIXELS: [PixelType; 12] = [
    PixelType::Uint2,
    PixelType::Uint8,
    PixelType::Uint12,
    PixelType::Uint16,
    PixelType::Int32,
    PixelType::Uint32,
    PixelType::Int8,
    PixelType::Int16,
    PixelType::Int64,
    PixelType::Uint64,
    PixelType::Float32,
    PixelType::Float64,
];
const EIGER: [u64; 2] = [2167, 2070];

fn wished(kind: DataKind, compressibility: f64) -> Data {
    Data { compressibility: Some(compressibility), distinct: Some(2), ..kind.into() }
}

fn prepared(data: &Data, shape: &[u64], pixel: PixelType) -> Content {
    Content::prepare(data, shape, pixel, Seed(11)).expect("it can be made")
}

/// Bytes of a pixel, or of the two that are packed together.
fn unit(pixel: PixelType) -> usize {
    if pixel == PixelType::Uint12 { pool::PAIR_12 } else { (pixel.bits() / 8) as usize }
}

/// Returns the ratio that the codec reaches, frame by frame as the pool delivers them.
fn measured(content: &Content, pixel: PixelType) -> f64 {
    let mut slot = vec![0; content.frame_size()];
    content.prepare_slot(&mut slot);
    let compressed = (2..4).map(|number| {
        content.fill(number, &mut slot);
        pool::compressed_bytes(&slot, unit(pixel))
    });
    2.0 * content.frame_size() as f64 / compressed.sum::<usize>() as f64
}

#[test]
fn wished_ratios_are_met() {
    use DataKind::{Diffraction, LiquidArgon, Tomography, Vlbi};
    let (camera, chamber) = ([2160, 2560], [1280, 4000]);
    for (kind, shape, pixel, ratios) in [
        (Diffraction, &EIGER, PixelType::Uint32, &[30.0, 19.0, 8.7][..]),
        (Diffraction, &EIGER, PixelType::Uint16, &[10.0, 4.5]),
        (Diffraction, &[2527, 2463], PixelType::Int32, &[8.0]),
        (Tomography, &camera, PixelType::Uint16, &[1.4, 2.0, 3.0]),
        (LiquidArgon, &chamber, PixelType::Uint16, &[2.7, 3.1, 3.7]),
        (Vlbi, &[1, 8_000_000], PixelType::Uint8, &[1.0]),
        (LiquidArgon, &chamber, PixelType::Uint12, &[1.4]),
    ] {
        for &ratio in ratios {
            let content = prepared(&wished(kind.clone(), ratio), shape, pixel);
            let found = measured(&content, pixel);
            println!("{kind} {pixel:?}: {ratio} wished, {found:.3} met, {:.3} reported", content.ratio());
            assert!((found / ratio - 1.0).abs() < 0.1, "{kind}: {found} instead of {ratio}");
            assert!((content.ratio() / found - 1.0).abs() < 0.01, "{kind}: {} told", content.ratio());
        }
    }
}

#[test]
fn ratios_out_of_reach_are_refused_with_what_can_be_reached() {
    let camera =
        |kind, ratio| Content::prepare(&wished(kind, ratio), &[500, 500], PixelType::Uint16, Seed(1));
    for (kind, ratio) in [
        (DataKind::Tomography, 30.0),
        (DataKind::Tomography, 1.01),
        (DataKind::LiquidArgon, 50.0),
        (DataKind::Vlbi, 2.0),
        (DataKind::Incompressible, 2.0),
    ] {
        let checked = Content::check(&wished(kind.clone(), ratio), &[500, 500], PixelType::Uint16, Seed(1));
        let error = camera(kind.clone(), ratio).expect_err("nothing makes it");
        assert_eq!(checked.expect_err("it is known before").to_string(), error.to_string());
        let ContentError::OutOfReach { least, greatest, .. } = error else { panic!("{error}") };
        assert!(least <= greatest && !(least..=greatest).contains(&ratio), "{error}");
        assert!(error.to_string().starts_with(&format!("compressibility = {ratio}: {kind} ")), "{error}");
    }
    assert!(camera(DataKind::Incompressible, 1.0).is_ok());
    let within = wished(DataKind::Tomography, 3.0);
    Content::check(&within, &[500, 500], PixelType::Uint16, Seed(1)).expect("it can be had");
}

#[test]
fn a_frame_is_told_from_every_other_and_made_again_from_the_seed() {
    let data = Data { distinct: Some(3), ..DataKind::Diffraction.into() };
    let shape = [300, 301];
    let content = prepared(&data, &shape, PixelType::Uint32);
    let mut slot = vec![7; content.frame_size() + 100];
    content.prepare_slot(&mut slot);
    content.fill(40, &mut slot);
    content.fill(41, &mut slot);
    let (frame, beyond) = slot.split_at_mut(300 * 301 * 4);
    assert!(beyond.iter().all(|&byte| byte == 0), "beyond the frame is nothing");
    // A reader makes the content again.
    let reader = prepared(&data, &shape, PixelType::Uint32);
    assert_eq!(reader.verify(41, frame), Ok(()));
    assert_eq!(reader.verify(40, frame), Err(0));
    assert_eq!(reader.verify(44, frame), Err(0), "the same picture, but another frame");
    assert_eq!(frame[..8], 41_u64.to_le_bytes());
    let other = Content::prepare(&data, &shape, PixelType::Uint32, Seed(12)).expect("it can be made");
    assert_eq!(other.verify(41, frame), Err(0));
    frame[5 * 4096 + 1] ^= 1;
    assert_eq!(reader.verify(41, frame), Err(5));
    assert_eq!(reader.verify(41, &frame[..9000]), Err(2));
}

#[test]
fn any_shape_and_type_can_be_made() {
    use DataKind::{Diffraction, Incompressible, LiquidArgon, Tomography, Vlbi};
    for kind in [Diffraction, Incompressible, LiquidArgon, Tomography, Vlbi] {
        for shape in [&[1][..], &[8], &[7], &[4, 5], &[2, 3, 50], &[5, 10_001, 2]] {
            for pixel in PIXELS {
                let bits = shape.iter().product::<u64>() * pixel.bits();
                if bits % 8 != 0 {
                    continue;
                }
                let content = prepared(&kind.clone().into(), shape, pixel);
                assert_eq!(content.frame_size() as u64, bits / 8);
                let mut slot = vec![0; content.frame_size()];
                content.prepare_slot(&mut slot);
                content.fill(5, &mut slot);
                assert_eq!(content.verify(5, &slot), Ok(()), "{kind} {shape:?} {pixel:?}");
            }
        }
    }
}

#[test]
fn more_frames_than_memory_are_refused() {
    let data = Data { distinct: Some(4096), ..DataKind::Diffraction.into() };
    let error = Content::prepare(&data, &EIGER, PixelType::Uint32, Seed(1)).expect_err("they take 73 GB");
    assert!(error.to_string().starts_with("distinct = 4096: frames of "), "{error}");
}

#[test]
fn files_are_sent_round_in_the_order_of_their_names() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let shape = [20, 30];
    let pixels = |value: i32| -> Vec<i32> { (0..600).map(|pixel| pixel % 7 + value).collect() };
    std::fs::write(path("b.raw"), pixels(2).iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<_>>())
        .expect("room");
    let mut image = Vec::new();
    crate::cbf::Image { width: 30, height: 20, pixels: &pixels(1) }.write("test", &mut image);
    std::fs::write(path("a.raw"), &image).expect("room");
    let data = |pattern: &str| DataKind::Files(path(pattern).to_string_lossy().into_owned()).into();
    let prepare =
        |pattern: &str, shape: &[u64]| Content::prepare(&data(pattern), shape, PixelType::Int32, Seed(1));
    let content = prepare("*.raw", &shape).expect("two frames");
    let mut slot = vec![0; content.frame_size()];
    for (number, value) in [(0, 1), (1, 2), (2, 1), (7, 2)] {
        content.fill(number, &mut slot);
        assert_eq!(content.verify(number, &slot), Ok(()));
        let expected = pixels(value);
        // All pixels except the head and two flipped bits.
        let differ = (8..600).filter(|&p| slot[4 * p..4 * p + 4] != expected[p].to_le_bytes()).count();
        assert!(differ <= 2, "{differ} pixels of frame {number} are not the file's");
    }
    let refused = |pattern: &str, shape: &[u64]| prepare(pattern, shape).expect_err(pattern).to_string();
    assert!(refused("*.cbf", &shape).starts_with("no file `"));
    assert!(refused("b.raw", &[20, 31]).contains("b.raw: has 2.4 kB, a frame of this instrument "));
    assert!(refused("a.raw", &[30, 20]).contains("a.raw: has 20 rows of 30 pixels"));
    std::fs::write(path("c.cbf"), &image[..image.len() - 4300]).expect("room");
    assert!(refused("c.cbf", &shape).contains("c.cbf: ends early: its pixels take "));
}

#[test]
fn a_frame_is_changed_into_another_as_if_it_were_made_anew() {
    for kind in [DataKind::Vlbi, DataKind::Diffraction, DataKind::Incompressible] {
        let data = Data { distinct: Some(3).filter(|_| kind != DataKind::Incompressible), ..kind.into() };
        let content = prepared(&data, &[60, 70], PixelType::Uint16);
        let (mut slot, mut before) = (vec![0; content.frame_size()], 5);
        content.prepare_slot(&mut slot);
        content.fill(before, &mut slot);
        for number in [8, 11, 2, 3, 4, 7, 1_000_003, 1] {
            content.change(before, number, &mut slot);
            assert_eq!(content.verify(number, &slot), Ok(()), "{before} to {number}");
            before = number;
        }
    }
}

#[test]
fn no_pixel_of_a_counting_detector_is_above_its_cutoff() {
    // The greatest valid count in CBF files of a Pilatus.
    let cutoff = 1_048_575;
    for seed in [1, u64::MAX, 0x3333_cccc_ffff_0000] {
        let data = Data { distinct: Some(2), ..DataKind::Diffraction.into() };
        let content =
            Content::prepare(&data, &[300, 487], PixelType::Int32, Seed(seed)).expect("it can be made");
        let mut frame = vec![0; content.frame_size()];
        for number in [0, 1, 123, u64::MAX] {
            content.fill(number, &mut frame);
            let pixels = frame.as_chunks().0.iter().map(|pixel| i32::from_le_bytes(*pixel));
            let greatest = pixels.max().expect("a picture has pixels");
            assert!(greatest <= cutoff, "{greatest} in frame {number} of seed {seed}");
        }
    }
}
