//! Every way of storing frames passes the suite that each sink passes.

use nilometer_acquisition::{
    conformance::sink_suite,
    sink::{Durability, Gauge, LaneFiles, RawLayout, encode_stage},
};
use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::{FileNames, Format, FrameCompression, Picture, PixelType, Storing};
use nilometer_recording::journal::Head;

#[test]
fn raw_files_are_a_proper_sink_in_each_way_of_storing() {
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: 1000,
        stride: 1000,
        frames_per_file: 1,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    };
    let cases = [
        (Storing::Files, 1, None, Durability::EachFile),
        (Storing::Files, 1, Some(2), Durability::Never),
        (Storing::Files, 3, Some(2), Durability::EachFile),
        (Storing::Files, 100, None, Durability::Never),
        (Storing::Growing, 3, None, Durability::EachFile),
        (Storing::Growing, 100, None, Durability::Never),
        (Storing::Shared, 3, None, Durability::EachFile),
        (Storing::Shared, 7, None, Durability::Never),
        (Storing::Scattered, 3, None, Durability::EachFile),
        (Storing::Scattered, 1, None, Durability::Never),
        (Storing::Positions, 3, None, Durability::EachFile),
        (Storing::Ring, 3, Some(2), Durability::EachFile),
        (Storing::Ring, 2, Some(1), Durability::Never),
    ];
    assert!(Storing::STORED.iter().all(|storing| cases.iter().any(|case| case.0 == *storing)));
    let raw = cases.map(|case| (Format::Raw, case));
    let numbered = (Storing::Positions, 1, None, Durability::Never);
    let cbf = [cases[0], cases[1], numbered].map(|case| (Format::Cbf, case));
    let hdf5 = [cases[4], cases[5], cases[6], cases[7], cases[10]].map(|case| (Format::Hdf5, case));
    for (format, (storing, frames_per_file, keep, durability)) in raw.into_iter().chain(cbf).chain(hdf5) {
        let head = Head { frames_per_file, storing, format, ..head };
        let suited = RawLayout::suited("n_r".into(), head, false);
        let layout = RawLayout {
            preallocate: storing != Storing::Growing,
            keep,
            durability,
            checksums: true,
            picture: Some(Picture::new(10, 25)),
            hdf5: hdf5_of(format),
            ..suited
        };
        sink_suite(5, &mut || {
            let encode = encode_stage(&layout, 0).expect("no thread is started");
            (LaneFiles::new(layout.clone(), Gauge::with_reserve(0)), encode)
        });
    }
}

fn hdf5_of(format: Format) -> Option<Hdf5Contents> {
    let layout = Hdf5Contents::of_frames(PixelType::Int32, &[10, 25], FrameCompression::Bslz4);
    layout.filter(|_| format == Format::Hdf5)
}
