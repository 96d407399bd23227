//! What comes from a network or out of a file is placed, read or refused, whatever its bytes are. Journals have a generator of
//! their own (`hostile_journals.rs`), which gives every record its right checksum.

use std::{fs, hint::black_box, path::Path};

use nilometer_fuzz::fuzz;
use nilometer_model::{FileNames, Format, Instrument, Storing};
use nilometer_recording::{
    cbf::{self, Image},
    journal::{self, Entry, Head, RECORD},
};
use nilometer_wire::{Known, Near, Packet};

/// The instruments of the repository whose packets are known.
fn instruments() -> Vec<Instrument> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../instruments");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let text = |path: &Path| fs::read_to_string(path).expect("a file of the repository");
    let parsed =
        files.into_iter().map(|path| Instrument::parse(&text(&path), "i.toml").expect("a test reads each"));
    parsed.filter(|instrument| instrument.packets.is_some()).collect()
}

/// A packet is its format's number, the part that it has the size of, and its bytes.
fn packet(number: usize, part: usize, bytes: &[u8]) -> Vec<u8> {
    [&[number as u8, part as u8], bytes].concat()
}

#[test]
fn packets_of_every_format_are_placed_or_refused_and_filled_from() {
    let instruments = instruments();
    let mut packets = Vec::new();
    for (number, instrument) in instruments.iter().enumerate() {
        let known = Known { begins: 800_000_000, ..Known::of(instrument) };
        let format = nilometer_wire::of(instrument.packets.as_ref().expect("it has packets"), &known)
            .expect("it is one");
        let geometry = format.geometry().clone();
        for (frame, part) in
            (0..2).flat_map(|frame| (0..geometry.parts.len().min(3)).map(move |part| (frame, part)))
        {
            let (mut prefix, mut body) = (vec![0; geometry.prefix], vec![7; geometry.sent(part)]);
            format.make(frame, part, &mut prefix, &mut body);
            // What says where it belongs is at its ends.
            packets.push(packet(number, part, &[prefix, body].concat()));
        }
    }
    fuzz("packet", packets, move |input| {
        let [number, part, bytes @ ..] = input else { return };
        let instrument = &instruments[*number as usize % instruments.len()];
        let known = Known { begins: 800_000_000, ..Known::of(instrument) };
        let mut format = nilometer_wire::of(instrument.packets.as_ref().expect("it has packets"), &known)
            .expect("it is one");
        let geometry = format.geometry().clone();
        let part = *part as usize % geometry.parts.len();
        // Others are dropped before: see `WireFormat::place`.
        let mut whole = bytes.to_vec();
        whole.resize(geometry.prefix + geometry.sent(part), 0);
        let (prefix, body) = whole.split_at(geometry.prefix);
        for _ in 0..2 {
            format.place(Packet { prefix, body }).ok();
        }
        let mut filled = vec![0; geometry.parts[part]];
        for ahead in [-3, 1, i64::from(u32::MAX)] {
            format.fill(Some(Near { bytes: body, ahead }), part, &mut filled);
        }
        format.fill(None, part, &mut filled);
    });
}

#[test]
fn pictures_are_read_or_refused() {
    let pixels: Vec<i32> =
        (0..63).map(|at| [at, -at, 40_000 * at, i32::MAX - at][at.unsigned_abs() as usize % 4]).collect();
    let mut file = Vec::new();
    Image { width: 9, height: 7, pixels: &pixels }.write("picture", &mut file);
    fuzz("cbf", vec![file], |input| {
        if let Ok(([height, width], pixels)) = cbf::read(input) {
            assert_eq!(height * width, pixels.len());
        }
    });
}

#[test]
fn journals_are_read_up_to_the_first_record_that_is_not_whole() {
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: 8,
        stride: 8,
        frames_per_file: 100,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    };
    let text = |byte: u8| Entry::Origin([byte; 48]);
    let frame =
        |number| Entry::Frame { number, extent: head.extent(0, 8 * number, 8), due: 5, checksum: Some(9) };
    let entries = [
        Entry::Head(head),
        text(b'{'),
        text(b'x'),
        frame(0),
        frame(1),
        Entry::Durable { file: 0 },
        Entry::End { due: None },
    ];
    let mut bytes = vec![0; entries.len() * RECORD];
    for (sequence, (entry, record)) in (0..).zip(entries.into_iter().zip(bytes.chunks_exact_mut(RECORD))) {
        entry.put(sequence, record);
    }
    fuzz("journal", vec![bytes], move |input| {
        let entries = journal::prefix(input);
        drop((journal::origin_of(&entries), journal::stream_of(&entries)));
        for (sequence, record) in (0..).zip(input.chunks(RECORD)) {
            black_box(Entry::read(sequence, record));
        }
    });
}
