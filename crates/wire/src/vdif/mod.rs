//! VDIF: one frame per packet, of one or more threads.
//!
//! If packets have serial numbers, these number the frames. Otherwise, time and thread do: (seconds since 2000
//! x frames per second + number in the second) x threads + index of the thread.

mod extended;
mod header;
mod lanes;

pub use header::VdifHeader;

use nilometer_model::packets::{self, Packets, Station};

use super::{
    Geometry, Ignored, Known, Near, Packet, Part, StreamThread, WireFormat, filler,
    learned::{Learned, Rate},
    serial::Serial,
    time::{elapsed, epoch_elapsed, epoch_of},
};
use lanes::{Lanes, Moment, Name};

/// VDIF over UDP.
#[derive(Debug)]
pub struct VdifFormat {
    geometry: Geometry,
    said: packets::Vdif,
    serial: Serial,
    /// Version of the format, and the station if the user named none.
    kin: Learned<(u8, u16)>,
    epoch: Learned<u8>,
    rate: Rate,
    lanes: Lanes,
    /// Start of a simulated stream in elapsed seconds since 2000, and its frames per second.
    begins: u64,
    sent: Option<u64>,
}

/// The station of simulated streams if the user names none.
const STATION: Station = Station(u16::from_be_bytes(*b"Nm"));
const VERSION: u8 = 1;

impl VdifFormat {
    /// Creates the format as the instrument sends it.
    pub fn new(packets: &Packets, vdif: &packets::Vdif, known: &Known) -> Result<Self, String> {
        let serial = Serial::new(packets, known);
        if !serial.is_there() && (known.frames_per_second.is_none() || vdif.threads.is_none()) {
            return Err(
                "without serial numbers, the threads of VDIF and their frames a second must be known".into(),
            );
        }
        // Only named threads give the number of threads that share the rate.
        let rate = known.frames_per_second.filter(|_| vdif.threads.is_some());
        let prefix = packets.prefix().0 as usize;
        let parts = vec![vdif.frame_size().0 as usize];
        Ok(VdifFormat {
            geometry: Geometry { prefix, parts, number_bits: serial.bits(), behind: Vec::new() },
            serial,
            kin: Learned::nothing(),
            epoch: Learned::nothing(),
            rate: rate.map_or(Rate::Unknown, Rate::Said),
            lanes: Lanes::new(&names(vdif), vdif.threads.is_none()),
            begins: elapsed(known.begins),
            sent: known.frames_per_second,
            said: vdif.clone(),
        })
    }

    /// Returns the name of a frame's lane.
    fn name(&self, header: &VdifHeader) -> Name {
        Name { station: if self.has_stations() { header.station } else { 0 }, thread: header.thread }
    }

    /// Returns true if lanes have stations. The user named some, or serial numbers order the frames of lanes that
    /// are added as they appear.
    fn has_stations(&self) -> bool {
        self.said.stations.is_some() || self.said.threads.is_none() && self.serial.is_there()
    }

    /// Returns the lane of a frame, if the frame belongs to this stream.
    #[inline]
    fn admit(&mut self, header: &VdifHeader, size: usize) -> Result<usize, Ignored> {
        if header.length != size {
            return Err(Ignored::Foreign);
        }
        let station = match &self.said.stations {
            Some(stations) if !stations.contains(&Station(header.station)) => return Err(Ignored::Foreign),
            Some(_) => 0,
            None => header.station,
        };
        let kin = (header.version, station);
        let (version, most) = self.kin.vote(kin);
        // By serial number, several stations of a sender have their places in one stream.
        if version != header.version || most != station && !self.serial.is_there() {
            return Err(Ignored::OtherStream);
        }
        let name = self.name(header);
        self.lanes.admit(name).ok_or(Ignored::Foreign)
    }

    /// Returns true if only the serial number of a frame counts. Such a frame is invalid, of an unknown lane, and far
    /// from the time of all others.
    fn is_blank(&self, header: &VdifHeader) -> bool {
        let is_far = |second: u64| second.abs_diff(header.elapsed()) > 1;
        header.invalid
            && self.serial.is_there()
            && self.said.threads.is_none()
            && self.said.stations.is_none()
            && self.lanes.find(self.name(header)).is_none()
            && self.lanes.last_second().is_none_or(is_far)
    }

    /// Returns the moment of a frame, if it is valid.
    #[inline]
    fn moment(&mut self, header: &VdifHeader) -> Result<Moment, Ignored> {
        let frame = u64::from(header.frame);
        // A serial number gives the place of a frame even if the sender's clock went back.
        let is_early = header.epoch < self.epoch.vote(header.epoch) && !self.serial.is_there();
        if is_early || !self.rate.has(frame) {
            return Err(Ignored::Corrupt);
        }
        self.rate.told(|| header.frames_per_second(), frame);
        Ok(Moment { second: header.elapsed(), frame })
    }

    /// Returns the header of a missing frame.
    fn missing(&self, near: Near<'_>) -> Option<VdifHeader> {
        let header = VdifHeader::parse(near.bytes)?;
        let lane = self.lanes.find(self.name(&header))?;
        let moment = Moment { second: header.elapsed(), frame: u64::from(header.frame) };
        let rate = self.rate.known();
        let told = rate.filter(|_| self.serial.is_there());
        let told = told.and_then(|rate| self.lanes.by_serial(&self.serial, lane, moment, near.ahead, rate));
        let (lane, steps) = told.unwrap_or_else(|| self.lanes.in_order(lane, near.ahead));
        let moment = match rate {
            Some(rate) => {
                let count = moment.count(rate).saturating_add_signed(steps);
                Moment { second: count / rate, frame: count % rate }
            }
            None => Moment { frame: moment.frame.saturating_add_signed(steps), ..moment },
        };
        let mut missing = VdifHeader { invalid: true, ..self.of_lane(header, lane) };
        set_moment(&mut missing, moment);
        missing.extended = extended::missing(&missing, near.ahead, rate.unwrap_or(1));
        Some(missing)
    }

    fn of_lane(&self, header: VdifHeader, lane: usize) -> VdifHeader {
        let Name { station, thread } = self.lanes.name(lane);
        let station = if self.has_stations() { station } else { header.station };
        VdifHeader { thread, station, ..header }
    }

    /// Returns the header fields common to all frames.
    fn template(&self) -> VdifHeader {
        let packets::Vdif { stations, threads, bits, channels, complex, .. } = &self.said;
        let station = stations.as_ref().map_or(STATION, |stations| stations[0]);
        let (version, learned) = self.kin.value().unwrap_or((VERSION, station.0));
        let header = VdifHeader {
            invalid: false,
            epoch: self.epoch.value().unwrap_or_else(|| epoch_of(self.begins)),
            second: 0,
            frame: 0,
            version,
            channels_log2: channels.trailing_zeros() as u8,
            length: self.geometry.frame_size(),
            complex: *complex,
            bits: *bits as u8,
            thread: threads.as_ref().map_or(0, |threads| threads[0]),
            station: if stations.is_some() { station.0 } else { learned },
            extended: Some([0; 4]),
        };
        VdifHeader {
            extended: extended::of(&self.said, &header, 0, self.rate.known().unwrap_or(1)),
            ..header
        }
    }
}

/// Returns the lanes that the user named, by station. Without named threads there are none. Without named
/// stations one station is enough.
fn names(vdif: &packets::Vdif) -> Vec<Name> {
    let Some(threads) = &vdif.threads else { return Vec::new() };
    let stations =
        vdif.stations.as_ref().map_or(vec![0], |stations| stations.iter().map(|station| station.0).collect());
    let of = |station| threads.iter().map(move |thread| Name { station, thread: *thread });
    stations.into_iter().flat_map(of).collect()
}

/// Sets the moment of a header. Keeps its epoch, unless that begins after the moment.
fn set_moment(header: &mut VdifHeader, moment: Moment) {
    if epoch_elapsed(header.epoch) > moment.second {
        header.epoch = epoch_of(moment.second);
    }
    header.second = (moment.second - epoch_elapsed(header.epoch).min(moment.second)) as u32;
    header.frame = moment.frame as u32 & 0xff_ffff;
}

impl WireFormat for VdifFormat {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn place(&mut self, packet: Packet<'_>) -> Result<Part, Ignored> {
        let header = VdifHeader::parse(packet.body).ok_or(Ignored::Foreign)?;
        if self.is_blank(&header)
            && header.length == packet.body.len()
            && let Some(frame) = self.serial.read(packet.prefix)
        {
            return Ok(Part { frame, part: 0 });
        }
        let lane = self.admit(&header, packet.body.len())?;
        let moment = self.moment(&header)?;
        let number = self.serial.read(packet.prefix).unwrap_or_else(|| {
            let rate =
                self.rate.known().expect("frames without serial numbers have a known rate: it was checked");
            moment.count(rate).wrapping_mul(self.lanes.count() as u64) + lane as u64
        });
        if let Some((serial, before)) = self.lanes.came(lane, number, moment)
            && moment.second == before.second + 1
            && let Some(steps) = self.lanes.steps(self.serial.distance(serial, number))
        {
            self.rate.turned(before.frame, steps, moment.frame);
        }
        Ok(Part { frame: number, part: 0 })
    }

    fn fill(&self, near: Option<Near<'_>>, _: usize, into: &mut [u8]) {
        let header = near.and_then(|near| self.missing(near));
        let header = header.unwrap_or_else(|| VdifHeader { invalid: true, ..self.template() });
        header.write(into);
        filler::fill(&mut into[header.size()..]);
    }

    fn make(&self, number: u64, _: usize, prefix: &mut [u8], body: &mut [u8]) {
        let rate = self.sent.expect("who sends a stream knows its rate");
        let lanes = self.lanes.count().max(1) as u64;
        let count = number / lanes;
        let lane = number % lanes;
        let template = VdifHeader { epoch: epoch_of(self.begins), ..self.template() };
        let mut header =
            if self.lanes.count() == 0 { template } else { self.of_lane(template, lane as usize) };
        set_moment(&mut header, Moment { second: self.begins + count / rate, frame: count % rate });
        header.extended = extended::of(&self.said, &header, number, rate);
        header.write(body);
        self.serial.write(number, prefix);
    }

    fn of_another_sender(&self) -> Option<Box<dyn WireFormat>> {
        let rate = if let Rate::Said(_) = self.rate { self.rate } else { Rate::Unknown };
        let another = VdifFormat {
            geometry: self.geometry.clone(),
            said: self.said.clone(),
            serial: self.serial,
            kin: Learned::nothing(),
            epoch: Learned::nothing(),
            rate,
            lanes: Lanes::coming(&names(&self.said)),
            begins: self.begins,
            sent: self.sent,
        };
        self.serial.is_there().then(|| Box::new(another) as Box<dyn WireFormat>)
    }

    fn share(&mut self) {
        self.lanes.share();
    }

    fn threads(&self) -> Vec<StreamThread> {
        let learned = self.kin.value().map_or(0, |(_, station)| station);
        let station = |name: Name| if self.has_stations() { name.station } else { learned };
        let of = |(name, came): (Name, u64)| StreamThread {
            station: Some(station(name)),
            thread: name.thread,
            came,
        };
        self.lanes.counts().map(of).collect()
    }

    fn thread_of(&self, frame: &[u8]) -> Option<(u16, u16)> {
        VdifHeader::parse(frame).map(|header| (header.station, header.thread))
    }
}

#[cfg(test)]
mod tests;
