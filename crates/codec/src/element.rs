//! The size of the elements whose bits are transposed.

/// Bytes of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementSize {
    /// 8 bit.
    One,
    /// 16 bit.
    Two,
    /// 32 bit.
    Four,
    /// 64 bit.
    Eight,
}

impl ElementSize {
    /// All sizes.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// Returns the bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            ElementSize::One => 1,
            ElementSize::Two => 2,
            ElementSize::Four => 4,
            ElementSize::Eight => 8,
        }
    }

    /// Returns the size of this many bytes, if it is one.
    pub const fn of(bytes: u64) -> Option<Self> {
        match bytes {
            1 => Some(ElementSize::One),
            2 => Some(ElementSize::Two),
            4 => Some(ElementSize::Four),
            8 => Some(ElementSize::Eight),
            _ => None,
        }
    }
}
