//! Settings of stations that have no effect here, and the errors that they have read. All connections share
//! them, as in jive5ab. The Field System sets packet sizes, buffers and threads before each experiment, and
//! takes a refusal for a failure. Queries return the values that it set. There is no I/O here.

use nilometer_model::Moment;

/// Settings without effect here, which queries return as set; and the error that a station read last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotedSettings {
    /// The protocols that may be set.
    protocols: ProtocolChoice,
    /// Bytes of a packet on the network, with its headers.
    mtu: u64,
    /// Nanoseconds between two packets. Negative: as the mode has it.
    ipd: i64,
    /// The protocol, or nothing before a station sets it.
    protocol: String,
    /// The bytes of a socket's buffer, the bytes of a block, and the number of blocks.
    buffers: [u64; 3],
    /// The numbers of threads that read and that write.
    threads: [u64; 2],
    /// The number of a correlator's task.
    task: Option<u32>,
    /// The times of the errors that stations have read, of those that the last report had.
    read: Vec<Moment>,
}

/// The defaults of jive5ab (src/netparms.h there), except the protocol.
impl Default for NotedSettings {
    fn default() -> Self {
        NotedSettings {
            protocols: ProtocolChoice::Packets,
            mtu: 1500,
            ipd: 0,
            protocol: "udpsnor".into(),
            buffers: [4 << 20, 128 << 10, 8],
            threads: [1, 1],
            task: None,
            read: Vec::new(),
        }
    }
}

/// The protocols that may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolChoice {
    /// Protocols of packets that the recorder records.
    Packets,
    /// The protocol of copies between recorders.
    Transfers,
}

impl ProtocolChoice {
    /// The names in jive5ab. Packets have a serial number; `udp` is accepted too.
    fn names(self) -> &'static [&'static str] {
        match self {
            ProtocolChoice::Packets => &["udpsnor", "udps", "udp"],
            ProtocolChoice::Transfers => &["tcp"],
        }
    }

    /// The refusal of another name.
    fn refusal(self) -> &'static str {
        match self {
            ProtocolChoice::Packets => "packets come over UDP with serial numbers, write udpsnor or udps",
            ProtocolChoice::Transfers => {
                "this runtime copies over TCP, write tcp, or record packets in runtime 0"
            }
        }
    }
}

impl NotedSettings {
    /// The settings of a runtime that copies between recorders. It has no protocol before a station sets it.
    pub(super) fn of_transfers() -> Self {
        let protocols = ProtocolChoice::Transfers;
        NotedSettings { protocols, protocol: String::new(), ..NotedSettings::default() }
    }

    /// `ipd = <number>[ns or us]`, in microseconds without a unit.
    pub(super) fn set_ipd(&mut self, fields: &[String]) -> Result<(), &'static str> {
        let [text] = fields else { return Err("write one time, such as 10us or 0ns") };
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "n" | "ns" => 1.0,
            "" | "u" | "us" => 1000.0,
            _ => return Err("write a time in ns or us"),
        };
        let ipd: f64 = digits.parse().map_err(|_| "write a time, such as 10us or 0ns")?;
        let is_time = ipd.is_finite() && (-1.0..=2_147_483_647.0).contains(&ipd);
        self.ipd = is_time.then(|| (ipd * unit).round() as i64).ok_or("write a time from -1 on")?;
        Ok(())
    }

    /// Microseconds between two packets.
    pub(super) fn ipd(&self) -> f64 {
        self.ipd as f64 / 1000.0
    }

    /// True if a station set the protocol.
    pub(super) fn has_protocol(&self) -> bool {
        !self.protocol.is_empty()
    }

    /// `mtu = <bytes>`, from 64 to 9000 as in jive5ab.
    pub(super) fn set_mtu(&mut self, fields: &[String]) -> Result<(), &'static str> {
        let [text] = fields else { return Err("write one number of bytes") };
        self.mtu = number(text).filter(|mtu| (64..=9000).contains(mtu)).ok_or("write 64 to 9000 bytes")?;
        Ok(())
    }

    pub(super) fn mtu(&self) -> u64 {
        self.mtu
    }

    /// `net_protocol = [<protocol>] [: <bytes of the socket's buffer> [: <bytes of a block> [: <blocks>]]]`.
    /// Omitted values stay.
    pub(super) fn set_protocol(&mut self, fields: &[String]) -> Result<(), &'static str> {
        if fields.is_empty() {
            return Err("write a protocol");
        }
        let mut now = self.clone();
        match fields[0].as_str() {
            "" => {}
            protocol if self.protocols.names().contains(&protocol) => protocol.clone_into(&mut now.protocol),
            _ => return Err(self.protocols.refusal()),
        }
        for (buffer, text) in now.buffers.iter_mut().zip(&fields[1..]).filter(|(_, text)| !text.is_empty()) {
            *buffer = size(text).ok_or("write numbers of bytes, such as 256000000, 128k or 32M")?;
        }
        *self = now;
        Ok(())
    }

    pub(super) fn protocol(&self) -> (&str, [u64; 3]) {
        (&self.protocol, self.buffers)
    }

    /// `record = nthread : [<readers>] : [<writers>]`; `fields` are those after the first.
    pub(super) fn set_threads(&mut self, fields: &[String]) -> Result<(), &'static str> {
        let mut now = self.threads;
        for (threads, text) in now.iter_mut().zip(fields).filter(|(_, text)| !text.is_empty()) {
            *threads = number(text).filter(|threads| *threads > 0).ok_or("write numbers above 0")?;
        }
        self.threads = now;
        Ok(())
    }

    pub(super) fn threads(&self) -> [u64; 2] {
        self.threads
    }

    /// `task_id = <number>`, decimal or hexadecimal with 0x, or `none`.
    pub(super) fn set_task(&mut self, fields: &[String]) -> Result<(), &'static str> {
        let [text] = fields else { return Err("write a number, or none") };
        let number = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => number(text).and_then(|number| number.try_into().ok()),
        };
        self.task = if text == "none" { None } else { Some(number.ok_or("write a number, or none")?) };
        Ok(())
    }

    pub(super) fn task(&self) -> Option<u32> {
        self.task
    }

    /// Records that a station read the errors of these times. It forgets those of earlier reports.
    pub(super) fn were_read(&mut self, times: Vec<Moment>) {
        self.read = times;
    }

    /// Returns true if no station has read the error of this time.
    pub(super) fn is_pending(&self, at: Moment) -> bool {
        !self.read.contains(&at)
    }
}

/// A number of digits only.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A number above 0 of bytes, `k` or `M`.
pub(super) fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        text.split(':').map(str::to_owned).collect()
    }

    #[test]
    fn what_is_set_is_told_back_and_what_is_not_said_stays() {
        let mut noted = NotedSettings::default();
        assert_eq!(noted.set_protocol(&fields("udps:64000000:256M:")), Ok(()));
        assert_eq!(noted.protocol(), ("udps", [64_000_000, 256 << 20, 8]));
        assert_eq!(noted.set_protocol(&fields(":128k")), Ok(()));
        assert_eq!(noted.protocol(), ("udps", [128 << 10, 256 << 20, 8]));
        assert_eq!(noted.set_threads(&fields(":4")), Ok(()));
        assert_eq!(noted.threads(), [1, 4]);
        assert_eq!((noted.set_mtu(&fields("6000")), noted.mtu()), (Ok(()), 6000));
        for (said, told) in [("42", Some(42)), ("0x1F", Some(31)), ("none", None)] {
            assert_eq!((noted.set_task(&fields(said)), noted.task()), (Ok(()), told));
        }
    }

    #[test]
    fn times_between_packets_are_in_microseconds() {
        let mut noted = NotedSettings::default();
        for (text, expected) in [("0ns", 0.0), ("1500n", 1.5), ("20", 20.0), ("2.5us", 2.5), ("-1", -1.0)] {
            noted.set_ipd(&fields(text)).expect(text);
            assert!((noted.ipd() - expected).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn a_runtime_for_copies_takes_tcp_alone() {
        let mut noted = NotedSettings::of_transfers();
        assert!(!noted.has_protocol());
        assert!(noted.set_protocol(&fields("udps")).is_err());
        noted.set_protocol(&fields("tcp:4M:2M")).expect("valid");
        noted.set_protocol(&fields("::256M:8")).expect("valid");
        assert_eq!(noted.protocol(), ("tcp", [4 << 20, 256 << 20, 8]));
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let mut noted = NotedSettings::default();
        for wrong in
            ["tcp", "pudp:1k", "udps:1G", "udps:1k:x", "udps:0", "udps:+5", "udps:99999999999999999999"]
        {
            assert!(noted.set_protocol(&fields(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["0", "2:0", "x", "2:-1"] {
            assert!(noted.set_threads(&fields(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "-2", "5ms", "1:2", "nan", "1e99"] {
            assert!(noted.set_ipd(&fields(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["", "63", "9001", "1500:5"] {
            assert!(noted.set_mtu(&fields(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "-1", "0x", "4294967296", "1:2"] {
            assert!(noted.set_task(&fields(wrong)).is_err(), "{wrong}");
        }
        assert!(noted.set_protocol(&[]).is_err() && noted.set_mtu(&[]).is_err());
        assert_eq!(noted, NotedSettings::default());
    }
}
