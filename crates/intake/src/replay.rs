//! Sends a recording again, packet by packet, as its instrument sent it.
//!
//! ```text
//! RecordingView -> a thread that reads ahead -> what stands in front of packets (format) -> pace -> Outlet
//! ```

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use nilometer_model::{ByteRate, Frequency, Nanos};
use nilometer_storage::{Calendar, Clock};

use crate::transport::{CatchUp, InStep, Outlet, SendPace, Sent, Waiting};
use nilometer_recording::{
    OVERWRITTEN,
    view::{ReadAhead, RecordingView},
};
use nilometer_wire::{Geometry, Known, Packet, WireFormat};

/// Options of a replay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replaying {
    /// The serial number of the first packet.
    pub serial: u64,
    /// Bytes of frames a second. `None`: the rate at which the recording arrived.
    pub rate: Option<ByteRate>,
}

/// Why a recording can't be sent again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Its frames never were packets.
    #[error("the recording is not of packets: replay can't send its frames")]
    NotPackets,
    /// The packet format is unknown, or its packets can't be made again.
    #[error("its packets can't be made again: {0}")]
    Format(String),
    /// It has no times from which to derive a rate.
    #[error("the recording has no times from which to take its rate: give a --rate")]
    Rate,
    /// The recorder keeps only the latest data, and overtook the replay.
    #[error("{OVERWRITTEN}")]
    Overwritten,
    /// The reading thread ended before the recording did: a bug of this program, which that thread has
    /// reported.
    #[error("internal error: the thread that reads the recording ended early, before everything was sent")]
    Reader,
    /// The network failed, or the reading thread could not start.
    #[error("can't send: {0}")]
    Network(#[from] io::Error),
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replayed {
    /// The counters of the outlets.
    pub sent: Sent,
    /// Time from the first packet to the last.
    pub wall: Nanos,
    /// The largest delay of a burst.
    pub latest: Nanos,
    /// How often the sender had to wait for data that were not yet recorded or read.
    pub waited: u64,
    /// True if it was stopped before the end.
    pub stopped: bool,
}

/// Size of the pieces that are read, and number of pieces read ahead.
const PIECE: u64 = 1 << 20;
const PIECES: usize = 16;
/// Interval between looks for more of a recording in progress.
const LOOK: Duration = Duration::from_millis(20);
/// Number of looks without new data after which the recorder counts as dead: the rest is sent.
const QUIET: u32 = 3000;
/// A sender that had nothing to send for longer restarts its pace.
const STARVED: Nanos = Nanos::from_millis(2);

/// Packets of a recording, ready to be sent.
#[derive(Debug)]
pub struct Replay {
    whole: Arc<RecordingView>,
    format: Box<dyn WireFormat>,
    /// Number of ports at which the packets of a frame arrived, in the order of its parts.
    ports: usize,
    pace: SendPace,
}

impl Replay {
    /// Reads from the recording how to make its packets, and how fast they arrived.
    pub fn new(whole: Arc<RecordingView>, replaying: Replaying) -> Result<Self, ReplayError> {
        let wire = whole.wire().ok_or(ReplayError::NotPackets)?;
        let survey = whole.survey();
        // Making packets requires a rate, although only headers that are not sent contain it.
        let known = Known {
            serial: replaying.serial,
            frames_per_second: survey.frames_per_second.or(Some(1)),
            ..wire.known()
        };
        let format = nilometer_wire::of(&wire.packets, &known).map_err(ReplayError::Format)?;
        let parts = format.geometry().parts.len() as f64;
        let frames = match replaying.rate {
            Some(rate) => rate.0 / whole.frame_size() as f64,
            None => own_rate(&whole).ok_or(ReplayError::Rate)?,
        };
        let pace = SendPace::new(Frequency(frames * parts));
        Ok(Replay { whole, format, ports: wire.packets.ports().into(), pace })
    }

    /// Number of ports at which the packets arrived: some detectors have one for each module.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// The port at which a part of a frame arrived.
    fn port(&self, part: usize) -> usize {
        part * self.ports / self.format.geometry().parts.len()
    }

    /// Sends everything, until the end or until `stop` is set: to an outlet for each port, or all to one.
    /// `tell` gets the number of frame bytes sent so far.
    ///
    /// # Panics
    ///
    /// Without any outlet.
    pub fn run(
        self,
        outlets: &mut [Box<dyn Outlet>],
        clock: Clock,
        stop: &AtomicBool,
        mut tell: impl FnMut(u64),
    ) -> Result<Replayed, ReplayError> {
        // Fewer large frames wait.
        let waiting = PIECES as u64 * PIECE / self.whole.frame_size().max(PIECE);
        let (pieces, full) = mpsc::sync_channel(waiting as usize);
        let over = Arc::new(AtomicBool::new(false));
        let reader = thread::Builder::new().name("ahead".into()).spawn({
            let whole = self.whole.clone();
            let over = over.clone();
            move || read_ahead(&whole, &over, &pieces)
        })?;
        let sent = Sending::new(&self, clock).all(outlets, &full, stop, &mut tell);
        over.store(true, Ordering::Relaxed);
        // A reader that waits for space notices that the receiver is gone.
        drop(full);
        match reader.join() {
            Ok(false) => sent,
            Ok(true) => Err(ReplayError::Overwritten),
            Err(_) => Err(ReplayError::Reader),
        }
    }
}

/// Frames a second at their arrival: by their headers, or by the times at which blocks were complete.
fn own_rate(whole: &RecordingView) -> Option<f64> {
    let survey = whole.survey();
    if let Some(rate) = survey.frames_per_second {
        return Some(rate as f64 * survey.lanes.len().max(1) as f64);
    }
    whole.recording(|recording| {
        let [(first, begin), (last, end)] = recording.index.recent_span()?;
        let seconds = end.since(begin).seconds();
        let count = (last - first) * whole.frames_of_block();
        (seconds > 0.0 && count > 0).then(|| count as f64 / seconds)
    })
}

/// The current reading of the system's clock.
fn running() -> Nanos {
    Calendar::now().running
}

/// Reads all frames and hands them over, including those still to be recorded. It stops at the first frame
/// that was overwritten, and returns true if there was one.
fn read_ahead(whole: &Arc<RecordingView>, over: &AtomicBool, pieces: &SyncSender<Vec<u8>>) -> bool {
    let size = whole.frame_size();
    let ahead = ReadAhead::new(whole.clone());
    let piece = (PIECE / size).max(1) * size;
    let (mut offset, mut quiet) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let length = (whole.length() - offset).min(piece) / size * size;
        if length > 0 {
            let mut bytes = vec![0; length as usize];
            ahead.read_at(offset, &mut bytes);
            if whole.is_overwritten(offset..offset + length) {
                return true;
            }
            offset += length;
            if pieces.send(bytes).is_err() {
                break;
            }
        } else if whole.is_complete() || quiet > QUIET {
            break;
        } else {
            thread::sleep(LOOK);
            quiet = if whole.refresh() { 0 } else { quiet + 1 };
            if quiet == QUIET {
                whole.settle();
            }
        }
    }
    false
}

/// The sending side of a replay.
struct Sending<'a> {
    replay: &'a Replay,
    clock: Clock,
    scratch: Vec<u8>,
    /// Number of frames taken.
    frames: u64,
    /// The pace since its last restart, and the packets sent since then.
    in_step: InStep,
    paced: u64,
    catch_up: CatchUp,
    /// When the first packet was due.
    begun: Option<Nanos>,
    replayed: Replayed,
}

impl<'a> Sending<'a> {
    fn new(replay: &'a Replay, clock: Clock) -> Self {
        let scratch = vec![0; replay.format.geometry().packet_size()];
        let in_step = InStep::new(clock.now(), running());
        Sending {
            replay,
            clock,
            scratch,
            frames: 0,
            in_step,
            paced: 0,
            catch_up: CatchUp::default(),
            begun: None,
            replayed: Replayed::default(),
        }
    }

    fn all(
        mut self,
        outlets: &mut [Box<dyn Outlet>],
        full: &Receiver<Vec<u8>>,
        stop: &AtomicBool,
        tell: &mut impl FnMut(u64),
    ) -> Result<Replayed, ReplayError> {
        let mut waiting = Waiting::here();
        let size = self.replay.format.geometry().packet_size();
        let at_once = outlets.iter().map(|outlet| outlet.burst(size)).min().expect("there is an outlet");
        let burst = self.replay.pace.burst(at_once);
        let mut bytes = 0;
        while let Some(piece) = self.next(full, stop) {
            self.piece(outlets, &mut waiting, &piece, burst, stop)?;
            bytes += piece.len() as u64;
            tell(bytes);
            self.replayed.wall = self.clock.now().since(self.begun.unwrap_or_default());
        }
        let stopped = stop.load(Ordering::Relaxed);
        let sent = outlets.iter().map(|outlet| outlet.totals()).fold(Sent::default(), Sent::and);
        Ok(Replayed { sent, stopped, ..self.replayed })
    }

    /// Returns the next frames. If it had to wait for them, the pace restarts with them.
    fn next(&mut self, full: &Receiver<Vec<u8>>, stop: &AtomicBool) -> Option<Vec<u8>> {
        let asked = self.clock.now();
        let piece = loop {
            match full.recv_timeout(LOOK) {
                _ if stop.load(Ordering::Relaxed) => return None,
                Ok(piece) => break piece,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            }
        };
        let now = self.clock.now();
        if self.begun.is_none() || now.since(asked) > STARVED {
            self.replayed.waited += u64::from(self.begun.is_some());
            self.begun.get_or_insert(now);
            self.in_step = InStep::new(now, running());
            self.paced = 0;
        }
        Some(piece)
    }

    /// Sends these frames when they are due, or as many as leave until it is stopped.
    fn piece(
        &mut self,
        outlets: &mut [Box<dyn Outlet>],
        waiting: &mut Waiting,
        bytes: &[u8],
        burst: usize,
        stop: &AtomicBool,
    ) -> Result<(), ReplayError> {
        let wrapped = self.wrap(bytes);
        let replay = self.replay;
        let packets = packets(replay.format.geometry(), bytes, &wrapped);
        for packets in packets.chunk_by(|one, next| replay.port(one.0) == replay.port(next.0)) {
            let which = replay.port(packets[0].0) % outlets.len();
            let packets: Vec<_> = packets.iter().map(|(_, packet)| *packet).collect();
            for packets in packets.chunks(burst) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.burst(outlets[which].as_mut(), waiting, packets)?;
            }
        }
        Ok(())
    }

    fn burst(
        &mut self,
        outlet: &mut dyn Outlet,
        waiting: &mut Waiting,
        packets: &[Packet<'_>],
    ) -> Result<(), ReplayError> {
        let now = self.clock.now();
        self.in_step.look(now, running);
        let pace = self.replay.pace;
        let next = self.paced + packets.len() as u64;
        let due = self.in_step.at(pace.due(next - 1));
        let length = pace.due(next).since(pace.due(self.paced));
        waiting.until(self.catch_up.release(due, length), now, self.clock);
        self.catch_up.released(self.clock.now());
        outlet.send(packets)?;
        self.paced = next;
        self.replayed.latest = self.replayed.latest.max(self.clock.now().since(due));
        Ok(())
    }

    /// Makes the bytes that these frames lack of their packets: the prefix of each packet. Packets with bytes
    /// after those that are kept follow as a whole.
    fn wrap(&mut self, bytes: &[u8]) -> Vec<u8> {
        let geometry = self.replay.format.geometry().clone();
        let wrapping: usize =
            (0..geometry.parts.len()).map(|part| geometry.prefix + copied(&geometry, part)).sum();
        let frames = bytes.len() / geometry.frame_size();
        let mut wrapped = vec![0; frames * wrapping];
        let mut places = wrapped.as_mut_slice();
        let mut kept = bytes;
        for frame in self.frames..self.frames + frames as u64 {
            for (part, length) in geometry.parts.iter().enumerate() {
                let (prefix, behind) = places.split_at_mut(geometry.prefix);
                let (copy, behind) = behind.split_at_mut(copied(&geometry, part));
                let (body, others) = kept.split_at(*length);
                let made = if copy.is_empty() { &mut self.scratch[..*length] } else { &mut *copy };
                self.replay.format.make(frame, part, prefix, made);
                if !copy.is_empty() {
                    copy[..*length].copy_from_slice(body);
                }
                (places, kept) = (behind, others);
            }
        }
        self.frames += frames as u64;
        wrapped
    }
}

/// Length of the copy of a packet that does not lie in its frame as it was sent; 0 if it does.
fn copied(geometry: &Geometry, part: usize) -> usize {
    let sent = geometry.sent(part);
    if sent == geometry.parts[part] { 0 } else { sent }
}

/// The packets of these frames, each with its part index.
fn packets<'a>(geometry: &Geometry, bytes: &'a [u8], wrapped: &'a [u8]) -> Vec<(usize, Packet<'a>)> {
    let mut packets = Vec::new();
    let mut kept = bytes;
    let mut wraps = wrapped;
    for (part, length) in geometry.parts.iter().enumerate().cycle() {
        if kept.is_empty() {
            break;
        }
        let (prefix, behind) = wraps.split_at(geometry.prefix);
        let (copy, behind) = behind.split_at(copied(geometry, part));
        let (body, others) = kept.split_at(*length);
        packets.push((part, Packet { prefix, body: if copy.is_empty() { body } else { copy } }));
        (wraps, kept) = (behind, others);
    }
    packets
}

#[cfg(test)]
mod tests {
    use nilometer_model::Storing;

    use super::*;
    use crate::transport::trial::Kept;
    use nilometer_recording::view::{
        Extent,
        laid_out::{PACKET_CASES, laid_out, overtaken},
    };

    fn replayed(which: usize, replaying: Replaying, stop: bool) -> (Vec<Vec<u8>>, Vec<u8>, Replayed) {
        let blocks: Vec<_> = (0..40).map(|block| Some(block % 2).filter(|_| block % 7 != 3)).collect();
        let (lanes, reference) = laid_out(PACKET_CASES[which], Storing::Files, 2, &blocks, 3);
        let replay = Replay::new(Arc::new(lanes.whole(Extent::All)), replaying).expect("it was packets");
        let kept = Kept::default();
        let told = replay
            .run(&mut [Box::new(kept.clone())], Clock::start(), &AtomicBool::new(stop), |_| {})
            .expect("memory takes all");
        (kept.packets(), reference, told)
    }

    #[test]
    fn every_packet_leaves_again_with_serial_numbers_from_the_one_that_was_asked_for() {
        let fast = Replaying { serial: 0, rate: Some(ByteRate(1e9)) };
        // Length of the prefix, and position of the serial number.
        for (which, prefix, serial) in [(0, 8, 0..8), (1, 5, 1..5), (3, 8, 4..8), (4, 8, 0..8)] {
            let (packets, reference, _) = replayed(which, Replaying { serial: 77, ..fast }, false);
            let bodies: Vec<u8> = packets.iter().flat_map(|packet| packet[prefix..].to_vec()).collect();
            assert!(bodies == reference, "{which}");
            for (number, packet) in (77..).zip(&packets) {
                let mut digits = [0; 8];
                digits[..serial.len()].copy_from_slice(&packet[serial.clone()]);
                assert_eq!(u64::from_le_bytes(digits), number, "{which}");
            }
        }
        let (packets, _, told) = replayed(0, fast, true);
        assert!(packets.is_empty() && told.stopped);
    }

    #[test]
    fn what_was_overwritten_before_it_was_read_is_not_sent() {
        let (_lanes, whole) = overtaken();
        let fast = Replaying { serial: 0, rate: Some(ByteRate(1e9)) };
        let replay = Replay::new(Arc::new(whole), fast).expect("it was packets");
        let kept = Kept::default();
        let ended =
            replay.run(&mut [Box::new(kept.clone())], Clock::start(), &AtomicBool::new(false), |_| {});
        assert!(matches!(ended, Err(ReplayError::Overwritten)) && kept.packets().is_empty(), "{ended:?}");
    }

    /// Memory that stops the replay with its tenth packet.
    #[derive(Debug)]
    struct Stopping(Kept, Arc<AtomicBool>);

    impl Outlet for Stopping {
        fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
            self.0.send(packets)?;
            self.1.store(self.0.packets().len() >= 10, Ordering::Relaxed);
            Ok(())
        }

        fn burst(&self, packet_size: usize) -> usize {
            self.0.burst(packet_size)
        }

        fn room(&self) -> u64 {
            self.0.room()
        }

        fn totals(&self) -> Sent {
            self.0.totals()
        }
    }

    #[test]
    fn it_stops_before_the_next_burst() {
        let blocks = [Some(0); 10];
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &blocks, 3);
        let slow = Replaying { serial: 0, rate: Some(ByteRate(1e6)) };
        let replay = Replay::new(Arc::new(lanes.whole(Extent::All)), slow).expect("it was packets");
        let (kept, stop) = (Kept::default(), Arc::new(AtomicBool::new(false)));
        let outlet = Stopping(kept.clone(), stop.clone());
        let told =
            replay.run(&mut [Box::new(outlet)], Clock::start(), &stop, |_| {}).expect("memory takes all");
        assert_eq!((kept.packets().len(), told.stopped), (10, true));
    }

    #[test]
    fn it_takes_as_long_as_it_took() {
        // 159 frames of five threads with 200 frames a second each.
        let (packets, _, told) = replayed(0, Replaying::default(), false);
        assert_eq!(packets.len(), 159);
        assert!(told.wall >= Nanos(158_000_000), "{}", told.wall);
    }
}
