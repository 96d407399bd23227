//! The check of a machine for receiving packets, as `nilometer doctor` prints it: each setting, its value, and the
//! command that would change it.

use nilometer_model::{ByteRate, Bytes};
use serde_json::{Value, json};

use crate::document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Table, Tone};

/// The packets to receive: their rate and their size.
#[derive(Debug, Clone, Copy)]
pub struct WantedPackets {
    /// Bytes of packets in a second.
    pub rate: ByteRate,
    /// Bytes of a packet, without the headers of IP and UDP.
    pub packet: Bytes,
}

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFinding {
    /// The name of the setting.
    pub what: String,
    /// The sufficiency of the value.
    pub sufficiency: Sufficiency,
    /// The value found, and the one needed.
    pub found: String,
    /// The command that would change it; `None` if it suffices, or if no command does.
    pub command: Option<String>,
}

/// The sufficiency of a setting for the wanted packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sufficiency {
    /// Sufficient.
    Good,
    /// Possibly important, or impossible to read.
    Note,
    /// Not sufficient.
    Bad,
}

impl WantedPackets {
    /// The number of packets that arrive in `seconds`.
    pub fn packets(&self, seconds: f64) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let packets = (self.rate.0 * seconds / self.packet.0 as f64).ceil() as u64;
        packets
    }

    fn words(&self) -> String {
        format!("For {} in packets of {}, {} a second", self.rate.bits(), self.packet, self.packets(1.0))
    }
}

impl MachineFinding {
    /// Makes a finding without a command.
    pub fn new(what: impl Into<String>, sufficiency: Sufficiency, found: impl Into<String>) -> Self {
        MachineFinding { what: what.into(), sufficiency, found: found.into(), command: None }
    }

    /// Makes a finding that is good if `holds`, else bad.
    pub fn holds(what: impl Into<String>, holds: bool, found: impl Into<String>) -> Self {
        MachineFinding::new(what, if holds { Sufficiency::Good } else { Sufficiency::Bad }, found)
    }

    /// Adds the command that would change it, unless the finding is good.
    #[must_use]
    pub fn by(self, command: impl Into<String>) -> Self {
        let command = (self.sufficiency != Sufficiency::Good).then(|| command.into());
        MachineFinding { command, ..self }
    }

    fn row(&self) -> Row {
        let (word, tone) = match self.sufficiency {
            Sufficiency::Good => ("ok", Tone::Good),
            Sufficiency::Note => ("note", Tone::Doubtful),
            Sufficiency::Bad => ("NOT", Tone::Bad),
        };
        let lines = std::iter::once(self.found.clone()).chain(self.command.clone()).collect();
        Row::of([Cell::toned(tone, word), Cell::new(&self.what), Cell { lines, ..Cell::new("") }])
    }

    fn value(&self) -> Value {
        let verdict = match self.sufficiency {
            Sufficiency::Good => "enough",
            Sufficiency::Note => "note",
            Sufficiency::Bad => "not enough",
        };
        json!({ "what": self.what, "verdict": verdict, "found": self.found, "command": self.command })
    }
}

/// The document: a row for each finding, with its command below the value. `origin` names the machine and the
/// time, for readers elsewhere.
pub(crate) fn machine_document(
    wanted: WantedPackets,
    findings: &[MachineFinding],
    origin: String,
) -> Document {
    let columns = vec![
        Column::new(Role::Mark, "enough"),
        Column::new(Role::Name, "setting"),
        Column::new(Role::Sentence, "found"),
    ];
    let rows = findings.iter().map(MachineFinding::row).collect();
    let table = Block::Table(Table { columns, rows });
    let section = Section::new(Heading::with("", wanted.words()), vec![table]);
    let title = "The settings of this machine".into();
    Document { title, origin, sections: vec![section], ..Document::default() }
}

/// The findings as JSON.
pub(crate) fn machine_value(wanted: WantedPackets, findings: &[MachineFinding]) -> Value {
    json!({
        "bytes_per_second": wanted.rate.0,
        "packet_bytes": wanted.packet.0,
        "packets_per_second": wanted.packets(1.0),
        "findings": findings.iter().map(MachineFinding::value).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TextLayout, machine_html, machine_json, machine_markdown, machine_text};

    #[test]
    fn every_form_has_each_setting_with_its_value_and_its_command() {
        let wanted = WantedPackets { rate: ByteRate(1e9), packet: Bytes(8000) };
        let good = MachineFinding::holds("eth0 mtu", true, "9000 B").by("ip link");
        let bad = MachineFinding::holds("socket buffer", false, "1 MB of <20 MB>").by("sysctl -w rmem_max=2");
        assert_eq!(good.command, None, "a finding that is good needs no command");
        let all = [good, bad];
        assert_eq!(
            machine_text(wanted, &all, TextLayout::unbroken()),
            "The settings of this machine\n\nFor 8 Gbit/s in packets of 8 kB, 125000 a second\n\
             \x20 enough  setting        found\n\
             \x20 ok      eth0 mtu       9000 B\n\
             \x20 NOT     socket buffer  1 MB of <20 MB>\n\
             \x20                        sysctl -w rmem_max=2\n"
        );
        let markdown = machine_markdown(wanted, &all);
        let row = "| **NOT** | socket buffer | 1 MB of &lt;20 MB><br>sysctl -w rmem\\_max=2 |";
        assert!(markdown.contains(row), "{markdown}");
        let page = machine_html(wanted, &all, "on n1".into());
        assert!(page.contains("<h2>For 8 Gbit/s in packets of 8 kB, 125000 a second</h2>"), "{page}");
        assert!(page.contains(">on n1<"), "{page}");
        assert!(page.contains("1 MB of &lt;20 MB&gt;<br/>sysctl -w rmem_max=2"), "{page}");
        let value: Value = serde_json::from_str(&machine_json(wanted, &all)).expect("JSON");
        assert_eq!(value["packets_per_second"], 125_000);
        assert_eq!(value["findings"][1]["verdict"], "not enough");
    }
}
