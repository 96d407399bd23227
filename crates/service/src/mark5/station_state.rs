//! What all connections of stations have together, as those to jive5ab do: whoever asks is told what another one set.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nilometer_storage::Clock;

use super::{
    directory_groups::DirectoryGroups, free_space::SpaceQuery, noted::NotedSettings, transfer::TransferRates,
};
use crate::permission::CommandPermission;

/// What all connections have together.
#[derive(Debug)]
pub(crate) struct StationState {
    /// Whether data may be taken from beyond this machine by command.
    pub(super) beyond: bool,
    /// The directories that the configuration of the service names: those that may be chosen among.
    pub(super) directories: Vec<PathBuf>,
    /// What the time between two questions is told by.
    pub(super) clock: Clock,
    noted: Mutex<NotedSettings>,
    groups: Mutex<DirectoryGroups>,
    rates: Mutex<TransferRates>,
    space: Mutex<SpaceQuery>,
}

impl StationState {
    pub(crate) fn new(permission: &CommandPermission) -> Self {
        StationState {
            beyond: permission.beyond,
            directories: permission.file.to.clone(),
            clock: Clock::start(),
            noted: Mutex::default(),
            groups: Mutex::default(),
            rates: Mutex::default(),
            space: Mutex::default(),
        }
    }

    pub(super) fn noted(&self) -> MutexGuard<'_, NotedSettings> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn groups(&self) -> MutexGuard<'_, DirectoryGroups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rates(&self) -> MutexGuard<'_, TransferRates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn space(&self) -> MutexGuard<'_, SpaceQuery> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
