//! The subscriptions of one subscriber: the first bytes of the messages that it wants. They come as commands
//! (ZMTP 3.1) or as short messages (ZMTP 3.0), which begin with 1 to subscribe and with 0 to take it back.

use std::io;

/// The most subscriptions of a peer.
const TOPICS_MAX: usize = 32;
/// The longest subscription.
const TOPIC_MAX: u64 = 256;

/// Subscriptions of a peer, with a message of ZMTP 3.0 that is still incomplete.
#[derive(Debug, Default)]
pub(super) struct TopicList {
    topics: Vec<Vec<u8>>,
    came: Vec<u8>,
    missing: usize,
}

impl TopicList {
    /// Returns true if the peer subscribed to anything.
    pub(super) fn is_subscribed(&self) -> bool {
        !self.topics.is_empty()
    }

    /// Returns true if the peer wants a message that begins so.
    pub(super) fn wants(&self, begin: &[u8]) -> bool {
        self.topics.iter().any(|topic| begin.starts_with(topic))
    }

    pub(super) fn subscribe(&mut self, topic: Vec<u8>) -> io::Result<()> {
        if self.topics.len() >= TOPICS_MAX || topic.len() as u64 > TOPIC_MAX {
            return Err(io::Error::other("more subscriptions than a peer may have"));
        }
        self.topics.push(topic);
        Ok(())
    }

    /// Takes back one subscription to this topic.
    pub(super) fn cancel(&mut self, topic: &[u8]) {
        if let Some(at) = self.topics.iter().position(|known| known == topic) {
            self.topics.swap_remove(at);
        }
    }

    /// Begins a message of this length.
    pub(super) fn expect(&mut self, length: u64) -> io::Result<()> {
        if length > TOPIC_MAX {
            return Err(io::Error::other("a subscription longer than any may be"));
        }
        self.missing = length as usize;
        Ok(())
    }

    /// Takes the bytes of the message from those that came, and returns the rest.
    pub(super) fn take<'a>(&mut self, came: &'a [u8]) -> io::Result<&'a [u8]> {
        if self.missing == 0 {
            return Ok(came);
        }
        let (bytes, rest) = came.split_at(self.missing.min(came.len()));
        self.came.extend_from_slice(bytes);
        self.missing -= bytes.len();
        if self.missing > 0 {
            return Ok(rest);
        }
        let message = std::mem::take(&mut self.came);
        match message.split_first() {
            Some((1, topic)) => self.subscribe(topic.to_vec())?,
            Some((0, topic)) => self.cancel(topic),
            // Other messages of a subscriber are for the program, and this one wants none.
            _ => {}
        }
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_subscribe_in_any_pieces() {
        let mut list = TopicList::default();
        list.expect(3).expect("it is short");
        assert_eq!(list.take(b"\x01a").expect("a part of it"), b"");
        assert!(!list.is_subscribed());
        assert_eq!(list.take(b"brest").expect("a subscription"), b"rest");
        assert!(list.wants(b"ab and more") && !list.wants(b"a"));
        list.expect(3).expect("it is short");
        list.take(b"\x00ab").expect("a subscription");
        assert!(!list.is_subscribed());
        assert!(list.expect(TOPIC_MAX + 1).is_err());
        for _ in 0..TOPICS_MAX {
            list.subscribe(Vec::new()).expect("there is room");
        }
        assert!(list.subscribe(Vec::new()).is_err());
    }
}
