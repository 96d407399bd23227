//! The state that all connections of stations share, as in jive5ab: each client sees settings of the others.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nilometer_storage::Clock;

use super::{
    data_stream::StationStreams, directory_groups::DirectoryGroups, file_copy::FileCopies,
    free_space::SpaceQuery, noted::NotedSettings, transfer::TransferRates,
};
use crate::permission::CommandPermission;

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct StationState {
    /// True if a command may open a port to other machines.
    pub(super) beyond: bool,
    /// The directories in the configuration of the service, from which stations select.
    pub(super) directories: Vec<PathBuf>,
    /// The clock that measures the time between two queries.
    pub(super) clock: Clock,
    noted: Mutex<NotedSettings>,
    groups: Mutex<DirectoryGroups>,
    rates: Mutex<TransferRates>,
    space: Mutex<SpaceQuery>,
    copies: Mutex<FileCopies>,
    streams: Mutex<StationStreams>,
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
            copies: Mutex::default(),
            streams: Mutex::new(StationStreams::of(&permission.file.data_stream)),
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
    /// The copies that `disk2file` makes.
    pub(super) fn copy(&self) -> MutexGuard<'_, FileCopies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data streams that stations defined.
    pub(super) fn streams(&self) -> MutexGuard<'_, StationStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
