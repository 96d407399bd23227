//! Commands about a recording of this service: `scan_set` selects one or a part of it, `scan_check` checks it, and
//! `disk2file` copies it into a file.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), `scan_set`,
//! `scan_check` and `disk2file`; `src/mk5command/{scan_set_vbs,scan_check_vbs,disk2file_vbs}.cc`.

use std::ops::Range;

use super::{
    commands::Mark5Session,
    file_copy::{CopyOption, CopyRequest, CopyStatus, file_in},
    scan,
    scan_range::ScanExtent,
    selected_scan::{LookedAtScan, SelectedScan},
    stored_scan::stored,
    stream_form::StreamForm,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};
use crate::state::{EndedScan, ServiceState};

impl Mark5Session {
    /// The recording that queries refer to.
    pub(super) fn looked_at(&self) -> Option<LookedAtScan> {
        let mut scans = self.console.scans();
        let at = match &self.chosen {
            Some(SelectedScan { stored: Some(scan), .. }) => {
                return Some(LookedAtScan { number: None, scan: scan.clone() });
            }
            Some(SelectedScan { name, .. }) => scans.iter().rposition(|scan| scan.name == *name)?,
            None => scans.len().checked_sub(1)?,
        };
        Some(LookedAtScan { number: Some(at + 1), scan: scans.swap_remove(at) })
    }

    /// The part of the recording that `scan_set` selected, or `None` for all of it.
    pub(super) fn part(&self) -> Option<Range<u64>> {
        self.chosen.as_ref()?.part.clone()
    }

    /// `<number> : <label> : <first byte> : <last byte>`
    pub(super) fn scan(&self, command: &Mark5Command) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        match self.looked_at() {
            Some(looked_at) => {
                let Range { start, end } = self.part().unwrap_or(0..looked_at.scan.bytes);
                reply.field(looked_at.number()).field(looked_at.scan.name).field(start).field(end)
            }
            None => reply.field(-1),
        }
    }

    /// `scan_set = <number, label or a part of it, inc, dec, or nothing for the last> [: <start> [: <stop>]]`. A
    /// label may be that of any recording in the directories of the configuration.
    pub(super) fn set_scan(&mut self, command: &Mark5Command) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        let found = self.listed(field(0)).filter(|scan| !is_other(field(0), scan));
        let stored = if found.is_none() { stored(field(0), &self.shared.directories) } else { None };
        let found = found.or_else(|| stored.clone()).or_else(|| self.listed(field(0)));
        let Some(scan) = found else {
            if self.console.scans().is_empty() {
                return Mark5Reply::to(command, ReturnCode::Conflict).field("nothing was recorded yet");
            }
            return Mark5Reply::to(command, ReturnCode::Parameter).field("no such recording");
        };
        let part = match self.part_of(&scan, field(1), field(2)) {
            Ok(part) => part,
            Err((code, why)) => return Mark5Reply::to(command, code).field(why),
        };
        self.chosen = Some(SelectedScan { name: scan.name, part, stored });
        Mark5Reply::to(command, ReturnCode::Done)
    }

    /// The recording of this service that a station means.
    fn listed(&self, asked: &str) -> Option<EndedScan> {
        let scans = self.console.scans();
        let last = scans.len().checked_sub(1)?;
        let now = self.looked_at().and_then(|looked_at| looked_at.number).map_or(last, |number| number - 1);
        choice(asked, now, &scans).map(|at| scans[at].clone())
    }

    /// The part of a recording from a start to a stop, or `None` if both are the defaults.
    fn part_of(
        &self,
        scan: &EndedScan,
        start: &str,
        stop: &str,
    ) -> Result<Option<Range<u64>>, (ReturnCode, String)> {
        if start.is_empty() && stop.is_empty() {
            return Ok(None);
        }
        if self.console.report().state == ServiceState::Recording {
            return Err((ReturnCode::Conflict, "not while it records".into()));
        }
        let extent = scan::extent(scan).map_err(|error| (ReturnCode::Failed, error.to_string()))?;
        let part = extent.part(start, stop).map_err(|why| (ReturnCode::Parameter, why.to_owned()))?;
        Ok(Some(part))
    }

    /// `<number> : <label> : <format> : <tracks> : <start> : <length> : <rate> : <missing bytes>
    /// [: <bytes of samples>]`
    pub(super) fn check(&self, command: &Mark5Command) -> Mark5Reply {
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        let Some(looked_at) = self.looked_at() else {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("nothing was recorded yet");
        };
        let named = [looked_at.number(), looked_at.scan.name.clone()];
        let part = self.part();
        checked_part(command, &looked_at.scan, &named, part.as_ref())
    }

    /// `disk2file = [<file>] : [<start byte>] : [<end byte>] : [<n, w or a>]`: copies the selected recording, or
    /// these bytes of it, with all gaps filled, into a file in a directory for recordings.
    pub(super) fn copy(&self, command: &Mark5Command) -> Mark5Reply {
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        let request = self.copy_request(command).and_then(|request| self.with_room(request));
        let begun = request.and_then(|request| {
            let begun = self.shared.copy().begin(request);
            begun.map_err(|why| (ReturnCode::Conflict, why))
        });
        match begun {
            Ok(()) => Mark5Reply::to(command, ReturnCode::Begun),
            Err((code, why)) => Mark5Reply::to(command, code).field(why),
        }
    }

    /// Refuses a copy that takes more than the space for recordings.
    fn with_room(&self, request: CopyRequest) -> Result<CopyRequest, (ReturnCode, String)> {
        let room = self.space_of(&self.console.report().configuration)?.recordable.0;
        let needed = request.part.end - request.part.start;
        if needed > room {
            return Err((ReturnCode::Failed, format!("it needs {needed} bytes, and {room} are free")));
        }
        Ok(request)
    }

    fn copy_request(&self, command: &Mark5Command) -> Result<CopyRequest, (ReturnCode, String)> {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        let wrong = |why: &str| (ReturnCode::Parameter, why.to_owned());
        let Some(LookedAtScan { scan, .. }) = self.looked_at() else {
            return Err((ReturnCode::Conflict, "nothing was recorded yet".into()));
        };
        let extent = scan::extent(&scan).map_err(|error| (ReturnCode::Failed, error.to_string()))?;
        let part = self.part().unwrap_or(0..extent.bytes);
        let part = bytes(field(1), field(2), &part, &extent).map_err(wrong)?;
        let option = CopyOption::read(field(3)).ok_or_else(|| wrong("write n, w, a or resume"))?;
        let named = if field(0).is_empty() { format!("{}.m5a", scan.name) } else { field(0).to_owned() };
        let file = file_in(&named, &self.shared.directories);
        let file = file.ok_or_else(|| wrong("write a file in a directory for recordings"))?;
        Ok(CopyRequest { scan, part, file, named, option })
    }

    /// `<active or inactive> : <file> : <start byte> : <current byte> : <end byte> : <option>`; the file only if
    /// none runs. If the last one failed the code is 4, with the reason.
    pub(super) fn copy_status(&self, command: &Mark5Command) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        match self.shared.copy().status() {
            CopyStatus::Never => reply.field("inactive"),
            CopyStatus::Complete { named } => reply.field("inactive").field(named),
            CopyStatus::Failed { named, why } => {
                Mark5Reply::to(command, ReturnCode::Failed).field("inactive").field(named).field(why)
            }
            CopyStatus::Active { named, part, next, option } => {
                let reply = reply.field("active").field(named).field(part.start).field(next);
                reply.field(part.end).field(option)
            }
        }
    }
}

/// Returns the bytes of `disk2file`: an end with `+` is relative to the start, and an empty field is that of the
/// selected part.
fn bytes(start: &str, end: &str, part: &Range<u64>, extent: &ScanExtent) -> Result<Range<u64>, &'static str> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| "write byte numbers of the recording");
    let begin = if start.is_empty() { part.start } else { number(start)? };
    let end = match end.strip_prefix('+') {
        Some(length) => begin.saturating_add(number(length)?),
        None if end.is_empty() => part.end,
        None => number(end)?,
    };
    let is_inside = begin < end && end <= extent.bytes;
    is_inside.then_some(begin..end).ok_or("start and end must be in the recording, in this order")
}

/// The reply with the findings about a recording, after the fields that name it.
pub(super) fn checked(command: &Mark5Command, scan: &EndedScan, named: &[String]) -> Mark5Reply {
    checked_part(command, scan, named, None)
}

/// The reply with the findings about a part of a recording; `None` for all of it.
fn checked_part(
    command: &Mark5Command,
    scan: &EndedScan,
    named: &[String],
    part: Option<&Range<u64>>,
) -> Mark5Reply {
    let times = match scan::span(scan, part) {
        Ok(times) => times,
        Err(error) => return Mark5Reply::to(command, ReturnCode::Failed).field(error),
    };
    let reply = named.iter().fold(Mark5Reply::to(command, ReturnCode::Done), Mark5Reply::field);
    let Some(times) = times else { return reply.field('?') };
    let form = scan.mode.as_ref().map(StreamForm::of_mode).or(times.form);
    let Some(StreamForm { format, tracks, track_rate, frame }) = form else { return reply.field('?') };
    let reply = reply.field(format).field(tracks).field(times.begin.vex());
    let reply = reply.field(format!("{:.4}s", times.seconds)).field(format!("{track_rate}Mbps"));
    let missing = times.missing_packets * scan.bytes.checked_div(scan.packets).unwrap_or(0);
    let reply = reply.field(missing);
    frame.into_iter().fold(reply, Mark5Reply::field)
}

/// Returns true if a station named another recording than this one, of whose name it wrote a part.
fn is_other(asked: &str, scan: &EndedScan) -> bool {
    let is_name = !matches!(asked.to_ascii_lowercase().as_str(), "" | "inc" | "dec");
    is_name && asked.parse::<usize>().is_err() && !scan.name.eq_ignore_ascii_case(asked)
}

/// The index of the chosen recording; `now` is the one chosen before. A whole name goes first. A part of a name
/// selects the oldest recording that contains it, as in jive5ab.
fn choice(asked: &str, now: usize, scans: &[EndedScan]) -> Option<usize> {
    let count = scans.len();
    match (asked.to_ascii_lowercase().as_str(), asked.parse::<usize>()) {
        ("", _) => Some(count - 1),
        ("inc", _) => Some((now + 1) % count),
        ("dec", _) => Some((now + count - 1) % count),
        (_, Ok(number)) if (1..=count).contains(&number) => Some(number - 1),
        (part, _) => {
            let names: Vec<_> = scans.iter().map(|scan| scan.name.to_ascii_lowercase()).collect();
            let whole = names.iter().position(|name| name == part);
            whole.or_else(|| names.iter().position(|name| name.contains(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_chosen_by_number_name_or_step() {
        let scan =
            |name: &str| EndedScan { name: name.into(), paths: vec!["/x".into()], ..EndedScan::default() };
        let scans = ["One", "two10", "Two1", "three"].map(scan);
        let chosen = ["", "1", "0", "5", "inc", "dec"].map(|asked| choice(asked, 3, &scans));
        assert_eq!(chosen, [Some(3), Some(0), Some(1), None, Some(0), Some(2)]);
        let named = ["one", "T", "two", "two1", "TWO10", "four"].map(|asked| choice(asked, 3, &scans));
        assert_eq!(named, [Some(0), Some(1), Some(1), Some(2), Some(1), None]);
    }

    #[test]
    fn bytes_of_a_copy_are_absolute_or_those_selected() {
        let extent = ScanExtent { bytes: 1000, frame: 100, times: None };
        let of = |start, end| bytes(start, end, &(200..700), &extent);
        assert_eq!(of("", ""), Ok(200..700));
        assert_eq!(of("50", ""), Ok(50..700));
        assert_eq!(of("50", "+10"), Ok(50..60));
        assert_eq!(of("", "1000"), Ok(200..1000));
        for (start, end) in [("", "1001"), ("700", ""), ("-1", ""), ("x", ""), ("5", "+"), ("5", "5")] {
            assert!(of(start, end).is_err(), "{start} {end}");
        }
    }
}
