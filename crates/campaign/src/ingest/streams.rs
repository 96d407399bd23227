//! Streams of packets between machines. Each process lists the streams that it awaits, and sends those that
//! other machines await of it. Afterwards the sender reports its counts to the recorder. The processes exchange
//! no messages while packets flow.

use std::{sync::Arc, thread};

use nilometer_cluster::{AwaitedStream, ClusterDecision, RankReport};
use nilometer_model::{Invalid, Seed, SentPackets};
use nilometer_plan::{RecordingRun, Route};

use super::{
    Member,
    over_network::{Sends, StreamSent},
    sample::usage_of,
    together::RecordingRanks,
};
use nilometer_storage::process::Usage;

use crate::{supervise::GLANCE, task::Run};

/// The streams of a recording, some of which this process sends.
#[derive(Debug, Default)]
pub(super) struct OwnStreams {
    /// All streams that any process awaits.
    all: Vec<AwaitedStream>,
    /// The streams that this process sends, with their numbers among all.
    sends: Vec<(usize, Result<Sends, Invalid>)>,
}

/// The streams that members await from other machines. `cells` has the numbers of this process's cells among
/// all.
pub(super) fn awaited(by: u32, members: &[Member], cells: &[usize]) -> Vec<AwaitedStream> {
    let of_member = |member: &Member| {
        let packets = member.packets.as_ref().filter(|packets| packets.sends.is_none())?;
        let StreamSent { to, begins, seed, lot, .. } = packets.awaited;
        Some(AwaitedStream { by, cell: cells[member.cell], to, begins, seed, lot })
    };
    members.iter().filter_map(of_member).collect()
}

impl RecordingRanks<'_> {
    /// Agrees on the streams between machines, once all are ready to record; there are none if no cell has any.
    /// Returns `None` if the campaign is over, and an error if some can't be sent.
    pub(super) fn streams(
        &self,
        run: &Run,
        cells: &[(RecordingRun, Seed)],
        awaited: Vec<AwaitedStream>,
    ) -> Option<Result<OwnStreams, Invalid>> {
        if !cells.iter().any(|(cell, _)| cell.route == Route::Network) {
            return Some(Ok(OwnStreams::default()));
        }
        let reports = self.cluster.gather(RankReport::Awaits(awaited));
        let decided = (self.cluster.rank() == 0).then(|| {
            let of_rank = |report| match report {
                RankReport::Awaits(awaited) => awaited,
                other => unreachable!("every rank reports its awaited streams, but one sent {other:?}"),
            };
            ClusterDecision::Send(reports.into_iter().flat_map(of_rank).collect())
        });
        let ClusterDecision::Send(all) = self.cluster.broadcast(decided) else {
            unreachable!("rank 0 sends the awaited streams")
        };
        let made = self.own_streams(run, cells, all);
        let ready = self.all_ready(made.as_ref().err(), &|| run.is_over())?;
        Some(ready.and(made))
    }

    fn own_streams(
        &self,
        run: &Run,
        cells: &[(RecordingRun, Seed)],
        all: Vec<AwaitedStream>,
    ) -> Result<OwnStreams, Invalid> {
        let mut sends = Vec::new();
        for (number, stream) in all.iter().enumerate() {
            let (cell, _) = &cells[stream.cell];
            if self.ranks.nodes.sender_to(stream.by, cell) == Some(self.cluster.rank()) {
                let instrument = nilometer_model::Instrument { streams: 1, ..cell.instrument.clone() };
                let AwaitedStream { to, begins, seed, lot, .. } = *stream;
                let sent = StreamSent { instrument, duration: cell.duration, seed, to, begins, lot };
                sends.push((number, Ok(sent.sends(run.clock, Arc::default())?)));
            }
        }
        Ok(OwnStreams { all, sends })
    }

    /// Returns the packet counts of each stream that this process awaited, in order, and the resources that its
    /// own sending took. Waits until it has sent everything.
    pub(super) fn sent(&self, run: &Run, streams: OwnStreams) -> (Vec<Result<SentPackets, Invalid>>, Usage) {
        if streams.all.is_empty() {
            return (Vec::new(), Usage::default());
        }
        while streams.is_busy() && !run.is_over() {
            thread::sleep(GLANCE.duration());
        }
        let went = |(number, sends): (usize, Result<Sends, Invalid>)| {
            (number, sends.and_then(|mut sends| sends.went(run.hang_after)))
        };
        let own: Vec<_> = streams.sends.into_iter().map(went).collect();
        let usages = own.iter().filter_map(|(_, sent)| Some(usage_of(sent.as_ref().ok()?)));
        let sending = usages.fold(Usage::default(), Usage::and);
        let reports = self.cluster.gather(RankReport::Sent(own));
        let decided = (self.cluster.rank() == 0).then(|| {
            let of_rank = |report| match report {
                RankReport::Sent(sent) => sent,
                other => unreachable!("every rank reports its sent streams, but one sent {other:?}"),
            };
            let mut sent: Vec<_> = reports.into_iter().flat_map(of_rank).collect();
            sent.sort_by_key(|(number, _)| *number);
            ClusterDecision::Sent(sent)
        });
        let ClusterDecision::Sent(sent) = self.cluster.broadcast(decided) else {
            unreachable!("rank 0 sends the sent streams")
        };
        let is_ours = |number: usize| streams.all[number].by == self.cluster.rank();
        let ours = sent.into_iter().filter(|(number, _)| is_ours(*number)).map(|(_, sent)| sent);
        (ours.collect(), sending)
    }
}

impl OwnStreams {
    /// Starts the senders: the first packets are due now.
    pub(super) fn begin(&mut self) {
        for (_, sends) in &mut self.sends {
            let begun = sends.as_mut().map_or(Ok(()), Sends::begin);
            if let Err(error) = begun {
                *sends = Err(Invalid::Refused(format!("over the network: {error}")));
            }
        }
    }

    /// Ends the senders: no more packets are due.
    pub(super) fn cease(&self) {
        self.sends.iter().filter_map(|(_, sends)| sends.as_ref().ok()).for_each(Sends::cease);
    }

    fn is_busy(&self) -> bool {
        self.sends.iter().filter_map(|(_, sends)| sends.as_ref().ok()).any(Sends::is_busy)
    }
}
