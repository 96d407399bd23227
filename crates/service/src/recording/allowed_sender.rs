//! A sender from which the recorder accepts packets and connections, as written in an option.

use std::str::FromStr;

use nilometer_intake::transport::{Allowed, SenderNetwork};
use serde::Deserialize;

use crate::error::ServiceError;

/// A sender, or senders, from which packets and connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum AllowedSender {
    /// All senders.
    Any,
    /// This sender, or all senders of this network.
    Only(SenderNetwork),
}

impl AllowedSender {
    /// The permitted senders in a list that `option` gives.
    ///
    /// # Errors
    /// The list has `any` and another entry.
    pub(crate) fn all(option: &str, allow: &[AllowedSender]) -> Result<Allowed, ServiceError> {
        let named = |allow: &AllowedSender| match allow {
            AllowedSender::Any => None,
            AllowedSender::Only(network) => Some(*network),
        };
        match allow {
            [] => Ok(Allowed::First),
            [AllowedSender::Any] => Ok(Allowed::Any),
            allow => {
                let named: Option<Vec<_>> = allow.iter().map(named).collect();
                named.map(Allowed::Named).ok_or_else(|| {
                    ServiceError::AskedWrongly(format!("{option} any is everybody: name no other beside it"))
                })
            }
        }
    }
}

impl FromStr for AllowedSender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(AllowedSender::Any);
        }
        text.parse().map(AllowedSender::Only).map_err(|error: String| format!("{error}; or any"))
    }
}

impl TryFrom<String> for AllowedSender {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
