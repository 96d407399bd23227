//! Engines around engines: deliberate faults, a cap, a count. They forward every method, even those with a
//! default.

#![deny(clippy::missing_trait_methods)]

mod faulty;
mod metered;
mod throttled;

pub use faulty::{FaultEffect, Faulty, Rule, When};
pub use metered::{Counts, Meter, Metered};
pub use throttled::{Cap, Throttled};

use nilometer_model::Nanos;

use crate::Wait;

/// Returns the wait for the inner engine if something outside happens at `event` too. It ends early rather
/// than late.
fn sooner(wait: Wait, event: Option<Nanos>) -> Wait {
    match (wait, event) {
        (wait, None) | (wait @ Wait::Poll, _) => wait,
        (Wait::Until(time), Some(event)) => Wait::Until(time.min(event)),
        (Wait::ForOne | Wait::News, Some(event)) => Wait::Until(event),
    }
}
