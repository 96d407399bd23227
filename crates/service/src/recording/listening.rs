//! The sockets for packets: which addresses an instrument's packets have, and how many sockets that makes.
//!
//! ```text
//! one address                  as many neighbouring ports as the instrument has, a socket each
//! an address for each port     a socket each, in the order of the ports
//! several groups at one port   one socket, which keeps the order of their packets
//! any others                   a socket each; their packets become one stream
//! ```

use std::net::{Ipv4Addr, SocketAddr};

use nilometer_intake::transport::udp::{GroupMembership, Listening};
use nilometer_model::packets::PacketPartKind;

use super::{
    addresses::{ListenAddress, PacketAddress, PacketPlace},
    source::PacketSource,
};
use crate::error::{ServiceError, require};

/// The most addresses of a recording.
const MOST: usize = 64;

impl PacketSource {
    /// The resolved addresses at which this instrument's packets arrive.
    pub(super) fn places(&self, listen: &[ListenAddress]) -> Result<Vec<PacketPlace>, ServiceError> {
        let named = listen.iter().filter_map(|listen| match listen {
            ListenAddress::Packets(address) => Some(address),
            ListenAddress::Frames(_) => None,
        });
        let named: Vec<&PacketAddress> = named.collect();
        if named.is_empty() {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, self.packets.port));
            return Ok(vec![PacketPlace { at, source: None }]);
        }
        self.check_number(named.len())?;
        let mut places = Vec::new();
        for address in named {
            let place = self.first_port(address)?;
            require(!places.contains(&place), || {
                format!("--listen {address}: the same address stands there twice; leave one out")
            })?;
            places.push(place);
        }
        Ok(places)
    }

    fn check_number(&self, addresses: usize) -> Result<(), ServiceError> {
        if addresses == 1 {
            return Ok(());
        }
        require(self.part == PacketPartKind::All, || {
            format!("{addresses} --listen: several processes share the ports behind one address; name one")
        })?;
        require(addresses <= MOST, || format!("{addresses} --listen: name {MOST} at the most"))?;
        let ports = usize::from(self.packets.ports());
        require(ports == 1 || ports == addresses, || {
            format!(
                "{addresses} --listen: {} sends to {ports} ports; name one address, or {ports} in the order of its ports",
                self.instrument.name
            )
        })
    }

    /// The address of the first port that this recorder listens at.
    fn first_port(&self, address: &PacketAddress) -> Result<PacketPlace, ServiceError> {
        let mut place = address.resolve()?;
        require(place.at.port() > 0 || self.part == PacketPartKind::All, || {
            format!("--listen {address}: name a port: the processes count theirs from it")
        })?;
        let own = place.at.port().checked_add(self.ports_before);
        let why = || {
            ServiceError::AskedWrongly(format!(
                "--listen {address}: the instrument has more ports than there are behind it; write a lower one"
            ))
        };
        // The zone of an IPv6 address stays.
        place.at.set_port(own.ok_or_else(why)?);
        Ok(place)
    }

    /// Shares the addresses out to sockets.
    pub(super) fn sockets(&self, places: &[PacketPlace]) -> Vec<Listening> {
        let mut sockets: Vec<Listening> = Vec::new();
        let are_apart = self.packets.ports() > 1;
        for place in places {
            let group = GroupMembership { group: place.at, source: place.source };
            if !place.at.ip().is_multicast() {
                sockets.push(Listening::at(place.at));
            } else if let Some(same) =
                sockets.iter_mut().find(|other| !are_apart && is_beside(other, place.at))
            {
                same.groups.push(group);
                *same = Listening::to_groups(std::mem::take(&mut same.groups));
            } else {
                sockets.push(Listening::to_groups(vec![group]));
            }
        }
        sockets
    }

    /// The number of ports at which these sockets listen.
    pub(super) fn ports_at(&self, sockets: &[Listening]) -> u64 {
        u64::from(self.packets.ports()).max(sockets.len() as u64)
    }
}

/// The addresses as text.
pub(super) fn texts(places: &[PacketPlace]) -> String {
    let texts: Vec<_> = places.iter().map(|place| format!("udp://{}", place.at)).collect();
    texts.join(", ")
}

/// Returns true if a socket listens to groups of this group's family at its port.
fn is_beside(socket: &Listening, group: SocketAddr) -> bool {
    let first = socket.groups.first();
    first.is_some_and(|first| first.group.port() == group.port() && first.group.is_ipv4() == group.is_ipv4())
}
