//! A verdict in sentences.

use std::fmt;

use nilometer_model::{ByteRate, Bytes, Nanos, PacketTotals, statistics::poisson_upper};

use super::{Beside, Finding, Together, Trial, Under, Verdict};

/// In powers of 1000, as rates are.
fn decimal(bytes: Bytes) -> String {
    ByteRate(bytes.0 as f64).to_string().replace("/s", "")
}

impl fmt::Display for Verdict {
    /// The sentence, without its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding {
            Finding::Carried(trial) => self.carried(f, trial),
            Finding::Lost(trial) => self.lost(f, trial),
            Finding::Undecided(why) => write!(f, "not decided: {why}"),
        }
    }
}

impl Verdict {
    fn carried(&self, f: &mut fmt::Formatter<'_>, trial: &Trial) -> fmt::Result {
        let Trial { duration, longest_stall, buffer_used, cores, .. } = trial;
        let rarer = Nanos::from_seconds(duration.seconds() / poisson_upper(0));
        match self.margin() {
            Some(margin) if margin < 1.0 => {
                write!(f, "not decided: it took {margin:.2} times its rate in the long run, and yet")?;
            }
            _ if trial.packets.is_some() => write!(f, "carries it over loopback;")?,
            Some(margin) => write!(f, "carries {margin:.1} times its rate;")?,
            None => write!(f, "carries it;")?,
        }
        write!(
            f,
            " in {duration} no {} was lost, so losses are rarer than one in {rarer} (95 %); the longest stall was \
             {longest_stall}, which a buffer of {} covers; the recorder spent {cores:.2} cores",
            trial.smallest(),
            decimal(*buffer_used)
        )?;
        let Some(packets) = &trial.packets else { return Ok(()) };
        let each = Nanos::from_seconds(cores * duration.seconds() / packets.stored.max(1) as f64);
        write!(f, ", {each} a packet of {} B", packets.size.0)?;
        match self.margin() {
            Some(margin) if margin >= 1.0 => {
                write!(f, "; the storage by itself takes {margin:.1} times its rate")
            }
            _ => Ok(()),
        }
    }

    fn lost(&self, f: &mut fmt::Formatter<'_>, trial: &Trial) -> fmt::Result {
        let (rate, buffer, lost) = (self.rate, decimal(trial.buffer), lost_frames(trial));
        match &trial.packets {
            Some(packets) => write!(
                f,
                "does not carry it over loopback: at {rate} {lost} were lost: {}",
                where_lost(packets, &buffer)
            )?,
            None => write!(f, "does not carry it: at {rate} {lost} found no room in a buffer of {buffer}")?,
        }
        write!(f, "; the longest stall was {}", trial.longest_stall)?;
        match self.limit {
            None => Ok(()),
            Some(limit) if limit.0 < self.rate.0 => write!(f, "; it carries {limit}"),
            Some(limit) if trial.packets.is_some() => write!(f, "; the storage by itself takes {limit}"),
            Some(limit) => write!(f, "; by itself it takes {limit}, so it is the stalls that lose frames"),
        }
    }

    /// What is to be said besides, a sentence each.
    pub fn more(&self) -> Vec<String> {
        let mut more = Vec::new();
        if !self.by_itself {
            more.push("it was recorded with readers, with others or in a condition only".to_owned());
        }
        if let Finding::Carried(trial) | Finding::Lost(trial) = &self.finding {
            // What is padded to whole pages is a little more than it was.
            if trial.compressed > 1.05 && trial.compressed.is_finite() {
                let written = ByteRate(self.rate.0 / trial.compressed);
                more.push(format!(
                    "compressed {:.1} times, {written} were given to the storage",
                    trial.compressed
                ));
            }
            more.extend(late(trial));
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

    /// What limited a search, if it was not what was evaluated.
    fn limited(&self) -> String {
        self.ceiling.map_or_else(String::new, |rate| {
            format!("; the simulated instrument was the limit: it could not send {rate} on this machine")
        })
    }

    /// What readers cost the writer, and the writer the readers.
    fn beside(&self, beside: &Beside) -> Vec<String> {
        let who = match (beside.readers, beside.copied) {
            (0, _) => "a copy".to_owned(),
            (readers, copied) => {
                let plural = if readers == 1 { "" } else { "s" };
                format!("{readers} reader{plural}{}", if copied { " and a copy" } else { "" })
            }
        };
        let mut sentences = vec![format!("beside {who}: {}", self.compared(&beside.finding))];
        if let (Some(limit), Some(alone)) = (beside.limit, self.limit) {
            let percent = 100.0 * (1.0 - limit.0 / alone.0);
            sentences.push(format!(
                "as fast as it goes, {who} cost the writer {percent:.0} %: {limit} instead of {alone}"
            ));
        }
        if let Some((half, most)) = beside.late {
            let missed = match beside.missed {
                0 => "none was missed".to_owned(),
                missed => format!("{missed} were removed before they were read"),
            };
            let failed = match beside.failed {
                0 => String::new(),
                failed => format!(", {failed} of its reads or writes failed"),
            };
            let alone = beside
                .alone
                .map(|alone| format!("; one alone, afterwards, by way of whatever cache there is: {alone}"));
            sentences.push(format!(
                "{who} had read half of the frames {half} and 99 % {most} after they were due, {missed}{failed}, at {} \
                 together{}",
                beside.got,
                alone.unwrap_or_default()
            ));
        }
        if beside.hung {
            sentences.push("the copy hung and was given up; the recording went on without it".into());
        }
        sentences
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
            (Some(limit), Some(usual)) => format!("; it takes {limit} instead of {usual}"),
            _ => String::new(),
        };
        format!("{}: {}{limit}", under.condition, self.compared(&under.finding))
    }

    /// A finding against that of the instrument by itself.
    fn compared(&self, finding: &Finding) -> String {
        let alone = match &self.finding {
            Finding::Carried(trial) | Finding::Lost(trial) => format!(" (alone {})", trial.longest_stall),
            Finding::Undecided(_) => String::new(),
        };
        match finding {
            Finding::Carried(trial) => {
                let what = trial.smallest();
                format!("no {what} was lost, the longest stall was {}{alone}", trial.longest_stall)
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

impl Trial {
    /// What is lost or not.
    fn smallest(&self) -> &'static str {
        if self.packets.is_some() { "packet" } else { "frame" }
    }

    /// What is acknowledged and read.
    fn stored(&self) -> &'static str {
        if self.packets.is_some() { "block" } else { "frame" }
    }
}

/// `1.20 % of frames (72 of 6000)`.
fn lost_frames(trial: &Trial) -> String {
    let of_frames = (trial.lost, trial.due);
    let (lost, due) =
        trial.packets.map_or(of_frames, |packets| (packets.lost().max(trial.lost), packets.due));
    let percent = 100.0 * lost as f64 / due.max(1) as f64;
    format!("{percent:.2} % of {}s ({lost} of {due})", trial.smallest())
}

/// Which packets were lost where, and who did not keep up.
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

/// What the network did, in the terms of RFC 3357 and RFC 4737.
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

/// Frames that were late, stalls, when frames were durable, and what was read back.
fn late(trial: &Trial) -> Option<String> {
    let Trial { late, allowance, stalls: (stalls, stalled), durable, read_back, due, .. } = trial;
    let what = trial.stored();
    let mut parts = vec![if *late == 0 {
        format!("no {what} was acknowledged later than {allowance}")
    } else {
        format!("{late} of {due} {what}s were acknowledged later than {allowance}")
    }];
    if *stalls > 0 {
        let plural = if *stalls == 1 { "stall" } else { "stalls" };
        parts.push(format!("{stalls} {plural} longer than that, {stalled} in all"));
    }
    parts.push(durable.map_or_else(
        || "none was synced: they survive the death of the program, not the loss of power".into(),
        |durable| format!("99 % were durable within {durable}"),
    ));
    if *read_back > 0 {
        parts.push(format!(
            "{read_back} that were kept were read back, by way of whatever cache there is, and are right"
        ));
    }
    (*due > 0).then(|| parts.join("; "))
}
