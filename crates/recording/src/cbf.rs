//! CBF files as Pilatus detectors write them: a picture's pixels, compressed by byte offset, behind a header of text.
//!
//! A file is a data block. It starts with the detector's mini header (`PILATUS_1.2`, one remark per line). Then
//! follows `_array_data.data`: MIME lines that describe the encoding, an empty line, the bytes 0C 1A 04 D5, the
//! compressed pixels and 4095 zeroes of padding.
//!
//! Sources: International Tables for Crystallography G, section 5.6; "Pilatus CBF header specification",
//! version 1.4. [`Picture`] holds the mini header's values about the exposure.

use std::io::Write;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use md5::{Digest, Md5};
use nilometer_codec::{CodecError, byte_offset};
use nilometer_model::Picture;

/// Marks the start of the compressed pixels.
const START: [u8; 4] = [0x0c, 0x1a, 0x04, 0xd5];
const BOUNDARY: &str = "--CIF-BINARY-FORMAT-SECTION--";
/// Zeroes after the pixels, which let readers read beyond the end.
const PADDING: usize = 4095;
const CONVERSION: &str = "x-CBF_BYTE_OFFSET";
const ELEMENT: &str = "signed 32-bit integer";

/// A picture to encode as a CBF file.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// Pixels per row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// The pixels, row by row.
    pub pixels: &'a [i32],
}

/// The reason why a CBF file can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CbfError {
    /// The file lacks the start marker of the pixels.
    #[error("is no CBF file with binary data")]
    NoData,
    /// The header lacks a line, or its value can't be parsed.
    #[error("its header has no valid `{0}`")]
    Header(&'static str),
    /// The pixels are stored in a format that this reader does not know.
    #[error("has `{found}` as {what}: only `{known}` can be read")]
    Unknown {
        /// Name of the header line.
        what: &'static str,
        /// Value in the file.
        found: String,
        /// The only value that this reader knows.
        known: &'static str,
    },
    /// The file ends before its pixels do.
    #[error("ends early: its pixels take {wanted} B, {there} are there")]
    Short {
        /// Bytes of pixels according to the header.
        wanted: usize,
        /// Bytes in the file.
        there: usize,
    },
    /// The picture's size differs from that of the recording's frames.
    #[error("has a picture of {there} B, the recording's frames have {wanted} B")]
    Frame {
        /// Bytes of a frame.
        wanted: usize,
        /// Bytes of the picture in the file.
        there: usize,
    },
    /// The compressed pixels do not match their MD5.
    #[error("is damaged: its MD5 is another")]
    Digest,
    /// The pixels can't be decompressed.
    #[error("its pixels: {0}")]
    Pixels(#[from] CodecError),
}

impl Image<'_> {
    /// Appends the CBF file of this picture, with `name` as the name of its data block.
    pub fn write(&self, name: &str, file: &mut Vec<u8>) {
        let Image { width, height, pixels } = *self;
        assert_eq!(width * height, pixels.len(), "a picture has its pixels");
        let mut packed = Vec::new();
        byte_offset::encode(pixels, &mut packed);
        put(name, &Picture::new(height, width), &packed, file);
    }
}

/// Upper bound on the bytes of a CBF file with this number of pixels and a name of at most 1000 bytes.
pub const fn size_max(pixels: u64) -> u64 {
    byte_offset::encoded_max(pixels) + PADDING as u64 + 3000
}

/// The detector of simulated pictures.
const SIMULATED: &str = "PILATUS, simulated";

/// Writes the CBF file of a simulated picture whose pixels [`byte_offset`] packed. Panics if `file` lacks room.
pub fn put(name: &str, picture: &Picture, packed: &[u8], file: &mut impl Write) {
    put_of(SIMULATED, name, picture, packed, file);
}

/// Does the same for a picture of this detector, whose name has no line break.
pub fn put_of(detector: &str, name: &str, picture: &Picture, packed: &[u8], file: &mut impl Write) {
    let digest = BASE64_STANDARD.encode(Md5::digest(packed));
    let size = packed.len();
    let count = picture.pixels();
    let Picture { rows: height, columns: width, .. } = *picture;
    let header = header(detector, name, picture);
    let lines = format!(
        "{header}_array_data.data\r\n;\r\n{BOUNDARY}\r\n\
         Content-Type: application/octet-stream;\r\n     conversions=\"{CONVERSION}\"\r\n\
         Content-Transfer-Encoding: BINARY\r\nX-Binary-Size: {size}\r\nX-Binary-ID: 1\r\n\
         X-Binary-Element-Type: \"{ELEMENT}\"\r\nX-Binary-Element-Byte-Order: LITTLE_ENDIAN\r\n\
         Content-MD5: {digest}\r\nX-Binary-Number-of-Elements: {count}\r\n\
         X-Binary-Size-Fastest-Dimension: {width}\r\nX-Binary-Size-Second-Dimension: {height}\r\n\
         X-Binary-Size-Padding: {PADDING}\r\n\r\n"
    );
    let end = format!("\r\n{BOUNDARY}--\r\n;\r\n\r\n");
    for part in [lines.as_bytes(), &START, packed, &[0; PADDING], end.as_bytes()] {
        file.write_all(part).expect("there is room for the file");
    }
}

/// Returns the beginning of the data block, with the mini header.
fn header(detector: &str, name: &str, picture: &Picture) -> String {
    format!(
        "###CBF: VERSION 1.5, Nilometer {version}\r\n\r\ndata_{name}\r\n\r\n\
         _array_data.header_convention \"PILATUS_1.2\"\r\n_array_data.header_contents\r\n;\r\n\
         # Detector: {detector}\r\n{lines};\r\n\r\n",
        version = env!("CARGO_PKG_VERSION"),
        lines = picture.header_lines(),
    )
}

/// Returns true if these bytes begin like a CBF file.
pub fn is_cbf(file: &[u8]) -> bool {
    file.starts_with(b"###CBF")
}

/// Returns height and width of a file's picture, and its pixels row by row.
pub fn read(file: &[u8]) -> Result<([usize; 2], Vec<i32>), CbfError> {
    let start = file.windows(START.len()).position(|bytes| bytes == START).ok_or(CbfError::NoData)?;
    let header = Header(String::from_utf8_lossy(&file[..start]).into_owned());
    header.check()?;
    let [height, width] = header.shape()?;
    let packed = &file[start + START.len()..];
    let size = header.number("X-Binary-Size")?;
    let packed = packed.get(..size).ok_or(CbfError::Short { wanted: size, there: packed.len() })?;
    let digest = || BASE64_STANDARD.encode(Md5::digest(packed));
    if header.value("Content-MD5").is_some_and(|written| written != digest()) {
        return Err(CbfError::Digest);
    }
    // A pixel takes at least one byte, so a header can't make the reader allocate more than four times its
    // file.
    let count = height.checked_mul(width).filter(|count| *count <= size);
    let mut pixels = vec![0; count.ok_or(CbfError::Header("X-Binary-Size-Second-Dimension"))?];
    byte_offset::decode(packed, &mut pixels)?;
    Ok(([height, width], pixels))
}

/// Reads a file's picture into the bytes of a frame, little-endian. Checks its size, not its shape.
pub fn read_frame(file: &[u8], frame: &mut [u8]) -> Result<(), CbfError> {
    let (_, pixels) = read(file)?;
    let wanted = frame.len();
    let there = 4 * pixels.len();
    if wanted != there {
        return Err(CbfError::Frame { wanted, there });
    }
    for (bytes, pixel) in frame.as_chunks_mut().0.iter_mut().zip(pixels) {
        *bytes = pixel.to_le_bytes();
    }
    Ok(())
}

/// The text in front of the pixels.
struct Header(String);

impl Header {
    /// Returns the value of a header line, without quotes. Like all of MIME, names ignore case.
    fn value(&self, name: &str) -> Option<&str> {
        let behind = |line: &'_ str| -> Option<usize> {
            let (found, _) = line.trim_start().split_once([':', '='])?;
            found.eq_ignore_ascii_case(name).then_some(line.len() - line.trim_start().len() + found.len() + 1)
        };
        let value = self.0.lines().find_map(|line| behind(line).map(|at| &line[at..]))?;
        Some(value.trim().trim_matches('"'))
    }

    fn number(&self, name: &'static str) -> Result<usize, CbfError> {
        self.value(name).and_then(|value| value.parse().ok()).ok_or(CbfError::Header(name))
    }

    fn shape(&self) -> Result<[usize; 2], CbfError> {
        Ok([self.number("X-Binary-Size-Second-Dimension")?, self.number("X-Binary-Size-Fastest-Dimension")?])
    }

    /// Returns an error if the pixels are stored in a format that this reader does not know.
    fn check(&self) -> Result<(), CbfError> {
        for (name, known) in [
            ("conversions", CONVERSION),
            ("X-Binary-Element-Type", ELEMENT),
            ("X-Binary-Element-Byte-Order", "LITTLE_ENDIAN"),
        ] {
            let found = self.value(name).ok_or(CbfError::Header(name))?;
            if !found.eq_ignore_ascii_case(known) {
                return Err(CbfError::Unknown { what: name, found: found.into(), known });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: usize, height: usize) -> (Vec<i32>, Vec<u8>) {
        let pixels: Vec<i32> = (0..).map(|at| (at * 7919) % 40_000 - 2).take(width * height).collect();
        let mut file = Vec::new();
        Image { width, height, pixels: &pixels }.write("picture_00001", &mut file);
        (pixels, file)
    }

    #[test]
    fn what_is_written_is_read() {
        for (width, height) in [(1, 1), (30, 20), (487, 195)] {
            let (pixels, file) = written(width, height);
            assert!(is_cbf(&file));
            assert_eq!(read(&file), Ok(([height, width], pixels)));
        }
    }

    #[test]
    fn names_are_read_in_large_and_small_letters() {
        let (pixels, file) = written(8, 8);
        let at = file.windows(4).position(|bytes| bytes == START).expect("it has pixels");
        let mut other = file[..at].to_ascii_lowercase();
        // Leave the digest out: unlike the other values it is case-sensitive.
        let text = String::from_utf8(other).expect("text");
        let kept: Vec<_> = text.lines().filter(|line| !line.starts_with("content-md5")).collect();
        other = kept.join("\n").into_bytes();
        other.extend_from_slice(b"\n\n");
        other.extend_from_slice(&file[at..]);
        assert_eq!(read(&other), Ok(([8, 8], pixels)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let (_, file) = written(30, 20);
        let text = String::from_utf8_lossy(&file).into_owned();
        let start = file.windows(4).position(|bytes| bytes == START).expect("it has pixels");
        let replaced = |from: &str, to: &str| {
            let header = text[..start].replace(from, to);
            assert_ne!(header, text[..start], "{from} is there");
            read(&[header.as_bytes(), &file[start..]].concat()).expect_err(to).to_string()
        };
        assert_eq!(
            replaced("BYTE_OFFSET", "PACKED"),
            "has `x-CBF_PACKED` as conversions: only `x-CBF_BYTE_OFFSET` can be read"
        );
        assert!(replaced("signed 32", "unsigned 16").contains("`signed 32-bit integer` can be read"));
        assert!(replaced("Fastest-Dimension: 30", "Fastest-Dimension: 29").contains("B follow its end"));
        assert!(replaced("Fastest-Dimension: 30", "Fastest-Dimension: 31").contains("within a pixel"));
        assert!(replaced("Second-Dimension: 20", "Second-Dimension: 9999999999999").contains("no valid"));
        assert!(replaced("X-Binary-Size:", "X-Size:").contains("no valid `X-Binary-Size`"));
        assert!(replaced("X-Binary-Size: ", "X-Binary-Size: 99").starts_with("ends early"));
        assert_eq!(read(&file[..start]), Err(CbfError::NoData));
        let mut damaged = file.clone();
        damaged[start + 100] ^= 1;
        assert_eq!(read(&damaged), Err(CbfError::Digest));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            cut in proptest::prelude::any::<proptest::sample::Index>(),
            changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()), 0..4),
        ) {
            let (_, mut file) = written(9, 5);
            for (at, value) in changes {
                let at = at.index(file.len());
                file[at] = value;
            }
            file.truncate(cut.index(file.len()) + 1);
            if let Ok(([height, width], pixels)) = read(&file) {
                proptest::prop_assert_eq!(pixels.len(), height * width);
            }
        }
    }
}
