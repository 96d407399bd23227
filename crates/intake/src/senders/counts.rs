//! The counters of each sender and each thread: packets received, packets missing, and silence while others
//! send.

use std::net::SocketAddr;

use nilometer_model::Nanos;
use nilometer_wire::StreamThread;

use crate::assembly::{PacketTally, ThreadTally};

/// The counters of a sender, in packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Its address and port, if known. If several senders share one stream, it is the first one's.
    pub sender: Option<SocketAddr>,
    /// Packets with a place in the recording.
    pub placed: u64,
    /// Bytes of them that are kept.
    pub bytes: u64,
    /// Missing packets.
    pub missing: u64,
    /// Times that consecutive packets were missing.
    pub losses: u64,
    /// The largest number of consecutive missing packets.
    pub longest_loss: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Number of packets that overtook these, in all.
    pub overtaken: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that arrived when their place was already closed.
    pub late: u64,
    /// Packets that found no free slot in the ring.
    pub refused: u64,
    /// Times that its numbers began anew, or jumped.
    pub restarts: u64,
    /// How long it has been silent while others sent. `None` if it sends, or if nobody does.
    pub silent: Option<Nanos>,
    /// Its threads, if the format has any.
    pub threads: Vec<ThreadCounts>,
}

/// The counters of a thread, in frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// The station. `None` if the format has none.
    pub station: Option<u16>,
    /// The thread.
    pub thread: u16,
    /// Frames received that have a place in the recording.
    pub came: u64,
    /// Missing frames, in closed blocks.
    pub missing: u64,
    /// How long it has been silent while other threads sent. `None` if it sends.
    pub silent: Option<Nanos>,
}

impl SenderCounts {
    pub(super) fn of(sender: Option<SocketAddr>, tally: &PacketTally) -> Self {
        SenderCounts {
            sender,
            placed: tally.placed,
            bytes: tally.bytes,
            missing: tally.lost(),
            losses: tally.losses,
            longest_loss: tally.longest_loss,
            reordered: tally.reordered,
            overtaken: tally.overtaken,
            duplicates: tally.duplicates,
            late: tally.late,
            refused: tally.refused,
            restarts: tally.restarts + tally.jumps,
            silent: None,
            threads: Vec::new(),
        }
    }
}

impl ThreadCounts {
    /// Counts of a thread that has these tallies of closed blocks, while others have places for `open` frames. Frames
    /// that came and have no place, such as those far off, are not counted.
    pub(super) fn of(thread: StreamThread, tallies: &[ThreadTally], open: u64) -> Self {
        let StreamThread { station, thread, came } = thread;
        let mut same = tallies.iter().filter(|tally| tally.thread == thread);
        let tally = same.clone().find(|tally| Some(tally.station) == station).or_else(|| same.next());
        let ThreadTally { placed, missing, .. } = tally.copied().unwrap_or_default();
        let came = came.min(placed + open);
        ThreadCounts { station, thread, came, missing, silent: None }
    }
}

/// Minimum silence of a source that counts as silent, if another sent [`OTHERS`] packets meanwhile.
const SILENT: Nanos = Nanos::from_millis(500);
/// Minimum number of packets from another source in that time.
const OTHERS: u64 = 16;

/// The state of one of several sources.
#[derive(Debug, Clone, Copy)]
struct WatchedSource {
    count: u64,
    /// When its count last grew.
    heard: Nanos,
    /// The highest count of any source at that time.
    most: u64,
}

/// Detects which of several sources are silent while others go on.
#[derive(Debug, Clone, Default)]
pub struct SilenceWatch {
    sources: Vec<WatchedSource>,
    begun: Option<Nanos>,
}

impl SilenceWatch {
    /// Takes the current counts and returns how long each source has been silent. Sources keep their places.
    pub fn look(&mut self, now: Nanos, counts: &[u64]) -> Vec<Option<Nanos>> {
        let begun = *self.begun.get_or_insert(now);
        // Compares the growth of each with that of the one that grew most since the last look.
        let growth: u64 = (0..)
            .zip(counts)
            .map(|(at, count): (usize, &u64)| {
                count.saturating_sub(self.sources.get(at).map_or(0, |source| source.count))
            })
            .max()
            .unwrap_or(0);
        let total = self.sources.iter().map(|source| source.most).max().unwrap_or(0) + growth;
        for (at, &count) in counts.iter().enumerate() {
            match self.sources.get_mut(at) {
                Some(source) if source.count == count => {}
                Some(source) => *source = WatchedSource { count, heard: now, most: total },
                None if count == 0 => self.sources.push(WatchedSource { count, heard: begun, most: 0 }),
                None => self.sources.push(WatchedSource { count, heard: now, most: total }),
            }
        }
        let silent = |source: &WatchedSource| {
            let time = now.since(source.heard);
            (time >= SILENT && total.saturating_sub(source.most) >= OTHERS).then_some(time)
        };
        self.sources.iter().map(silent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_a_place_in_the_recording_do_not_count_as_received() {
        let thread = StreamThread { station: Some(7), thread: 1, came: 2000 };
        let tally = ThreadTally { station: 7, thread: 1, placed: 900, missing: 3 };
        let of = |tallies: &[ThreadTally], open| {
            let counts = ThreadCounts::of(thread, tallies, open);
            (counts.came, counts.missing)
        };
        assert_eq!(of(&[tally], 0), (900, 3));
        assert_eq!(of(&[tally], 64), (964, 3), "those of open blocks are not counted one by one");
        assert_eq!(of(&[], 0), (0, 0), "all were refused");
    }

    fn at(milliseconds: u64) -> Nanos {
        Nanos::from_millis(milliseconds)
    }

    #[test]
    fn a_source_is_silent_if_another_goes_on() {
        let mut watch = SilenceWatch::default();
        let mut look = |time, counts: &[u64]| watch.look(at(time), counts);
        assert_eq!(look(0, &[0, 0]), [None, None]);
        assert_eq!(look(100, &[50, 40]), [None, None]);
        assert_eq!(look(700, &[60, 40]), [None, None], "ten packets of the other are too few");
        assert_eq!(look(800, &[80, 40]), [None, Some(at(700))]);
        assert_eq!(look(900, &[90, 41]), [None, None], "it sends again");
        assert_eq!(look(5000, &[90, 41]), [None, None], "nobody sends");
    }

    #[test]
    fn a_source_that_never_came_is_silent_from_the_beginning() {
        let mut watch = SilenceWatch::default();
        watch.look(at(0), &[1, 0]);
        assert_eq!(watch.look(at(400), &[100, 0]), [None, None]);
        assert_eq!(watch.look(at(600), &[200, 0]), [None, Some(at(600))]);
        assert_eq!(watch.look(at(700), &[300, 0, 8]), [None, Some(at(700)), None]);
    }
}
