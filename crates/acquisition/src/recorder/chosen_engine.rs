//! The engine that issues the operations of a recording's lanes, and the reason for it. The choice follows from the
//! layout, the user's wish and the trial in the target's description; it does no I/O on the storage.

use std::fmt;

use nilometer_model::{EngineKind, EngineTrial};
use nilometer_storage::{Clock, EngineError, Target, engine::Options};

use crate::sink::FILE_SLOTS;

/// Operations in flight for each lane, if several help.
const DEPTH: u32 = 4;

/// The needs of a recording that decide its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineWish {
    /// Several operations in flight help (`RawLayout::is_deep`). Otherwise each operation is a copy into the cache,
    /// one at a time in a lane.
    pub deep: bool,
    /// The engine that the user named; `None` lets the recorder choose.
    pub kind: Option<EngineKind>,
}

impl EngineWish {
    /// The recorder's own choice.
    pub fn usual(deep: bool) -> Self {
        EngineWish { deep, kind: None }
    }
}

/// The engine of all lanes of a recording.
#[derive(Debug, Clone)]
pub struct ChosenEngine {
    /// Its options.
    pub options: Options,
    /// The reason for it.
    pub reason: EngineReason,
}

/// Why a recording uses its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineReason {
    /// It suits the layout.
    Usual,
    /// The user named it.
    Named {
        /// The trial that spoke against it, if there was one.
        against: Option<EngineTrial>,
    },
    /// `io_uring` failed or was far slower in a trial on this storage.
    Trial(EngineTrial),
    /// The kernel or its administrator does not permit `io_uring`, with the kernel's error.
    NotPermitted(String),
}

impl From<Options> for ChosenEngine {
    fn from(options: Options) -> Self {
        ChosenEngine { options, reason: EngineReason::Usual }
    }
}

impl ChosenEngine {
    /// One engine for lanes on storage with these choices: the one that works on all of them. `None` if there is no
    /// choice.
    pub fn for_all(choices: impl IntoIterator<Item = ChosenEngine>) -> Option<ChosenEngine> {
        let rank = |choice: &ChosenEngine| match choice.options.kind {
            EngineKind::Sync | EngineKind::MpiIo => 0,
            EngineKind::Pool => 1,
            EngineKind::IoUring => 2,
        };
        choices.into_iter().min_by_key(rank)
    }

    /// The reason in words; `None` if the engine is the usual one.
    pub fn why(&self) -> Option<String> {
        match &self.reason {
            EngineReason::Usual => None,
            EngineReason::Named { against: None } => Some("as requested".into()),
            EngineReason::Named { against: Some(trial) } => Some(format!("as requested, against {trial}")),
            EngineReason::Trial(trial) => Some(trial.to_string()),
            EngineReason::NotPermitted(why) => Some(format!("io_uring is not permitted here ({why})")),
        }
    }
}

impl fmt::Display for ChosenEngine {
    /// `pool: io_uring 7.9 MB/s, pool 181 MB/s in a trial`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.options.kind.name();
        match self.why() {
            Some(why) => write!(f, "{name}: {why}"),
            None => f.write_str(name),
        }
    }
}

/// Chooses the engine for lanes on a target.
///
/// # Errors
/// The user named an engine that does not work here, or it could not be set up.
pub fn suited_engine(
    target: &dyn Target,
    wish: EngineWish,
    clock: Clock,
) -> Result<ChosenEngine, EngineError> {
    if let Some(kind) = wish.kind {
        let options = options(kind, clock);
        // A check that it works here.
        drop(target.engine(&options)?);
        let trial = target.description().profile.engines.as_ref();
        let against = trial.filter(|trial| kind == EngineKind::IoUring && trial.suited() != kind).cloned();
        return Ok(ChosenEngine { options, reason: EngineReason::Named { against } });
    }
    if !wish.deep {
        return Ok(options(EngineKind::Sync, clock).into());
    }
    let description = target.description();
    let chosen = ChosenEngine::from(options(description.deep_engine(), clock));
    if let (EngineKind::Pool, Some(trial)) = (chosen.options.kind, &description.profile.engines) {
        return Ok(ChosenEngine { reason: EngineReason::Trial(trial.clone()), ..chosen });
    }
    match target.engine(&chosen.options) {
        Ok(_) => Ok(chosen),
        Err(EngineError::NotPermitted { source, .. }) => Ok(ChosenEngine {
            options: options(EngineKind::Pool, clock),
            reason: EngineReason::NotPermitted(source.to_string()),
        }),
        Err(error) => Err(error),
    }
}

fn options(kind: EngineKind, clock: Clock) -> Options {
    let depth = if kind == EngineKind::Sync { 1 } else { DEPTH };
    Options { kind, depth, slots: FILE_SLOTS, clock }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Bytes, FileSystemSpace, Nanos, TargetDescription, TriedEngine};
    use nilometer_storage::{
        Engine, TargetError,
        clock::VirtualClock,
        testing::{Device, Simulated},
    };

    use super::*;

    /// Storage whose trial had this result, on a machine that may forbid `io_uring`.
    #[derive(Debug)]
    struct TriedStorage {
        inner: Simulated,
        description: TargetDescription,
        forbidden: bool,
    }

    impl TriedStorage {
        fn new(ring_ms: Option<u64>, forbidden: bool) -> Self {
            let inner = Simulated::new(Device::default(), VirtualClock::default());
            let mut description = inner.description().clone();
            let wrote = |ms| TriedEngine::Wrote { rounds: 1, fastest: Nanos::from_millis(ms) };
            description.profile.engines =
                ring_ms.map(|ms| EngineTrial { round: Bytes(1 << 20), io_uring: wrote(ms), pool: wrote(10) });
            TriedStorage { inner, description, forbidden }
        }

        fn chosen(&self, wish: EngineWish) -> Result<ChosenEngine, EngineError> {
            suited_engine(self, wish, Clock::start())
        }
    }

    impl Target for TriedStorage {
        fn description(&self) -> &TargetDescription {
            &self.description
        }

        fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
            if self.forbidden && options.kind == EngineKind::IoUring {
                let source = std::io::Error::from_raw_os_error(1);
                return Err(EngineError::NotPermitted { engine: "io_uring", source, instead: "pool" });
            }
            self.inner.engine(options)
        }

        fn space(&self) -> Result<FileSystemSpace, TargetError> {
            self.inner.space()
        }

        fn clear(&self) -> Result<(), TargetError> {
            self.inner.clear()
        }

        fn remove(&self) -> Result<(), TargetError> {
            self.inner.remove()
        }
    }

    #[test]
    fn the_trial_on_the_storage_decides_and_says_so() {
        let deep = EngineWish::usual(true);
        let kind = |storage: &TriedStorage, wish| storage.chosen(wish).expect("it works").options.kind;
        assert_eq!(kind(&TriedStorage::new(None, false), deep), EngineKind::IoUring);
        assert_eq!(kind(&TriedStorage::new(Some(12), false), deep), EngineKind::IoUring);
        let slow = TriedStorage::new(Some(200), false);
        assert_eq!(kind(&slow, EngineWish::usual(false)), EngineKind::Sync, "one operation needs no depth");
        let chosen = slow.chosen(deep).expect("it works");
        assert_eq!((chosen.options.kind, chosen.options.depth), (EngineKind::Pool, DEPTH));
        assert_eq!(chosen.to_string(), "pool: io_uring 5.24 MB/s, pool 105 MB/s in a trial");
    }

    #[test]
    fn without_permission_a_pool_keeps_the_depth() {
        let forbidden = TriedStorage::new(None, true);
        let chosen = forbidden.chosen(EngineWish::usual(true)).expect("the pool works");
        assert_eq!((chosen.options.kind, chosen.options.depth), (EngineKind::Pool, DEPTH));
        assert!(chosen.to_string().starts_with("pool: io_uring is not permitted here"), "{chosen}");
        let named = EngineWish { deep: true, kind: Some(EngineKind::IoUring) };
        forbidden.chosen(named).expect_err("the user named an engine that does not work");
    }

    #[test]
    fn the_user_decides_before_any_trial() {
        let slow = TriedStorage::new(Some(200), false);
        let named =
            slow.chosen(EngineWish { deep: false, kind: Some(EngineKind::IoUring) }).expect("it works");
        let expected = "io_uring: as requested, against io_uring 5.24 MB/s, pool 105 MB/s in a trial";
        assert_eq!(named.to_string(), expected);
        let pool = slow.chosen(EngineWish { deep: false, kind: Some(EngineKind::Pool) }).expect("it works");
        assert_eq!(pool.to_string(), "pool: as requested");
    }

    #[test]
    fn lanes_on_different_storage_share_the_engine_that_works_on_all() {
        let clock = Clock::start();
        let of = |kind| ChosenEngine::from(options(kind, clock));
        let kind = |kinds: &[EngineKind]| {
            ChosenEngine::for_all(kinds.iter().map(|kind| of(*kind))).map(|chosen| chosen.options.kind)
        };
        assert_eq!(kind(&[EngineKind::IoUring, EngineKind::Pool]), Some(EngineKind::Pool));
        assert_eq!(kind(&[EngineKind::Pool, EngineKind::Sync]), Some(EngineKind::Sync));
        assert_eq!(kind(&[]), None);
    }
}
