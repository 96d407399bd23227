//! A verdict in sentences.

use std::fmt;

use nilometer_model::{
    ByteRate, Bytes, Nanos, PacketTotals, rounded_down,
    sustained::{RateChange, SustainedRate},
};

use crate::{
    losses::{fewer_losses, lost_words},
    rate_unit::decimal,
};

use super::{Beside, Decision, Finding, Together, TrialVerdict, Under, Verdict};

impl fmt::Display for Verdict {
    /// The sentence, without its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_company(f)?;
        match &self.finding {
            Finding::Carried(trial) => {
                self.answered(f, trial)?;
                self.shown(f, trial)?;
            }
            Finding::Lost(trial) => self.lost(f, trial)?,
            Finding::Undecided(why) => write!(f, "not decided: {why}")?,
        }
        self.room_words().map_or(Ok(()), |room| write!(f, "; {room}"))
    }
}

impl Verdict {
    /// If company changes the answer for the instrument alone, it comes first.
    fn in_company(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = self.decision();
        if decision == self.decision_alone() {
            return Ok(());
        }
        let besides = self.besides();
        let mut reasons = besides.iter().filter_map(|(place, finding)| match (decision, finding) {
            (Decision::DoesNotCarry, Finding::Lost(trial)) => {
                Some(format!("does not carry it {place}: {} were lost there", lost_frames(trial)))
            }
            (Decision::NotDecided, Finding::Undecided(why)) => Some(format!("not decided {place}: {why}")),
            _ => None,
        });
        let it = if self.decision_alone() == Decision::Carries { "it " } else { "" };
        reasons.next().map_or(Ok(()), |reason| write!(f, "{reason}; by itself {it}"))
    }

    /// The answer if no frame was lost.
    fn answered(&self, f: &mut fmt::Formatter<'_>, trial: &TrialVerdict) -> fmt::Result {
        match (self.decision_alone(), self.doubt(trial)) {
            (Decision::Carries, _) if trial.packets.is_some() => {
                write!(f, "carries it {}; ", self.route.words())
            }
            (Decision::Carries, _) => match self.margins() {
                Some(_) => write!(f, "carries {}{}; ", self.times(), self.waited()),
                None => write!(f, "carries it; "),
            },
            (Decision::DoesNotCarry, _) => {
                let buffer = decimal(trial.buffer);
                write!(f, "does not carry it: it sustains {}, which a buffer of {buffer} hid; ", self.times())
            }
            (Decision::NotDecided, doubt) => {
                let why = doubt.map(|doubt| doubt.to_string()).unwrap_or_default();
                write!(f, "not decided: {why}; ")?;
                match self.margins() {
                    Some(_) => write!(f, "it sustains {}; ", self.times()),
                    None => Ok(()),
                }
            }
        }
    }

    /// `room for 23 min at this rate (11.7 GB)`; `None` without a known room.
    pub(crate) fn room_words(&self) -> Option<String> {
        let room = self.room?;
        Some(format!("room for {} at this rate ({})", rounded_down(room.seconds()?), decimal(room.usable)))
    }

    /// The answer without its evidence: a sentence without its subject.
    pub fn claim(&self) -> String {
        match self.decided_beside() {
            Some((place, Finding::Undecided(why))) => return format!("not decided {place}: {why}"),
            Some((place, _)) => return format!("loses frames {place}"),
            None => {}
        }
        let over = self.route.words();
        let over = |trial: &TrialVerdict| trial.packets.map_or_else(String::new, |_| format!(" {over}"));
        match (&self.finding, self.decision()) {
            (Finding::Carried(trial), Decision::Carries) => {
                let times = |_| format!(": {}{}", self.times(), self.waited());
                let margin = self.margins().map(times).unwrap_or_default();
                format!("carries it{}{margin}", over(trial))
            }
            (Finding::Carried(_), Decision::DoesNotCarry) => {
                format!("sustains only {}", self.times())
            }
            (Finding::Carried(trial), Decision::NotDecided) => {
                self.doubt(trial).map(|doubt| doubt.to_string()).unwrap_or_default()
            }
            (Finding::Lost(trial), _) => {
                let taken = self.limit.map(|limit| format!("; it sustains {}", rate_words(&limit)));
                format!("loses frames{} at {}{}", over(trial), self.rate, taken.unwrap_or_default())
            }
            (Finding::Undecided(why), _) => why.clone(),
        }
    }

    /// The company or condition that changes the answer for the instrument alone, with its finding.
    pub(crate) fn decided_beside(&self) -> Option<(String, &Finding)> {
        let decision = self.decision();
        if decision == self.decision_alone() {
            return None;
        }
        let decides = |finding: &Finding| match decision {
            Decision::DoesNotCarry => matches!(finding, Finding::Lost(_)),
            _ => matches!(finding, Finding::Undecided(_)),
        };
        self.besides().into_iter().find(|(_, finding)| decides(finding))
    }

    /// `2.4 times the instrument's rate (2.3 to 2.5)`, or `at least 2.3 times the instrument's rate`; empty if
    /// unknown.
    fn times(&self) -> String {
        let Some(margin) = self.margins() else { return String::new() };
        let digits = if margin.low < 1.2 { 2 } else { 1 };
        if self.limit.is_some_and(|limit| limit.is_lower_bound()) {
            let bound = format!("at least {:.digits$} times the instrument's rate", margin.low);
            return if margin.low < LEAST_TIMES { String::new() } else { bound };
        }
        let trend = self.limit.and_then(|limit| limit.trend);
        let moves = trend.map_or("", |trend| if trend > 0.0 { ", still rising" } else { ", still falling" });
        format!(
            "{:.digits$} times the instrument's rate ({:.digits$} to {:.digits$}{moves})",
            margin.times, margin.low, margin.high
        )
    }

    /// ` (the recorder waited 12 s of 40 s for a processor)`, if the rate is a lower bound for that reason.
    fn waited(&self) -> String {
        let bound = self.limit.filter(SustainedRate::is_lower_bound);
        bound.map_or_else(String::new, |limit| format!(" ({})", limit.waited))
    }

    /// The evidence of a recording without loss.
    fn shown(&self, f: &mut fmt::Formatter<'_>, trial: &TrialVerdict) -> fmt::Result {
        let TrialVerdict { duration, longest_stall, .. } = trial;
        write!(
            f,
            "no {} lost in {duration}{}; the longest stall was {longest_stall}, which a buffer of {} covers",
            trial.smallest(),
            trial.proof(),
            decimal(trial.covering(self.rate))
        )?;
        if let Some(cores) = trial.cores_words() {
            write!(f, "; the recorder used {cores}")?;
            let of_packet = |packets: &PacketTotals| trial.packet_words(packets);
            f.write_str(&trial.packets.as_ref().map(of_packet).unwrap_or_default())?;
            f.write_str(&trial.client_words())?;
        }
        if trial.packets.is_none() {
            return Ok(());
        }
        match self.margins() {
            Some(margin) if margin.low >= 1.0 => {
                write!(f, "; the storage alone sustains {}{}", self.times(), self.waited())
            }
            _ => Ok(()),
        }
    }

    fn lost(&self, f: &mut fmt::Formatter<'_>, trial: &TrialVerdict) -> fmt::Result {
        let rate = self.rate;
        let buffer = decimal(trial.buffer);
        let lost = lost_frames(trial);
        match &trial.packets {
            Some(packets) => write!(
                f,
                "does not carry it {}: at {rate} {lost} were lost: {}",
                self.route.words(),
                where_lost(packets, &buffer)
            )?,
            None => write!(f, "does not carry it: at {rate} {lost} found no room in a buffer of {buffer}")?,
        }
        write!(f, "; the longest stall was {}", trial.longest_stall)?;
        let (Some(limit), Some(margin)) = (self.limit, self.margins()) else { return Ok(()) };
        let taken = rate_words(&limit);
        if trial.packets.is_some() {
            write!(f, "; the storage alone sustains {taken}")
        } else if margin.low >= 1.0 {
            write!(f, "; alone it sustains {taken}, so its stalls cost the frames")
        } else {
            write!(f, "; it sustains {taken}")
        }
    }

    /// Further findings, a sentence each.
    pub fn more(&self) -> Vec<String> {
        let mut more: Vec<String> = self.stored.iter().map(|stored| format!("stored as {stored}")).collect();
        more.extend(self.dealt_out.clone());
        if !self.by_itself {
            more.push("all its recordings had readers, other instruments or a condition".to_owned());
        }
        if let Finding::Carried(trial) | Finding::Lost(trial) = &self.finding {
            // Padding to whole pages makes frames slightly larger.
            if trial.compressed > 1.05 && trial.compressed.is_finite() {
                let written = ByteRate(self.rate.0 / trial.compressed);
                more.push(format!("compressed {:.1} times: the storage got {written}", trial.compressed));
            }
            more.extend(late(trial, self.volatile));
            more.extend(trial.packets.as_ref().map(network));
        }
        if let Some(step) = &self.cache {
            more.push(format!(
                "its cache took {}: {} before it was full, {} from then on",
                decimal(step.volume),
                step.before,
                step.after
            ));
        }
        if let Some(limit) = &self.highest {
            more.push(format!("searched: {limit}{}", self.limited()));
        }
        if let Some((limit, slot)) = &self.smallest {
            let bytes = limit.enough.map(|slots| format!(" ({})", decimal(Bytes(slots * slot.0))));
            more.push(format!("the smallest buffer: {limit}{}", bytes.unwrap_or_default()));
        }
        more.extend(self.read.iter().flat_map(|beside| self.beside(beside)));
        more.extend(self.together.iter().map(|together| self.together(together)));
        more.extend(self.under.iter().map(|under| self.under(under)));
        more
    }

    /// The limit of a search, if it was not the target.
    fn limited(&self) -> String {
        self.ceiling.map_or_else(String::new, |rate| {
            format!("; the simulated instrument was the limit: it could not send {rate} on this machine")
        })
    }

    /// The cost of readers for the writer, and of the writer for readers.
    fn beside(&self, beside: &Beside) -> Vec<String> {
        let who = beside.readers.to_string();
        let mut sentences = vec![format!("beside {who}: {}", self.compared(&beside.finding))];
        sentences.extend(self.cost(beside, &who));
        if let Some((half, most)) = beside.late {
            let missed = match beside.missed {
                0 => "none was missed".to_owned(),
                missed => {
                    format!(
                        "{missed} were removed before they were read, or not read until 2 s after the end"
                    )
                }
            };
            let failed = match beside.failed {
                0 => String::new(),
                failed => format!(", {failed} of its reads or writes failed"),
            };
            let alone = beside
                .alone
                .map(|alone| format!("; one alone, afterwards (possibly from the page cache): {alone}"));
            sentences.push(format!(
                "{who}: latency from due until read p50 {half}, p99 {most}; {missed}{failed}; {} in all{}",
                beside.got,
                alone.unwrap_or_default()
            ));
        }
        if beside.hung {
            sentences.push("the copy hung, and the recorder went on without it".into());
        }
        sentences
    }

    /// The change of the rate at full speed by the readers.
    fn cost(&self, beside: &Beside, who: &str) -> Option<String> {
        let limit = beside.limit?;
        let alone = self.limit?;
        let rates = format!("{} instead of {}", short_rate_words(&limit), short_rate_words(&alone));
        let Some(change) = beside.change else {
            return Some(format!(
                "at full speed, the cost of {who} to the writer is not decided: too few pairs ({rates})"
            ));
        };
        Some(match percents(&change) {
            Ok(cost) => format!("at full speed, {who} cost the writer {cost}: {rates}"),
            Err(range) => {
                format!("at full speed, the cost of {who} to the writer is not decided: {range} ({rates})")
            }
        })
    }

    fn together(&self, together: &Together) -> String {
        let hurt = match (&self.finding, &together.finding) {
            (Finding::Carried(_), Finding::Lost(_)) => ": the others hurt it",
            _ => "",
        };
        format!("together with the others ({}): {}{hurt}", together.company, self.compared(&together.finding))
    }

    fn under(&self, under: &Under) -> String {
        let limit = match (under.limit, self.limit) {
            (Some(limit), Some(usual)) => {
                format!("; it takes {} instead of {}", rate_words(&limit), rate_words(&usual))
            }
            _ => String::new(),
        };
        let beside = under.beside.map(|frames| format!("; the load beside it: {}", lost_words(&frames)));
        let beside = beside.unwrap_or_default();
        format!("{}: {}{limit}{beside}", under.name(), self.compared(&under.finding))
    }

    /// Compares a finding with that of the instrument alone.
    fn compared(&self, finding: &Finding) -> String {
        let alone = match &self.finding {
            Finding::Carried(trial) | Finding::Lost(trial) => format!(" (alone {})", trial.longest_stall),
            Finding::Undecided(_) => String::new(),
        };
        match finding {
            Finding::Carried(trial) => {
                let what = trial.smallest();
                format!("no {what} lost, the longest stall was {}{alone}", trial.longest_stall)
            }
            Finding::Lost(trial) => {
                format!(
                    "{} were lost, the longest stall was {}{alone}",
                    lost_frames(trial),
                    trial.longest_stall
                )
            }
            Finding::Undecided(why) => format!("not decided: {why}"),
        }
    }
}

impl TrialVerdict {
    /// `: fewer than 270 losses an hour are proved (95 %)`. Empty if the buffer was still filling: losses then
    /// come later, and not by chance.
    pub(crate) fn proof(&self) -> String {
        if self.filling { String::new() } else { format!(": {}", fewer_losses(self.duration).join("; ")) }
    }

    /// `0.25 cores`; `None` if nobody measured the recorder's processor time, as in virtual time.
    pub(crate) fn cores_words(&self) -> Option<String> {
        match self.cores {
            none if none <= 0.0 => None,
            few if few < FEWEST_CORES => Some(format!("less than {FEWEST_CORES} cores")),
            cores => Some(format!("{cores:.2} cores")),
        }
    }

    /// `, and the file system's client 0.36 more`. Empty if it had nothing to do, or works within the recorder.
    fn client_words(&self) -> String {
        let cores = self.client_cores;
        let is_told = cores >= FEWEST_CORES;
        if is_told { format!(", and the file system's client {cores:.2} more") } else { String::new() }
    }

    /// `, 310 ns a packet of 8032 B`: the processor time of a packet.
    fn packet_words(&self, packets: &PacketTotals) -> String {
        let each = Nanos::from_seconds(self.cores * self.duration.seconds() / packets.stored.max(1) as f64);
        format!(", {each} a packet of {} B", packets.size.0)
    }

    /// The unit of losses.
    pub(crate) fn smallest(&self) -> &'static str {
        if self.packets.is_some() { "packet" } else { "frame" }
    }

    /// The unit of acknowledgements and reads.
    fn stored(&self) -> &'static str {
        if self.packets.is_some() { "block" } else { "frame" }
    }
}

/// A smaller lower bound of the margin says nothing.
const LEAST_TIMES: f64 = 0.05;

/// Fewer processor cores are not counted: two digits would show none.
const FEWEST_CORES: f64 = 0.01;

/// `393 MB/s (380 MB/s to 405 MB/s)`. For a lower bound `at least 380 MB/s`, with the recorder's wait.
pub fn rate_words(limit: &SustainedRate) -> String {
    if limit.is_lower_bound() {
        return format!("at least {} ({})", limit.low, limit.waited);
    }
    format!("{} ({} to {})", limit.rate, limit.low, limit.high)
}

/// The rate without its interval: `393 MB/s`, or `at least 380 MB/s`.
fn short_rate_words(limit: &SustainedRate) -> String {
    if limit.is_lower_bound() { format!("at least {}", limit.low) } else { limit.rate.to_string() }
}

/// The cost of a change in percent, with its interval; the interval alone as an error if it includes no cost.
fn percents(change: &RateChange) -> Result<String, String> {
    let [least, mean, most] = [change.high, change.share, change.low].map(|share| -100.0 * share);
    if change.low < 0.0 && change.high < 0.0 {
        Ok(format!("{mean:.0} % ({least:.0} to {most:.0} %)"))
    } else {
        Err(format!("between {least:.0} and {most:.0} %"))
    }
}

/// `1.20 % of frames (72 of 6000)`.
pub(crate) fn lost_frames(trial: &TrialVerdict) -> String {
    let of_frames = (trial.lost, trial.due);
    let (lost, due) =
        trial.packets.map_or(of_frames, |packets| (packets.lost().max(trial.lost), packets.due));
    let percent = 100.0 * lost as f64 / due.max(1) as f64;
    format!("{percent:.2} % of {}s ({lost} of {due})", trial.smallest())
}

/// The lost packets by place, with the part that was too slow.
fn where_lost(packets: &PacketTotals, buffer: &str) -> String {
    let room = decimal(packets.room);
    let places = [
        (
            packets.in_kernel(),
            format!("in the kernel's buffer of {room}, since the recorder or this machine did not keep up"),
        ),
        (packets.ring, format!("in a ring of {buffer}, since the storage did not keep up")),
        (packets.otherwise(), "otherwise".to_owned()),
    ];
    let lost = places.into_iter().filter(|(count, _)| *count > 0);
    lost.map(|(count, place)| format!("{count} {place}")).collect::<Vec<_>>().join("; ")
}

/// The behaviour of the network, in the terms of RFC 3357 and RFC 4737.
fn network(packets: &PacketTotals) -> String {
    let PacketTotals { losses, longest_loss, reordered, extent, room, late, .. } = packets;
    let lost = match losses {
        0 => "no packet was missing between others".to_owned(),
        _ => format!("packets were missing {losses} times, {longest_loss} in a row at the most"),
    };
    let order = match reordered {
        0 => "none was reordered".to_owned(),
        _ => format!("{reordered} were reordered, overtaken by {extent} others at the most"),
    };
    format!(
        "{lost}, {order}; {} of packets may wait in the kernel; the simulated instrument sent each within {late} of its time",
        decimal(*room)
    )
}

/// Late frames, stalls, durability, and frames read back.
fn late(trial: &TrialVerdict, volatile: bool) -> Option<String> {
    let TrialVerdict { late, allowance, latest, stalls: (stalls, stalled), durable, read_back, due, .. } =
        trial;
    let what = trial.stored();
    let mut parts = vec![if *late == 0 {
        format!("write latency below {allowance} for every {what}")
    } else {
        format!("write latency above {allowance} for {late} of {due} {what}s, worst {latest}")
    }];
    if *stalls > 0 {
        let plural = if *stalls == 1 { "stall" } else { "stalls" };
        parts.push(format!("{stalls} {plural} longer than that, {stalled} in all"));
    }
    parts.push(match durable {
        _ if volatile => "the target is memory of this machine: none survives the loss of power".into(),
        Some(durable) => format!("99 % durable within {durable}"),
        None => format!("none was synced: {what}s survive a crash of the program, not the loss of power"),
    });
    parts.extend(read_back.map(|count| match count {
        0 => "no kept frame was re-read in time, so nothing shows that they are right".into(),
        _ => format!("{count} kept frames were re-read and verified (possibly from the page cache)"),
    }));
    (*due > 0).then(|| parts.join("; "))
}
