//! An instrument of the catalogue at the other end of the network. It sends its packets with its data, as the
//! real one would.

use std::net::SocketAddr;

use nilometer_model::{Burst, Bytes, Frequency, Instrument, Nanos, Packets, Seed, packets::PacketFormat};

use super::{
    Flow, Outlet, SendPace, Sender, SendingStation, StreamCourse,
    faults::Faults,
    udp::{Sending, UdpOutlet},
};
use crate::Blocks;
use nilometer_recording::instrument::{Content, ContentError};
use nilometer_wire::{Geometry, Known, WireFormat};

/// Configuration of a simulated instrument: its packets, its faults and its destination.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The instrument, which describes its packets. It has been checked.
    pub instrument: Instrument,
    /// The first port. Further streams, and modules with ports of their own, send to the ports behind it.
    pub to: SocketAddr,
    /// How packets leave.
    pub sending: Sending,
    /// How long packets are sent.
    pub duration: Nanos,
    /// Packets of each stream, at most.
    pub packets: u64,
    /// The faults on the way.
    pub faults: Faults,
    /// Serial numbers restart after this many packets.
    pub restart_after: Option<u64>,
    /// The clocks jump after this many packets, by this many seconds.
    pub jump: Option<(u64, f64)>,
    /// The time of the first frame, in seconds since 2000-01-01 00:00 UTC.
    pub begins: u64,
    /// Seed of data and faults. Stream k uses its part k.
    pub seed: Seed,
}

/// Why an instrument can't be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The instrument does not describe its packets.
    #[error("{0} does not say how its frames come over a network: write `packets` into its file")]
    NoPackets(String),
    /// The format can't be made, or not with the requested options.
    #[error("{0}")]
    Format(String),
    /// Its data can't be made.
    #[error("{0}")]
    Content(#[from] ContentError),
    /// There is no way to the address.
    #[error("{to}: {source}")]
    Network {
        /// The destination of the packets.
        to: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// The shape of a stream's packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// How packets make up frames.
    pub geometry: Geometry,
    /// Packets a second of each stream, pauses apart.
    pub rate: Frequency,
    /// VDIF or Mark5B frames a second of each stream, over all its stations and threads; none of other formats.
    pub clock: Option<u64>,
}

impl Simulation {
    /// Computes the shape of a stream's packets.
    pub fn shape(&self) -> Result<Shape, SimulationError> {
        let (format, known) = self.format()?;
        let geometry = format.geometry().clone();
        let packets = self.packets()?;
        let parts = geometry.parts.len() as f64;
        let clock = known.frames_per_second.map(|frames| frames * lanes(packets));
        let rate = match (&packets.format, clock) {
            (_, Some(frames)) => frames as f64 * parts,
            (PacketFormat::Raw(_) | PacketFormat::Numbered(_), None) => {
                let brought = packets.brought(self.instrument.frame_size());
                self.instrument.stream_rate().0 / brought.0 as f64 * parts
            }
            _ => self.instrument.frame_rate.0 * parts,
        };
        Ok(Shape { geometry, rate: Frequency(rate), clock })
    }

    /// The blocks to be recorded of a stream, if nothing goes wrong with its packets. It makes data, which
    /// takes seconds.
    pub fn expected(&self, stream: u64) -> Result<Blocks, SimulationError> {
        let (format, known) = self.format()?;
        let content = self.content(format.geometry(), self.seed.named("content").part(stream))?;
        let blocks = Blocks::new(self.packets()?, known, content).map_err(SimulationError::Format)?;
        Ok(blocks.with_frames(self.instrument.frames_of_block().unwrap_or(1)))
    }

    /// The same with as many packets of each stream as its duration has, as a multiple of `lot`, and at least
    /// one lot.
    pub fn in_lots(self, lot: u64) -> Result<Self, SimulationError> {
        let packets = self.pace(&self.shape()?).packets_in(self.duration).min(self.packets);
        Ok(Simulation { packets: (packets / lot).max(1) * lot, duration: Nanos::MAX, ..self })
    }

    /// Makes the sender: prepares the data, which takes seconds, and opens the sockets.
    pub fn sender(&self) -> Result<Sender, SimulationError> {
        let shape = self.shape()?;
        let pace = self.pace(&shape);
        let packets = pace.packets_in(self.duration).min(self.packets);
        let course = self.course(&shape)?;
        let stations = (0..self.instrument.streams).map(|stream| self.station(stream, &shape, course));
        Ok(Sender::new(stations.collect::<Result<_, _>>()?, pace, packets))
    }

    fn packets(&self) -> Result<&Packets, SimulationError> {
        let packets = self.instrument.packets.as_ref();
        packets.ok_or_else(|| SimulationError::NoPackets(self.instrument.name.clone()))
    }

    fn format(&self) -> Result<(Box<dyn WireFormat>, Known), SimulationError> {
        let known = Known { begins: self.begins, ..Known::of(&self.instrument) };
        let packets = self.packets()?;
        let has_clock = matches!(packets.format, PacketFormat::Vdif(_) | PacketFormat::Mark5b(_));
        if has_clock && known.frames_per_second.is_none() {
            let rate = self.instrument.stream_rate();
            let why = format!("{rate} are no whole number of frames a second: change payload or frame_rate");
            return Err(SimulationError::Format(why));
        }
        let format = nilometer_wire::of(packets, &known).map_err(SimulationError::Format)?;
        Ok((format, known))
    }

    fn pace(&self, shape: &Shape) -> SendPace {
        let pace = SendPace::new(shape.rate);
        let Some(Burst { frames, pause }) = self.instrument.burst else { return pace };
        let of_frame = shape.rate.0 / self.instrument.frame_rate.0;
        #[expect(clippy::cast_sign_loss, reason = "rates are above zero")]
        let packets = (frames as f64 * of_frame).round() as u64;
        pace.with_pauses(packets.max(1), pause)
    }

    /// Converts the restart and the clock jump from packets and seconds to frames.
    fn course(&self, shape: &Shape) -> Result<StreamCourse, SimulationError> {
        let parts = shape.geometry.parts.len() as u64;
        let wrong = |why: String| Err(SimulationError::Format(why));
        if let Some(packets) = self.restart_after
            && (packets == 0 || packets % parts != 0)
        {
            return wrong(format!(
                "a restart after {packets} packets: write a multiple of {parts}, so that a frame is whole"
            ));
        }
        let restart_after = self.restart_after.map(|packets| packets / parts);
        let Some((after, seconds)) = self.jump else { return Ok(StreamCourse { restart_after, jump: None }) };
        let Some(clock) = shape.clock else {
            return wrong("a jump of the clock: only VDIF and Mark5B have one in their frames".into());
        };
        let by = (seconds * clock as f64).round() as i64;
        Ok(StreamCourse { restart_after, jump: Some((after.div_ceil(parts), by)) })
    }

    fn station(
        &self,
        stream: u64,
        shape: &Shape,
        course: StreamCourse,
    ) -> Result<SendingStation, SimulationError> {
        let (format, _) = self.format()?;
        let content = self.content(&shape.geometry, self.seed.named("content").part(stream))?;
        let outlets = self.outlets(stream)?;
        let held_back = if self.faults.reorder > 0.0 { self.faults.distance } else { 0 };
        let window = held_back + outlets[0].burst(shape.geometry.packet_size()) as u64;
        let flow = Flow::new(format, content, course, window);
        let stranger =
            if self.faults.foreign > 0.0 { Some(self.outlet(self.port(stream, 0)?)?) } else { None };
        Ok(SendingStation::new(flow, self.faults, self.seed.named("faults").part(stream), outlets, stranger))
    }

    /// Data for the format's frames. If a format's frame differs in size from the instrument's image, data
    /// are a row of pixels. The row has the same pixel type and the length of a frame.
    fn content(&self, geometry: &Geometry, seed: Seed) -> Result<Content, SimulationError> {
        let Instrument { shape, pixel, data, .. } = &self.instrument;
        let row = [geometry.frame_size() as u64 * 8 / pixel.bits()];
        let whole = self.instrument.frame_size() == Bytes(geometry.frame_size() as u64);
        let shape = if whole { shape.as_slice() } else { &row };
        Ok(Content::prepare(data, shape, *pixel, seed)?)
    }

    /// The outlets of a stream, one for each port.
    fn outlets(&self, stream: u64) -> Result<Vec<Box<dyn Outlet>>, SimulationError> {
        (0..self.packets()?.ports()).map(|port| self.outlet(self.port(stream, port)?)).collect()
    }

    fn outlet(&self, port: u16) -> Result<Box<dyn Outlet>, SimulationError> {
        let mut to = self.to;
        to.set_port(port);
        let outlet = UdpOutlet::connect(to, &self.sending);
        Ok(Box::new(outlet.map_err(|source| SimulationError::Network { to, source })?))
    }

    /// The number of one of a stream's ports. Streams use consecutive ports, each as many as it needs.
    fn port(&self, stream: u64, port: u16) -> Result<u16, SimulationError> {
        let ports = u64::from(self.packets()?.ports());
        let last = u64::from(self.to.port()) + self.instrument.streams * ports - 1;
        let number = u16::try_from(u64::from(self.to.port()) + stream * ports + u64::from(port));
        number.map_err(|_| {
            let port = self.to.port();
            let name = &self.instrument.name;
            SimulationError::Format(format!(
                "port {port}: {name} sends to ports up to {last} from there, write one with which these are below 65536"
            ))
        })
    }
}

/// Number of VDIF frames that have the same time; 1 for other formats.
fn lanes(packets: &Packets) -> u64 {
    match &packets.format {
        PacketFormat::Vdif(vdif) => vdif.lanes(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
