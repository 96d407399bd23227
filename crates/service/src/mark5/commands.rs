//! The commands of Mark 5 recorders that make sense here, and their replies. Replies have the fields that the
//! documentation of jive5ab gives for generic recorders such as `FlexBuff` ("jive5ab command set"; in its
//! sources src/mk5command/*.cc).

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use nilometer_acquisition::{Came, Lost, SenderStatus, Status};
use nilometer_model::{Moment, Nanos, packets::VlbiMode};
use nilometer_storage::Clock;

use super::{
    noted::NotedSettings,
    runtimes::ChosenRuntime,
    selected_scan::SelectedScan,
    station_state::StationState,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};
use crate::{
    console::{Console, OrderOutcome},
    recording::options::RecordOptions,
    state::{EndedScan, RecorderOrder, RefusedOrder, ServiceReport, ServiceState},
};

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Mark5Session {
    pub(super) console: Console,
    pub(super) shared: Arc<StationState>,
    pub(super) clock: Clock,
    /// The recording that queries refer to, or `None` for the last one.
    pub(super) chosen: Option<SelectedScan>,
    /// The runtimes of this connection.
    pub(super) runtime: ChosenRuntime,
}

/// The most characters of a scan label (Mark 5C command set, `record`).
const LABEL_MAX: usize = 64;
/// The longest that a reply waits for the outcome of an order. The Field System may be set to give up after two
/// seconds. It takes 1 (begun) for success.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The keywords that can be queried but not set.
const QUERIES: [&str; 10] = [
    "status",
    "error",
    "scan_check",
    "file_check",
    "rtime",
    "dir_info",
    "dts_id",
    "version",
    "os_rev",
    "bank_info",
];

/// The reply to an unknown keyword.
pub(super) fn unknown(command: &Mark5Command) -> Mark5Reply {
    Mark5Reply::to(command, ReturnCode::Unknown).field("no such keyword")
}

impl Mark5Session {
    pub(super) fn new(console: Console, shared: Arc<StationState>) -> Self {
        let runtime = ChosenRuntime::default();
        Mark5Session { console, clock: shared.clock, shared, chosen: None, runtime }
    }

    fn noted(&self) -> MutexGuard<'_, NotedSettings> {
        self.shared.noted()
    }

    /// The reply to a command, or `None` if its keyword is unknown.
    pub(super) fn reply(&mut self, command: &Mark5Command) -> Option<Mark5Reply> {
        if !command.query && QUERIES.contains(&command.keyword.as_str()) {
            return Some(Mark5Reply::to(command, ReturnCode::Irrelevant).field("only available as query"));
        }
        let reply = self.about_runtimes(command);
        let reply = reply.or_else(|| self.about_recordings(command));
        let reply = reply.or_else(|| self.about_settings(command));
        reply.or_else(|| self.about_recorder(command)).or_else(|| self.about_absent_parts(command))
    }

    fn about_recordings(&mut self, command: &Mark5Command) -> Option<Mark5Reply> {
        let query = command.query;
        Some(match command.keyword.as_str() {
            "record" if query => self.recording(command),
            "record" => self.record(command),
            "scan_set" if query => self.scan(command),
            "scan_set" => self.set_scan(command),
            "scan_check" => self.check(command),
            "file_check" => self.file_check(command),
            "disk2file" if query => self.copy_status(command),
            "disk2file" => self.copy(command),
            "evlbi" => self.statistics(command),
            "tstat" => self.transfer(command),
            _ => return None,
        })
    }

    fn about_settings(&mut self, command: &Mark5Command) -> Option<Mark5Reply> {
        let query = command.query;
        Some(match command.keyword.as_str() {
            "net_port" if query => self.ports(command),
            "net_port" => self.set_ports(command),
            "mode" if query => self.mode(command),
            "mode" => self.set_mode(command),
            "mtu" if query => Mark5Reply::to(command, ReturnCode::Done).field(self.noted().mtu()),
            "mtu" => note(command, self.noted().set_mtu(&command.fields)),
            "ipd" if query => Mark5Reply::to(command, ReturnCode::Done).field(self.noted().ipd()),
            "ipd" => note(command, self.noted().set_ipd(&command.fields)),
            "net_protocol" if query => self.protocol(command),
            "net_protocol" => note(command, self.noted().set_protocol(&command.fields)),
            "set_disks" if query => self.disks(command),
            "set_disks" => self.set_disks(command),
            "group_def" if query => self.groups(command),
            "group_def" => self.define_group(command),
            "datastream" if query => self.streams(command),
            "datastream" => self.set_streams(command),
            "task_id" if query => self.task(command),
            "task_id" => self.set_task(command),
            _ => return None,
        })
    }

    fn about_recorder(&self, command: &Mark5Command) -> Option<Mark5Reply> {
        Some(match command.keyword.as_str() {
            "status" => self.status(command),
            "error" => self.error(command),
            "rtime" => self.remaining(command),
            "dir_info" => self.directories(command),
            "dts_id" => identity(command),
            "version" => version(command),
            "os_rev" => system(command),
            _ => return None,
        })
    }

    pub(super) fn order(&mut self, command: &Mark5Command, order: RecorderOrder) -> Mark5Reply {
        self.ordered(command, order).0
    }

    /// The reply to an order. The second value is true if the recorder has carried it out or is doing so.
    pub(super) fn ordered(&mut self, command: &Mark5Command, order: RecorderOrder) -> (Mark5Reply, bool) {
        let refused = |code, why: String| (Mark5Reply::to(command, code).field(why), false);
        match self.console.order(order, PATIENCE) {
            Ok(OrderOutcome::Done(_)) => (Mark5Reply::to(command, ReturnCode::Done), true),
            Ok(OrderOutcome::UnderWay(_)) => (Mark5Reply::to(command, ReturnCode::Begun), true),
            Err(RefusedOrder::WrongState(why)) => refused(ReturnCode::Conflict, why),
            Err(RefusedOrder::AskedWrongly(why)) => refused(ReturnCode::Parameter, why),
            Err(RefusedOrder::Failed(why)) => refused(ReturnCode::Failed, why),
            Err(RefusedOrder::Busy) => (Mark5Reply::to(command, ReturnCode::Busy), false),
        }
    }

    /// `record = on : <label> [: <experiment> : <station>]`, `record = off`.
    fn record(&mut self, command: &Mark5Command) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        match field(0).to_ascii_lowercase().as_str() {
            "on" => match label([field(2), field(3), field(1)]) {
                Some(name) => {
                    let streams = self.shared.streams().chosen();
                    self.order(command, RecorderOrder::Record(name, streams))
                }
                None => Mark5Reply::to(command, ReturnCode::Parameter)
                    .field("write a label of letters, digits and _ + - ."),
            },
            "off" => {
                self.chosen = None;
                self.order(command, RecorderOrder::Stop)
            }
            "nthread" => note(command, self.noted().set_threads(&command.fields[1..])),
            "mk6" if field(1) == "0" => Mark5Reply::to(command, ReturnCode::Done),
            "mk6" => {
                Mark5Reply::to(command, ReturnCode::Parameter).field("files are no Mark 6 ones, write 0")
            }
            _ => Mark5Reply::to(command, ReturnCode::Parameter).field("write on or off"),
        }
    }

    /// `<on or off> : <number of the recording> : <label> : <bytes>`; when off, of the last recording.
    ///
    /// The bytes are those that survive a kill of the recorder. While it records, two fields follow: bytes
    /// received, and bytes that survive a loss of power. A query of `nthread` gives the numbers of readers and
    /// writers; one of `mk6` gives 0, since files are never Mark 6 ones.
    fn recording(&self, command: &Mark5Command) -> Mark5Reply {
        let report = self.console.report();
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        match command.fields.first().map(String::as_str) {
            Some("nthread") => return self.noted().threads().into_iter().fold(reply, Mark5Reply::field),
            Some("mk6") => return reply.field(0),
            _ => {}
        }
        let status = report.figures();
        match (report.state, &report.name, report.last) {
            (ServiceState::Recording, Some(name), _) => {
                let bytes = [status.acknowledged_bytes, status.received_bytes, status.durable_bytes];
                let reply = reply.field("on").field(report.recordings + 1).field(name);
                bytes.into_iter().fold(reply, Mark5Reply::field)
            }
            (_, _, Some(last)) => {
                reply.field("off").field(report.recordings).field(last.name).field(last.bytes)
            }
            _ => reply.field("off"),
        }
    }

    /// The status word, with these bits of Mark 5 recorders.
    ///
    /// - 0: ready; 1: error pending; 3 and 4: busy
    /// - 6: recording; 7: media full; 10: data lost
    /// - 20 and 21: a bank is present
    fn status(&self, command: &Mark5Command) -> Mark5Reply {
        let report = self.console.report();
        let pending = self.pending(&report);
        let word = word(&report, pending.is_some());
        let reply = Mark5Reply::to(command, ReturnCode::Done).field(format!("0x{word:08x}"));
        match pending {
            Some(PendingError { why, at }) => reply.field(ERROR).field(why).field(at.vex()),
            None => reply,
        }
    }

    /// `<number> : <message> : <time> : :`, once. Without an error all fields are empty. The last two are for
    /// repeated errors.
    fn error(&self, command: &Mark5Command) -> Mark5Reply {
        let report = self.console.report();
        let Some(PendingError { why, at }) = self.pending(&report) else {
            return empty(Mark5Reply::to(command, ReturnCode::Done), 5);
        };
        self.noted().were_read(errors(&report).map(|error| error.at).collect());
        empty(Mark5Reply::to(command, ReturnCode::Done).field(ERROR).field(why).field(at.vex()), 2)
    }

    /// The first error of a report, unless a station has already read it.
    fn pending(&self, report: &ServiceReport) -> Option<PendingError> {
        errors(report).next().filter(|error| self.noted().is_pending(error.at))
    }

    fn protocol(&self, command: &Mark5Command) -> Mark5Reply {
        let noted = self.noted();
        let (protocol, buffers) = noted.protocol();
        buffers.into_iter().fold(Mark5Reply::to(command, ReturnCode::Done).field(protocol), Mark5Reply::field)
    }

    /// `evlbi?`, or `evlbi = <format>` with placeholders such as `%t`.
    fn statistics(&self, command: &Mark5Command) -> Mark5Reply {
        const USUAL: [&str; 8] =
            ["total", "%t", "loss", "%l (%L)", "out-of-order", "%o (%O)", "extent", "%R"];
        let asked = command.fields.iter().map(String::as_str).collect::<Vec<_>>();
        let fields = if command.query { &USUAL[..] } else { &asked[..] };
        let status = self.console.report().figures();
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let reply = fields.iter().fold(reply, |reply, field| reply.field(formatted(field, &status)));
        let senders = status.senders.iter().filter(|_| status.senders.len() > 1);
        senders.fold(reply, |reply, sender| {
            let reply = reply.field(sender.name());
            fields.iter().fold(reply, |reply, field| reply.field(formatted_of_sender(field, sender)))
        })
    }

    /// `<mode> : <format> : <tracks> : <bit/s a track> [: <bytes of a frame>]`
    fn mode(&self, command: &Mark5Command) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let Some(mode) = self.console.report().configuration.mode else { return reply.field("none") };
        let rate = mode.rate().megabits() * 1e6 / mode.tracks() as f64;
        let reply = reply.field(mode).field(mode.format()).field(mode.tracks()).field(format!("{rate:.3}"));
        if mode.format() == "mark5b" { reply } else { reply.field(mode.frame_size().0) }
    }

    fn set_mode(&mut self, command: &Mark5Command) -> Mark5Reply {
        let mode = command.fields.join(":").parse::<VlbiMode>().map_err(|error| error.to_string());
        // A well-formed mode may still be impossible.
        match mode.and_then(|mode| mode.instrument(None).map(|_| mode)) {
            Ok(mode) => self.order(
                command,
                RecorderOrder::Change(RecordOptions { mode: Some(mode), ..RecordOptions::default() }),
            ),
            Err(why) => Mark5Reply::to(command, ReturnCode::Parameter).field(why),
        }
    }
}

/// The number of an error in `status?`. The numbers of jive5ab start at 1000.
const ERROR: u32 = 1000;

/// An error that a station has to see.
struct PendingError {
    why: String,
    at: Moment,
}

/// The errors of a report: the failure of the recorder, then the faults of the last recording, such as missing
/// packets. Often both are the same.
fn errors(report: &ServiceReport) -> impl Iterator<Item = PendingError> {
    let failure = report.fault.clone().map(|why| PendingError { why, at: report.since });
    let of_last = |last: &EndedScan| {
        let at = Moment(last.begun.0 + Nanos::from_seconds(last.seconds));
        last.fault.clone().map(|why| PendingError { why, at })
    };
    let last = report.last.as_ref().and_then(of_last);
    failure.into_iter().chain(last)
}

/// Number of packets that came and were thrown away, except those of senders that the operator forbids.
fn discarded(status: &Status) -> u64 {
    let ignored = status.ignored_packets.iter().filter(|(why, _)| *why != "not-allowed");
    ignored.map(|(_, packets)| packets).sum()
}

fn word(report: &ServiceReport, has_error: bool) -> u32 {
    let (lost, full) = report.recording.as_ref().map_or((false, false), |recording| {
        let status = &recording.status;
        let Lost { queue_full, ring_full, blocks_not_stored, .. } = status.lost;
        let missing = status.lost.all() + discarded(status);
        let lost = missing > 0 || queue_full > 0 || ring_full > 0 || blocks_not_stored > 0;
        (lost, status.lanes.iter().any(|lane| lane.state == "full"))
    });
    let active =
        matches!(report.state, ServiceState::Waiting | ServiceState::Armed | ServiceState::Recording);
    let bits = [
        (0, report.state != ServiceState::Idle),
        (1, has_error),
        (3, active),
        (4, active),
        (6, report.state == ServiceState::Recording),
        (7, full),
        (10, lost),
        (20, true),
        (21, report.state != ServiceState::Idle),
    ];
    bits.into_iter().filter(|(_, set)| *set).map(|(bit, _)| 1 << bit).sum()
}

/// Joins experiment, station and scan to one name. A scan alone is a label; without a scan there is none.
fn label([experiment, station, scan]: [&str; 3]) -> Option<String> {
    let parts = [experiment, station, scan].into_iter().filter(|part| !part.is_empty());
    let name = if scan.is_empty() { String::new() } else { parts.collect::<Vec<_>>().join("_") };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
    let is_label = !name.is_empty() && name.len() <= LABEL_MAX && name.bytes().all(plain);
    (is_label && !name.starts_with('.')).then_some(name)
}

/// The reply to a setting: done, or the reason why it is invalid.
pub(super) fn note(command: &Mark5Command, noted: Result<(), &'static str>) -> Mark5Reply {
    match noted {
        Ok(()) => Mark5Reply::to(command, ReturnCode::Done),
        Err(why) => Mark5Reply::to(command, ReturnCode::Parameter).field(why),
    }
}

fn empty(reply: Mark5Reply, fields: usize) -> Mark5Reply {
    (0..fields).fold(reply, |reply, _| reply.field(""))
}

/// A field of `evlbi` with its figures (jive5ab, `fmt_evlbistats`).
fn formatted(field: &str, status: &Status) -> String {
    let came = status.came.packets;
    // Packets that were thrown away may be among the missing ones, which must not count twice.
    let lost = status.lost.all().max(discarded(status));
    let dropped = status.duplicate_packets + status.lost.late;
    let all = (came + status.lost.all()).max(1) as f64;
    let share = |count: u64| format!("{:5.2}%", count as f64 / all * 100.0);
    let extent = status.reordering_sum as f64 / status.reordered_packets.max(1) as f64;
    let values = [
        ("%t", came.to_string()),
        ("%l", lost.to_string()),
        ("%L", share(lost)),
        ("%o", status.reordered_packets.to_string()),
        ("%O", share(status.reordered_packets)),
        ("%d", dropped.to_string()),
        ("%D", share(dropped)),
        ("%r", status.reordering_sum.to_string()),
        ("%R", format!("{extent}seqnr/pkt")),
    ];
    values.into_iter().fold(field.to_owned(), |text, (name, value)| text.replace(name, &value))
}

/// A field of `evlbi` with the figures of one of several senders.
fn formatted_of_sender(field: &str, sender: &SenderStatus) -> String {
    let of_sender = Status {
        came: Came { packets: sender.received_packets, ..Came::default() },
        lost: Lost { packets: sender.missing_packets, late: sender.late_packets, ..Lost::default() },
        duplicate_packets: sender.duplicate_packets,
        reordered_packets: sender.reordered_packets,
        reordering_sum: sender.reordering_sum,
        ..Status::default()
    };
    formatted(field, &of_sender)
}

/// `<type of system> : <date of the software> : <medium> : <serial number> : <inputs> : <outputs> :
/// <command set> : - : -`
fn identity(command: &Mark5Command) -> Mark5Reply {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let host = host.split('.').next().unwrap_or("-");
    // A recorder on disks (medium 1) that is no Mark 5 machine.
    let fields = ["-", env!("CARGO_PKG_VERSION"), "1", host, "0", "0", "-", "-", "-"];
    fields.into_iter().fold(Mark5Reply::to(command, ReturnCode::Done), Mark5Reply::field)
}

/// The version of jive5ab whose commands this recorder follows.
const COMMAND_SET: &str = "3.1.0";

/// `<commands and program> : <version of the commands> : <bits> : <program and its version>`. m5copy takes only
/// programs whose name begins with jive5, and finds out by the version which commands there are.
fn version(command: &Mark5Command) -> Mark5Reply {
    let word = format!("{}bit", usize::BITS);
    let program = format!("nilometer {}", env!("CARGO_PKG_VERSION"));
    let reply = Mark5Reply::to(command, ReturnCode::Done).field("jive5ab-compatible nilometer");
    reply.field(COMMAND_SET).field(word).field(program)
}

/// The version of Linux in one field. jive5ab answers the same, though its documentation limits fields to 32
/// characters.
fn system(command: &Mark5Command) -> Mark5Reply {
    match std::fs::read_to_string("/proc/version") {
        Ok(text) => Mark5Reply::to(command, ReturnCode::Done).field(text.trim_end()),
        Err(error) => Mark5Reply::to(command, ReturnCode::Failed).field(error),
    }
}

#[cfg(test)]
mod tests;
