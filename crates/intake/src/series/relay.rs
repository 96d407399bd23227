//! Starts and ends of a series between processes that record it together.
//!
//! A ZeroMQ sender gives each message to one of its receivers, in turn. Images are spread over the processes in this
//! way, but every process needs the start and the end. The one that gets such a message sends a copy to the others:
//!
//! ```text
//! detector --- start, end, images, each to one process ---> process 0, process 1, process 2
//! process that got a start or an end --- a copy of it ---> each other process
//! ```
//!
//! A copy has one more part: the key of the recording, and the address of the detector. A message without the key is
//! a stranger's. Images that overtake the start of their series wait for it, as those on another connection do.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
};

use nilometer_model::Nanos;

use crate::transport::zeromq::{
    MessageLimits, MessagePeer, MessageRoom, OutgoingMessage, OutgoingPiece, PullSocket, PushSocket,
    ZmqEndpoint, ZmqMessage,
};

/// Copies that wait for a process which does not take them. Then the oldest are dropped.
const WAITING_MAX: usize = 64;

/// The connections of a process to the others that record the same series.
#[derive(Debug)]
pub struct SeriesRelay {
    socket: PullSocket,
    others: Vec<OtherRecorder>,
    /// The number that all processes of the recording know, and no stranger.
    key: u64,
    /// Messages without the key.
    strangers: u64,
}

/// Another process of the recording.
#[derive(Debug)]
struct OtherRecorder {
    socket: PushSocket,
    waiting: VecDeque<OutgoingMessage>,
}

impl SeriesRelay {
    /// Listens at an address of this machine, on a free port. `limits` are those of the detector's connections.
    ///
    /// # Errors
    /// If it can't listen there.
    pub fn open(at: IpAddr, key: u64, limits: MessageLimits) -> io::Result<Self> {
        let socket = PullSocket::open(&[ZmqEndpoint::Bind(SocketAddr::new(at, 0))], limits)?;
        Ok(SeriesRelay { socket, others: Vec::new(), key, strangers: 0 })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// If the kernel does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let addresses = self.socket.addresses()?;
        addresses.first().copied().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Connects to the other processes.
    pub fn connect(&mut self, others: impl IntoIterator<Item = SocketAddr>) {
        for other in others {
            let socket = PushSocket::connecting(Some(other));
            self.others.push(OtherRecorder { socket, waiting: VecDeque::new() });
        }
    }

    /// Takes the number of messages that came from strangers since the last call.
    pub(super) fn take_strangers(&mut self) -> u64 {
        std::mem::take(&mut self.strangers)
    }

    /// Returns true if copies are not yet with the kernel.
    pub(super) fn has_waiting(&self) -> bool {
        self.others.iter().any(|other| !other.waiting.is_empty() || other.socket.under_way() > 0)
    }

    /// Sends a copy of a message that came from a connection to each of the others.
    pub(super) fn pass_on(&mut self, message: &ZmqMessage) -> io::Result<()> {
        let Some(MessagePeer { address, .. }) = message.peer else { return Ok(()) };
        let mut parts = message.whole_parts();
        parts.push(format!("{:016x} {address}", self.key).into_bytes());
        for other in &mut self.others {
            let pieces = parts.iter().map(|part| vec![OutgoingPiece::Made(part.clone())]);
            if other.waiting.len() == WAITING_MAX {
                other.waiting.pop_front();
            }
            other.waiting.push_back(OutgoingMessage::new(0, pieces.collect()));
        }
        self.tend()
    }

    /// Sends copies that wait, as far as the network takes them.
    ///
    /// # Errors
    /// If there are no more sockets.
    pub(super) fn tend(&mut self) -> io::Result<()> {
        self.others.iter_mut().try_for_each(OtherRecorder::tend)
    }

    /// A copy that another process sent, as if it had come from the detector. `None` if there is none now.
    ///
    /// # Errors
    /// If no message can arrive any more.
    pub(super) fn receive(
        &mut self,
        now: Nanos,
        room: &mut dyn MessageRoom,
    ) -> io::Result<Option<ZmqMessage>> {
        while let Some(mut message) = self.socket.receive(now, Nanos(0), room)? {
            let mark = message.take_last_part();
            if let Some(from) = mark.as_deref().and_then(|mark| self.sender_of(mark)) {
                message.peer = Some(MessagePeer::elsewhere(from));
                return Ok(Some(message));
            }
            self.strangers += 1;
            message.apart.into_iter().flatten().for_each(|buffer| room.give_back(buffer));
        }
        Ok(None)
    }

    /// The detector's address in the last part of a copy. `None` if the part has another key.
    fn sender_of(&self, mark: &[u8]) -> Option<IpAddr> {
        let (key, from) = std::str::from_utf8(mark).ok()?.split_once(' ')?;
        from.parse().ok().filter(|_| u64::from_str_radix(key, 16) == Ok(self.key))
    }
}

impl OtherRecorder {
    fn tend(&mut self) -> io::Result<()> {
        self.socket.tend()?;
        while let Some(message) = self.waiting.pop_front() {
            if let Some(refused) = self.socket.offer(message)? {
                self.waiting.push_front(refused);
                break;
            }
        }
        self.socket.take_sent();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nilometer_storage::Buffer;

    use super::*;
    use crate::transport::zeromq::{RoomAnswer, RoomRequest};

    const KEY: u64 = 0x1234_5678_9abc_def0;

    /// Keeps long strings with the message.
    struct AlongRoom;

    impl MessageRoom for AlongRoom {
        fn room(&mut self, _: RoomRequest<'_>) -> RoomAnswer {
            RoomAnswer::Along
        }

        fn give_back(&mut self, buffer: Buffer) {
            drop(buffer);
        }
    }

    /// Gives long strings memory of their own.
    struct ApartRoom;

    impl MessageRoom for ApartRoom {
        fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer {
            RoomAnswer::Apart(Buffer::alone(asked.length))
        }

        fn give_back(&mut self, buffer: Buffer) {
            drop(buffer);
        }
    }

    fn relay(key: u64) -> SeriesRelay {
        let at = IpAddr::from([127, 0, 0, 1]);
        SeriesRelay::open(at, key, MessageLimits::default()).expect("a free port")
    }

    /// The message that `to` receives once `from` has sent everything.
    fn received(from: &mut SeriesRelay, to: &mut SeriesRelay) -> Option<ZmqMessage> {
        let mut received = None;
        let mut looks = 0;
        while received.is_none() && to.strangers == 0 && looks < 30_000 {
            from.tend().expect("the network is there");
            received = to.receive(Nanos(0), &mut AlongRoom).expect("the network is there");
            looks += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        received
    }

    #[test]
    fn a_copy_has_the_parts_and_the_sender_of_the_message() {
        // The long string of the second part lies apart in the message that came.
        let parts = vec![br#"{"htype":"dheader-1.0"}"#.to_vec(), vec![7; 10_000], b"end".to_vec()];
        let mut message = ZmqMessage::delivered(&parts, &mut ApartRoom).expect("there is room");
        assert_eq!(message.apart.len(), 1);
        let detector = IpAddr::from([10, 0, 0, 7]);
        message.peer = Some(MessagePeer::elsewhere(detector));
        let (mut one, mut other) = (relay(KEY), relay(KEY));
        one.connect([other.address().expect("it listens")]);
        one.pass_on(&message).expect("the network is there");
        let copy = received(&mut one, &mut other).expect("it arrives");
        assert_eq!(copy.whole_parts(), parts);
        assert_eq!(copy.peer.map(|peer| peer.address), Some(detector));
        assert!(!one.has_waiting());
    }

    #[test]
    fn messages_without_the_key_of_the_recording_are_counted_as_those_of_strangers() {
        let (mut stranger, mut own) = (relay(KEY + 1), relay(KEY));
        stranger.connect([own.address().expect("it listens")]);
        let mut message = ZmqMessage::delivered(&[b"start".to_vec()], &mut AlongRoom).expect("it is short");
        message.peer = Some(MessagePeer::elsewhere(IpAddr::from([10, 0, 0, 7])));
        stranger.pass_on(&message).expect("the network is there");
        assert!(received(&mut stranger, &mut own).is_none());
        assert_eq!((own.take_strangers(), own.take_strangers()), (1, 0));
    }
}
