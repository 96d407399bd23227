//! The whole service: its listeners, and the recorder that they command, until a signal ends it.

use std::{path::PathBuf, sync::atomic::AtomicBool};

use crate::{
    commanded_recorder::CommandedRecorder,
    console::Console,
    dump::check_roots,
    error::ServiceError,
    http,
    listener::{ServiceListener, spawn},
    mark5::{self, StationState},
    permission::CommandPermission,
    preview::PreviewListener,
};

/// The parts of a service.
#[derive(Debug)]
pub struct ServiceSetup {
    /// The permissions of clients that command it.
    pub permission: CommandPermission,
    /// The listener for HTTP, if the service has one.
    pub http: Option<ServiceListener>,
    /// The listener for the commands of Mark 5 recorders, if the service has one.
    pub mark5: Option<ServiceListener>,
    /// The listener for viewers of the preview, if the service has one.
    pub preview: Option<PreviewListener>,
    /// The directories below which clients may dump parts of recordings.
    pub dumps: Vec<PathBuf>,
}

/// Carries out orders until `end` is set, then ends a running recording in order. It does not wait for storage
/// that does not answer.
///
/// # Errors
///
/// A thread can't be started, or a directory for dumps is not there.
pub fn serve(setup: ServiceSetup, end: &AtomicBool) -> Result<(), ServiceError> {
    let ServiceSetup { permission, http, mark5, preview, dumps } = setup;
    check_roots(&dumps)?;
    let stations = StationState::new(&permission)?;
    let log = permission.log;
    let (console, orders, published) = Console::new(dumps);
    if let Some(preview) = preview {
        preview.show(published.clone())?;
    }
    let dumps = console.dumps().clone();
    let mut recorder = CommandedRecorder::new(permission, published);
    if let Some(listener) = http {
        let console = console.clone();
        spawn("http", move || http::serve(&listener, &console))?;
    }
    if let Some(listener) = mark5 {
        let console = console.clone();
        spawn("mark5", move || mark5::serve(&listener, &console, stations))?;
    }
    let report = console.report();
    let missing = report.configuration.missing.map_or_else(String::new, |why| format!(": {why}"));
    log(&format!("ready: {}{missing}", report.state.name()));
    recorder.run(&orders, end);
    dumps.leave(log);
    log("ended");
    Ok(())
}
