//! CBF files as Pilatus detectors write them: a picture's pixels, compressed by byte offset, behind a header of text.
//!
//! A data block with the detector's mini header (`PILATUS_1.2`: remarks, a line each), then `_array_data.data`: MIME lines
//! that say how the pixels are stored, an empty line, the bytes 0C 1A 04 D5, the compressed pixels and a padding of 4095
//! zeroes. (International Tables for Crystallography G, section 5.6; "Pilatus CBF header specification", version 1.4.) What the mini
//! header says of the exposure is in [`Picture`].

use std::io::Write;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use md5::{Digest, Md5};
use nilometer_codec::{CodecError, byte_offset};
use nilometer_model::Picture;

/// What the compressed pixels begin behind.
const START: [u8; 4] = [0x0c, 0x1a, 0x04, 0xd5];
const BOUNDARY: &str = "--CIF-BINARY-FORMAT-SECTION--";
/// Zeroes behind the pixels, which let readers read beyond them.
const PADDING: usize = 4095;
const CONVERSION: &str = "x-CBF_BYTE_OFFSET";
const ELEMENT: &str = "signed 32-bit integer";

/// A picture to be written.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Row by row.
    pub pixels: &'a [i32],
}

/// A file that can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CbfError {
    /// The bytes that pixels begin behind are nowhere.
    #[error("is no CBF file with binary data")]
    NoData,
    /// A line is missing from the header, or says nothing that can be read.
    #[error("its header has no valid `{0}`")]
    Header(&'static str),
    /// Pixels are stored in another way.
    #[error("has `{found}` as {what}: only `{known}` can be read")]
    Unknown {
        /// What the line is about.
        what: &'static str,
        /// What it says.
        found: String,
        /// What is known.
        known: &'static str,
    },
    /// The file ends before its pixels do.
    #[error("ends early: its pixels take {wanted} B, {there} are there")]
    Short {
        /// As the header says.
        wanted: usize,
        /// In the file.
        there: usize,
    },
    /// It is no picture of this recording.
    #[error("has a picture of {there} B, the recording's frames have {wanted} B")]
    Frame {
        /// A frame.
        wanted: usize,
        /// In the file.
        there: usize,
    },
    /// The compressed pixels are not those that were written.
    #[error("is damaged: its MD5 is another")]
    Digest,
    /// They can't be decompressed.
    #[error("its pixels: {0}")]
    Pixels(#[from] CodecError),
}

impl Image<'_> {
    /// Appends the file of this picture; `name` is what its data block is called.
    pub fn write(&self, name: &str, file: &mut Vec<u8>) {
        let Image { width, height, pixels } = *self;
        assert_eq!(width * height, pixels.len(), "a picture has its pixels");
        let mut packed = Vec::new();
        byte_offset::encode(pixels, &mut packed);
        put(name, &Picture::new(height, width), &packed, file);
    }
}

/// The most bytes that the file of a picture with so many pixels takes, if its name has at most 1000.
pub const fn size_max(pixels: u64) -> u64 {
    byte_offset::encoded_max(pixels) + PADDING as u64 + 3000
}

/// Writes the file of a picture whose pixels were packed by [`byte_offset`] into memory that has room for it.
pub fn put(name: &str, picture: &Picture, packed: &[u8], file: &mut impl Write) {
    let digest = BASE64_STANDARD.encode(Md5::digest(packed));
    let size = packed.len();
    let count = picture.pixels();
    let Picture { rows: height, columns: width, .. } = *picture;
    let header = header(name, picture);
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

/// The data block's beginning, and the mini header.
fn header(name: &str, picture: &Picture) -> String {
    format!(
        "###CBF: VERSION 1.5, Nilometer {version}\r\n\r\ndata_{name}\r\n\r\n\
         _array_data.header_convention \"PILATUS_1.2\"\r\n_array_data.header_contents\r\n;\r\n\
         # Detector: PILATUS, simulated\r\n# Pixel_size 172e-6 m x 172e-6 m\r\n{lines};\r\n\r\n",
        version = env!("CARGO_PKG_VERSION"),
        lines = picture.header_lines(),
    )
}

/// Whether these bytes begin as a CBF file does.
pub fn is_cbf(file: &[u8]) -> bool {
    file.starts_with(b"###CBF")
}

/// Height and width of a file's picture, and its pixels row by row.
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
    // A pixel takes a byte at least, so that no header makes more memory than its file.
    let count = height.checked_mul(width).filter(|count| *count <= size);
    let mut pixels = vec![0; count.ok_or(CbfError::Header("X-Binary-Size-Second-Dimension"))?];
    byte_offset::decode(packed, &mut pixels)?;
    Ok(([height, width], pixels))
}

/// Reads a file's picture into the bytes of a frame, little-endian; its shape is not looked at.
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

/// The text before the pixels.
struct Header(String);

impl Header {
    /// What stands behind a name, without quotes. Names are the same in large and small letters, as in all of MIME.
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

    /// Refuses what is stored in a way that is not known.
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
        // The digest is in letters that count.
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
