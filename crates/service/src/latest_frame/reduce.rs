//! Reduces a frame to a picture small enough to send every second. Pixels go in, a picture comes out; there is
//! no I/O.
//!
//! A pixel of the small picture stands for a square of pixels of the frame. It shows the greatest of them, so
//! that a reflection of one pixel stays visible. It is masked if at least half of the square is.
//!
//! Values become 255 codes on a logarithmic scale between two levels. A thousandth of the small pixels lie below
//! the low level, and a thousandth above the high one. One hot pixel therefore does not darken all others.
//!
//! For example, a frame of 4 x 2 pixels of 16 bits at a factor of two. Dead pixels and pixels that did not
//! arrive have the value 65535:
//!
//! ```text
//!   0 3 | 65535 65535       3 | masked        codes   0 | 255    where 3 is the low level
//!   1 2 |     7 65535
//! ```

use nilometer_model::PixelType;
use serde::Serialize;

use super::layout::PictureLayout;

/// A reduced picture with the meaning of its codes and its relation to the frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReducedPicture {
    pub(super) width: usize,
    pub(super) height: usize,
    /// One pixel of the picture covers `factor` x `factor` pixels of the frame.
    pub(super) factor: usize,
    /// Columns and rows of the frame, with modules side by side.
    pub(super) frame_width: usize,
    pub(super) frame_height: usize,
    pub(super) modules: usize,
    /// Code 0 stands for this value or a lower one.
    pub(super) low: u32,
    /// Code 254 stands for this value or a higher one.
    pub(super) high: u32,
    /// The greatest value in the frame.
    pub(super) greatest: u32,
    /// The mean of all pixels that are not masked.
    pub(super) mean: f64,
    /// Pixels of the frame that have the greatest value of their type, or a negative one.
    pub(super) masked: u64,
    pub(super) pixels: u64,
    /// Row by row.
    #[serde(skip)]
    pub(super) codes: Vec<u8>,
}

/// The code of a pixel that is masked.
pub(super) const MASKED: u8 = 255;
const CODE_MAX: f64 = 254.0;
/// The most pixels of a picture in either direction.
const SIDE: usize = 512;
/// The share of small pixels below the low level, and the share above the high level.
const OUTSIDE: f64 = 0.001;

/// The state of a small pixel while rows are added.
#[derive(Debug, Clone, Copy, Default)]
struct PixelSquare {
    greatest: u32,
    pixels: u32,
    masked: u32,
}

#[derive(Debug, Default)]
struct FrameSums {
    greatest: u32,
    sum: u64,
    pixels: u64,
    masked: u64,
}

/// Makes the picture of a frame. The frame has the number of bytes in its layout.
pub(super) fn reduce(frame: &[u8], layout: &PictureLayout) -> ReducedPicture {
    let factor = layout.width().max(layout.height()).div_ceil(SIDE).max(1);
    let width = layout.width().div_ceil(factor);
    let height = layout.height().div_ceil(factor);
    let mut squares = vec![PixelSquare::default(); width * height];
    let mut sums = FrameSums::default();
    let row_bytes = layout.columns * layout.pixel_bytes();
    for (number, row) in frame.chunks_exact(row_bytes.max(1)).enumerate() {
        let module = number / layout.rows;
        let left = module % layout.across * layout.columns;
        let top = module / layout.across * layout.rows + number % layout.rows;
        let line = &mut squares[top / factor * width..][..width];
        add_row(row, layout.pixel, line, Columns { left, factor }, &mut sums);
    }
    let levels = Levels::of(&squares);
    ReducedPicture {
        width,
        height,
        factor,
        frame_width: layout.width(),
        frame_height: layout.height(),
        modules: layout.modules,
        low: levels.low,
        high: levels.high,
        greatest: sums.greatest,
        mean: sums.sum as f64 / (sums.pixels - sums.masked).max(1) as f64,
        masked: sums.masked,
        pixels: sums.pixels,
        codes: squares.iter().map(|square| levels.code(square)).collect(),
    }
}

/// The column at which a row of a module begins in the picture, and the side of a square in pixels.
#[derive(Debug, Clone, Copy)]
struct Columns {
    left: usize,
    factor: usize,
}

/// Adds a row of a module. Detectors mark gaps between modules and broken pixels by values that are no counts.
/// Signed types use negative values (Pilatus), and unsigned types their two greatest (EIGER: 2^bits - 1 and
/// 2^bits - 2). The greatest value of a signed type is masked too.
fn add_row(row: &[u8], pixel: PixelType, line: &mut [PixelSquare], at: Columns, sums: &mut FrameSums) {
    match pixel {
        PixelType::Uint8 => {
            add(row.iter().map(|byte| (*byte < u8::MAX - 1).then_some((*byte).into())), line, at, sums);
        }
        PixelType::Int8 => {
            let counts = row.iter().map(|byte| byte.cast_signed());
            add(counts.map(|count| u32::try_from(count).ok().filter(|_| count < i8::MAX)), line, at, sums);
        }
        PixelType::Int16 => {
            let counts = row.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes));
            add(counts.map(|count| u32::try_from(count).ok().filter(|_| count < i16::MAX)), line, at, sums);
        }
        PixelType::Int32 => {
            let counts = row.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
            add(counts.map(|count| u32::try_from(count).ok().filter(|_| count < i32::MAX)), line, at, sums);
        }
        PixelType::Uint32 => {
            let counts = row.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
            add(counts.map(|count| (count < u32::MAX - 1).then_some(count)), line, at, sums);
        }
        // No other type has a layout.
        _ => {
            let counts = row.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
            add(counts.map(|count| (count < u16::MAX - 1).then_some(count.into())), line, at, sums);
        }
    }
}

/// Adds the pixels of a row of a module; `None` is a masked pixel.
fn add(
    pixels: impl Iterator<Item = Option<u32>>,
    line: &mut [PixelSquare],
    at: Columns,
    sums: &mut FrameSums,
) {
    let mut square = at.left / at.factor;
    let mut within = at.left % at.factor;
    for pixel in pixels {
        let into = &mut line[square];
        into.pixels += 1;
        sums.pixels += 1;
        if let Some(value) = pixel {
            into.greatest = into.greatest.max(value);
            sums.greatest = sums.greatest.max(value);
            sums.sum += u64::from(value);
        } else {
            into.masked += 1;
            sums.masked += 1;
        }
        within += 1;
        if within == at.factor {
            within = 0;
            square += 1;
        }
    }
}

impl PixelSquare {
    /// The greatest value, or `None` if the square is masked. A square outside all modules has no pixels and
    /// counts as masked.
    fn value(&self) -> Option<u32> {
        (2 * self.masked < self.pixels).then_some(self.greatest)
    }
}

/// The levels between which codes are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Levels {
    low: u32,
    high: u32,
}

impl Levels {
    fn of(squares: &[PixelSquare]) -> Self {
        let mut values: Vec<u32> = squares.iter().filter_map(PixelSquare::value).collect();
        if values.is_empty() {
            return Levels { low: 0, high: 1 };
        }
        let last = values.len() - 1;
        #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
        let outside = (last as f64 * OUTSIDE).floor() as usize;
        let low = *values.select_nth_unstable(outside).1;
        let high = *values.select_nth_unstable(last - outside).1;
        Levels { low, high: high.max(low.saturating_add(1)) }
    }

    #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
    fn code(self, square: &PixelSquare) -> u8 {
        let Some(value) = square.value() else { return MASKED };
        let above = |value: u32| f64::from(value.saturating_sub(self.low)).ln_1p();
        (CODE_MAX * above(value) / above(self.high)).round().min(CODE_MAX) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(pixel: PixelType, columns: usize, rows: usize) -> PictureLayout {
        PictureLayout { pixel, columns, rows, modules: 1, across: 1 }
    }

    fn picture(values: &[u16], layout: &PictureLayout) -> ReducedPicture {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(bytes.len(), layout.frame_size());
        reduce(&bytes, layout)
    }

    #[test]
    fn a_small_frame_stays_as_it_is() {
        let shown = picture(&[0, 3, u16::MAX, 1, 2, 7], &layout(PixelType::Uint16, 3, 2));
        assert_eq!((shown.width, shown.height, shown.factor), (3, 2, 1));
        assert_eq!((shown.low, shown.high, shown.greatest), (0, 7, 7));
        assert_eq!((shown.masked, shown.pixels), (1, 6));
        assert!((shown.mean - 2.6).abs() < 1e-9, "{}", shown.mean);
        // 254 * ln(1 + value) / ln(8).
        assert_eq!(shown.codes, [0, 169, MASKED, 85, 134, 254]);
    }

    #[test]
    fn one_bright_pixel_is_seen_and_one_dead_pixel_hides_nothing() {
        let (columns, rows) = (1030, 700);
        let mut values = vec![5; columns * rows];
        values[3 * columns + 1029] = 900;
        values[0] = u16::MAX;
        for row in 300..310 {
            values[row * columns..][..columns].fill(u16::MAX);
        }
        let shown = picture(&values, &layout(PixelType::Uint16, columns, rows));
        assert_eq!((shown.width, shown.height, shown.factor), (344, 234, 3));
        assert_eq!((shown.greatest, shown.masked), (900, 1 + 10 * 1030));
        let code = |x: usize, y: usize| shown.codes[y * shown.width + x];
        assert_eq!(code(343, 1), 254, "the last square, of one column");
        assert_eq!(code(0, 0), 0, "one of nine is masked");
        assert_eq!((code(7, 99), code(7, 100), code(7, 102)), (0, MASKED, MASKED), "a gap is seen");
        assert_eq!(code(7, 103), 0, "one row of three");
    }

    #[test]
    fn one_hot_pixel_does_not_darken_the_others() {
        let mut values: Vec<u16> = (0..100 * 100).map(|at| at % 10).collect();
        values[77] = 60_000;
        let shown = picture(&values, &layout(PixelType::Uint16, 100, 100));
        assert_eq!((shown.low, shown.high, shown.greatest), (0, 9, 60_000));
        assert_eq!(shown.codes[77], 254);
    }

    #[test]
    fn modules_stand_in_the_order_of_their_numbers() {
        let layout = PictureLayout { pixel: PixelType::Uint8, columns: 2, rows: 1, modules: 3, across: 2 };
        let shown = reduce(&[0, 1, 2, 3, 4, 5], &layout);
        assert_eq!((shown.width, shown.height), (4, 2));
        assert_eq!(shown.codes[2..4].len() + shown.codes[4..6].len(), 4);
        let order: Vec<u8> = shown.codes[..6].to_vec();
        assert!(order.is_sorted() && order[0] == 0 && order[5] == 254, "{order:?}");
        assert_eq!(shown.codes[6..], [MASKED, MASKED], "there is no fourth module");
    }

    #[test]
    fn every_type_has_its_masked_values() {
        let of = |pixel, bytes: &[u8]| reduce(bytes, &layout(pixel, 2, 1));
        let signed = [(-2i32).to_le_bytes(), 70_000i32.to_le_bytes()].concat();
        let shown = of(PixelType::Int32, &signed);
        assert_eq!((shown.greatest, shown.masked, shown.codes[0]), (70_000, 1, MASKED));
        for (marked, masked) in [(u32::MAX, 1), (u32::MAX - 1, 1), (u32::MAX - 2, 0)] {
            let pixels = [marked.to_le_bytes(), 5u32.to_le_bytes()].concat();
            let shown = of(PixelType::Uint32, &pixels);
            assert_eq!(shown.masked, masked, "{marked}");
            assert_eq!(shown.greatest, if masked == 1 { 5 } else { marked });
        }
        let shown = of(PixelType::Uint8, &[254, 253]);
        assert_eq!((shown.greatest, shown.masked), (253, 1));
        let nothing = of(PixelType::Uint8, &[255, 255]);
        assert_eq!((nothing.codes.as_slice(), nothing.mean), (&[MASKED; 2][..], 0.0));
    }
}
