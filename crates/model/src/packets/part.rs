//! The part of an instrument's packets for one of several recorders: a stream, or modules of each frame. All
//! packets to a port reach one machine, so there is no smaller part.

use super::{Detector, Module, PacketFormat, eiger::PORTS_OF_HALF};
use crate::Instrument;

/// The number of a recorder among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketShare {
    /// Counted from 0, below `of`.
    pub number: u16,
    /// Number of recorders.
    pub of: u16,
}

/// The part of an instrument that a recorder takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketPart {
    /// The part as an instrument by itself, with packets to its own ports.
    pub instrument: Instrument,
    /// Number of ports of the whole instrument before its own.
    pub ports_before: u16,
    /// The kind of part.
    pub kind: PacketPartKind,
}

/// The kinds of parts of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketPartKind {
    /// All of it: there is one recorder.
    All,
    /// The stream of this number.
    Stream(u16),
    /// Modules of each frame, in the order of their ports.
    Modules {
        /// The first module, counted from 0.
        first: u16,
        /// Number of modules.
        count: u16,
    },
}

impl std::fmt::Display for PacketPartKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            PacketPartKind::All => f.write_str("all of it"),
            PacketPartKind::Stream(number) => write!(f, "stream {number}"),
            PacketPartKind::Modules { first, count: 1 } => write!(f, "module {first}"),
            PacketPartKind::Modules { first, count } => write!(f, "modules {first} to {}", first + count - 1),
        }
    }
}

impl PacketShare {
    /// The share of a single recorder: all packets.
    pub const ALL: PacketShare = PacketShare { number: 0, of: 1 };
}

impl Default for PacketShare {
    fn default() -> Self {
        PacketShare::ALL
    }
}

impl Instrument {
    /// The part of a checked instrument that a recorder takes. With as many streams as recorders, it is a
    /// stream. Otherwise it is an even share of the modules of the only stream, if each has a port of its
    /// own.
    ///
    /// # Errors
    /// The packets can't be shared so; the message says how many recorders are possible.
    pub fn packet_part(&self, share: PacketShare) -> Result<PacketPart, String> {
        let PacketShare { number, of } = share;
        if of == 1 {
            let kind = PacketPartKind::All;
            return Ok(PacketPart { instrument: self.clone(), ports_before: 0, kind });
        }
        if self.streams == u64::from(of) {
            return Ok(self.stream_by_itself(number));
        }
        self.modules_by_themselves(share).ok_or_else(|| self.can_not_be_shared(of))
    }

    fn stream_by_itself(&self, number: u16) -> PacketPart {
        let ports = self.packets.as_ref().map_or(0, super::Packets::ports);
        let instrument = Instrument { streams: 1, ..self.clone() };
        PacketPart { instrument, ports_before: ports * number, kind: PacketPartKind::Stream(number) }.moved()
    }

    fn modules_by_themselves(&self, share: PacketShare) -> Option<PacketPart> {
        let PacketShare { number, of } = share;
        let all = self.modules_by_port().filter(|all| self.streams == 1 && all % of == 0)?;
        if !(all / of).is_multiple_of(self.ports_of_module()) {
            return None;
        }
        let rows = *self.shape.first()?;
        if !rows.is_multiple_of(u64::from(of)) {
            return None;
        }
        let mut instrument = self.clone();
        instrument.shape[0] = rows / u64::from(of);
        let count = all / of;
        instrument.packets.as_mut()?.format.take_modules(count);
        let first = count * number;
        let rows = instrument.shape[0] as usize;
        let own = rows * usize::from(number)..rows * usize::from(number + 1);
        instrument.modules = instrument.modules.map(|places| places.of_modules(own));
        let kind = PacketPartKind::Modules { first, count };
        Some(PacketPart { instrument, ports_before: first, kind }.moved())
    }

    /// Number of modules that send to a port of their own; `None` if they share ports.
    fn modules_by_port(&self) -> Option<u16> {
        let packets = self.packets.as_ref()?;
        packets.format.is_by_port().then(|| packets.ports())
    }

    /// Number of ports that one recorder must take together.
    fn ports_of_module(&self) -> u16 {
        match self.packets.as_ref().map(|packets| &packets.format) {
            Some(PacketFormat::Eiger(_)) => PORTS_OF_HALF,
            _ => 1,
        }
    }

    fn can_not_be_shared(&self, of: u16) -> String {
        let Instrument { name, streams, .. } = self;
        let can = match self.modules_by_port().filter(|_| *streams == 1) {
            Some(ports) if ports > 1 => {
                let modules = ports / self.ports_of_module();
                format!(
                    "start as many as divide its {modules} modules evenly, and the first dimension of its frames"
                )
            }
            _ if *streams > 1 => format!("start {streams}, one for each of its streams"),
            _ => "it is one stream whose packets come to one port: start one".into(),
        };
        format!("{name} can't be recorded by {of} processes: {can}")
    }
}

impl PacketPart {
    /// Moves it to the ports of its own packets. It drops the published rate, which is that of the whole.
    fn moved(mut self) -> Self {
        self.instrument.published = None;
        if let Some(packets) = &mut self.instrument.packets {
            packets.port += self.ports_before;
        }
        self
    }
}

impl PacketFormat {
    fn is_by_port(&self) -> bool {
        match self {
            PacketFormat::Excalibur(_) | PacketFormat::Jungfrau(_) | PacketFormat::Eiger(_) => true,
            PacketFormat::Described(Detector { module, .. }) => *module == Module::Port,
            _ => false,
        }
    }

    fn take_modules(&mut self, count: u16) {
        match self {
            PacketFormat::Excalibur(modules) | PacketFormat::Jungfrau(modules) => modules.modules = count,
            PacketFormat::Eiger(eiger) => eiger.take_ports(count),
            PacketFormat::Described(detector) => detector.modules = count,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn named(name: &str) -> Instrument {
        let mut all = catalogue::instruments().into_iter();
        all.find(|instrument| instrument.name == name).expect("it is in the catalogue")
    }

    fn part(name: &str, number: u16, of: u16) -> PacketPart {
        named(name).packet_part(PacketShare { number, of }).expect("it can be shared")
    }

    #[test]
    fn modules_of_a_frame_are_shared_evenly_and_are_instruments_by_themselves() {
        let whole = named("jungfrau-4m");
        for of in [2, 4, 8] {
            let parts: Vec<_> = (0..of).map(|number| part("jungfrau-4m", number, of)).collect();
            let sizes: u64 = parts.iter().map(|part| part.instrument.frame_size().0).sum();
            assert_eq!(sizes, whole.frame_size().0, "{of}");
            let mut next = 0;
            for part in parts {
                let packets = part.instrument.packets.clone().expect("it has some");
                assert_eq!((part.ports_before, packets.port), (next, 50001 + next), "{of}");
                next += packets.ports();
                packets
                    .check(part.instrument.frame_size(), part.instrument.stream_rate(), 1)
                    .expect("it is one");
            }
            assert_eq!(next, 8, "{of}");
        }
        assert_eq!(part("jungfrau-4m", 1, 4).kind.to_string(), "modules 2 to 3");
        assert_eq!(part("jungfrau-4m", 7, 8).kind.to_string(), "module 7");
        assert_eq!(part("excalibur-3m", 1, 3).instrument.shape, [512, 2048]);
    }

    #[test]
    fn both_ports_of_a_half_module_stay_together() {
        let bottom = part("eiger-500k", 1, 2);
        let places = bottom.instrument.modules.expect("it has places");
        assert_eq!((bottom.ports_before, bottom.instrument.shape), (2, vec![2, 256, 512]));
        assert_eq!((places.upside_down, places.origins), (vec![0, 1], vec![[258, 0], [258, 516]]));
        let refused = named("eiger-500k").packet_part(PacketShare { number: 0, of: 4 });
        assert!(refused.is_err_and(|why| why.contains("divide its 2 modules evenly")));
    }

    #[test]
    fn each_stream_has_ports_of_its_own() {
        let third = part("vgos-16g", 2, 4);
        let whole = named("vgos-16g");
        assert_eq!((third.kind, third.ports_before), (PacketPartKind::Stream(2), 2));
        assert_eq!(third.instrument.streams, 1);
        assert_eq!(third.instrument.rate(), whole.stream_rate());
        let port = |instrument: &Instrument| instrument.packets.as_ref().map(|packets| packets.port);
        assert_eq!(port(&third.instrument), port(&whole).map(|port| port + 2));
        assert_eq!(whole.packet_part(PacketShare::ALL).expect("one takes all").instrument, whole);
    }

    #[test]
    fn what_comes_to_one_port_is_not_shared() {
        let refused =
            |name: &str, of| named(name).packet_part(PacketShare { number: 0, of }).expect_err("it can't be");
        assert!(
            refused("vlbi-16g", 2).ends_with("it is one stream whose packets come to one port: start one")
        );
        assert!(refused("vgos-16g", 3).ends_with("start 4, one for each of its streams"));
        assert!(refused("jungfrau-4m", 3).contains("divide its 8 modules evenly"));
        assert!(refused("excalibur-3m", 4).contains("divide its 6 modules evenly"));
    }
}
