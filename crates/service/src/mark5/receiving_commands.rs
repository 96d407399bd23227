//! `net2file`, and `record` over TCP: receive a stream of another recorder into a file or into a recording in chunks.
//!
//! Sources in the repository of jive5ab at 971c3d6: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst);
//! `src/mk5command/{net2file,net2vbs}.cc` for order and codes. `scripts/m5copy` shows the replies that it needs.

use std::net::TcpListener;

use nilometer_model::packets::VlbiMode;

use super::{
    commands::{Mark5Session, note},
    file_copy::{CopyOption, file_in},
    peer::{
        chunk_sink::ChunkSink,
        chunk_store::{ChunkStore, is_scan_name},
        file_sink::FileSink,
        line,
        receiver::{PeerSink, receive},
    },
    runtimes::{CopyRuntime, RuntimeRefusal, RuntimeTransfer},
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

/// The keywords of the commands here.
const FILE: &str = "net2file";
const SCAN: &str = "record";
/// The bytes of a chunk, if a station sets none that are a chunk's.
const CHUNK: u64 = 256 << 20;
const CHUNK_MIN: u64 = 1 << 20;

/// A stream to receive.
struct IncomingStream {
    keyword: &'static str,
    /// The file or the recording.
    about: String,
    sink: Box<dyn PeerSink>,
    listener: TcpListener,
}

impl Mark5Session {
    /// `open : <file>[,<n, w or a>]`, `close`. The reply to `open` has the bytes that the file has already.
    pub(super) fn receive_file(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        match field(0) {
            "open" => match self.open_file(field(1), runtime) {
                Ok(bytes) => Mark5Reply::to(command, ReturnCode::Done).field(bytes),
                Err((code, why)) => Mark5Reply::to(command, code).field(why),
            },
            "close" => closed(command, runtime.end(FILE)),
            _ => Mark5Reply::to(command, ReturnCode::Parameter).field("write open or close"),
        }
    }

    fn open_file(&self, text: &str, runtime: &mut CopyRuntime) -> Result<u64, RuntimeRefusal> {
        let wrong = |why: &str| (ReturnCode::Parameter, why.to_owned());
        runtime.check_free()?;
        let (named, option) = text.rsplit_once(',').unwrap_or((text, ""));
        let option = CopyOption::read(option).ok_or_else(|| wrong("write n, w or a behind the comma"))?;
        let path = file_in(named, &self.shared.directories);
        let path = path.ok_or_else(|| wrong("write a file in a directory for recordings"))?;
        let listener = self.listen(runtime)?;
        let opened = self.shared.copy().open(&path, named, option);
        let opened = opened.map_err(|why| (ReturnCode::Failed, why))?;
        let sink = FileSink::new(opened.file, path, self.shared.reserve, opened.is_new);
        let about = named.to_owned();
        self.await_stream(IncomingStream { keyword: FILE, about, sink: Box::new(sink), listener }, runtime)?;
        Ok(opened.bytes)
    }

    /// Listens at the port of a runtime.
    pub(super) fn listen(&self, runtime: &CopyRuntime) -> Result<TcpListener, RuntimeRefusal> {
        let listener = line::listen(runtime.port, self.shared.beyond);
        listener.map_err(|error| {
            (ReturnCode::Failed, format!("can't listen at TCP port {}, {error}", runtime.port))
        })
    }

    fn await_stream(&self, stream: IncomingStream, runtime: &mut CopyRuntime) -> Result<(), RuntimeRefusal> {
        let IncomingStream { keyword, about, mut sink, listener } = stream;
        let senders = self.shared.senders.clone();
        let work = move |progress: &_| receive(listener, &senders, &mut *sink, progress);
        let peer = self.begin(format!("{keyword} {about}"), work)?;
        runtime.transfer = Some(RuntimeTransfer { keyword, about, peer, sending: None });
        Ok(())
    }

    /// `active : <bytes>` until `close`, then `inactive : 0`. If the transfer failed, the code is 4, with the reason.
    pub(super) fn receiving(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let Some(transfer) = runtime.transfer_of(FILE) else { return reply.field("inactive").field(0) };
        match transfer.peer.outcome() {
            Some(Err(why)) => Mark5Reply::to(command, ReturnCode::Failed).field("inactive").field(why),
            _ => reply.field("active").field(transfer.peer.progress().moved()),
        }
    }

    /// `on : <recording>`, `off`, `nthread`, `mk6 : 0`. The reply to `on` has the name if a letter was added to it.
    pub(super) fn copy_scan(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        match field(0) {
            "on" => match self.open_scan(field(1), runtime) {
                Ok(name) if name == field(1) => Mark5Reply::to(command, ReturnCode::Done),
                Ok(name) => Mark5Reply::to(command, ReturnCode::Done).field(name),
                Err((code, why)) => Mark5Reply::to(command, code).field(why),
            },
            "off" => closed(command, runtime.end(SCAN)),
            "nthread" => note(command, runtime.noted.set_threads(&command.fields[1..])),
            "mk6" if field(1) == "0" => Mark5Reply::to(command, ReturnCode::Done),
            "mk6" => Mark5Reply::to(command, ReturnCode::Parameter)
                .field("files are no Mark 6 ones, copy to vbs instead of mk6"),
            _ => Mark5Reply::to(command, ReturnCode::Parameter).field("write on or off"),
        }
    }

    fn open_scan(&self, name: &str, runtime: &mut CopyRuntime) -> Result<String, RuntimeRefusal> {
        runtime.check_free()?;
        if !is_scan_name(name) {
            let why = "write a label of letters, digits and _ + - .";
            return Err((ReturnCode::Parameter, why.into()));
        }
        let Some(frame) = runtime.mode.as_ref().map(VlbiMode::frame_size) else {
            return Err((ReturnCode::Conflict, "set the mode of its frames first".into()));
        };
        let store = self.store_of(runtime)?;
        let free = store.free_name(name);
        let free = free.ok_or_else(|| (ReturnCode::Conflict, format!("{name} exists, with all letters")))?;
        let (_, [_, block, _]) = runtime.noted.protocol();
        let chunk = if block < CHUNK_MIN { CHUNK } else { block };
        let sink = ChunkSink::new(store, free.clone(), chunk, frame.0);
        let listener = self.listen(runtime)?;
        let about = free.clone();
        self.await_stream(IncomingStream { keyword: SCAN, about, sink: Box::new(sink), listener }, runtime)?;
        Ok(free)
    }

    /// The store of a runtime's directories.
    pub(super) fn store_of(&self, runtime: &CopyRuntime) -> Result<ChunkStore, RuntimeRefusal> {
        let disks = self.disks_of(runtime);
        if disks.is_empty() {
            return Err((ReturnCode::Conflict, "no directory is configured".into()));
        }
        Ok(ChunkStore::new(disks, self.shared.reserve))
    }

    /// `on : 1 : <recording> : <bytes>` until `off`. If the transfer failed, the code is 4, with the reason.
    pub(super) fn copied_scan(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        match command.fields.first().map(String::as_str) {
            Some("nthread") => {
                return runtime.noted.threads().into_iter().fold(reply, Mark5Reply::field);
            }
            Some("mk6") => return reply.field(0),
            _ => {}
        }
        let Some(transfer) = runtime.transfer_of(SCAN) else { return reply.field("off") };
        if let Some(Err(why)) = transfer.peer.outcome() {
            return Mark5Reply::to(command, ReturnCode::Failed).field("off").field(why);
        }
        let bytes = transfer.peer.progress().moved();
        reply.field("on").field(1).field(&transfer.about).field(bytes)
    }
}

/// The reply to a command that ends a transfer.
pub(super) fn closed(command: &Mark5Command, was_open: bool) -> Mark5Reply {
    if was_open {
        return Mark5Reply::to(command, ReturnCode::Done);
    }
    Mark5Reply::to(command, ReturnCode::Conflict).field("there is nothing to end")
}
