//! The trial of two engines on a storage system: it decides which of them a recording uses there.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes, EngineKind, Nanos};

/// How many times faster `pool` must be before a recording prefers it. Noise does not reach this factor, and the
/// file systems that the trial is for exceed it: kernel SMB takes a twentieth through `io_uring`.
const FAR: u64 = 4;

/// The same blocks written by `io_uring` and by `pool`, in turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTrial {
    /// Bytes that an engine wrote in each round.
    pub round: Bytes,
    /// The result of `io_uring`.
    pub io_uring: TriedEngine,
    /// The result of `pool`.
    pub pool: TriedEngine,
}

/// The result of one engine in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriedEngine {
    /// It wrote every block.
    Wrote {
        /// Number of rounds.
        rounds: u32,
        /// Time of the fastest round.
        fastest: Nanos,
    },
    /// The kernel does not permit it, for this reason.
    NotPermitted(String),
    /// It failed, with this error.
    Failed(String),
}

impl EngineTrial {
    /// The engine for operations in flight together: `pool` if `io_uring` failed or was far slower.
    pub fn suited(&self) -> EngineKind {
        use TriedEngine::Wrote;
        match (&self.io_uring, &self.pool) {
            (Wrote { fastest: ring, .. }, Wrote { fastest: pool, .. })
                if ring.0 <= pool.0.saturating_mul(FAR) =>
            {
                EngineKind::IoUring
            }
            (_, Wrote { .. }) => EngineKind::Pool,
            // Nothing was learned about `pool`, or both failed.
            _ => EngineKind::IoUring,
        }
    }

    fn said(&self, name: &str, tried: &TriedEngine) -> String {
        match tried {
            TriedEngine::Wrote { fastest, .. } => format!("{name} {}", ByteRate::of(self.round.0, *fastest)),
            TriedEngine::NotPermitted(why) => format!("{name} is not permitted ({why})"),
            TriedEngine::Failed(why) => format!("{name} failed: {why}"),
        }
    }
}

impl fmt::Display for EngineTrial {
    /// `io_uring 7.9 MB/s, pool 181 MB/s in a trial`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ring, pool] = [("io_uring", &self.io_uring), ("pool", &self.pool)];
        write!(f, "{}, {} in a trial", self.said(ring.0, ring.1), self.said(pool.0, pool.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(fastest_ms: u64) -> TriedEngine {
        TriedEngine::Wrote { rounds: 3, fastest: Nanos::from_millis(fastest_ms) }
    }

    fn trial(io_uring: TriedEngine, pool: TriedEngine) -> EngineTrial {
        EngineTrial { round: Bytes(1 << 20), io_uring, pool }
    }

    #[test]
    fn pool_is_chosen_only_for_a_clear_reason() {
        let failed = || TriedEngine::Failed("EIO".into());
        let forbidden = TriedEngine::NotPermitted("EPERM".into());
        for (io_uring, pool, suited) in [
            (wrote(10), wrote(10), EngineKind::IoUring),
            (wrote(40), wrote(10), EngineKind::IoUring),
            (wrote(41), wrote(10), EngineKind::Pool),
            (failed(), wrote(10), EngineKind::Pool),
            (forbidden, wrote(10), EngineKind::Pool),
            (wrote(10), failed(), EngineKind::IoUring),
            (failed(), failed(), EngineKind::IoUring),
        ] {
            let trial = trial(io_uring, pool);
            assert_eq!(trial.suited(), suited, "{trial}");
        }
    }

    #[test]
    fn a_trial_is_told_and_kept() {
        let trial = trial(TriedEngine::Failed("EINTR (Interrupted system call)".into()), wrote(8));
        let expected = "io_uring failed: EINTR (Interrupted system call), pool 131 MB/s in a trial";
        assert_eq!(trial.to_string(), expected);
        let text = serde_json::to_string(&trial).expect("it is data");
        assert_eq!(serde_json::from_str::<EngineTrial>(&text).expect("the same"), trial);
    }
}
