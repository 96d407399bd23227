//! Objects of a store that speaks S3: whole, in parts, read in ranges; what none can is not supported, and not zero.

use std::{collections::BTreeSet, fs, process::Command};

use nilometer_model::{Capability, FileSystemKind};
use nilometer_storage::{
    Buffer, Clock, Engine, Errno, OpKind, Open, Operation, ROOT, Slot, Wait, engine::Options, target::run_id,
};
use nilometer_tests::{Ended, Testbed, await_some, nilometer};

use crate::by_url::{
    LASTING, MeasuredByUrl, Server, again_inside, begun, cleaned_behind, ended, inside,
    keeps_to_what_engines_and_targets_must_do, kill_maker, measured, program,
};

const SYSTEM: &str = "s3";

#[test]
fn s3_does_what_engines_and_targets_must_do() {
    keeps_to_what_engines_and_targets_must_do(SYSTEM, "objects::s3_does_what_engines_and_targets_must_do");
}

/// A file of 27 MiB in writes of 1 MiB, eight in flight: parts that are collected, and a last one that is smaller.
#[test]
fn a_large_object_is_put_in_parts_and_read_in_ranges() {
    if let Some(server) = Server::here() {
        return parts_come_back(&server);
    }
    let Some(testbed) = Testbed::of_client(SYSTEM, SYSTEM) else { return };
    again_inside(
        &testbed,
        "objects::a_large_object_is_put_in_parts_and_read_in_ranges",
        &testbed.url(SYSTEM),
    );
}

const FILE: Slot = Slot(1);
const BLOCK: usize = 1 << 20;
const DEPTH: usize = 8;

fn parts_come_back(server: &Server) {
    let description = nilometer_remote::describe(&server.0).expect("the server runs");
    let target = nilometer_remote::open(&description, run_id().0, None).expect("a run directory");
    let options = Options {
        kind: nilometer_model::EngineKind::Pool,
        depth: DEPTH as u32,
        slots: 2,
        clock: Clock::start(),
    };
    let mut engine = target.engine(&options).expect("the server runs");
    // One write that is a part of its own, the others collected.
    for blocks in [vec![BLOCK; 27], vec![9 << 20, BLOCK, 6 << 20, 10]] {
        put(engine.as_mut(), &blocks);
        let size: usize = blocks.iter().sum();
        for offset in [0, 5, BLOCK * 9 - 7, size - 100] {
            let length = 200.min(size - offset);
            let read = run(engine.as_mut(), Operation::read(FILE, offset as u64, 200, Buffer::alone(200)));
            let (moved, buffer) = read.expect("it can be read");
            let expected: Vec<u8> = (offset..offset + moved).map(byte).collect();
            assert_eq!(moved, length, "only an object's end is less than was asked for: {offset}");
            assert!(buffer[..moved] == expected[..], "other data at {offset}");
        }
        run(engine.as_mut(), Operation::on(OpKind::Close, FILE, Buffer::alone(1))).expect("it is closed");
        run(engine.as_mut(), named(OpKind::Unlink)).expect("it is removed");
    }
    drop(engine);
    target.remove().expect("nothing is left in it");
}

/// What is at a place of a file.
fn byte(place: usize) -> u8 {
    (place % 251) as u8
}

fn named(kind: OpKind) -> Operation {
    Operation::named(kind, ROOT, FILE, b"n_f", Buffer::alone(16))
}

fn run(engine: &mut dyn Engine, operation: Operation) -> Result<(usize, Buffer), Errno> {
    let now = engine.tick();
    engine.submit(operation, now);
    let mut done = Vec::new();
    while done.is_empty() {
        engine.reap(Wait::ForOne, &mut done);
    }
    let completion = done.remove(0);
    completion.result.map(|moved| (moved as usize, completion.operation.buffer))
}

/// Writes a file of these blocks, as many in flight as may be, and opens it to read.
fn put(engine: &mut dyn Engine, blocks: &[usize]) {
    run(engine, named(OpKind::Open(Open::CREATE))).expect("a new file");
    let mut offset = 0;
    let mut flying = 0;
    let mut done = Vec::new();
    for &length in blocks {
        let mut buffer = Buffer::alone(length);
        for (place, to) in buffer.iter_mut().enumerate() {
            *to = byte(offset + place);
        }
        let now = engine.tick();
        engine.submit(Operation::write(FILE, offset as u64, length as u32, buffer), now);
        offset += length;
        flying += 1;
        while flying == DEPTH {
            engine.reap(Wait::ForOne, &mut done);
            flying -= done.len();
            assert!(
                done.drain(..).all(|write| write.result == Ok(write.operation.length)),
                "a write takes all"
            );
        }
    }
    while flying > 0 {
        engine.reap(Wait::ForOne, &mut done);
        flying -= done.len();
        assert!(done.drain(..).all(|write| write.result == Ok(write.operation.length)), "a write takes all");
    }
    run(engine, Operation::on(OpKind::Sync, FILE, Buffer::alone(1))).expect("it is synced");
    let behind = run(engine, Operation::write(FILE, offset as u64, 1, Buffer::alone(1)));
    assert!(matches!(behind, Err(Errno::EOPNOTSUPP)), "nothing is written behind a sync: {behind:?}");
    run(engine, Operation::on(OpKind::Close, FILE, Buffer::alone(1))).expect("it is closed");
    run(engine, named(OpKind::Open(Open::READ))).expect("it is there");
}

const PLAN: &str = "title = \"objects\"\nrepeats = 1\nreserve = \"0 B\"\n\
                    [[stage]]\nname = \"large\"\nworkers = 2\ntime_limit = \"2 s\"\n[stage.workload.stream]\n\
                    file_size = \"20 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n\
                    [[stage]]\nname = \"parts\"\nengine = \"pool\"\ndepth = 4\ntime_limit = \"2 s\"\n\
                    [stage.workload.stream]\nfile_size = \"32 MiB\"\nblock_size = \"8 MiB\"\naccess = \"buffered\"\n\
                    [[stage]]\nname = \"ranges\"\nengine = \"pool\"\ndepth = 8\ntime_limit = \"1 s\"\n\
                    [stage.workload.random]\nfile_size = \"16 MiB\"\nblock_size = \"64 KiB\"\n\
                    access = \"buffered\"\noperations = 200\n\
                    [[stage]]\nname = \"small\"\n[stage.workload.tree]\nlevels = 1\nbranching = 2\nitems = 10\n\
                    kind = \"objects\"\nfile_size = \"4 KiB\"\n\
                    [[stage]]\nname = \"renamed\"\n[stage.workload.tree]\nlevels = 1\nbranching = 2\nitems = 10\n\
                    [[stage]]\nname = \"overwritten\"\n[stage.workload.random]\nfile_size = \"1 MiB\"\n\
                    block_size = \"64 KiB\"\naccess = \"buffered\"\noperations = 10\nmode = \"write\"\n\
                    [[stage]]\nname = \"synced\"\n[stage.workload.stream]\nfile_size = \"1 MiB\"\n\
                    block_size = \"64 KiB\"\naccess = \"buffered\"\nsync = { every = 4 }\n";

#[test]
fn s3_is_measured_and_keys_are_nowhere() {
    let Some(testbed) = Testbed::of_client(SYSTEM, SYSTEM) else { return };
    let url = format!("{}/below/here", testbed.url(SYSTEM));
    let MeasuredByUrl { ended, stages, record } = measured(&testbed, &url, PLAN, FileSystemKind::S3);
    assert_eq!(stages, ["large", "parts", "ranges", "small"], "{ended:?}");
    for lacking in [Capability::WriteAnywhere, Capability::Append, Capability::Rename] {
        assert!(ended.stdout.contains(lacking.name()), "what is not supported is said: {ended:?}");
    }
    assert_eq!(keys_in_bucket(&testbed), [""; 0], "all is removed");
    let described = program(&testbed, &["describe", &url]);
    assert!(described.code == Some(0) && described.stdout.contains("SeaweedFS"), "{described:?}");
    let secret = variable(&testbed, "AWS_SECRET_ACCESS_KEY");
    for text in [&record[..], ended.stdout.as_bytes(), ended.stderr.as_bytes(), described.stdout.as_bytes()] {
        assert!(!text.windows(secret.len()).any(|part| part == secret.as_bytes()), "a key is told");
    }
}

/// One of the variables that clients of S3 know.
fn variable(testbed: &Testbed, name: &str) -> String {
    let text = fs::read_to_string(testbed.folder().join("s3/environment")).expect("credentials");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.expect("a variable").to_owned()
}

/// What another client gets of the bucket: an object by its key, or an answer to `?` and a question.
fn got(testbed: &Testbed, what: &str) -> String {
    let user = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| variable(testbed, name)).join(":");
    let url = format!("{}/nilometer{what}", variable(testbed, "AWS_ENDPOINT_URL"));
    let signed = [
        "curl",
        "--fail",
        "--silent",
        "--max-time",
        "10",
        "--aws-sigv4",
        "aws:amz:us-east-1:s3",
        "--user",
        &user,
    ];
    testbed
        .must("enter", &[&signed[..], &["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD", &url]].concat())
}

/// The texts of elements of an answer.
fn texts(answer: &str, element: &str) -> Vec<String> {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    answer
        .split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split_once(&end))
        .map(|(text, _)| text.to_owned())
        .collect()
}

pub(crate) fn keys_in_bucket(testbed: &Testbed) -> Vec<String> {
    texts(&got(testbed, "?list-type=2"), "Key")
}

/// Parts that were sent before a kill are in no listing of objects; they are thrown away too.
#[test]
fn what_a_killed_campaign_left_in_a_bucket_is_removed() {
    let Some(testbed) = Testbed::of_client(SYSTEM, SYSTEM) else { return };
    let url = testbed.url(SYSTEM);
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &url, LASTING, place.path());
    let uploads = || texts(&got(&testbed, "?uploads="), "UploadId");
    await_some("parts of an object", || (!uploads().is_empty()).then_some(()));
    let marker = keys_in_bucket(&testbed).into_iter().find(|key| key.ends_with(nilometer_tests::MARKER));
    let marker = marker.expect("a marker");
    let held = program(&testbed, &["clean", &url]);
    assert!(held.code == Some(1) && held.stderr.contains("in use"), "{held:?}");
    kill_maker(&got(&testbed, &format!("/{marker}")));
    cleaned_behind(&testbed, &url, running);
    assert_eq!((keys_in_bucket(&testbed), uploads()), (Vec::new(), Vec::new()));
}

/// The program with one variable other than it should be.
fn with(testbed: &Testbed, name: &str, value: &str, arguments: &[&str]) -> Ended {
    let program = nilometer().to_str().expect("plain letters");
    let mut command: Command = inside(testbed, &[&[program][..], arguments].concat());
    ended(command.env(name, value))
}

/// One message, exit code 2, nothing in the bucket, and no key in what is said.
#[test]
fn what_a_store_refuses_is_told() {
    let Some(testbed) = Testbed::of_client(SYSTEM, SYSTEM) else { return };
    let url = testbed.url(SYSTEM);
    let closed = variable(&testbed, "AWS_ENDPOINT_URL").replace(":8333", ":1999");
    let encrypted = variable(&testbed, "AWS_ENDPOINT_URL").replace("http:", "https:");
    for (name, value, part) in [
        ("AWS_SECRET_ACCESS_KEY", "wrong", "the store refuses the keys (SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "nobody", "the store refuses the keys (InvalidAccessKeyId"),
        ("AWS_SECRET_ACCESS_KEY", "", "AWS_SECRET_ACCESS_KEY is not set"),
        ("AWS_ENDPOINT_URL", &closed, "does the store run, at the port"),
        ("AWS_ENDPOINT_URL", &encrypted, "SSL"),
        ("AWS_ENDPOINT_URL", "here", "has to begin with `http://`"),
    ] {
        let ended = with(&testbed, name, value, &["evaluate", &url]);
        let lines = ended.stderr.lines().filter(|line| line.contains(part)).count();
        assert!(ended.code == Some(2) && lines == 1, "{name}={value}: {ended:?}");
    }
    for (arguments, part) in [
        (&["describe", "s3://none-such/data"][..], "there is no such bucket"),
        (&["evaluate", &format!("{url}?x=1")], "leave it out"),
        (&["evaluate", &url, "--for", "dune-readout-unit", "--plan", "none"], "writing at any offset"),
    ] {
        let ended = program(&testbed, arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{arguments:?}: {ended:?}");
    }
    assert_eq!(keys_in_bucket(&testbed), [""; 0]);
}

/// The servers that hold the data are killed while objects are written: each fault is data, and the campaign ends.
#[test]
fn a_store_without_its_servers_is_a_fault() {
    let Some(testbed) = Testbed::of_client(SYSTEM, SYSTEM) else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &testbed.url(SYSTEM), LASTING, place.path());
    await_some("parts of an object", || {
        (!texts(&got(&testbed, "?uploads="), "UploadId").is_empty()).then_some(())
    });
    for server in ["volumes-1", "volumes-2", "volumes-3"] {
        testbed.must("harm", &["s3", "kill-server", server]);
    }
    let output = running.wait_with_output().expect("it ends");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let results = nilometer_record::read(&place.path().join("record.sqlite")).expect("a record");
    let errors: BTreeSet<_> =
        results.samples.iter().flat_map(|measured| measured.sample.errors.keys()).collect();
    assert!(!errors.is_empty(), "which is recorded by its number: {said}");
}
