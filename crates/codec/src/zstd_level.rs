//! The levels of Zstandard.

/// The effort of Zstandard: 1 is the fastest, 22 the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZstdLevel(u8);

impl ZstdLevel {
    /// The default of libzstd and of HDF5's plug-in.
    pub const USUAL: Self = ZstdLevel(3);
    /// The fastest.
    pub const FASTEST: Self = ZstdLevel(1);
    /// The highest.
    pub const HIGHEST: Self = ZstdLevel(22);

    /// Creates a level; `None` if there is no such level.
    pub const fn new(level: u8) -> Option<Self> {
        if level >= Self::FASTEST.0 && level <= Self::HIGHEST.0 { Some(ZstdLevel(level)) } else { None }
    }

    /// Returns the number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_library() {
        assert_eq!(i32::from(ZstdLevel::HIGHEST.get()), zstd_safe::max_c_level());
        assert_eq!(i32::from(ZstdLevel::USUAL.get()), zstd_safe::CLEVEL_DEFAULT);
        assert_eq!([0, 23].map(ZstdLevel::new), [None, None]);
    }
}
