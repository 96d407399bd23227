//! The console between clients and the recorder's thread. It answers questions from the last report without
//! waiting. Orders wait their turn, for a limited time.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use crate::{
    history::{HistoryColumns, StatusHistory},
    latest_frame::{FrameAnswer, LatestFrames, PictureSource},
    state::{EndedScan, RecorderOrder, RefusedOrder, ServiceReport},
};

/// The answer to an order: the report after it, or the reason for a refusal.
pub(crate) type OrderAnswer = Result<ServiceReport, RefusedOrder>;

/// An order, and the receiver of its answer.
#[derive(Debug)]
pub(crate) struct QueuedOrder {
    pub(crate) order: RecorderOrder,
    pub(crate) answer: SyncSender<OrderAnswer>,
}

/// Takes orders and answers questions. Clones share one console.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// The queue of orders, or `None` if the recorder takes no commands.
    orders: Option<SyncSender<QueuedOrder>>,
    published: Arc<Mutex<Published>>,
    frames: Arc<LatestFrames>,
}

/// The state that the recorder's thread publishes for clients.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) report: ServiceReport,
    /// The recordings that have ended, oldest first.
    pub(crate) scans: Vec<EndedScan>,
    /// The last minutes.
    pub(crate) history: StatusHistory,
    /// The source of pictures: the running recording, or the last one.
    pub(crate) pictured: Option<Arc<PictureSource>>,
}

/// Everything that a page of the recorder shows, at one moment.
#[derive(Debug)]
pub(crate) struct LiveReport {
    pub(crate) report: ServiceReport,
    pub(crate) history: HistoryColumns,
    /// The recordings that ended last, the latest first.
    pub(crate) ended: Vec<EndedScan>,
}

/// The outcome of an order when the client's patience ends.
#[derive(Debug)]
pub(crate) enum OrderOutcome {
    /// The recorder has carried it out.
    Done(Box<ServiceReport>),
    /// The recorder is still carrying it out.
    UnderWay(Box<ServiceReport>),
}

/// The most orders that wait.
const WAITING: usize = 8;
/// The number of ended recordings that a page shows.
const LAST: usize = 8;

impl Published {
    /// Publishes the current figures of the running recording.
    pub(crate) fn tell(&mut self, now: Nanos, status: Status) {
        self.history.see(now, Moment(Calendar::now().time), &status);
        self.report.show(Some(status));
    }
}

impl Console {
    /// A console, the queue of its orders, and the state to publish to.
    pub(crate) fn new() -> (Self, Receiver<QueuedOrder>, Arc<Mutex<Published>>) {
        let (orders, asked) = sync_channel(WAITING);
        let published = Arc::new(Mutex::new(Published::default()));
        (Console::over(Some(orders), published.clone()), asked, published)
    }

    /// A console that takes no orders.
    pub(crate) fn without_orders() -> (Self, Arc<Mutex<Published>>) {
        let published = Arc::new(Mutex::new(Published::default()));
        (Console::over(None, published.clone()), published)
    }

    fn over(orders: Option<SyncSender<QueuedOrder>>, published: Arc<Mutex<Published>>) -> Self {
        Console { orders, published, frames: Arc::new(LatestFrames::new()) }
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an order to the recorder and waits up to `patience` for the outcome.
    pub(crate) fn order(
        &self,
        order: RecorderOrder,
        patience: Duration,
    ) -> Result<OrderOutcome, RefusedOrder> {
        let (answer, answered) = sync_channel(1);
        let Some(orders) = &self.orders else {
            return Err(RefusedOrder::WrongState("it takes no commands: `nilometer serve` does".into()));
        };
        orders.try_send(QueuedOrder { order, answer }).map_err(|error| match error {
            TrySendError::Full(_) => RefusedOrder::Busy,
            TrySendError::Disconnected(_) => RefusedOrder::Failed("the recorder ends".into()),
        })?;
        match answered.recv_timeout(patience) {
            Ok(answer) => answer.map(|report| OrderOutcome::Done(Box::new(report))),
            Err(RecvTimeoutError::Timeout) => Ok(OrderOutcome::UnderWay(Box::new(self.report()))),
            Err(RecvTimeoutError::Disconnected) => Err(RefusedOrder::Failed("the recorder ends".into())),
        }
    }

    /// The last report.
    pub(crate) fn report(&self) -> ServiceReport {
        self.published().report.clone()
    }

    /// The recordings that have ended, oldest first.
    pub(crate) fn scans(&self) -> Vec<EndedScan> {
        self.published().scans.clone()
    }

    /// The last report with the history of the last minutes.
    pub(crate) fn live(&self) -> LiveReport {
        let published = self.published();
        LiveReport {
            report: published.report.clone(),
            history: published.history.columns(),
            ended: published.scans.iter().rev().take(LAST).cloned().collect(),
        }
    }

    /// The latest frame as a picture. It may read storage, so the recorder's thread must not call it.
    pub(crate) fn latest_frame(&self) -> FrameAnswer {
        let pictured = self.published().pictured.clone();
        let source = pictured.ok_or("nothing was recorded yet")?;
        self.frames.latest(&source)
    }
}
