//! A figure of a sizing, with its origin.

/// A figure with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure<T> {
    /// The figure.
    pub value: T,
    /// The origin.
    pub from: LimitOrigin,
}

/// The origin of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOrigin {
    /// Measured: in which record, and how.
    Measured(String),
    /// Said by the user, with which option.
    Given(String),
    /// Written in the file of a facility or an instrument.
    Written(String),
    /// An assumption, with its reason.
    Assumed(String),
}

impl<T> Figure<T> {
    /// A figure that somebody gave with an option.
    pub fn given(value: T, option: &str) -> Self {
        Figure { value, from: LimitOrigin::Given(option.into()) }
    }

    /// A figure that nobody gave.
    pub fn assumed(value: T, why: &str) -> Self {
        Figure { value, from: LimitOrigin::Assumed(why.into()) }
    }
}
