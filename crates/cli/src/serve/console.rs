//! Where those who command the recorder and those who ask about it meet the thread that runs it. Questions are answered
//! from the last report and wait for nobody; orders wait their turn, for a limited time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use super::state::{Order, Refused, Report, Scan};

/// What became of an order: the state then.
pub(super) type Answer = Result<Report, Refused>;

/// An order, and where its answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) order: Order,
    pub(super) answer: SyncSender<Answer>,
}

/// See the module. Clones are the same console.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// None where nothing may be commanded.
    orders: Option<SyncSender<Asked>>,
    news: Arc<Mutex<News>>,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) report: Report,
    /// The recordings that have ended, oldest first.
    pub(super) scans: Vec<Scan>,
}

/// What became of an order within the time that one waits for it.
#[derive(Debug)]
pub(crate) enum Done {
    /// It was carried out.
    Yes(Box<Report>),
    /// It is being carried out.
    NotYet(Box<Report>),
}

/// Orders that wait.
const WAITING: usize = 8;

impl Console {
    /// A console, and the end of it that orders come out of.
    pub(super) fn new() -> (Self, Receiver<Asked>, Arc<Mutex<News>>) {
        let (orders, asked) = sync_channel(WAITING);
        let news = Arc::new(Mutex::new(News::default()));
        (Console { orders: Some(orders), news: news.clone() }, asked, news)
    }

    /// A console that only tells.
    pub(super) fn without_orders() -> (Self, Arc<Mutex<News>>) {
        let news = Arc::new(Mutex::new(News::default()));
        (Console { orders: None, news: news.clone() }, news)
    }

    /// Tells the recorder something, and waits so long for what became of it.
    pub(crate) fn order(&self, order: Order, patience: Duration) -> Result<Done, Refused> {
        let (answer, answered) = sync_channel(1);
        let Some(orders) = &self.orders else {
            return Err(Refused::Order("it takes no commands: `nilometer serve` does".into()));
        };
        orders.try_send(Asked { order, answer }).map_err(|error| match error {
            TrySendError::Full(_) => Refused::Busy,
            TrySendError::Disconnected(_) => Refused::Failed("the recorder ends".into()),
        })?;
        match answered.recv_timeout(patience) {
            Ok(answer) => answer.map(|report| Done::Yes(Box::new(report))),
            Err(RecvTimeoutError::Timeout) => Ok(Done::NotYet(Box::new(self.report()))),
            Err(RecvTimeoutError::Disconnected) => Err(Refused::Failed("the recorder ends".into())),
        }
    }

    /// How it is.
    pub(crate) fn report(&self) -> Report {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).report.clone()
    }

    /// The recordings that have ended, oldest first.
    pub(crate) fn scans(&self) -> Vec<Scan> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).scans.clone()
    }
}
