//! What stations count on when they command the service: the Field System's ways, errors that are read, storage that is
//! full. And that no web page commands it.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use nilometer_tests::{FileSystem, ask, await_some, may_mount, nilometer};

use crate::service::{
    commanded::{Service, Station},
    instrument,
    sender::Sender,
};

/// A directory, and a service in it that can record what this sender sends.
fn service() -> (tempfile::TempDir, Sender, Service) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sender = Sender::new();
    let raw = instrument(directory.path(), sender.port());
    let service = Service::start(directory.path(), &format!("instrument = \"{raw}\"\n"));
    (directory, sender, service)
}

#[test]
fn no_web_page_commands_the_recorder() {
    let (_directory, sender, service) = service();
    assert_eq!(Station::connect(service.mark5).say("record=on:scan;"), "!record= 0 ;");
    let body = "record=off;\n";
    let posted = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let long = format!("GET /{};record=off; HTTP/1.1\r\n\r\n", "x".repeat(4090));
    for said in
        [&posted, &long, "GET /;record=off; HTTP/1.1\r\n\r\n", "CONNECT x:2620 HTTP/1.1\r\nrecord=off;\n"]
    {
        let mut page = TcpStream::connect(service.mark5).expect("it listens");
        page.set_read_timeout(Some(Duration::from_mins(2))).expect("a time");
        page.write_all(said.as_bytes()).expect("it reads");
        let mut answer = String::new();
        // What it had not read when it closed the connection may cut off the answer.
        drop(page.read_to_string(&mut answer));
        assert!(!answer.contains("!record"), "{answer}");
    }
    sender.send(0..10);
    service.await_packets(10);
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "recording");
    assert_eq!(service.end(), Some(0));
}

/// Each is answered so.
fn assert_replies(station: &mut Station, said: &[(&str, &str)]) {
    for (said, reply) in said {
        assert_eq!(station.say(said), *reply);
    }
}

#[test]
fn the_field_system_sets_what_it_sets_before_each_experiment() {
    let (_directory, _sender, service) = service();
    let mut station = Station::connect(service.mark5);
    // quikv/mk5b_mode.c of the Field System; any other code than 0 and 1 ends the batch.
    assert_replies(
        &mut station,
        &[
            ("mode = VDIF_8000-4096-16-2 ;", "!mode= 0 ;"),
            ("mtu = 9000 ; ", "!mtu= 0 ;"),
            ("net_protocol = udpsnor : 64000000 : 256000000 : 4 ;", "!net_protocol= 0 ;"),
            ("record = nthread : : 2 ;", "!record= 0 ;"),
            ("record = mk6 : 0 ;", "!record= 0 ;"),
        ],
    );
    let mut other = Station::connect(service.mark5);
    assert_replies(
        &mut other,
        &[
            ("mtu?", "!mtu? 0 : 9000 ;"),
            ("net_protocol?", "!net_protocol? 0 : udpsnor : 64000000 : 256000000 : 4 ;"),
            ("record? nthread", "!record? 0 : 1 : 2 ;"),
            ("record? mk6", "!record? 0 : 0 ;"),
        ],
    );
    for wrong in ["net_protocol = tcp", "record = mk6 : 1", "mtu = many", "record = nthread : 0"] {
        let reply = station.say(wrong);
        assert!(reply.contains("= 8 : "), "{wrong}: {reply}");
    }
    assert_eq!(service.end(), Some(0));
}

/// The fields of a reply behind its code, which must be 0.
fn fields(reply: &str) -> Vec<String> {
    let (head, rest) = reply.split_once(" : ").unwrap_or_else(|| panic!("no fields: {reply}"));
    assert!(head.ends_with(" 0"), "{reply}");
    rest.trim_end_matches(" ;").split(" : ").map(str::to_owned).collect()
}

/// The number in front of a unit.
fn number(field: &str, unit: &str) -> f64 {
    let digits = field.strip_suffix(unit).unwrap_or_else(|| panic!("{field} is not in {unit}"));
    digits.parse().unwrap_or_else(|error| panic!("{field}: {error}"))
}

#[test]
fn schedules_ask_how_much_fits_and_how_it_goes() {
    let (directory, sender, service) = service();
    let mut station = Station::connect(service.mark5);
    assert_replies(
        &mut station,
        &[
            ("mode = VDIF_8000-4096-16-2 ;", "!mode= 0 ;"),
            ("set_disks = mk6 ;", "!set_disks= 0 : 1 ;"),
            ("set_disks?", &format!("!set_disks? 0 : 1 : {} ;", directory.path().display())),
            ("task_id = 17;", "!task_id= 0 ;"),
            ("task_id?", "!task_id? 0 : 17 ;"),
            ("tstat?", "!tstat? 0 : 0.0 : no_transfer ;"),
            ("rtime = 5;", "!rtime= 2 : only available as query ;"),
        ],
    );
    let left = fields(&station.say("rtime?"));
    assert_eq!(left[3..6], ["VDIF", "32", "0MHz"], "{left:?}");
    // 8000 bytes of samples have a header of 32.
    let rate = number(&left[6], "Mbps");
    assert!((rate - 4096.0 * 8032.0 / 8000.0).abs() < 0.001, "{left:?}");
    let bytes = number(&left[1], "GB") * 1e9;
    assert!((number(&left[0], "s") * rate * 125_000.0 / bytes - 1.0).abs() < 0.01, "{left:?}");
    // As drudg writes it into schedules for the next scan.
    let next = fields(&station.say("rtime?      8192;"));
    assert_eq!(next[6], "8192Mbps");
    assert!((number(&next[0], "s") * 8192.0 * 125_000.0 / bytes - 1.0).abs() < 0.01, "{next:?}");
    assert!(station.say("rtime?fast;").starts_with("!rtime? 8 : "));
    let space = fields(&station.say("dir_info?"));
    let [taken, size] = [1, 2].map(|at| space[at].parse::<f64>().expect("bytes"));
    assert!(space[0] == "?" && taken <= size && bytes <= size, "{space:?}");
    let percent = number(&left[2], "%");
    assert!((percent - bytes / size * 100.0).abs() < 1.0, "{left:?}, {space:?}");
    assert!(station.say("OS_rev?").starts_with("!os_rev? 0 : Linux version "));
    drop(sender);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_recording_is_watched_and_its_file_is_checked() {
    let (directory, sender, service) = service();
    let mut station = Station::connect(service.mark5);
    assert!(
        station.say("file_check?1:1000000:scan;").starts_with("!file_check? 4 : "),
        "it is not there yet"
    );
    assert_eq!(station.say("record=on:scan;"), "!record= 0 ;");
    assert_eq!(station.say("tstat?"), "!tstat? 1 : ask again in a second : vbsrecord ;");
    sender.send(0..300);
    service.await_packets(300);
    let rates = await_some("rates", || {
        let reply = station.say("tstat?");
        reply.starts_with("!tstat? 0 : ").then(|| fields(&reply))
    });
    assert_eq!((rates.len(), rates[1].as_str()), (5, "vbsrecord"), "{rates:?}");
    assert!(rates[2].starts_with("network ") && rates[2].ends_with("bps"), "{rates:?}");
    assert!(rates[3].starts_with("storage ") && rates[4].starts_with('F'), "{rates:?}");
    let counts = fields(&station.say("tstat = now;"));
    assert_eq!(counts[1..5], ["vbsrecord", "network", "300000", "storage"], "{counts:?}");
    for refused in ["set_disks=mk6;", "group_def=define:x:/data;", "task_id=1;", "file_check?::scan;"] {
        let reply = station.say(refused);
        assert!(reply.contains(" 6 : "), "{refused} {reply}");
    }
    assert!(fields(&station.say("rtime?")).len() == 7, "that may be asked at any time");
    assert_eq!(station.say("record=off;"), "!record= 0 ;");
    let path = directory.path().join("scan");
    for file in ["scan", path.to_str().expect("plain"), path.join("scan.raw").to_str().expect("plain")] {
        assert_eq!(station.say(&format!("file_check? : : {file};")), "!file_check? 0 : ? ;", "{file}");
    }
    for outside in ["/etc/passwd", "/dev/zero", "nothing"] {
        let reply = station.say(&format!("file_check? 0 : 16M : {outside};"));
        assert_eq!(reply, "!file_check? 4 : no recording of this service ;", "{outside}");
    }
    for wrong in ["file_check?;", "file_check?2::scan;", "file_check?:3G:scan;", "file_check?:0:scan;"] {
        assert!(station.say(wrong).starts_with("!file_check? 8 : "), "{wrong}");
    }
    assert_eq!(service.end(), Some(0));
}

#[test]
fn stations_choose_among_the_configured_directories_and_name_no_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sender = Sender::new();
    let disks = ["disk0", "disk1", "other"].map(|name| directory.path().join(name));
    for disk in &disks {
        fs::create_dir(disk).expect("space");
    }
    let raw = instrument(directory.path(), sender.port());
    let service = Service::onto(&disks, directory.path(), &format!("instrument = \"{raw}\"\n"));
    let mut station = Station::connect(service.mark5);
    let below = directory.path().display();
    let [first, second, other] = disks.each_ref().map(|disk| disk.display().to_string());
    assert_replies(
        &mut station,
        &[
            ("set_disks?", &format!("!set_disks? 0 : 3 : {first} : {second} : {other} ;")),
            (&format!("group_def = define : pair : {below}/disk[01] ;"), "!group_def= 0 ;"),
            ("group_def?", "!group_def? 0 : pair : 1 : 2 : 3 : 4 : flexbuf : flexbuff : mk6 ;"),
            ("group_def? pair", &format!("!group_def? 0 : {below}/disk[01] ;")),
            ("set_disks = pair ;", "!set_disks= 0 : 2 ;"),
            ("set_disks?", &format!("!set_disks? 0 : 2 : {first} : {second} ;")),
            (&format!("set_disks = {other} ;"), "!set_disks= 0 : 1 ;"),
            ("group_def = delete : pair ;", "!group_def= 0 ;"),
        ],
    );
    for (said, code) in [
        ("set_disks = /tmp ;", 8),
        ("set_disks = /tmp/* : /etc ;", 8),
        ("set_disks = null ;", 8),
        ("set_disks = 3 ;", 8),
        ("set_disks = pair ;", 4),
        ("set_disks = ;", 6),
        ("group_def = define : mk6 : /tmp ;", 6),
        ("group_def = delete : pair ;", 6),
        ("group_def? pair", 6),
    ] {
        let reply = station.say(said);
        assert!(reply.contains(&format!(" {code} : ")), "{said} {reply}");
    }
    assert_eq!(
        station.say("set_disks?"),
        format!("!set_disks? 0 : 1 : {other} ;"),
        "none of that changed it"
    );
    assert_eq!(station.say("record=on:scan;record=off;"), "!record= 0 ;!record= 0 ;");
    assert!(disks[2].join("scan").is_dir() && !disks[0].join("scan").exists(), "it went where it was told");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn what_is_not_there_is_answered_as_documented() {
    let (directory, _sender, service) = service();
    let mut station = Station::connect(service.mark5);
    assert_replies(
        &mut station,
        &[
            ("net_port = 4601 : 4602 ;", "!net_port= 0 ;"),
            ("net_port?", "!net_port? 0 : 4601 : 4602 ;"),
            ("datastream = clear ;", "!datastream= 0 ;"),
            ("datastream?", "!datastream? 0 : 0 ;"),
            ("bank_set?", "!bank_set? 0 : - :  : - :  ;"),
            ("runtime?", "!runtime? 0 : 0 : 1 ;"),
            ("disk2file?", "!disk2file? 0 : inactive ;"),
            ("reset = abort ;", "!reset= 6 : nothing running to abort ;"),
        ],
    );
    for (command, code) in [
        ("datastream = add : ds{thread} : *", "!datastream= 2 : "),
        ("vsn?", "!vsn? 6 : "),
        ("get_stats?", "!get_stats? 6 : "),
        ("SS_rev?", "!ss_rev? 2 : "),
        ("disk2file = x.vdif ::: w", "!disk2file= 6 : nothing was recorded yet"),
    ] {
        let reply = station.say(command);
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
    assert!(!directory.path().join("x.vdif").exists());
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_mode_that_can_not_be_recorded_changes_nothing() {
    let (_directory, _sender, service) = service();
    let mut station = Station::connect(service.mark5);
    assert_eq!(station.say("mode=VDIF_8000-4096-16-2;"), "!mode= 0 ;");
    // 128 million frames a second.
    let reply = station.say("mode=VDIF_8-8192-16-2;");
    assert!(reply.starts_with("!mode= 8 : ") && reply.contains("frame_rate"), "{reply}");
    assert!(station.say("mode?").starts_with("!mode? 0 : VDIF_8000-4096-16-2 : "));
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "configured");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_recording_that_is_named_is_the_one_that_is_looked_at() {
    let (_directory, _sender, service) = service();
    let mut station = Station::connect(service.mark5);
    for name in ["scan10", "scan1"] {
        assert_eq!(station.say(&format!("record=on:{name};record=off;")), "!record= 0 ;!record= 0 ;");
    }
    for (asked, found) in [("scan1", "2 : scan1"), ("scan", "1 : scan10"), ("SCAN10", "1 : scan10")] {
        assert_eq!(station.say(&format!("scan_set={asked};")), "!scan_set= 0 ;");
        assert_eq!(station.say("scan_set?"), format!("!scan_set? 0 : {found} : 0 : 0 ;"));
    }
    let reply = station.say("scan_set=1:+1s;");
    assert!(reply.starts_with("!scan_set= 8 : its frames have no times"), "{reply}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn an_error_is_pending_until_it_is_read_and_full_storage_stays_full() {
    if !may_mount() {
        return;
    }
    let storage = FileSystem::tmpfs("size=8m");
    let sender = Sender::new();
    let raw = instrument(storage.path(), sender.port());
    let service = Service::start(storage.path(), &format!("instrument = \"{raw}\"\n"));
    let mut station = Station::connect(service.mark5);
    assert_eq!(station.say("error?"), "!error? 0 :  :  :  :  :  ;", "there is none");
    assert_eq!(station.say("record=on:scan;"), "!record= 0 ;");
    let mut sent = 0;
    let status = await_some("full storage", || {
        sender.send(sent..sent + 500);
        sent += 500;
        let status = service.json(200, "GET", "/status", "");
        (status["state"] != "recording").then_some(status)
    });
    assert_eq!(status["state"], "failed", "{status}");
    let lane = &status["recording"]["lanes"][0];
    assert!(lane["state"] == "full" && lane["written_bytes"].as_u64() > Some(1_000_000), "{status}");
    let metrics = ask(service.http, "GET", "/metrics", "").1;
    let failed = metrics.lines().find(|line| line.starts_with("nilometer_directory_failed{"));
    assert!(failed.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    let word = |reply: String| {
        let digits = reply.strip_prefix("!status? 0 : 0x").and_then(|rest| rest.get(..8)).expect("a word");
        u32::from_str_radix(digits, 16).expect("hexadecimal")
    };
    let (error, full) = (1 << 1, 1 << 7);
    assert_eq!(word(station.say("status?")) & (error | full), error | full);
    assert_eq!(word(station.say("status?")) & error, error, "that did not read it");
    let read = Station::connect(service.mark5).say("error?");
    assert!(read.starts_with("!error? 0 : 1000 : ") && read.ends_with("s :  :  ;"), "{read}");
    assert_eq!(word(station.say("status?")) & (error | full), full);
    assert_eq!(station.say("error?"), "!error? 0 :  :  :  :  :  ;");
    assert_eq!(service.json(200, "GET", "/status", "")["fault"], status["fault"], "over HTTP it stays");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_service_whose_program_was_replaced_goes_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let program = below.join("nilometer");
    fs::copy(nilometer(), &program).expect("space");
    let raw = instrument(below, sender.port());
    let service = Service::of(&program, below, &format!("instrument = \"{raw}\"\n"));
    fs::remove_file(&program).expect("it is there");
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    assert_eq!(service.end(), Some(0));
}
