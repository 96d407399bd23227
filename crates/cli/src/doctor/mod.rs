//! `nilometer doctor`: checks this machine's settings for receiving packets at a rate, and lists the missing
//! ones. It changes nothing.

mod clock;
mod interface;
mod kernel;
mod processors;

use std::fmt;

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_model::{ByteRate, Bytes, LinkRate};
use serde_json::{Value, json};

use nilometer_storage::network::{interfaces, links::is_up};

use crate::{Blame, Failure, Outcome, tell};

/// Check this machine for receiving packets without loss, and change nothing. Prints the command for each
/// wrong setting
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Check for packets at this rate
    #[arg(long, default_value = "8 Gbit/s")]
    rate: LinkRate,
    /// Check this interface [default: all that are up, except loopback]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Bytes of a packet, without the headers of IP and UDP
    #[arg(long, default_value = "8040 B")]
    packet: Bytes,
    /// Print JSON: the rate, and each finding
    #[arg(long)]
    json: bool,
}

/// The packets to receive: their rate and their size.
#[derive(Debug, Clone, Copy)]
struct Wish {
    rate: ByteRate,
    packet: Bytes,
}

impl Wish {
    /// The number of packets that arrive in `seconds`.
    fn packets(&self, seconds: f64) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let packets = (self.rate.0 * seconds / self.packet.0 as f64).ceil() as u64;
        packets
    }
}

/// One setting, its value, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    what: String,
    verdict: Verdict,
    /// The value found, and the one needed.
    found: String,
    /// The command that would change it.
    command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Sufficient.
    Good,
    /// Possibly important, or impossible to read.
    Note,
    /// Not sufficient.
    Bad,
}

impl Finding {
    fn new(what: impl Into<String>, verdict: Verdict, found: impl Into<String>) -> Self {
        Finding { what: what.into(), verdict, found: found.into(), command: None }
    }

    /// Good if `holds`, else bad.
    fn holds(what: impl Into<String>, holds: bool, found: impl Into<String>) -> Self {
        Finding::new(what, if holds { Verdict::Good } else { Verdict::Bad }, found)
    }

    fn value(&self) -> Value {
        let verdict = match self.verdict {
            Verdict::Good => "enough",
            Verdict::Note => "note",
            Verdict::Bad => "not enough",
        };
        json!({ "what": self.what, "verdict": verdict, "found": self.found, "command": self.command })
    }

    /// Adds the command that would change it, unless the finding is good.
    fn by(self, command: impl Into<String>) -> Self {
        let command = (self.verdict != Verdict::Good).then(|| command.into());
        Finding { command, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Note => "note",
            Verdict::Bad => "NOT",
        };
        write!(f, "{verdict:<5}{:<29}{}", self.what, self.found)?;
        self.command.iter().try_for_each(|command| write!(f, "\n     {command}"))
    }
}

impl Doctor {
    pub(crate) fn execute(&self) -> Outcome {
        let names = self.interfaces().input()?;
        let wish = Wish { rate: self.rate.0, packet: self.packet };
        let mut findings = kernel::findings(wish);
        for name in &names {
            findings.extend(interface::findings(name, wish));
        }
        findings.extend(processors::findings());
        findings.push(clock::finding());
        if self.json {
            tell::json_result(format_args!("{:#}\n", value(wish, &findings)));
        } else {
            tell_all(wish, &findings);
        }
        let bad = findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
        if bad == 0 {
            return Ok(());
        }
        Err(Failure::Run(anyhow!("{bad} of {} checks found too little for this rate", findings.len())))
    }

    fn interfaces(&self) -> anyhow::Result<Vec<String>> {
        ensure!(self.rate.0.0 > 0.0, "--rate 0: write more than 0");
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

/// Prints one line for each finding.
fn tell_all(wish: Wish, findings: &[Finding]) {
    tell::result_line(format_args!(
        "for {} in packets of {}, {} a second:",
        wish.rate.bits(),
        wish.packet,
        wish.packets(1.0)
    ));
    for finding in findings {
        tell::result_line(finding);
    }
}

/// The findings as JSON.
fn value(wish: Wish, findings: &[Finding]) -> Value {
    json!({
        "bytes_per_second": wish.rate.0, "packet_bytes": wish.packet.0, "packets_per_second": wish.packets(1.0),
        "findings": findings.iter().map(Finding::value).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_is_good_needs_no_command() {
        let good = Finding::holds("mtu", true, "9000 B").by("ip link");
        assert_eq!(good.to_string(), "ok   mtu                          9000 B");
        let bad = Finding::holds("mtu", false, "1500 B").by("ip link");
        assert_eq!(bad.to_string(), "NOT  mtu                          1500 B\n     ip link");
    }
}
