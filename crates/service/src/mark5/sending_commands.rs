//! `disk2net` and `file2net`: send the selected recording, or a file, to another recorder. A runtime connects,
//! waits for `on`, and sends.
//!
//! Sources in the repository of jive5ab at 971c3d6: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst);
//! `src/mk5command/{disk2net,disk2net_vbs}.cc` for order and codes. `scripts/m5copy` shows the replies that it needs.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::Range,
    sync::{Arc, mpsc::sync_channel},
};

use super::{
    commands::Mark5Session,
    peer::{
        progress::{PeerTransfer, TransferProgress},
        sender,
        source::PeerSource,
    },
    runtimes::{CopyRuntime, RuntimeRefusal, RuntimeTransfer, SendingPart},
    scan,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

/// The keywords of the commands here.
const RECORDING: &str = "disk2net";
const FILE: &str = "file2net";

/// A source with the part that a station selected.
struct SelectedSource {
    source: PeerSource,
    part: Range<u64>,
}

impl Mark5Session {
    /// `connect : <address> [: <file>]`, `on : [<start byte>] : [<end byte>]`, `disconnect`.
    pub(super) fn send(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let keyword = keyword_of(command);
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        let outcome = match field(0) {
            "connect" => self.connect(command, runtime),
            "on" => turn_on(keyword, field(1), field(2), runtime),
            "disconnect" if runtime.end(keyword) => Ok(ReturnCode::Done),
            "disconnect" => Err((ReturnCode::Conflict, format!("not doing {keyword}"))),
            _ => Err((ReturnCode::Parameter, "write connect, on or disconnect".into())),
        };
        match outcome {
            Ok(code) => Mark5Reply::to(command, code),
            Err((code, why)) => Mark5Reply::to(command, code).field(why),
        }
    }

    fn connect(
        &self,
        command: &Mark5Command,
        runtime: &mut CopyRuntime,
    ) -> Result<ReturnCode, RuntimeRefusal> {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        runtime.check_free()?;
        let to = self.peer_address(field(1), runtime.port)?;
        let keyword = keyword_of(command);
        let selected = if keyword == FILE { self.selected_file(field(2)) } else { self.selected_recording() };
        let SelectedSource { source, part } = selected?;
        let length = source.length();
        let (parts, asked) = sync_channel(1);
        let work = move |progress: &_| sender::send(&source, to, &asked, progress);
        let peer = self.begin(format!("{keyword} to {to}"), work)?;
        peer.progress().begin(&part);
        let sending = SendingPart { part, length, parts, is_on: false, was_active: false };
        let about = to.ip().to_string();
        runtime.transfer = Some(RuntimeTransfer { keyword, about, peer, sending: Some(sending) });
        // m5copy takes no other code for either.
        Ok(if keyword == FILE { ReturnCode::Done } else { ReturnCode::Begun })
    }

    /// Begins a transfer on a thread of its own.
    pub(super) fn begin(
        &self,
        name: String,
        work: impl FnOnce(&TransferProgress) -> io::Result<()> + Send + 'static,
    ) -> Result<PeerTransfer, RuntimeRefusal> {
        let begun = PeerTransfer::begin(name, self.console.clone(), self.shared.log, work);
        begun.map_err(|error| (ReturnCode::Failed, format!("can't start a thread, {error}")))
    }

    /// The address of another recorder. One beyond this machine needs the operator's permission.
    pub(super) fn peer_address(&self, host: &str, port: u16) -> Result<SocketAddr, RuntimeRefusal> {
        let address = match host {
            "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => host.parse(),
        };
        let address: IpAddr =
            address.map_err(|_| (ReturnCode::Parameter, "write the address of a recorder".to_owned()))?;
        if !address.is_loopback() && !self.shared.beyond {
            let why = "start the service with --listen-beyond-loopback to allow other hosts";
            return Err((ReturnCode::Parameter, why.into()));
        }
        Ok(SocketAddr::new(address, port))
    }

    fn selected_recording(&self) -> Result<SelectedSource, RuntimeRefusal> {
        let Some(looked_at) = self.looked_at() else {
            return Err((ReturnCode::Conflict, "nothing was recorded yet".into()));
        };
        let view = scan::view(&looked_at.scan).map_err(|error| (ReturnCode::Failed, error.to_string()))?;
        let part = self.part().unwrap_or(0..view.length());
        Ok(SelectedSource { source: PeerSource::Recording(Arc::new(view)), part })
    }

    fn selected_file(&self, named: &str) -> Result<SelectedSource, RuntimeRefusal> {
        let (file, length) = self.readable_file(named).ok_or_else(|| {
            let why = "no file of VDIF or Mark5B, and none of this service, in a directory for recordings";
            (ReturnCode::Failed, format!("{named}, {why}"))
        })?;
        Ok(SelectedSource { source: PeerSource::File(Arc::new(file), length), part: 0..length })
    }

    /// `<inactive, connected or active> : <address> : <start byte> : <current byte> : <end byte>`. If the transfer
    /// failed, the code is 4, with the reason.
    pub(super) fn sending(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let Some(RuntimeTransfer { about, peer, sending: Some(sending), .. }) =
            runtime.transfer_of(keyword_of(command))
        else {
            return reply.field("inactive");
        };
        if let Some(Err(why)) = peer.outcome() {
            return Mark5Reply::to(command, ReturnCode::Failed).field("inactive").field(why);
        }
        let has_ended = peer.outcome().is_some();
        let part = peer.progress().part();
        let state = state_of(sending, peer.progress().is_connected(), has_ended, part.is_empty());
        sending.was_active |= state == "active";
        let current = part.start + peer.progress().moved();
        reply.field(state).field(about).field(part.start).field(current).field(part.end)
    }
}

/// The word for the state of a transfer. m5copy takes a transfer that is inactive right after `on` for one with
/// nothing to send. A transfer that has sent something is therefore active in one reply at least.
fn state_of(sending: &SendingPart, is_connected: bool, has_ended: bool, is_empty: bool) -> &'static str {
    match sending.is_on {
        false if is_connected => "connected",
        false => "inactive",
        true if has_ended && (sending.was_active || is_empty) => "inactive",
        true => "active",
    }
}

/// The keyword of a command, which is one of two.
fn keyword_of(command: &Mark5Command) -> &'static str {
    if command.keyword == FILE { FILE } else { RECORDING }
}

/// `on`: sends a part, once.
fn turn_on(
    keyword: &'static str,
    start: &str,
    end: &str,
    runtime: &mut CopyRuntime,
) -> Result<ReturnCode, RuntimeRefusal> {
    let conflict = |why: &str| (ReturnCode::Conflict, why.to_owned());
    let Some(RuntimeTransfer { peer, sending: Some(sending), .. }) = runtime.transfer_of(keyword) else {
        return Err(conflict("not connected, write connect first"));
    };
    if let Some(Err(why)) = peer.outcome() {
        return Err((ReturnCode::Failed, why.clone()));
    }
    if !peer.progress().is_connected() {
        return Err(conflict("not connected yet"));
    }
    if sending.is_on {
        return Err(conflict("already running"));
    }
    let part = match keyword {
        FILE => part_of_file(start, end, sending.length),
        _ => part_of_recording(start, end, &sending.part, sending.length),
    };
    let part = part.map_err(|why| (ReturnCode::Parameter, why.to_owned()))?;
    peer.progress().begin(&part);
    sending.parts.try_send(part).map_err(|_| conflict("it has ended"))?;
    sending.is_on = true;
    Ok(ReturnCode::Done)
}

const NUMBERS: &str = "write byte numbers";
const OUTSIDE: &str = "start and end must be in the source, in this order";

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| NUMBERS)
}

/// A part without a byte is one that the other recorder has already.
fn checked(part: Range<u64>, length: u64) -> Result<Range<u64>, &'static str> {
    let is_inside = part.start <= part.end && part.end <= length;
    is_inside.then_some(part).ok_or(OUTSIDE)
}

/// The part of a recording: `+` before a start skips bytes of the selected part, and `+` before an end counts from the
/// start.
fn part_of_recording(
    start: &str,
    end: &str,
    selected: &Range<u64>,
    length: u64,
) -> Result<Range<u64>, &'static str> {
    let begin = match start.strip_prefix('+') {
        Some(skipped) => selected.start.saturating_add(number(skipped)?),
        None if start.is_empty() => selected.start,
        None => number(start)?,
    };
    let stop = match end.strip_prefix('+') {
        Some(count) => begin.saturating_add(number(count)?),
        None if end.is_empty() => selected.end,
        None => number(end)?,
    };
    checked(begin..stop, length)
}

/// The part of a file: `-` counts from its end, and `+` before an end counts from the start. An end of 0 is that of the
/// file.
fn part_of_file(start: &str, end: &str, length: u64) -> Result<Range<u64>, &'static str> {
    let from_end = |text: &str| number(text).map(|bytes| length.checked_sub(bytes).ok_or(OUTSIDE));
    let begin = match (start.strip_prefix('-'), start.trim_start_matches('+')) {
        (Some(bytes), _) => from_end(bytes)??,
        (None, "") => 0,
        (None, bytes) => number(bytes)?,
    };
    let stop = match (end.strip_prefix('-'), end.strip_prefix('+')) {
        (Some(bytes), _) => from_end(bytes)??,
        (None, Some(count)) => begin.saturating_add(number(count)?),
        (None, None) if matches!(end, "" | "0") => length,
        (None, None) => number(end)?,
    };
    checked(begin..stop, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_recording_are_counted_as_m5copy_counts_them() {
        let of = |start, end| part_of_recording(start, end, &(200..700), 1000);
        assert_eq!(of("", ""), Ok(200..700));
        assert_eq!(of("+50", ""), Ok(250..700), "m5copy --resume skips what is there");
        assert_eq!(of("50", "+10"), Ok(50..60));
        assert_eq!(of("50", "1000"), Ok(50..1000));
        assert_eq!(of("+500", ""), Ok(700..700), "all of it is there");
        for (start, end) in [("+501", ""), ("-5", ""), ("", "-5"), ("", "1001"), ("x", ""), ("+", "")] {
            assert!(of(start, end).is_err(), "{start} {end}");
        }
    }

    #[test]
    fn parts_of_a_file_are_counted_from_either_end() {
        let of = |start, end| part_of_file(start, end, 1000);
        assert_eq!(of("", ""), Ok(0..1000));
        assert_eq!(of("100", "0"), Ok(100..1000));
        assert_eq!(of("+100", "+50"), Ok(100..150));
        assert_eq!(of("-300", "-100"), Ok(700..900));
        assert_eq!(of("1000", ""), Ok(1000..1000));
        for (start, end) in [("1001", ""), ("-1001", ""), ("5", "4"), ("", "+1001"), ("1k", "")] {
            assert!(of(start, end).is_err(), "{start} {end}");
        }
    }

    #[test]
    fn a_short_transfer_is_active_once() {
        let (parts, _asked) = sync_channel(1);
        let mut sending = SendingPart { part: 0..9, length: 9, parts, is_on: false, was_active: false };
        assert_eq!(state_of(&sending, false, false, false), "inactive");
        assert_eq!(state_of(&sending, true, false, false), "connected");
        sending.is_on = true;
        assert_eq!(state_of(&sending, true, true, false), "active", "though it has ended");
        assert_eq!(state_of(&sending, true, true, true), "inactive", "it had nothing to send");
        sending.was_active = true;
        assert_eq!(state_of(&sending, true, true, false), "inactive");
    }
}
