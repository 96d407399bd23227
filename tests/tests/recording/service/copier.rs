//! A client that commands copies between recorders as m5copy does: its commands, in its order, with the checks that it
//! makes on replies. It has no other way to notice a copy that failed.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use nilometer_tests::{await_some, free_port, run};

use crate::service::{
    commanded::{Service, Station, send_vdif},
    sender::Sender,
};

/// The name, the mode and the frames of the recording that tests copy.
pub(crate) const SCAN: &str = "ex_st_no1";
pub(crate) const MODE: &str = "VDIF_4000-32-1-2";
pub(crate) const FRAME: usize = 4032;
/// More than those of a second: only then do the headers give the rate.
const FRAMES: u64 = 1500;

/// A service with two directories for recordings in chunks, in a directory of its own.
pub(crate) struct Recorder {
    pub(crate) home: tempfile::TempDir,
    pub(crate) disks: [PathBuf; 2],
    pub(crate) service: Service,
    /// The port to which packets go.
    sender: Sender,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let disks = ["d0", "d1"].map(|name| home.path().join(name));
        for disk in &disks {
            fs::create_dir(disk).expect("space");
        }
        let sender = Sender::new();
        let service = Recorder::serve(&disks, home.path(), &sender);
        Recorder { home, disks, service, sender }
    }

    fn serve(disks: &[PathBuf; 2], home: &Path, sender: &Sender) -> Service {
        let listen = format!("udp://127.0.0.1:{}", sender.port());
        let record = format!("mode = \"{MODE}\"\nchunk_size = \"1100 kB\"\nlisten = \"{listen}\"\n");
        Service::onto(disks, home, &record)
    }

    /// Ends the service and starts another one with the same directories.
    pub(crate) fn restarted(self) -> Self {
        let Recorder { home, disks, service, sender } = self;
        assert_eq!(service.end(), Some(0));
        let service = Recorder::serve(&disks, home.path(), &sender);
        Recorder { home, disks, service, sender }
    }

    pub(crate) fn begin_recording(&self, name: &str) {
        let mut station = Station::connect(self.service.mark5);
        assert_eq!(station.say(&format!("record=on:{name};")), "!record= 0 ;");
        send_vdif(self.home.path(), self.sender.port(), FRAMES);
        self.service.await_packets(FRAMES);
    }

    pub(crate) fn end_recording(&self) {
        assert_eq!(Station::connect(self.service.mark5).say("record=off;"), "!record= 0 ;");
    }

    /// Records [`SCAN`], and returns its bytes.
    pub(crate) fn record(&self) -> Vec<u8> {
        self.begin_recording(SCAN);
        self.end_recording();
        let bytes = self.exported(SCAN);
        assert_eq!(bytes.len(), FRAMES as usize * FRAME);
        bytes
    }

    /// The bytes of a recording here, as one stream.
    pub(crate) fn exported(&self, name: &str) -> Vec<u8> {
        let file = self.home.path().join("exported.vdif");
        let lanes = self.disks.iter().map(|disk| disk.join(name)).filter(|lane| lane.is_dir());
        drop(fs::remove_file(&file));
        let words = ["export".into(), "--to".into(), file.clone()];
        let ended = run(&words.into_iter().chain(lanes).collect::<Vec<PathBuf>>());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fs::read(&file).expect("it was written")
    }

    /// A file in the first directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.disks[0].join(name)
    }

    pub(crate) fn end(self) {
        assert_eq!(self.service.end(), Some(0));
    }
}

/// A connection of m5copy to one of two recorders, in a runtime of its own.
pub(crate) struct Copier(Station);

impl Copier {
    /// Connects, and sets everything that m5copy sets for a copy over this TCP port.
    pub(crate) fn connect(at: SocketAddr, name: &str, port: u16) -> Self {
        let mut copier = Copier(Station::connect(at));
        let version = copier.ask("version?", &[0]);
        assert!(version[0].starts_with("jive5"), "{version:?}");
        let numbers: Vec<u32> = version[1].split('.').map(|number| number.parse().expect("digits")).collect();
        // m5copy resumes copies, copies recordings to files, and makes runtimes that end with the connection, only if
        // the version is this one or later.
        assert!(numbers >= vec![2, 7, 3], "{version:?}");
        copier.ask("dts_id?", &[0, 1]);
        assert_eq!(copier.ask("runtime?", &[0])[0], "0");
        copier.make_runtime(name);
        for command in
            ["mode=none", "net_protocol=tcp:4M:2M", "mtu=1500", "ipd=0ns", &format!("net_port={port}")]
        {
            copier.ask(command, &[0]);
        }
        copier
    }

    /// Makes a runtime that ends with the connection. One of this name may be about to end with the connection before.
    fn make_runtime(&mut self, name: &str) {
        await_some("a runtime", || {
            let reply = self.0.say(&format!("runtime={name}:transient;"));
            let is_made = reply.starts_with("!runtime= 0 ");
            assert!(is_made || reply.contains("exists"), "{reply}");
            is_made.then_some(())
        });
    }

    /// The fields of a reply, behind a code that must be one of these.
    pub(crate) fn ask(&mut self, command: &str, codes: &[u8]) -> Vec<String> {
        let reply = self.0.say(&format!("{command};"));
        let (head, rest) = reply.trim_end_matches(" ;").split_once(' ').expect("a code");
        assert!(head.starts_with('!'), "{reply}");
        let mut fields = rest.split(" : ").map(str::to_owned);
        let code = fields.next().and_then(|code| code.parse().ok());
        assert!(code.is_some_and(|code| codes.contains(&code)), "{command}: {reply}");
        fields.collect()
    }

    /// Waits until this transfer of the runtime is connected, and turns it on. Returns false if it says at once that
    /// there is nothing to send.
    pub(crate) fn turn_on(&mut self, keyword: &str, start: &str, end: &str) -> bool {
        await_some("a connection", || {
            self.ask(&format!("{keyword}?"), &[0]).contains(&"connected".into()).then_some(())
        });
        self.ask(&format!("{keyword}=on:{start}:{end}"), &[0]);
        let state = await_some("the transfer", || {
            Some(self.ask(&format!("{keyword}?"), &[0])).filter(|fields| fields[0] != "connected")
        });
        state[0] != "inactive"
    }

    /// Waits for the end of a transfer, and returns the bytes that it sent.
    pub(crate) fn await_sent(&mut self, keyword: &str) -> u64 {
        let fields = await_some("all bytes", || {
            Some(self.ask(&format!("{keyword}?"), &[0])).filter(|fields| fields[0] == "inactive")
        });
        let [start, current, end] = [2, 3, 4].map(|at| fields[at].parse::<u64>().expect("bytes"));
        assert_eq!(current, end, "{fields:?}");
        end - start
    }

    /// Waits until the receiver has as many bytes; m5copy waits until their number stays the same.
    pub(crate) fn await_received(&mut self, query: &str, bytes: u64) {
        await_some("all bytes at the receiver", || {
            let fields = self.ask(query, &[0]);
            (fields.last().and_then(|count| count.parse().ok()) == Some(bytes)).then_some(())
        });
    }
}

/// Copies [`SCAN`] of one recorder into a file of another, from this byte on.
pub(crate) fn copy_to_file(from: &Recorder, to: &Recorder, file: &Path, option: &str) -> u64 {
    let port = free_port();
    let mut source = Copier::connect(from.service.mark5, "source", port);
    let mut sink = Copier::connect(to.service.mark5, "sink", port);
    let there = sink.ask(&format!("net2file=open:{},{option}", file.display()), &[0]);
    let there: u64 = there[0].parse().expect("bytes");
    source.ask("record=mk6:0", &[0, 1]);
    source.ask(&format!("scan_set={SCAN}::"), &[0]);
    source.ask("scan_set?", &[0]);
    source.ask("disk2net=connect:127.0.0.1", &[0, 1]);
    let skipped = if there > 0 { format!("+{there}") } else { String::new() };
    let mut sent = 0;
    if source.turn_on("disk2net", &skipped, "") {
        for copier in [&mut source, &mut sink] {
            copier.ask("echo=off", &[0]);
        }
        sent = source.await_sent("disk2net");
        sink.await_received("net2file?", sent);
    }
    source.ask("disk2net=disconnect", &[0]);
    sink.ask("net2file=close", &[0]);
    sent
}

/// A listener in the place of a recorder, and its port.
pub(crate) fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}
