//! `nilometer doctor`: checks this machine's settings for receiving packets at a rate, and lists the missing
//! ones. It changes nothing.

mod clock;
mod interface;
mod kernel;
mod processors;

use std::fs;

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_model::{ByteRate, Bytes, Moment, Nanos};
use nilometer_report::{
    MachineFinding, Sufficiency, WantedPackets, machine_html, machine_json, machine_markdown, machine_text,
};
use nilometer_storage::{
    Calendar,
    network::{interfaces, links::is_up},
};

use crate::{
    Blame, Failure, Outcome,
    document_options::{DocumentFormat, DocumentOptions},
    page_file,
    report::line_layout,
    tell,
    version::PACKAGE,
};

/// Check this machine for receiving packets without loss, and change nothing. Prints the command for each
/// wrong setting
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Check for packets at this rate
    #[arg(long, default_value = "8 Gbit/s")]
    rate: ByteRate,
    /// Check this interface [default: all that are up, except loopback]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Bytes of a packet, without the headers of IP and UDP
    #[arg(long, default_value = "8040 B")]
    packet: Bytes,
    #[command(flatten)]
    document: DocumentOptions,
}

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// `on n1, 2026-11-30T16:00:00Z, nilometer 0.1.0`: the machine and the time, for readers elsewhere.
fn origin() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let now = Calendar::now().time.0;
    let time = Moment(Nanos(now - now % SECOND));
    format!("on {}, {time}, nilometer {PACKAGE}", host.trim())
}

impl Doctor {
    pub(crate) fn execute(&self) -> Outcome {
        self.document.check().input()?;
        let names = self.interfaces().input()?;
        let wanted = WantedPackets { rate: self.rate, packet: self.packet };
        let mut findings = kernel::findings(wanted);
        for name in &names {
            findings.extend(interface::findings(name, wanted));
        }
        findings.extend(processors::findings());
        findings.push(clock::finding());
        self.tell(wanted, &findings);
        page_file::write_option(self.document.html(), || machine_html(wanted, &findings, origin())).run()?;
        let bad = findings.iter().filter(|finding| finding.sufficiency == Sufficiency::Bad).count();
        if bad == 0 {
            return Ok(());
        }
        Err(Failure::Run(anyhow!("{bad} of {} checks found too little for this rate", findings.len())))
    }

    fn tell(&self, wanted: WantedPackets, findings: &[MachineFinding]) {
        match self.document.format() {
            DocumentFormat::Text => tell::result_unchanged(machine_text(wanted, findings, line_layout())),
            DocumentFormat::Markdown => tell::result_to_copy(machine_markdown(wanted, findings)),
            DocumentFormat::Json => tell::json_result(machine_json(wanted, findings)),
        }
    }

    fn interfaces(&self) -> anyhow::Result<Vec<String>> {
        ensure!(self.rate.0 > 0.0, "--rate 0: write more than 0");
        ensure!(
            (1..=65_507).contains(&self.packet.0),
            "--packet {}: a packet of UDP has 1 to 65507 B",
            self.packet
        );
        let all = interfaces();
        match &self.interface {
            Some(name) if all.contains(name) => Ok(vec![name.clone()]),
            Some(name) => Err(anyhow!("no interface `{name}`: write one of {}", all.join(", "))),
            None => Ok(all.into_iter().filter(|name| is_up(name)).collect()),
        }
    }
}
