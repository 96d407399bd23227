//! The options of the preview, for `record` and `serve`.

use clap::Args;
use nilometer_model::{Frequency, Nanos};
use serde::Deserialize;

use crate::error::{ServiceError, require};

/// The address for viewers of the preview, and the rate of frames.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PreviewOptions {
    /// Publish the latest frame to viewers over ZeroMQ (PUB) at this address and port, such as 127.0.0.1:9630.
    /// Viewers need no token; --allow-clients restricts them
    #[arg(long = "preview", value_name = "ADDRESS", id = "preview")]
    pub address: Option<String>,
    /// Publish at most this many frames a second [default: 5 Hz]
    #[arg(long = "preview-rate", value_name = "RATE", id = "preview_rate")]
    pub rate: Option<Frequency>,
}

const RATE: Frequency = Frequency(5.0);
/// A faster preview would read a large part of all frames.
const RATE_MAX: Frequency = Frequency(50.0);

impl PreviewOptions {
    /// These options over those of a file.
    #[must_use]
    pub fn over(self, below: PreviewOptions) -> Self {
        PreviewOptions { address: self.address.or(below.address), rate: self.rate.or(below.rate) }
    }

    /// The shortest time between two frames.
    ///
    /// # Errors
    ///
    /// The rate is not possible.
    pub(super) fn period(&self) -> Result<Nanos, ServiceError> {
        let rate = self.rate.unwrap_or(RATE);
        require(rate.0 > 0.0 && rate.0 <= RATE_MAX.0, || {
            format!("--preview-rate \"{rate}\": write more than 0 Hz, at most {RATE_MAX}")
        })?;
        require(self.address.is_some() || self.rate.is_none(), || {
            "--preview-rate: name the address for viewers with --preview, or leave it out".into()
        })?;
        #[expect(clippy::cast_sign_loss, reason = "rates below 0 are refused above")]
        Ok(Nanos((1e9 / rate.0) as u64))
    }
}
