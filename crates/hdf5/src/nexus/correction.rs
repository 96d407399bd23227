//! Corrections that a detector may apply to its frames, by NXmx.

/// A correction of frames, or the use of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameCorrection {
    /// Counts that the detector misses at high rates.
    CountRate,
    /// The sensitivity of each pixel.
    Flatfield,
    /// Pixels of the mask have a value that marks them.
    PixelMask,
    /// Values of pixels that do not exist, between the detector's chips.
    VirtualPixels,
}

impl FrameCorrection {
    /// All variants.
    pub const ALL: [FrameCorrection; 4] = [
        FrameCorrection::CountRate,
        FrameCorrection::Flatfield,
        FrameCorrection::PixelMask,
        FrameCorrection::VirtualPixels,
    ];

    /// The field of NXdetector that says if the detector applied it (NXdetector.nxdl.xml, NXmx.nxdl.xml).
    pub const fn field(self) -> &'static str {
        match self {
            FrameCorrection::CountRate => "countrate_correction_applied",
            FrameCorrection::Flatfield => "flatfield_applied",
            FrameCorrection::PixelMask => "pixel_mask_applied",
            FrameCorrection::VirtualPixels => "virtual_pixel_interpolation_applied",
        }
    }
}
