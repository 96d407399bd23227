//! Commands by which stations check the machine, the running recording, and a file of a recording.
//!
//! Sources: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst in its repository), sections `tstat`, `OS_rev`,
//! `task_ID` and `file_check`; its `src/mk5command/{tstat,os_rev,taskid,scan_check_vbs}.cc` for order, units and codes.

use std::path::Path;

use nilometer_storage::Calendar;

use super::{
    commands::{Mark5Session, note},
    scan_commands::checked,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
    transfer::{TransferCount, TransferRate, scaled},
};
use crate::state::{EndedScan, ServiceState};

/// The names that jive5ab uses for the transfer of a recording (`vbsrecord`, src/transfermode.cc) and for none.
const RECORDS: &str = "vbsrecord";
const IDLE: &str = "no_transfer";
/// The counters of a recording, in the order of the data: bytes of the stream received, and bytes stored.
const STEPS: [&str; 2] = ["network", "storage"];
/// The most bytes that a query may ask to read.
const READ_MAX: u64 = 2 << 30;

impl Mark5Session {
    /// `tstat?`: `<seconds>s : vbsrecord : network <rate> : storage <rate> : F<percent>%`, since the query
    /// before. The last field is the fill level of the buffer. The code is 1 if there was no query before, or it
    /// was too recent.
    ///
    /// `tstat = <anything>`: `<UNIX time> : vbsrecord : network : <bytes> : storage : <bytes> : FIFOLength :
    /// <bytes>`, since the recording began. Without a recording both reply `0.0 : no_transfer`.
    pub(super) fn transfer(&self, command: &Mark5Command) -> Mark5Reply {
        let report = self.console.report();
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let status = report.figures();
        let (ServiceState::Recording, Some(name)) = (report.state, report.name) else {
            return reply.field("0.0").field(IDLE);
        };
        let bytes = [status.received_bytes, status.acknowledged_bytes];
        if !command.query {
            let time = Calendar::now().time.seconds();
            let reply = reply.field(format!("{time:.3}")).field(RECORDS);
            let steps = STEPS.into_iter().zip(bytes);
            let reply = steps.fold(reply, |reply, (step, bytes)| reply.field(step).field(bytes));
            return reply.field("FIFOLength").field(bytes[0].saturating_sub(bytes[1]));
        }
        let count = TransferCount { name, at: self.clock.now(), bytes };
        let Some(TransferRate { seconds, bits }) = self.shared.rates().since_last(count) else {
            return Mark5Reply::to(command, ReturnCode::Begun).field("ask again in a second").field(RECORDS);
        };
        let reply = reply.field(format!("{seconds:.2}s")).field(RECORDS);
        let steps = STEPS.into_iter().zip(bits);
        let reply = steps.fold(reply, |reply, (step, bits)| reply.field(format!("{step} {}", scaled(bits))));
        let ring = status.ring;
        reply.field(format!("F{:4.1}%", ring.in_use as f64 * 100.0 / ring.slots.max(1) as f64))
    }

    /// A number, or `none`. The reply repeats the number set. It has no effect: there is no correlator to listen
    /// to.
    pub(super) fn task(&self, command: &Mark5Command) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        match self.shared.noted().task() {
            Some(task) => reply.field(task),
            None => reply.field("none"),
        }
    }

    /// `task_id = <number or none>`.
    pub(super) fn set_task(&self, command: &Mark5Command) -> Mark5Reply {
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        note(command, self.shared.noted().set_task(&command.fields))
    }

    /// `file_check? [<strict>] : [<bytes to read>] : <file>`: `<format> : <tracks> : <start> : <length> : <rate>
    /// : <missing bytes> [: <bytes of samples>]`.
    ///
    /// The file is a recording of this service: its name, its directory, or a file in that. Each stands for the
    /// whole recording. It may also be a file of frames in a directory for recordings. The service opens no other
    /// files, and gives the same reply for those as for files that do not exist.
    ///
    /// The strictness and the number of bytes have no effect: the check always compares the headers that it
    /// reads with the stream's.
    pub(super) fn file_check(&self, command: &Mark5Command) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        let wrong = |why: &str| Mark5Reply::to(command, ReturnCode::Parameter).field(why);
        let file = field(2);
        if file.is_empty() {
            return wrong("write a file, as in file_check? 1 : 1000000 : NAME");
        }
        if !["", "0", "1"].contains(&field(0)) {
            return wrong("strict is 0 or 1");
        }
        if !field(1).is_empty() && !is_amount(field(1)) {
            return wrong("write 8 bytes to read or more, and at most 2048M");
        }
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        let scans = self.console.scans();
        let listed = scans.into_iter().rev().find(|scan| is_of(file, scan));
        match listed.or_else(|| self.scan_in_file(file)) {
            Some(scan) => checked(command, &scan, &[]),
            None => Mark5Reply::to(command, ReturnCode::Failed).field("no recording of this service"),
        }
    }
}

/// Returns true if a file stands for this recording.
fn is_of(file: &str, scan: &EndedScan) -> bool {
    scan.name == file || scan.paths.iter().any(|directory| Path::new(file).starts_with(directory))
}

/// Returns true for a valid number of bytes, `k` or `M`.
fn is_amount(text: &str) -> bool {
    super::noted::size(text).is_some_and(|bytes| (8..=READ_MAX).contains(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_that_of_a_recording_of_this_service_or_none() {
        let scan = EndedScan {
            name: "n11m2_ef_no0001".into(),
            paths: vec!["/disk1/n11m2_ef_no0001".into(), "/disk2/n11m2_ef_no0001".into()],
            ..EndedScan::default()
        };
        for file in
            ["n11m2_ef_no0001", "/disk2/n11m2_ef_no0001", "/disk1/n11m2_ef_no0001/n11m2_ef_no0001.00000000"]
        {
            assert!(is_of(file, &scan), "{file}");
        }
        for file in ["n11m2_ef_no0002", "/disk1", "/etc/passwd", "/disk1/n11m2_ef_no00011", "no0001"] {
            assert!(!is_of(file, &scan), "{file}");
        }
    }

    #[test]
    fn amounts_are_those_that_jive5ab_takes() {
        assert!(["8", "1000000", "16M", "2048M", "1k"].into_iter().all(is_amount));
        assert!(!["0", "7", "2049M", "x", "-1", "3G", "99999999999999999999"].into_iter().any(is_amount));
    }
}
