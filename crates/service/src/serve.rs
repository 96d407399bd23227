//! The whole service: its listeners, and the recorder that they command, until a signal ends it.

use std::sync::atomic::AtomicBool;

use crate::{
    commanded_recorder::CommandedRecorder,
    console::Console,
    error::ServiceError,
    http,
    listener::{ServiceListener, spawn},
    mark5::{self, StationState},
    permission::CommandPermission,
};

/// What a service is made of.
#[derive(Debug)]
pub struct ServiceSetup {
    /// What those who command it may have it do.
    pub permission: CommandPermission,
    /// Where HTTP is answered, if anywhere.
    pub http: Option<ServiceListener>,
    /// Where the commands of Mark 5 recorders are answered, if anywhere.
    pub mark5: Option<ServiceListener>,
}

/// Carries out orders until `end` is set; a recording that runs is then ended in order. Storage that does not answer is not
/// waited for.
///
/// # Errors
///
/// A thread can't be started.
pub fn serve(setup: ServiceSetup, end: &AtomicBool) -> Result<(), ServiceError> {
    let ServiceSetup { permission, http, mark5 } = setup;
    let stations = StationState::new(&permission);
    let log = permission.log;
    let (console, orders, published) = Console::new();
    let mut recorder = CommandedRecorder::new(permission, published);
    if let Some(listener) = http {
        let console = console.clone();
        spawn("http", move || http::serve(&listener, &console))?;
    }
    if let Some(listener) = mark5 {
        let console = console.clone();
        spawn("mark5", move || mark5::serve(&listener, &console, stations))?;
    }
    log(&format!("ready: {}", console.report().state.name()));
    recorder.run(&orders, end);
    log("ended");
    Ok(())
}
