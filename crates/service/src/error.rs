//! What those are told who asked for something that does not work, and where lines for the operator go.

use std::error::Error;

/// Where a line for whoever runs the program goes: a terminal, or the log of a service. It must neither fail nor wait for
/// long, since a recording outlives whoever reads it.
pub type OperatorLog = fn(&str);

/// A recording, or a service, that could not be had. The message is one line that says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// What was asked can't be: nothing was begun, and nothing is left behind. The same asked again is refused again.
    #[error("{0}")]
    AskedWrongly(String),
    /// It was begun and did not work, because of the storage, the network or the machine.
    #[error("{0}")]
    Failed(String),
}

impl ServiceError {
    /// What was asked can't be, for this reason and its causes.
    pub(crate) fn asked_wrongly(error: impl Error) -> Self {
        ServiceError::AskedWrongly(with_causes(&error))
    }

    /// It did not work, for this reason and its causes.
    pub(crate) fn failed(error: impl Error) -> Self {
        ServiceError::Failed(with_causes(&error))
    }
}

/// Refuses what was asked unless this holds.
pub(crate) fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), ServiceError> {
    if holds { Ok(()) } else { Err(ServiceError::AskedWrongly(why())) }
}

/// An error with its causes, in a line.
pub fn with_causes(error: &dyn Error) -> String {
    let text = error.to_string();
    error.source().map_or_else(|| text.clone(), |cause| caused(&text, cause))
}

/// What went wrong, with an error that caused it and the causes of that.
pub(crate) fn caused(text: &str, cause: &dyn Error) -> String {
    let mut text = text.to_owned();
    let mut cause = Some(cause);
    while let Some(error) = cause {
        let said = error.to_string();
        // Many messages end in their cause already.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn causes_are_told_once() {
        let outer = |text| Outer { text, source: io::Error::other("disk gone") };
        assert_eq!(with_causes(&outer("can't read")), "can't read: disk gone");
        assert_eq!(with_causes(&outer("can't read: disk gone")), "can't read: disk gone");
        assert_eq!(caused("no recording", &outer("can't read")), "no recording: can't read: disk gone");
        assert_eq!(with_causes(&io::Error::other("disk gone")), "disk gone");
    }
}
