//! Errors that clients and operators see, and the log for the operator.

use std::error::Error;

/// A sink for lines to the operator: a terminal, or the log of a service. It must neither fail nor block for
/// long, since a recording outlives its reader.
pub type OperatorLog = fn(&str);

/// An error of a recording or a service. The message is one line with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The request is invalid. Nothing was begun, and nothing is left behind. Repeating it fails again.
    #[error("{0}")]
    AskedWrongly(String),
    /// The request was begun and failed, because of the storage, the network or the machine.
    #[error("{0}")]
    Failed(String),
}

impl ServiceError {
    /// An invalid request, with the error and its causes.
    pub(crate) fn asked_wrongly(error: impl Error) -> Self {
        ServiceError::AskedWrongly(with_causes(&error))
    }

    /// A failure, with the error and its causes.
    pub(crate) fn failed(error: impl Error) -> Self {
        ServiceError::Failed(with_causes(&error))
    }
}

/// Refuses a request unless `holds` is true.
pub(crate) fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), ServiceError> {
    if holds { Ok(()) } else { Err(ServiceError::AskedWrongly(why())) }
}

/// An error with its causes, on one line.
pub fn with_causes(error: &dyn Error) -> String {
    let text = error.to_string();
    error.source().map_or_else(|| text.clone(), |cause| caused(&text, cause))
}

/// A message with an error that caused it and the causes of that.
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
