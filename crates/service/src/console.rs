//! Where those who command the recorder and those who ask about it meet the thread that runs it. Questions are answered
//! from the last report and wait for nobody; orders wait their turn, for a limited time.

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

/// What became of an order: the state then.
pub(crate) type OrderAnswer = Result<ServiceReport, RefusedOrder>;

/// An order, and where its answer goes.
#[derive(Debug)]
pub(crate) struct QueuedOrder {
    pub(crate) order: RecorderOrder,
    pub(crate) answer: SyncSender<OrderAnswer>,
}

/// Where orders are given and questions answered. Clones are the same console.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// None where nothing may be commanded.
    orders: Option<SyncSender<QueuedOrder>>,
    published: Arc<Mutex<Published>>,
    frames: Arc<LatestFrames>,
}

/// What the thread of the recorder publishes for those who ask.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) report: ServiceReport,
    /// The recordings that have ended, oldest first.
    pub(crate) scans: Vec<EndedScan>,
    /// The last minutes.
    pub(crate) history: StatusHistory,
    /// Where pictures are from: the recording that runs, or the last one.
    pub(crate) pictured: Option<Arc<PictureSource>>,
}

/// All that a page of the recorder shows, at one moment.
#[derive(Debug)]
pub(crate) struct LiveReport {
    pub(crate) report: ServiceReport,
    pub(crate) history: HistoryColumns,
    /// The recordings that ended last, the latest first.
    pub(crate) ended: Vec<EndedScan>,
}

/// What became of an order within the time that one waits for it.
#[derive(Debug)]
pub(crate) enum OrderOutcome {
    /// It was carried out.
    Done(Box<ServiceReport>),
    /// It is being carried out.
    UnderWay(Box<ServiceReport>),
}

/// Orders that wait.
const WAITING: usize = 8;
/// Recordings that have ended, as many as a page shows.
const LAST: usize = 8;

impl Published {
    /// The figures of the recording that runs, now.
    pub(crate) fn tell(&mut self, now: Nanos, status: Status) {
        self.history.see(now, Moment(Calendar::now().time), &status);
        self.report.recording = Some(status);
    }
}

impl Console {
    /// A console, and the end of it that orders come out of.
    pub(crate) fn new() -> (Self, Receiver<QueuedOrder>, Arc<Mutex<Published>>) {
        let (orders, asked) = sync_channel(WAITING);
        let published = Arc::new(Mutex::new(Published::default()));
        (Console::over(Some(orders), published.clone()), asked, published)
    }

    /// A console that only tells.
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

    /// Tells the recorder something, and waits so long for what became of it.
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

    /// How it is.
    pub(crate) fn report(&self) -> ServiceReport {
        self.published().report.clone()
    }

    /// The recordings that have ended, oldest first.
    pub(crate) fn scans(&self) -> Vec<EndedScan> {
        self.published().scans.clone()
    }

    /// How it is, and how it was in the last minutes.
    pub(crate) fn live(&self) -> LiveReport {
        let published = self.published();
        LiveReport {
            report: published.report.clone(),
            history: published.history.columns(),
            ended: published.scans.iter().rev().take(LAST).cloned().collect(),
        }
    }

    /// The latest frame as a picture, for which storage may have to be asked: not for the thread of the recorder.
    pub(crate) fn latest_frame(&self) -> FrameAnswer {
        let pictured = self.published().pictured.clone();
        let source = pictured.ok_or("nothing was recorded yet")?;
        self.frames.latest(&source)
    }
}
