//! How users write the chunks of the dataset of frames in an HDF5 file, and the dimensions of a scan beside
//! those of a frame.
//!
//! The slowest dimension comes first, as in HDF5.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
};

/// The most dimensions of a chunk.
const SIDES_MAX: usize = 8;
/// The most dimensions of a scan: with those of a frame no more than HDF5 has.
const SCAN_SIDES_MAX: usize = 6;
/// The most frames in one line of a scan, that is in all its dimensions but the first. Positions count in
/// lines.
const LINE_MAX: u64 = 1 << 24;

/// Up to `SIDES_MAX` numbers stored inline, so that types that contain them are `Copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ShapeSides {
    count: u8,
    sides: [u64; SIDES_MAX],
}

impl ShapeSides {
    fn of(sides: &[u64]) -> Option<Self> {
        let mut all = [0; SIDES_MAX];
        all.get_mut(..sides.len())?.copy_from_slice(sides);
        let count = u8::try_from(sides.len()).ok()?;
        (!sides.contains(&0)).then_some(ShapeSides { count, sides: all })
    }

    fn get(&self) -> &[u64] {
        &self.sides[..usize::from(self.count)]
    }
}

/// The dimensions of a chunk in pixels, slowest first; one more in front, if it holds several frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkShape(ShapeSides);

impl ChunkShape {
    /// A chunk of 1 to 8 dimensions of at least 1 each; `None` for others.
    pub fn of(sides: &[u64]) -> Option<Self> {
        ShapeSides::of(sides).filter(|_| !sides.is_empty()).map(ChunkShape)
    }

    /// Its dimensions.
    pub fn sides(&self) -> &[u64] {
        self.0.get()
    }
}

/// The dimensions of a scan of frames, slowest first. The first may be open: the scan then has as many lines
/// as arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanShape {
    first: Option<u64>,
    rest: ShapeSides,
}

impl ScanShape {
    /// The number of lines; `None` if it is open.
    pub fn lines(&self) -> Option<u64> {
        self.first
    }

    /// All dimensions but the first.
    pub fn rest(&self) -> &[u64] {
        self.rest.get()
    }

    /// Frames in a line: the product of all dimensions but the first.
    pub fn line(&self) -> u64 {
        self.rest().iter().product()
    }

    /// Frames in the whole scan; `None` if the number of lines is open.
    pub fn frames(&self) -> Option<u64> {
        self.first.map(|lines| lines.saturating_mul(self.line()))
    }

    /// Checks that this many frames fill the scan, or whole lines if it is open.
    ///
    /// # Errors
    /// They don't; the message says how many would.
    pub fn check_frames(&self, frames: u64) -> Result<(), String> {
        let line = self.line();
        match self.frames() {
            Some(all) if all == frames => Ok(()),
            Some(all) => {
                Err(format!("scan {self}: it has {all} frames, and {frames} come; write one as the other"))
            }
            None if frames.is_multiple_of(line) => Ok(()),
            None => Err(format!(
                "scan {self}: {frames} frames are no whole lines of {line}; write a multiple of {line} frames"
            )),
        }
    }
}

/// The numbers between `x`.
fn texts_of(text: &str) -> Vec<&str> {
    text.split('x').map(str::trim).collect()
}

impl FromStr for ChunkShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides: Option<Vec<u64>> = texts_of(text).into_iter().map(|side| side.parse().ok()).collect();
        let shape = sides.and_then(|sides| ChunkShape::of(&sides));
        shape.ok_or_else(|| {
            format!("chunk {text}: write pixels of at least 1 with `x` between them, slowest dimension first: 512x512")
        })
    }
}

/// The message for a text that is no scan, with an example of one.
fn no_scan(text: &str) -> String {
    format!(
        "scan {text}: write 1 to {SCAN_SIDES_MAX} numbers of at least 1, slowest first: 20x30, or ?x30 for any \
         number of lines"
    )
}

impl FromStr for ScanShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || no_scan(text);
        let texts = texts_of(text);
        let (first, rest) = texts.split_first().ok_or_else(wrong)?;
        let first = match *first {
            "?" => None,
            number => Some(number.parse().ok().filter(|lines| *lines > 0).ok_or_else(wrong)?),
        };
        let rest: Option<Vec<u64>> = rest.iter().map(|side| side.parse().ok()).collect();
        let rest = rest.filter(|rest| rest.len() < SCAN_SIDES_MAX);
        let rest = rest.and_then(|rest| ShapeSides::of(&rest)).ok_or_else(wrong)?;
        let line = rest.get().iter().try_fold(1_u64, |line, side| line.checked_mul(*side));
        match line {
            Some(line) if line <= LINE_MAX => Ok(ScanShape { first, rest }),
            _ => Err(format!(
                "scan {text}: behind the first dimension there may be {LINE_MAX} frames, and there are more"
            )),
        }
    }
}

impl fmt::Display for ChunkShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(self.sides()))
    }
}

impl fmt::Display for ScanShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            Some(lines) => write!(f, "{lines}")?,
            None => f.write_str("?")?,
        }
        if self.rest().is_empty() { Ok(()) } else { write!(f, "x{}", joined(self.rest())) }
    }
}

fn joined(sides: &[u64]) -> String {
    let sides: Vec<_> = sides.iter().map(u64::to_string).collect();
    sides.join("x")
}

/// Reads a text or a list of numbers; it turns a list into text for `FromStr`.
struct SidesVisitor;

impl<'de> Visitor<'de> for SidesVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers, slowest dimension first, such as [512, 512] or \"512x512\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<String, A::Error> {
        let mut sides = Vec::new();
        while let Some(side) = sequence.next_element::<WrittenSide>()? {
            sides.push(match side {
                WrittenSide::Number(number) => number.to_string(),
                WrittenSide::Open(text) => text,
            });
        }
        Ok(sides.join("x"))
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write numbers, or \"?\" in the first place of a scan")]
enum WrittenSide {
    Number(u64),
    Open(String),
}

fn read<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(SidesVisitor)?.parse().map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for ChunkShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl<'de> Deserialize<'de> for ScanShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl Serialize for ChunkShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ScanShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written_from_text_and_from_lists() {
        let chunk: ChunkShape = " 256 x 1030".parse().expect("valid");
        assert_eq!((chunk.sides(), chunk.to_string()), (&[256, 1030][..], "256x1030".into()));
        let open: ScanShape = "?x30x2".parse().expect("valid");
        assert_eq!((open.lines(), open.rest(), open.line(), open.frames()), (None, &[30, 2][..], 60, None));
        let row: ScanShape = "600".parse().expect("valid");
        assert_eq!((row.rest(), row.frames(), row.to_string()), (&[][..], Some(600), "600".into()));
        for (written, same) in [("[20, 30]", "\"20x30\""), ("[\"?\", 30]", "\"?x30\"")] {
            let [one, other]: [ScanShape; 2] =
                [written, same].map(|text| serde_json::from_str(text).expect("valid"));
            assert_eq!((one, serde_json::to_string(&one).expect("JSON")), (other, same.into()));
        }
        assert_eq!(serde_json::from_str::<ChunkShape>("[256, 1030]").expect("valid"), chunk);
    }

    #[test]
    fn what_is_no_shape_is_refused_with_one_that_is() {
        for wrong in ["", "x", "0x3", "3x", "-1x2", "1x2x3x4x5x6x7x8x9", "a", "?x3"] {
            assert!(wrong.parse::<ChunkShape>().expect_err(wrong).contains("512x512"), "{wrong}");
        }
        for wrong in ["", "0", "3x0", "3x?", "1x2x3x4x5x6x7", "20*30"] {
            assert!(wrong.parse::<ScanShape>().expect_err(wrong).contains("?x30"), "{wrong}");
        }
        let long = "?x65536x65536".parse::<ScanShape>().expect_err("too long");
        assert!(long.contains("16777216"), "{long}");
        assert!(serde_json::from_str::<ScanShape>("[1.5]").is_err());
        assert!(serde_json::from_str::<ChunkShape>("7").is_err());
    }

    #[test]
    fn a_scan_is_as_long_as_its_frames() {
        let closed: ScanShape = "20x30".parse().expect("valid");
        assert_eq!(closed.check_frames(600), Ok(()));
        assert!(
            closed.check_frames(599).expect_err("one is missing").contains("it has 600 frames, and 599 come")
        );
        let open: ScanShape = "?x30".parse().expect("valid");
        assert_eq!(open.check_frames(90), Ok(()));
        assert!(open.check_frames(91).expect_err("no whole lines").contains("multiple of 30"));
    }
}
