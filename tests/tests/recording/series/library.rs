//! The library in C for programs that send frames: built and installed by its Makefile, used from C with sanitizers and from Python,
//! recorded by the real recorder. Its errors are codes with a reason.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use nilometer_tests::{Ended, free_port, python, root, start, tool};
use nilometer_wire::zmtp::{self, ZmtpSocket};
use tempfile::TempDir;

use crate::series::lab::{LIMIT, SeriesLab, write_npy};

const FOLDER: &str = "contrib/libnilometer_send";
const IMAGES: u64 = 24;
const ROWS: u64 = 60;
const COLUMNS: u64 = 50;
/// Milliseconds for an answer that comes.
const LONG: u32 = 120_000;
/// Milliseconds for an answer that never comes.
const SHORT: u32 = 700;

fn folder() -> PathBuf {
    root().join(FOLDER)
}

/// Asserts that a command ended well and said nothing on stderr.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success() && said.is_empty(), "{command:?}: {said}");
    String::from_utf8_lossy(&stdout).into_owned()
}

/// A copy of the library's sources, where `make` may write.
fn copied() -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    for entry in fs::read_dir(folder()).expect("the library") {
        let path = entry.expect("a file").path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().expect("a name"))).expect("space");
        }
    }
    copy
}

/// The program of the tests, with checks of memory and of undefined behaviour.
struct SendingProgram(TempDir);

impl SendingProgram {
    fn build() -> Self {
        let program = SendingProgram(tempfile::tempdir().expect("a temporary directory"));
        let mut command = compiler();
        command.arg("-I").arg(folder()).arg("-o").arg(program.path());
        command.arg(root().join("tests/tests/recording/series/library.c"));
        done(command.arg(folder().join("nilometer_send.c")));
        program
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("library")
    }

    /// Sends this number of images and channels. Returns its exit code and its words.
    fn sent(
        &self,
        lab: &SeriesLab,
        at: &str,
        timeout: u32,
        sizes: [u64; 2],
        senders: u32,
    ) -> (Option<i32>, String) {
        let [images, channels] = sizes;
        let mut command = Command::new(self.path());
        command.args([at, &timeout.to_string()]).arg(lab.home.path().join("pixels"));
        command.args([images, channels, ROWS, COLUMNS].map(|number| number.to_string()));
        let output = command.arg(senders.to_string()).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs it with another end that answers its connection, and a limit in milliseconds. A stream that the answer
    /// returns stays open until the program ends.
    fn answered(
        &self,
        images: u64,
        timeout: u32,
        answer: fn(TcpStream) -> Option<TcpStream>,
    ) -> (Option<i32>, String) {
        let lab = SeriesLab::new();
        fs::write(lab.home.path().join("pixels"), pixels(images)).expect("space");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = format!("tcp://{}", listener.local_addr().expect("it is bound"));
        let other = thread::spawn(move || answer(listener.accept().expect("the program connects").0));
        let told = self.sent(&lab, &at, timeout, [images, 1], 1);
        drop(other.join().expect("it ends"));
        told
    }
}

/// A compiler that builds the checks into a program.
fn compiler() -> Command {
    let mut command = Command::new("cc");
    command.args([
        "-std=c99",
        "-D_POSIX_C_SOURCE=200112L",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-g",
    ]);
    command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"]);
    command
}

/// Pixels of that many frames, of which no two are alike.
fn pixels(frames: u64) -> Vec<u8> {
    (0..frames * ROWS * COLUMNS)
        .flat_map(|at| (at.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[..2].to_vec())
        .collect()
}

/// Starts the recorder, with this option for the connection.
fn recorder(lab: &SeriesLab, option: &str, at: &str) -> nilometer_tests::Running {
    let arguments = ["record", option, at, "--to", "to", "--name", "scan", "--reserve", "0 B"];
    start(lab.home.path(), &[&arguments[..], &["--buffer", "64 MiB"]].concat())
}

fn are_recorded(lab: &SeriesLab, ended: &Ended, frames: u64) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Some(found) = lab.found() else { return };
    let all: Vec<i64> = (0..frames.cast_signed()).collect();
    assert_eq!(found.numbers("right"), all, "{found:?}");
    assert_eq!(found.metadata("user_data/sample"), "[\"lysozyme\"]");
}

/// A program of C sends, by one connection or by two, and to a recorder that waits or connects.
fn is_sent(program: &SendingProgram, option: &str, channels: u64, senders: u32) {
    let lab = SeriesLab::new();
    let images = pixels(IMAGES * channels);
    write_npy(&lab.arrays(), [IMAGES * channels, ROWS, COLUMNS], &images);
    fs::write(lab.home.path().join("pixels"), images).expect("space");
    let at = format!("tcp://127.0.0.1:{}", free_port());
    let recorder = recorder(&lab, option, &at);
    let address = if option == "--from" { format!("listen:{at}") } else { at };
    assert_eq!(
        program.sent(&lab, &address, LONG, [IMAGES, channels], senders),
        (Some(0), String::new()),
        "{option}"
    );
    are_recorded(&lab, &recorder.end(LIMIT), IMAGES * channels);
}

#[test]
fn a_program_of_c_is_recorded_whoever_connects() {
    let program = SendingProgram::build();
    is_sent(&program, "--listen", 1, 1);
    is_sent(&program, "--from", 2, 1);
}

#[test]
fn two_threads_send_one_series() {
    is_sent(&SendingProgram::build(), "--listen", 2, 2);
}

/// The example for Python sends arrays of this type and shape with the installed library.
fn is_sent_from_python(installed: &Path, kind: &str, shape: &str, packing: &[&str]) {
    let modules = ["numpy", "h5py", "hdf5plugin"];
    let Some(mut maker) = python(&modules) else { return };
    let lab = SeriesLab::new();
    let script = format!(
        "import numpy as np, sys\nr = np.random.default_rng(5)\nnp.save(sys.argv[1], r.poisson(3, {shape}).astype('<{kind}') + \
         np.array(1).astype('<{kind}'))"
    );
    done(maker.args(["-c", &script]).arg(lab.arrays()));
    let at = format!("tcp://127.0.0.1:{}", free_port());
    let recorder = recorder(&lab, "--listen", &at);
    let mut sender = python(&modules).expect("it was there");
    sender.arg("tests/tests/recording/series/library.py").arg(&at).arg(lab.arrays()).args(packing);
    done(
        sender
            .current_dir(root())
            .env("NILOMETER_SEND_LIBRARY", installed)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    );
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{kind} {shape}: {ended:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(
        (found.shape().as_str(), found.numbers("wrong"), found.numbers("blank")),
        (shape, vec![], vec![]),
        "{found:?}"
    );
    assert_eq!(found.metadata("user_data/sample"), "[\"lysozyme\"]");
}

#[test]
fn the_installed_library_is_found_by_pkg_config_and_by_python() {
    let copy = copied();
    let to = copy.path().join("installed");
    let mut make = Command::new("make");
    let make =
        make.args(["--silent", "install"]).arg(format!("PREFIX={}", to.display())).current_dir(copy.path());
    done(make.env("CFLAGS", "-O2 -Werror"));
    let mut asked = Command::new("pkg-config");
    let flags = done(
        asked.args(["--cflags", "--libs", "nilometer_send"]).env("PKG_CONFIG_PATH", to.join("lib/pkgconfig")),
    );
    let program = copy.path().join("program");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-D_POSIX_C_SOURCE=200112L", "-Werror"]).arg("-o").arg(&program);
    compiler.arg(root().join("tests/tests/recording/series/library.c")).args(flags.split_whitespace());
    done(&mut compiler);
    let no_arguments =
        Command::new(program).env("LD_LIBRARY_PATH", to.join("lib")).status().expect("it starts");
    assert_eq!(no_arguments.code(), Some(98), "it finds the library");
    let library = to.join("lib/libnilometer_send.so.0");
    is_sent_from_python(&library, "u4", "[9,31,40]", &[]);
    is_sent_from_python(&library, "f8", "[4,2,31,40]", &[]);
    is_sent_from_python(&library, "u2", "[6,3,64,64]", &["bslz4"]);
    let mut make = Command::new("make");
    let make =
        make.args(["--silent", "uninstall"]).arg(format!("PREFIX={}", to.display())).current_dir(copy.path());
    done(make);
    let left = done(Command::new("find").arg(&to).args(["-not", "-type", "d"]));
    assert_eq!(left, "");
}

#[test]
fn the_library_can_be_built_for_windows() {
    if tool("x86_64-w64-mingw32-gcc").is_none() {
        return;
    }
    let copy = copied();
    let mut make = Command::new("make");
    let make = make.args([
        "--silent",
        "CC=x86_64-w64-mingw32-gcc",
        "AR=x86_64-w64-mingw32-ar",
        "nilometer_send.dll",
    ]);
    done(make.arg("libnilometer_send.a").current_dir(copy.path()).env("CFLAGS", "-O2 -Werror"));
    let mut list = Command::new("x86_64-w64-mingw32-objdump");
    let exports = done(list.arg("-p").arg(copy.path().join("nilometer_send.dll")));
    for name in ["nilometer_open", "nilometer_send_packed", "nilometer_message"] {
        assert!(exports.contains(name), "{name}: {exports}");
    }
}

/// Says that it is a recorder.
fn greet(stream: &mut TcpStream, socket: ZmtpSocket) {
    stream.write_all(&zmtp::greeting()).expect("it is open");
    stream.write_all(&zmtp::ready(socket)).expect("it is open");
}

#[test]
fn every_error_has_a_code_and_a_reason() {
    let (lab, program) = (SeriesLab::new(), SendingProgram::build());
    fs::write(lab.home.path().join("pixels"), pixels(IMAGES)).expect("space");
    let sent = |address: &str| program.sent(&lab, address, SHORT, [IMAGES, 1], 1);
    let is = |told: (Option<i32>, String), code: i32, reason: &str| {
        assert!(told.0 == Some(code) && told.1.contains(reason), "{code} {reason}: {told:?}");
    };
    for address in [
        "",
        "tcp://",
        "tcp://host",
        "tcp://host:",
        "tcp://:1",
        "udp://host:1",
        "tcp://host:65536",
        "tcp://host:1x",
    ] {
        is(sent(address), 1, "write tcp://HOST:PORT");
    }
    is(sent(&format!("tcp://127.0.0.1:{}", free_port())), 5, "nobody listens");
    is(sent("tcp://no.such.host.invalid:1"), 5, "no such host");
    is(sent("listen:tcp://192.0.2.1:9"), 5, "can't listen");
    is(sent(&format!("listen:tcp://127.0.0.1:{}", free_port())), 6, "no recorder connected");
    let answered = |answer| program.answered(IMAGES, LONG, answer);
    is(answered(|_| None), 8, "closed the connection");
    let another_protocol = |mut stream: TcpStream| {
        stream.write_all(&[b'x'; 100]).expect("it is open");
        Some(stream)
    };
    is(answered(another_protocol), 7, "does not speak ZMTP");
    is(answered(|stream| read_all(stream, ZmtpSocket::Push)), 7, "no PULL socket");
    is(program.answered(IMAGES, SHORT, Some), 6, "did not answer in time");
    is(answered(|stream| read_all(stream, ZmtpSocket::Pull)), 0, "");
    is(answered(gone_in_the_middle), 8, "");
    // More than the buffers of sockets hold, at an end that reads nothing.
    let deaf = |mut stream: TcpStream| {
        greet(&mut stream, ZmtpSocket::Pull);
        Some(stream)
    };
    is(program.answered(400 * IMAGES, 10 * SHORT, deaf), 6, "took nothing for too long");
}

fn read_all(mut stream: TcpStream, socket: ZmtpSocket) -> Option<TcpStream> {
    greet(&mut stream, socket);
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    None
}

fn gone_in_the_middle(mut stream: TcpStream) -> Option<TcpStream> {
    greet(&mut stream, ZmtpSocket::Pull);
    stream.read_exact(&mut [0; 200]).expect("the series begins");
    None
}

#[test]
fn the_page_names_every_code_of_the_header() {
    let page = fs::read_to_string(root().join("docs/sending.md")).expect("it is there");
    let header = fs::read_to_string(folder().join("nilometer_send.h")).expect("it is there");
    let codes = header
        .split("enum nilometer_code {")
        .nth(1)
        .and_then(|rest| rest.split("};").next())
        .expect("the codes");
    let codes = codes.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "));
    let rows: Vec<String> = codes.map(|(name, value)| format!("| {value} `{name}` |")).collect();
    assert!(rows.len() > 8, "{rows:?}");
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let functions = header
        .split("NILOMETER_API ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next()?.rsplit([' ', '*']).next());
    let unnamed: Vec<_> =
        functions.filter(|name| name.starts_with("nilometer_") && !page.contains(name)).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
}
