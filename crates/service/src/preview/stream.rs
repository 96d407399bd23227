//! The thread that publishes frames to viewers.

use std::{io, os::fd::AsFd, sync::Arc, thread};

use nilometer_intake::transport::zeromq::PublishSocket;
use nilometer_model::Nanos;
use nilometer_storage::{Clock, DetachedTask, NoOutcome};

use super::{
    PreviewOptions,
    frame::{PreviewFrame, PreviewReader, PreviewSource},
    report::PreviewReport,
};
use crate::{
    error::{OperatorLog, ServiceError, require},
    latest_frame::{next_read, step_back},
    listener::{ClientReach, ServiceListener, listen, spawn},
    publisher::Publisher,
    recording::memory::PREVIEW_FRAMES,
};

/// The longest wait without a look at the recording.
const LOOK: Nanos = Nanos::from_millis(100);
/// The longest wait while a read is running.
const STEP: Nanos = Nanos::from_millis(5);
/// The pause after an error of the listener, such as too many open files.
const PAUSE: Nanos = Nanos::from_millis(50);

/// The preview of one recorder.
#[derive(Debug)]
struct PreviewStream {
    listener: ServiceListener,
    published: Publisher,
    socket: PublishSocket,
    clock: Clock,
    every: Nanos,
    told: PreviewReport,
    source: Option<Arc<PreviewSource>>,
    /// The reader, while no read is running.
    reader: Option<PreviewReader>,
    reading: Option<PreviewRead>,
    /// No read begins before this moment.
    next: Nanos,
    none: Option<String>,
}

/// A read in progress. Storage that hangs keeps it there, and with it one thread for each recording.
#[derive(Debug)]
struct PreviewRead {
    task: DetachedTask<(PreviewReader, Result<Option<PreviewFrame>, String>)>,
    begun: Nanos,
}

/// The listener for viewers, and the rate of their frames.
#[derive(Debug)]
pub struct PreviewListener {
    listener: ServiceListener,
    address: String,
    every: Nanos,
}

impl PreviewListener {
    /// Listens at the address of the options for viewers in `reach`. `None` if the options name no address.
    ///
    /// # Errors
    ///
    /// It can't listen there, or has no permission to. The rate is not possible. Clients of HTTP need tokens or
    /// certificates, which ZeroMQ does not have.
    pub fn open(
        options: &PreviewOptions,
        reach: ClientReach<'_>,
        log: OperatorLog,
    ) -> Result<Option<Self>, ServiceError> {
        let every = options.period()?;
        let Some(address) = &options.address else { return Ok(None) };
        let knows_clients = reach.tokens.is_some() || reach.tls.is_some_and(|tls| tls.clients.is_some());
        let listener = listen("preview", address, ClientReach { tls: None, tokens: None, ..reach }, log)?;
        let at = listener.local_addr().map_err(ServiceError::asked_wrongly)?;
        require(!knows_clients || at.ip().is_loopback() || !reach.clients.is_empty(), || {
            format!(
                "preview = \"{address}\": viewers have neither tokens nor TLS: name the permitted ones with \
                 --allow-clients"
            )
        })?;
        listener.set_nonblocking().map_err(ServiceError::asked_wrongly)?;
        Ok(Some(PreviewListener { listener, address: at.to_string(), every }))
    }

    /// Shows viewers the recordings that `published` names, until the program ends.
    ///
    /// # Errors
    ///
    /// A thread can't be started.
    pub(crate) fn show(self, published: Publisher) -> Result<(), ServiceError> {
        let PreviewListener { listener, address, every } = self;
        let told = PreviewReport { address, ..PreviewReport::default() };
        published.changing().report.preview = Some(told.clone());
        let stream = PreviewStream {
            listener,
            published,
            socket: PublishSocket::default(),
            clock: Clock::start(),
            every,
            told,
            source: None,
            reader: None,
            reading: None,
            next: Nanos(0),
            none: None,
        };
        spawn("preview", move || stream.run())
    }
}

impl PreviewStream {
    fn run(mut self) {
        loop {
            let accepted = self.accept();
            self.socket.tend();
            self.turn_to_latest();
            self.take_in();
            self.begin_if_due();
            self.tell();
            let waited = accepted.and_then(|()| self.socket.wait(self.listener.as_fd(), self.longest_wait()));
            if waited.is_err() {
                thread::sleep(PAUSE.duration());
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok(stream) => self.socket.admit(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Turns to the recording that runs now. It drops everything of the last one, including a read in progress.
    fn turn_to_latest(&mut self) {
        let latest = self.published.read(|published| published.previewed.clone());
        let is_same = match (&latest, &self.source) {
            (Some(latest), Some(source)) => Arc::ptr_eq(latest, source),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            self.none = latest.as_ref().and_then(|source| source.refusal().cloned());
            self.reader = latest.clone().filter(|_| self.none.is_none()).map(PreviewReader::new);
            self.source = latest;
            self.reading = None;
        }
    }

    fn take_in(&mut self) {
        let Some(PreviewRead { task, begun }) = &self.reading else { return };
        let read = match task.outcome() {
            Err(NoOutcome::Unfinished) => return,
            Ok((reader, read)) => {
                self.reader = Some(reader).filter(|reader| !reader.is_over());
                read
            }
            Err(NoOutcome::Gone) => Err("a fault of the recorder itself: see its log".into()),
        };
        self.next = next_read(*begun, self.clock.now(), self.every);
        self.reading = None;
        self.none = read.as_ref().err().cloned();
        if let Ok(Some(frame)) = read {
            let (head, body) = frame.shared();
            self.socket.publish(&head, &body);
        }
    }

    /// Begins a read if one is due and somebody watches. A frame needs memory: the viewers that hold up the oldest
    /// frame lose their connection if all memory of the preview is in use.
    fn begin_if_due(&mut self) {
        let begun = self.clock.now();
        if self.reading.is_some() || begun < self.next || self.socket.subscribers() == 0 {
            return;
        }
        let Some(reader) = self.reader.take() else { return };
        if self.socket.under_way() as u64 >= PREVIEW_FRAMES - 1 {
            self.socket.close_slowest();
        }
        match DetachedTask::begin("preview-frame", move || read(reader)) {
            Ok(task) => self.reading = Some(PreviewRead { task, begun }),
            Err(error) => self.none = Some(format!("can't start a thread: {error}")),
        }
    }

    /// Publishes the counts, if they are new.
    fn tell(&mut self) {
        let counts = self.socket.counts();
        let report = PreviewReport {
            address: self.told.address.clone(),
            viewers: self.socket.subscribers(),
            frames: counts.messages,
            sent: counts.sent,
            dropped: counts.dropped,
            closed: counts.closed,
            none: self.none.clone(),
        };
        if report != self.told {
            self.published.changing().report.preview = Some(report.clone());
            self.told = report;
        }
    }

    fn longest_wait(&self) -> Nanos {
        if self.reading.is_some() {
            return STEP;
        }
        let has_due = self.reader.is_some() && self.socket.subscribers() > 0;
        if has_due { self.next.since(self.clock.now()).min(LOOK) } else { LOOK }
    }
}

/// Reads the latest frame. It may wait for storage, so it runs on a thread of its own.
fn read(mut reader: PreviewReader) -> (PreviewReader, Result<Option<PreviewFrame>, String>) {
    step_back();
    let read = reader.read();
    (reader, read)
}
