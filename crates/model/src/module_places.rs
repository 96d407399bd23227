//! The places of a detector's modules in one image, for detectors that send each module by itself.
//!
//! A module consists of readout chips. Pixels at the edges of chips can be larger than the others. The image
//! then has rows and columns between two chips, which belong to no pixel. For example, a module of 1 x 2 chips
//! with a chip gap of one column, at row 1 and column 2:
//!
//! ```text
//! sent     a b c d        image    . . . . . . .
//!          e f g h                 . . a b . c d
//!                                  . . e f . g h
//! ```

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The places of modules in an image. Frames of the instrument have the dimensions modules, rows, columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModulePlaces {
    /// Row and column of each module's first pixel in the image, in the order of the modules.
    pub origins: Vec<[u64; 2]>,
    /// Rows and columns of a readout chip. `None` means that a module is one piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<[u64; 2]>,
    /// Rows and columns of the image between the chips of a module.
    #[serde(default)]
    pub chip_gap: u64,
    /// Modules that send their rows from the lowest to the highest, by number from 0. The image has them upright.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upside_down: Vec<u64>,
}

/// A rectangle of pixels of one module, and its place in the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageBlock {
    /// The modules, from 0: several if they continue the same rows.
    pub modules: Range<u64>,
    /// Rows and columns in the module.
    pub from: [Range<u64>; 2],
    /// Rows and columns in the image: those of the first piece.
    pub to: [Range<u64>; 2],
    /// Number of pieces of these columns in a row of the image.
    pub pieces: u64,
    /// Columns from each piece to the next.
    pub step: u64,
    /// True if the first row in the module is the last one in the image.
    pub upside_down: bool,
}

/// The most pixels of an image: a mask of them takes 1 GiB.
const PIXELS_MAX: u64 = 1 << 28;
/// The most parts of an image: chips, and rows of modules that are upside down. HDF5 describes each by a mapping
/// of a virtual dataset, and looks at all mappings for each image that it reads.
const PARTS_MAX: u64 = 8192;

impl ModulePlaces {
    /// Refuses places that do not fit to frames of this shape; the message says how to correct them.
    pub(crate) fn check(&self, shape: &[u64]) -> Result<(), String> {
        let &[modules, rows, columns] = shape else {
            return Err(format!(
                "shape = {shape:?}: frames of modules have three dimensions: modules, rows, columns"
            ));
        };
        let count = self.origins.len() as u64;
        if count != modules {
            return Err(format!("origins has {count} places: write one for each of the {modules} modules"));
        }
        let chip = self.chip.unwrap_or([rows, columns]);
        let divides = |side: u64, chip: u64| chip > 0 && side.is_multiple_of(chip);
        if !divides(rows, chip[0]) || !divides(columns, chip[1]) {
            return Err(format!(
                "chip = {chip:?}: write rows and columns that divide a module of {rows} x {columns}"
            ));
        }
        let chips = (rows / chip[0]).saturating_mul(columns / chip[1]).saturating_mul(modules);
        if chips > PARTS_MAX {
            return Err(format!(
                "chip = {chip:?}: an image has at most {PARTS_MAX} chips, and this one has {chips}"
            ));
        }
        if let Some(number) = self.upside_down.iter().find(|number| **number >= modules) {
            return Err(format!(
                "upside_down: there is no module {number}: write numbers below {modules}, which count from 0"
            ));
        }
        self.check_size()?;
        self.check_apart([rows, columns])?;
        self.check_parts([rows, columns])
    }

    /// Checks that the image has not too many parts.
    fn check_parts(&self, module: [u64; 2]) -> Result<(), String> {
        let parts: u64 = self.blocks(module).iter().map(ImageBlock::parts).sum();
        if parts > PARTS_MAX {
            return Err(format!(
                "upside_down: the image has {parts} parts, and may have {PARTS_MAX}: each row of a module that is \
                 upside down is one"
            ));
        }
        Ok(())
    }

    /// Checks that the image has no more pixels than a mask may have.
    fn check_size(&self) -> Result<(), String> {
        let far = self.origins.iter().flatten().chain([&self.chip_gap]).find(|place| **place > PIXELS_MAX);
        match far {
            Some(place) => {
                Err(format!("origins and chip_gap: {place} is too far: write at most {PIXELS_MAX}"))
            }
            None => Ok(()),
        }
    }

    /// Checks that no pixel of the image belongs to two modules, and that the image is not too large.
    fn check_apart(&self, module: [u64; 2]) -> Result<(), String> {
        let size = self.module_size(module);
        for (number, origin) in self.origins.iter().enumerate() {
            let meets = |other: &[u64; 2]| (0..2).all(|side| other[side].abs_diff(origin[side]) < size[side]);
            if let Some(other) = self.origins[..number].iter().position(meets) {
                return Err(format!(
                    "origins: modules {other} and {number} overlap, each has {size:?} pixels"
                ));
            }
        }
        let [rows, columns] = self.image(module);
        if rows.saturating_mul(columns) > PIXELS_MAX {
            return Err(format!(
                "origins: the image has {rows} x {columns} pixels: write at most {PIXELS_MAX}"
            ));
        }
        Ok(())
    }

    /// Rows and columns that a module takes in the image; `module` has those that it sends.
    pub fn module_size(&self, module: [u64; 2]) -> [u64; 2] {
        let chip = self.chip.unwrap_or(module);
        [0, 1].map(|side| module[side] + (module[side] / chip[side]).saturating_sub(1) * self.chip_gap)
    }

    /// Rows and columns of the image; `module` has those that a module sends.
    pub fn image(&self, module: [u64; 2]) -> [u64; 2] {
        let size = self.module_size(module);
        [0, 1].map(|side| {
            let last = self.origins.iter().map(|origin| origin[side]).max().unwrap_or(0);
            last + size[side]
        })
    }

    /// The places of all chips, and of rows of chips in modules that are upside down. `module` has the rows and
    /// columns that a module sends.
    pub fn blocks(&self, module: [u64; 2]) -> Vec<ImageBlock> {
        let chip = self.chip.unwrap_or(module);
        let mut blocks: Vec<ImageBlock> = Vec::new();
        for (number, origin) in (0_u64..).zip(&self.origins) {
            for row in 0..module[0] / chip[0] {
                if self.upside_down.contains(&number) {
                    let block = self.turned(number, *origin, module, row);
                    match blocks.iter_mut().rev().find(|before| before.continues_in(&block)) {
                        Some(before) => before.extend(&block),
                        None => blocks.push(block),
                    }
                    continue;
                }
                for column in 0..module[1] / chip[1] {
                    blocks.push(self.block(number, *origin, chip, [row, column]));
                }
            }
        }
        blocks
    }

    /// The place of a chip, by its row and column among those of its module.
    fn block(&self, module: u64, origin: [u64; 2], chip: [u64; 2], at: [u64; 2]) -> ImageBlock {
        let range = |side: usize, first: u64, step: u64| {
            let begin = first + at[side] * step;
            begin..begin + chip[side]
        };
        ImageBlock {
            modules: module..module + 1,
            from: [0, 1].map(|side| range(side, 0, chip[side])),
            to: [0, 1].map(|side| range(side, origin[side], chip[side] + self.chip_gap)),
            pieces: 1,
            step: chip[1],
            upside_down: false,
        }
    }

    /// The place of a row of chips in a module that is upside down.
    fn turned(&self, number: u64, origin: [u64; 2], module: [u64; 2], row: u64) -> ImageBlock {
        let chip = self.chip.unwrap_or(module);
        let rows = module[0] / chip[0];
        let sent = self.block(number, origin, chip, [row, 0]);
        let shown = self.block(number, origin, chip, [rows - 1 - row, 0]);
        let [from_rows, _] = sent.from;
        ImageBlock {
            from: [from_rows, 0..module[1]],
            pieces: module[1] / chip[1],
            step: chip[1] + self.chip_gap,
            upside_down: true,
            ..shown
        }
    }

    /// The places of some of the modules, in the same image.
    #[must_use]
    pub(crate) fn of_modules(&self, modules: Range<usize>) -> Self {
        let turned = self.upside_down.iter().copied();
        let own = modules.start as u64..modules.end as u64;
        let upside_down = turned.filter(|number| own.contains(number)).map(|number| number - own.start);
        ModulePlaces {
            upside_down: upside_down.collect(),
            origins: self.origins.get(modules).unwrap_or_default().to_vec(),
            ..self.clone()
        }
    }
}

impl ImageBlock {
    /// Number of mappings that a virtual dataset needs: its selections go forwards only.
    fn parts(&self) -> u64 {
        if self.upside_down { self.from[0].end - self.from[0].start } else { 1 }
    }

    /// True if the next module goes on with the same rows at the same distance.
    fn continues_in(&self, next: &ImageBlock) -> bool {
        self.upside_down
            && self.modules.end == next.modules.start
            && (&self.from, self.step) == (&next.from, next.step)
            && self.to[0] == next.to[0]
            && self.to[1].start + self.pieces * self.step == next.to[1].start
    }

    fn extend(&mut self, next: &ImageBlock) {
        self.modules.end = next.modules.end;
        self.pieces += next.pieces;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jungfrau() -> ModulePlaces {
        let origins = (0..8).map(|module| [module / 2 * 550, module % 2 * 1038]).collect();
        ModulePlaces { origins, chip: Some([256, 256]), chip_gap: 2, upside_down: Vec::new() }
    }

    #[test]
    fn eight_modules_of_jungfrau_are_an_image_with_gaps() {
        let places = jungfrau();
        assert_eq!(places.check(&[8, 512, 1024]), Ok(()));
        assert_eq!(places.module_size([512, 1024]), [514, 1030]);
        assert_eq!(places.image([512, 1024]), [2164, 2068]);
        let blocks = places.blocks([512, 1024]);
        assert_eq!(blocks.len(), 64);
        assert_eq!((&blocks[63].modules, &blocks[63].from), (&(7..8), &[256..512, 768..1024]));
        assert_eq!((&blocks[63].to, blocks[63].pieces), (&[1908..2164, 1812..2068], 1));
        let pixels: u64 = blocks.iter().map(|block| (block.to[0].end - block.to[0].start) * 256).sum();
        assert_eq!(pixels, 8 * 512 * 1024);
    }

    /// A module of EIGER: a top and a bottom half, each of a left and a right port.
    fn eiger() -> ModulePlaces {
        let origins = vec![[0, 0], [0, 516], [258, 0], [258, 516]];
        ModulePlaces { origins, chip: Some([256, 256]), chip_gap: 2, upside_down: vec![2, 3] }
    }

    #[test]
    fn rows_of_a_bottom_half_are_turned_and_both_ports_make_up_a_row() {
        let places = eiger();
        assert_eq!(places.check(&[4, 256, 512]), Ok(()));
        assert_eq!(places.image([256, 512]), [514, 1030]);
        let blocks = places.blocks([256, 512]);
        assert_eq!(blocks.len(), 5, "four chips, and the bottom half");
        let bottom = ImageBlock {
            modules: 2..4,
            from: [0..256, 0..512],
            to: [258..514, 0..256],
            pieces: 4,
            step: 258,
            upside_down: true,
        };
        assert_eq!((&blocks[4], bottom.parts()), (&bottom, 256));
        let bottom = places.of_modules(2..4);
        assert_eq!((bottom.upside_down, bottom.origins), (vec![0, 1], vec![[258, 0], [258, 516]]));
    }

    #[test]
    fn chips_of_a_turned_module_change_their_rows() {
        let origins = vec![[10, 0], [10, 600]];
        let places = ModulePlaces { origins, chip: Some([2, 4]), chip_gap: 1, upside_down: vec![0, 1] };
        let rows: Vec<_> =
            places.blocks([4, 8]).into_iter().map(|block| (block.modules, block.from, block.to)).collect();
        let expected = [
            (0..1, [0..2, 0..8], [13..15, 0..4]),
            (0..1, [2..4, 0..8], [10..12, 0..4]),
            (1..2, [0..2, 0..8], [13..15, 600..604]),
            (1..2, [2..4, 0..8], [10..12, 600..604]),
        ];
        assert_eq!(rows, expected, "the modules are too far apart to be a row of equal steps");
    }

    #[test]
    fn some_of_the_modules_stay_at_their_places() {
        let part = jungfrau().of_modules(6..8);
        assert_eq!(part.origins, [[1650, 0], [1650, 1038]]);
        assert_eq!(part.image([512, 1024]), [2164, 2068]);
        assert!(jungfrau().of_modules(7..9).origins.is_empty());
    }

    #[test]
    fn wrong_places_are_refused_with_the_reason() {
        let refused = |places: ModulePlaces, shape: &[u64]| places.check(shape).expect_err("it is wrong");
        assert!(refused(jungfrau(), &[512, 1024]).contains("three dimensions"));
        assert!(refused(jungfrau(), &[7, 512, 1024]).contains("one for each of the 7 modules"));
        let overlapping = ModulePlaces { origins: vec![[0, 0], [513, 1029]], ..jungfrau() };
        assert!(refused(overlapping, &[2, 512, 1024]).contains("modules 0 and 1 overlap"));
        let cut = ModulePlaces { chip: Some([256, 300]), ..jungfrau() };
        assert!(refused(cut, &[8, 512, 1024]).contains("divide a module of 512 x 1024"));
        let none = ModulePlaces { chip: Some([0, 256]), ..jungfrau() };
        assert!(refused(none, &[8, 512, 1024]).contains("divide a module"));
        let crumbs = ModulePlaces { chip: Some([1, 1]), ..jungfrau() };
        assert!(refused(crumbs, &[8, 512, 1024]).contains("at most 8192 chips"));
        let turned = ModulePlaces { upside_down: vec![8], ..jungfrau() };
        assert!(refused(turned, &[8, 512, 1024]).contains("no module 8: write numbers below 8"));
        let origins = (0..17).map(|module| [module * 600, module * 1100]).collect();
        let rows = ModulePlaces { origins, upside_down: (0..17).collect(), ..jungfrau() };
        assert!(refused(rows, &[17, 512, 1024]).contains("the image has 8704 parts, and may have 8192"));
        let far = ModulePlaces { origins: vec![[0, 0], [u64::MAX, 0]], ..jungfrau() };
        assert!(refused(far, &[2, 512, 1024]).contains("too far"));
        let large = ModulePlaces { origins: vec![[0, 0], [1 << 20, 0]], ..jungfrau() };
        assert!(refused(large, &[2, 512, 1024]).contains("the image has"));
    }
}
