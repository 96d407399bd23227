//! The console between clients and the recorder's thread. It answers questions from the last report without
//! waiting. Orders wait their turn, for a limited time.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    dump::{DumpReport, Dumps},
    history::HistoryColumns,
    latest_frame::{FrameAnswer, LatestFrames},
    publisher::{LAST_SCANS, NewsFollower, NewsPace, Publisher, SeenChanges, ServiceNews},
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
    published: Publisher,
    frames: Arc<LatestFrames>,
    dumps: Dumps,
}

/// Everything that a page of the recorder shows, at one moment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LiveReport {
    pub(crate) report: ServiceReport,
    pub(crate) history: HistoryColumns,
    /// The recordings that ended last, the latest first.
    pub(crate) ended: Vec<EndedScan>,
    /// The dumps that run, the oldest first, and behind them the youngest one that has ended.
    pub(crate) dumps: Vec<DumpReport>,
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

impl Console {
    /// A console, the queue of its orders, and the state to publish to. Dumps may go into these directories.
    pub(crate) fn new(dumps: Vec<PathBuf>) -> (Self, Receiver<QueuedOrder>, Publisher) {
        let (orders, asked) = sync_channel(WAITING);
        let published = Publisher::default();
        (Console::over(Some(orders), published.clone(), dumps), asked, published)
    }

    /// A console that takes no orders to the recorder. Dumps may go into these directories.
    pub(crate) fn without_orders(dumps: Vec<PathBuf>) -> (Self, Publisher) {
        let published = Publisher::default();
        (Console::over(None, published.clone(), dumps), published)
    }

    fn over(orders: Option<SyncSender<QueuedOrder>>, published: Publisher, dumps: Vec<PathBuf>) -> Self {
        let dumps = Dumps::new(dumps, published.clone());
        Console { orders, published, frames: Arc::new(LatestFrames::new()), dumps }
    }

    /// The dumps of recordings.
    pub(crate) fn dumps(&self) -> &Dumps {
        &self.dumps
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
        self.published.read(|published| published.report.clone())
    }

    /// The recordings that have ended, oldest first.
    pub(crate) fn scans(&self) -> Vec<EndedScan> {
        self.published.read(|published| published.scans.clone())
    }

    /// The last report with the history of the last minutes.
    pub(crate) fn live(&self) -> LiveReport {
        // Dumps read the published state while the table is locked, so the page reads one after the other.
        let dumps = self.dumps.current();
        self.published.read(|published| LiveReport {
            report: published.report.clone(),
            history: published.history.columns(),
            ended: published.scans.iter().rev().take(LAST_SCANS).cloned().collect(),
            dumps,
        })
    }

    /// Counts a client that follows the changes.
    pub(crate) fn follow(&self) -> NewsFollower {
        self.published.follow()
    }

    /// Waits for a change since the client last looked; `None` if nothing changes in time.
    pub(crate) fn await_news(&self, seen: Option<SeenChanges>, pace: NewsPace) -> Option<ServiceNews> {
        self.published.await_news(seen, pace)
    }

    /// The latest frame as a picture. It may read storage, so the recorder's thread must not call it.
    pub(crate) fn latest_frame(&self) -> FrameAnswer {
        let pictured = self.published.read(|published| published.pictured.first().cloned());
        let source = pictured.ok_or("nothing was recorded yet")?;
        self.frames.latest(&source)
    }
}
