//! A service that is reached over TLS, by those who have a token or a certificate. The other side is curl, and certificates
//! are those of OpenSSL.

use std::{
    fs,
    io::Read,
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use nilometer_tests::{Mounted, await_some, may_show, run, start};
use rustix::process::Signal;

use crate::service::commanded::Service;

const LIMIT: Duration = Duration::from_mins(1);
const CONTROL: &str = "0123456789abcdef0123456789abcdef";
const READER: &str = "fedcba9876543210fedcba9876543210";

/// An authority, and what it issued: `NAME.pem` and `NAME.key`.
struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// Makes an authority in a new directory of this name.
    fn new(below: &Path, name: &str) -> Self {
        let authority = Authority { directory: below.join(name) };
        fs::create_dir(&authority.directory).expect("space");
        fs::write(authority.path("openssl.conf"), "[req]\ndistinguished_name = dn\n[dn]\n").expect("space");
        authority.make("ca", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        authority
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    fn text(&self, file: &str) -> String {
        self.path(file).to_str().expect("plain letters").to_owned()
    }

    /// Issues a certificate of this name.
    fn issue(&self, name: &str) {
        let [ca, key] = ["ca.pem", "ca.key"].map(|file| self.text(file));
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
        let of_the_ca = ["-CA", &ca, "-CAkey", &key, "-addext", names];
        self.make(name, &[&of_the_ca[..], &["-addext", "basicConstraints=critical,CA:FALSE"]].concat());
    }

    fn make(&self, name: &str, more: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ]);
        openssl.args(["-subj", &format!("/CN={name}")]);
        openssl.args(["-config".as_ref(), self.path("openssl.conf").as_os_str()]);
        openssl.args(["-keyout".as_ref(), self.path(&format!("{name}.key")).as_os_str()]);
        openssl.args(["-out".as_ref(), self.path(&format!("{name}.pem")).as_os_str()]);
        let made = openssl.args(more).output().expect("openssl is installed");
        assert!(made.status.success(), "{made:?}");
    }

    /// The fingerprint of a certificate, as OpenSSL prints it, without colons.
    fn fingerprint(&self, name: &str) -> String {
        let mut openssl = Command::new("openssl");
        openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]);
        let said = openssl.arg(self.path(&format!("{name}.pem"))).output().expect("openssl is installed");
        let said = String::from_utf8(said.stdout).expect("text");
        said.trim().rsplit('=').next().expect("a fingerprint").replace(':', "")
    }

    /// The table `[service.tls]` for a certificate of this authority.
    fn table(&self, name: &str) -> String {
        let [certificate, key] = ["pem", "key"].map(|end| self.text(&format!("{name}.{end}")));
        format!("[service.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
    }

    /// Asks a service over TLS: the status and the body, or none if it did not answer.
    fn ask(&self, service: &Service, path: &str, options: &[&str]) -> Option<(u16, String)> {
        let url = format!("https://localhost:{}{path}", service.http.port());
        let output = curl(&[&["--cacert", &self.text("ca.pem")], options, &[url.as_str()]].concat());
        if !output.status.success() {
            return None;
        }
        let said = String::from_utf8(output.stdout).expect("text");
        let (body, status) = said.rsplit_once('\n').expect("a status");
        Some((status.parse().expect("a number"), body.to_owned()))
    }

    fn status(&self, service: &Service, path: &str, options: &[&str]) -> Option<u16> {
        self.ask(service, path, options).map(|(status, _)| status)
    }
}

fn curl(arguments: &[&str]) -> Output {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code}"]);
    curl.args(arguments).output().expect("curl is installed")
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// A file that only its user reads, put in the place of what was there.
fn secret(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).expect("space");
    fs::set_permissions(&next, fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::rename(&next, path).expect("the same directory");
}

#[test]
fn over_tls_a_token_says_who_asks_and_what_he_may() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, authority) = (directory.path(), Authority::new(directory.path(), "ca"));
    authority.issue("server");
    let tokens = below.join("tokens");
    secret(&tokens, &format!("# ours\ncontrol {CONTROL}\nprometheus {READER} read\n"));
    let table = authority.table("server");
    let service = Service::reached(below, &format!("tokens = \"{}\"\n{table}", tokens.display()), "");
    let (control, reader) = (bearer(CONTROL), bearer(READER));
    let status = |path: &str, options: &[&str]| authority.status(&service, path, options);
    assert_eq!(status("/status", &[]), Some(401));
    assert_eq!(status("/status", &["-H", &bearer("guessed-guessed-guessed")]), Some(401));
    assert_eq!(status("/metrics", &["-H", &reader]), Some(200));
    let page = authority.ask(&service, "/", &["--user", &format!("control:{CONTROL}")]);
    assert!(page.is_some_and(|(status, page)| status == 200 && page.contains("<html")));
    assert_eq!(status("/stop", &["-X", "POST", "-H", &reader]), Some(403));
    assert_eq!(status("/stop", &["-X", "POST"]), Some(401));
    assert_eq!(
        status("/arm", &["-d", "{\"name\": \"one\"}", "-H", &control]),
        Some(409),
        "nothing to record"
    );
    let plain = curl(&[&format!("http://localhost:{}/status", service.http.port()), "-H", &control]);
    assert!(
        !plain.status.success() || !String::from_utf8_lossy(&plain.stdout).contains("state"),
        "{plain:?}"
    );
    let said = service.stderr();
    let commands: Vec<_> = said.lines().filter(|line| line.starts_with("command at 20")).collect();
    assert!(said.contains(", by TLS, for those who have a token"), "{said}");
    assert!(
        commands[0].contains(" (prometheus): POST /stop") && commands[0].ends_with(" -> 403 Forbidden"),
        "{said}"
    );
    assert!(
        commands[1].ends_with(": POST /stop -> 401 Unauthorized") && !commands[1].contains('('),
        "{said}"
    );
    assert!(
        commands[2].contains(" (control): POST /arm {") && commands[2].ends_with(" -> 409 Conflict"),
        "{said}"
    );
    assert!(!said.contains(CONTROL) && !said.contains(READER), "no token stands in the log: {said}");
    assert_eq!(service.end(), Some(0));
}

/// Asks a service for a dump by the command of the program. Returns its exit code and its message.
fn dumped(authority: &Authority, service: &Service, token: Option<&Path>) -> (Option<i32>, String) {
    let address = format!("https://localhost:{}", service.http.port());
    let ca = authority.text("ca.pem");
    let mut arguments = vec!["dump", "--http", &address, "--ca", &ca, "--to", "/", "--last", "1s"];
    arguments.extend(token.iter().flat_map(|file| ["--token-file", file.to_str().expect("plain letters")]));
    let ended = run(&arguments);
    (ended.code, ended.stderr)
}

#[test]
fn the_command_for_dumps_proves_the_service_and_shows_its_token() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let [ours, theirs] = ["ours", "theirs"].map(|name| Authority::new(below, name));
    ours.issue("server");
    let [tokens, control, reader] = ["tokens", "control", "reader"].map(|name| below.join(name));
    secret(&tokens, &format!("control {CONTROL}\nprometheus {READER} read\n"));
    secret(&control, CONTROL);
    secret(&reader, READER);
    let table = ours.table("server");
    let service = Service::reached(below, &format!("tokens = \"{}\"\n{table}", tokens.display()), "");
    for (authority, token, code, part) in [
        (&ours, Some(control.as_path()), 1, "there is no recording yet"),
        (&ours, Some(reader.as_path()), 2, "--token-file"),
        (&ours, None, 2, "--token-file"),
        (&theirs, Some(control.as_path()), 1, "does not answer"),
    ] {
        let (found, message) = dumped(authority, &service, token);
        assert!(found == Some(code) && message.contains(part), "{part}: {found:?} {message}");
    }
    assert!(!service.stderr().contains(CONTROL), "no token stands in the log");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn certificates_and_tokens_are_renewed_while_it_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let [old, new] = ["old", "new"].map(|name| Authority::new(below, name));
    for authority in [&old, &new] {
        authority.issue("server");
    }
    let tokens = below.join("tokens");
    secret(&tokens, &format!("control {CONTROL}\n"));
    let table = old.table("server");
    let service = Service::reached(below, &format!("tokens = \"{}\"\n{table}", tokens.display()), "");
    let (control, reader) = (bearer(CONTROL), bearer(READER));
    assert_eq!(old.status(&service, "/status", &["-H", &control]), Some(200));
    // What is wrong changes nothing.
    secret(&tokens, "control\n");
    assert_eq!(old.status(&service, "/status", &["-H", &control]), Some(200));
    secret(&tokens, &format!("control {READER}\n"));
    assert_eq!(old.status(&service, "/status", &["-H", &control]), Some(401), "it was taken away");
    assert_eq!(old.status(&service, "/status", &["-H", &reader]), Some(200));
    // Until both files are there, they do not fit each other.
    for file in ["server.key", "server.pem"] {
        let text = fs::read_to_string(new.path(file)).expect("it is there");
        secret(&old.path(file), &text);
        assert_eq!(old.status(&service, "/status", &["-H", &reader]).is_some(), file == "server.key");
    }
    assert_eq!(new.status(&service, "/status", &["-H", &reader]), Some(200));
    let said = service.stderr();
    for part in [
        "tokens: the tokens ",
        "line 1: write NAME TOKEN",
        "the service keeps the values that it read before",
        "TLS: a file has changed",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(service.end(), Some(0));
}

#[test]
fn clients_are_known_by_their_certificates() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let [ours, theirs] = ["ours", "theirs"].map(|name| Authority::new(below, name));
    for (authority, name) in [(&ours, "server"), (&ours, "client"), (&theirs, "client")] {
        authority.issue(name);
    }
    let table = ours.table("server");
    let clients = format!("{table}clients = \"{}\"\n", ours.text("ca.pem"));
    let service = Service::reached(below, &clients, "");
    let certificate =
        |authority: &Authority| ["pem", "key"].map(|end| authority.text(&format!("client.{end}")));
    let ask = |path: &str, more: &[&str], shown: Option<&Authority>| {
        let [pem, key] = shown.map(certificate).unwrap_or_default();
        let with = ["--cert", &pem, "--key", &key];
        let with = if shown.is_some() { &with[..] } else { &[] };
        ours.status(&service, path, &[with, more].concat())
    };
    assert_eq!(ask("/status", &[], None), None, "without a certificate");
    assert_eq!(ask("/status", &[], Some(&theirs)), None, "of somebody else");
    assert_eq!(ask("/status", &[], Some(&ours)), Some(200));
    assert_eq!(ask("/stop", &["-X", "POST"], Some(&ours)), Some(409));
    let command = await_some("the log", || {
        service.stderr().lines().find(|line| line.starts_with("command")).map(str::to_owned)
    });
    let fingerprint = ours.fingerprint("client");
    assert!(
        fingerprint.len() == 64 && command.contains(&format!(" (certificate {fingerprint}): POST /stop")),
        "{command}"
    );
    // One that never shakes hands is let go.
    let mut silent = TcpStream::connect(service.http).expect("it listens");
    silent.set_read_timeout(Some(LIMIT)).expect("a time");
    assert_eq!(silent.read(&mut [0]).unwrap_or_default(), 0);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn secrets_that_are_none_are_refused_before_anything_listens() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, authority) = (directory.path(), Authority::new(directory.path(), "ca"));
    authority.issue("server");
    let open = below.join("open");
    fs::write(&open, format!("control {CONTROL}\n")).expect("space");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let closed = below.join("closed");
    secret(&closed, &format!("control {CONTROL}\n"));
    let empty = below.join("empty");
    secret(&empty, "");
    let text = |path: &Path| path.to_str().expect("plain letters").to_owned();
    let [open, closed, empty] = [&open, &closed, &empty].map(|path| text(path));
    let [pem, key, other] = ["server.pem", "server.key", "ca.key"].map(|file| authority.text(file));
    let beyond = ["--http", "0.0.0.0:0", "--listen-beyond-loopback"];
    for (options, part) in [
        (&["--tokens", &open][..], "chmod o= "),
        (&["--tokens", &empty], "NAME TOKEN"),
        (&["--tokens", "/none"], "can't read the tokens /none"),
        (&["--tls-certificate", &pem], "--tls-key"),
        (&["--tls-clients", &pem], "--tls-certificate"),
        (&["--tls-certificate", &closed, "--tls-key", &key], "no BEGIN CERTIFICATE"),
        (&["--tls-certificate", &pem, "--tls-key", &pem], "the private key "),
        (&["--tls-certificate", &pem, "--tls-key", &other], "the certificate "),
        (&[&beyond[..], &["--tokens", &closed]].concat(), "in the clear"),
        (&["--tokens", &closed, "--listen-beyond-loopback", "--mark5", "0.0.0.0:0"], "--allow-clients"),
    ] {
        let http: &[&str] = if options.contains(&"--http") { &[] } else { &["--http", "127.0.0.1:0"] };
        let options = [&["serve"], http, options].concat();
        let ended = start(below, &options).end(LIMIT);
        assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(part) && ended.stderr.lines().count() == 1, "{options:?}: {ended:?}");
    }
    let unused = ["record", "fila10g-1g", "--to", ".", "--tls-certificate", &pem, "--tls-key", &key];
    let ended = start(below, &unused).end(LIMIT);
    assert!(ended.code == Some(2) && ended.stderr.contains("are for --http"), "{ended:?}");
    let mut running = start(below, &["serve", "--http", "127.0.0.1:0", "--tokens", &closed]);
    running.await_said("ready");
    assert!(!running.stderr().contains("mark5 at"), "nobody commands it without a token");
}

#[test]
fn secrets_on_storage_that_hangs_are_given_up_with_a_message() {
    if !may_show() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let below = home.path();
    let camera =
        ["simulate", "pco-edge", "--shape", "40 x 40", "--frames", "5", "--name", "scan", "--to", "."];
    let recorded = start(below, &[&camera[..], &["--reserve", "0 B", "--buffer", "16 MiB"]].concat());
    assert_eq!(recorded.end(LIMIT).code, Some(0));
    let mounted = Mounted::of(&[below.join("scan")]);
    mounted.signal(Signal::STOP);
    let file = mounted.file("secret");
    let file = file.to_str().expect("plain letters");
    let commands: [&[&str]; 3] = [
        &["serve", "--http", "127.0.0.1:0", "--tokens", file],
        &["check", "none.sqlite", "--signed-by", file],
        &["evaluate", ".", "--sign", file],
    ];
    for running in commands.map(|command| start(below, command)) {
        let ended = running.end(LIMIT);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("no answer within 30 s"), "{ended:?}");
    }
    mounted.signal(Signal::CONT);
    mounted.unmounted();
}
