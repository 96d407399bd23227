//! Engines around engines: faults on purpose, a cap, a count. They forward every method, also those that have a default.

#![deny(clippy::missing_trait_methods)]

mod faulty;
mod metered;
mod throttled;

pub use faulty::{FaultEffect, Faulty, Rule, When};
pub use metered::{Counts, Meter, Metered};
pub use throttled::{Cap, Throttled};

use nilometer_model::Nanos;

use crate::Wait;

/// How to wait inside if something outside is to happen at `event`, too. Ends early rather than late.
fn sooner(wait: Wait, event: Option<Nanos>) -> Wait {
    match (wait, event) {
        (wait, None) | (wait @ Wait::Poll, _) => wait,
        (Wait::Until(time), Some(event)) => Wait::Until(time.min(event)),
        (Wait::ForOne | Wait::News, Some(event)) => Wait::Until(event),
    }
}
