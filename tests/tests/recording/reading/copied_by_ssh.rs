//! `nilometer copy` to another machine: onto a directory that sshfs mounts from a server of OpenSSH. The server is a
//! real one, on loopback, with keys of its own.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nilometer_tests::{await_some, may_show, start, tool};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{LIMIT, about, names, recorded, text};

/// A server of OpenSSH with a directory, and the directory as sshfs shows it.
struct SshServer {
    home: TempDir,
    server: Child,
    port: u16,
}

const SSHD: &str = "/usr/sbin/sshd";
/// Bytes of a frame.
const FRAME: u64 = 320_000;

impl SshServer {
    /// Starts a server. `None` if its program or sshfs is missing.
    fn start() -> Option<Self> {
        tool(SSHD)?;
        tool("sshfs")?;
        if !may_show() {
            return None;
        }
        let home = tempfile::tempdir().expect("a temporary directory");
        for directory in ["remote", "mount"] {
            fs::create_dir(home.path().join(directory)).expect("space");
        }
        for name in ["host", "client"] {
            let key = home.path().join(name);
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", text(&key)]);
            assert!(keygen.status().expect("it is installed").success());
        }
        // The server leaves its rights for a directory of this name.
        drop(fs::create_dir("/run/sshd"));
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let server = server(home.path(), port);
        let ssh = SshServer { home, server, port };
        await_some("a server", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        ssh.mount();
        Some(ssh)
    }

    /// The directory on the other machine.
    fn remote(&self) -> PathBuf {
        self.home.path().join("remote")
    }

    /// The same directory as this machine sees it.
    fn mounted(&self) -> PathBuf {
        self.home.path().join("mount")
    }

    fn mount(&self) {
        let home = self.home.path();
        let place = format!("127.0.0.1:{}", self.remote().display());
        let mut sshfs = Command::new("sshfs");
        sshfs.args([&place, text(&self.mounted()), "-F", "/dev/null", "-p", &self.port.to_string()]);
        let options = format!(
            "idmap=user,StrictHostKeyChecking=no,UserKnownHostsFile={0}/known,IdentityFile={0}/client",
            home.display()
        );
        let output = sshfs.args(["-o", &options]).output().expect("sshfs is installed");
        assert!(output.status.success(), "{output:?}");
    }

    fn unmount(&self) {
        let mut unmount = Command::new("fusermount3");
        unmount.args(["-u", "-z", text(&self.mounted())]).stderr(Stdio::null());
        drop(unmount.status());
    }

    /// Cuts all connections, as a network does that goes down.
    fn cut(&self) {
        let id = self.server.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
        let children = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
        let all: Vec<Pid> = children.collect();
        assert!(!all.is_empty(), "nobody is connected");
        for child in all {
            kill_process(child, Signal::KILL).expect("it is ours");
        }
    }

    /// The bytes of the only file of frames that is being copied, on the other machine.
    fn arrived(&self) -> Option<u64> {
        let copy = self.remote().join("scan");
        if !copy.join(".copying").exists() {
            return None;
        }
        let name = names(&copy).into_iter().find(|name| name.ends_with(".raw.copying"))?;
        fs::metadata(copy.join(name)).ok().map(|status| status.len())
    }

    fn await_arrived(&self, bytes: u64) {
        await_some("bytes on the other machine", || self.arrived().filter(|length| *length >= bytes));
    }

    /// Asserts that nobody takes the copy so far for a recording.
    fn assert_no_recording(&self) {
        let copy = self.remote().join("scan");
        assert!(names(&copy).iter().all(|name| name.ends_with(".copying")), "{:?}", names(&copy));
        let verified = about("verify", &[&copy], &[]);
        assert!(verified.code == Some(2) && verified.stderr.contains("no recording"), "{verified:?}");
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.unmount();
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn server(home: &Path, port: u16) -> Child {
    let mut server = Command::new(SSHD);
    server.args(["-D", "-q", "-f", "/dev/null"]);
    for option in [
        format!("Port={port}"),
        "ListenAddress=127.0.0.1".into(),
        format!("HostKey={}/host", home.display()),
        format!("AuthorizedKeysFile={}/client.pub", home.display()),
        "PidFile=none".into(),
        "StrictModes=no".into(),
        "UsePAM=no".into(),
        "PasswordAuthentication=no".into(),
        "PermitRootLogin=prohibit-password".into(),
        "Subsystem=sftp internal-sftp".into(),
    ] {
        server.args(["-o", &option]);
    }
    server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it is installed")
}

/// Starts a copy whose rate leaves time to interrupt it behind the first frames.
fn begun(ssh: &SshServer, lane: &Path) -> nilometer_tests::Running {
    let mounted = ssh.mounted();
    let running = start(Path::new("/"), &["copy", text(lane), "--to", text(&mounted), "--rate", "400 kB/s"]);
    ssh.await_arrived(2 * FRAME);
    running
}

#[test]
fn a_copy_over_ssh_survives_a_kill_and_a_cut_connection() {
    let Some(ssh) = SshServer::start() else { return };
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 60, &["--storing", "growing", "--checksums"]);
    let lane = &lanes[0];
    let killed = begun(&ssh, lane);
    killed.signal(Signal::KILL);
    assert_eq!(killed.end(LIMIT).code, None);
    ssh.assert_no_recording();
    // The next one goes on, and loses its connection.
    let arrived = ssh.arrived().expect("a part of the file");
    let cut = begun(&ssh, lane);
    ssh.await_arrived(arrived + FRAME);
    ssh.cut();
    let ended = cut.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ssh.assert_no_recording();
    ssh.unmount();
    ssh.mount();
    let mounted = ssh.mounted();
    let ended = about("copy", &lanes, &["--to", text(&mounted), "--rate", "10 GB/s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("of it by an earlier copy"), "{ended:?}");
    assert!(ended.stdout.contains("60 are right"), "{ended:?}");
    // On the other machine nothing but a whole copy is left.
    let copy = ssh.remote().join("scan");
    let verified = about("verify", &[&copy], &[]);
    assert!(verified.code == Some(0) && verified.stdout.contains("right       60 frames"), "{verified:?}");
    assert_eq!(names(&copy), names(lane));
    for name in names(lane) {
        let [one, other] = [lane, &copy].map(|place| fs::read(place.join(&name)).expect("it is there"));
        assert!(one == other, "{name}");
    }
}
