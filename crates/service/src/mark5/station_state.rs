//! The state that all connections of stations share, as in jive5ab: each client sees settings of the others.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nilometer_intake::transport::Allowed;
use nilometer_model::Bytes;
use nilometer_storage::Clock;

use super::{
    data_stream::StationStreams, directory_groups::DirectoryGroups, file_copy::FileCopies,
    free_space::SpaceQuery, noted::NotedSettings, runtimes::CopyRuntimes, transfer::TransferRates,
};
use crate::{
    error::{OperatorLog, ServiceError},
    permission::CommandPermission,
    recording::{allowed_sender::AllowedSender, settings::reserve_of},
};

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct StationState {
    /// True if a command may open a port to other machines.
    pub(super) beyond: bool,
    /// The directories in the configuration of the service, from which stations select.
    pub(super) directories: Vec<PathBuf>,
    /// The clock that measures the time between two queries.
    pub(super) clock: Clock,
    /// The recorders that may send copies.
    pub(super) senders: Allowed,
    /// The bytes that copies leave free on each storage.
    pub(super) reserve: Bytes,
    /// The log for failed copies.
    pub(super) log: OperatorLog,
    noted: Mutex<NotedSettings>,
    groups: Mutex<DirectoryGroups>,
    rates: Mutex<TransferRates>,
    space: Mutex<SpaceQuery>,
    copies: Mutex<FileCopies>,
    streams: Mutex<StationStreams>,
    runtimes: Mutex<CopyRuntimes>,
}

impl StationState {
    /// The state before the first command.
    ///
    /// # Errors
    ///
    /// The list of permitted senders contradicts itself.
    pub(crate) fn new(permission: &CommandPermission) -> Result<Self, ServiceError> {
        Ok(StationState {
            beyond: permission.beyond,
            directories: permission.file.to.clone(),
            clock: Clock::start(),
            senders: AllowedSender::all("allow", &permission.file.allow)?,
            reserve: reserve_of(&permission.file),
            log: permission.log,
            noted: Mutex::default(),
            groups: Mutex::default(),
            rates: Mutex::default(),
            space: Mutex::default(),
            copies: Mutex::default(),
            streams: Mutex::new(StationStreams::of(&permission.file.data_stream)),
            runtimes: Mutex::default(),
        })
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

    /// The runtimes that copy from and to other recorders.
    pub(super) fn runtimes(&self) -> MutexGuard<'_, CopyRuntimes> {
        self.runtimes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data streams that stations defined.
    pub(super) fn streams(&self) -> MutexGuard<'_, StationStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
