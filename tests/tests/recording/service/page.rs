//! The page that a browser shows of a recorder, in a browser, while packets come.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nilometer_tests::{Browser, BrowserPage, address, ask, await_some, start, status};
use rustix::process::Signal;
use serde_json::Value;

use crate::service::{commanded::Service, instrument, sender::Sender};

/// Frames of 64 x 48 pixels of 16 bit, each of which comes in one packet behind its number.
fn detector(directory: &Path, port: u16) -> String {
    let path = directory.join("detector.toml");
    let text = format!(
        "name = \"detector\"\ntitle = \"t\"\nsource = \"t\"\nshape = [48, 64]\npixel = \"uint16\"\nframe_rate = \"100 Hz\"\n\
         [packets]\nport = {port}\n[packets.format.described]\nheader = \"8 B\"\nframe = {{ offset = 0, bytes = 8 }}\n\
         packets = 1\npayload = \"6144 B\"\n"
    );
    fs::write(&path, text).expect("space");
    path.display().to_string()
}

/// Sends frames until it is told to end: one pixel is bright, and the first row is masked.
fn frames(sender: Sender, end: Arc<AtomicBool>) -> JoinHandle<()> {
    let frame: Vec<u8> = (0..64 * 48u16)
        .map(|at| match at {
            0..64 => u16::MAX,
            2000 => 40_000,
            _ => at % 7,
        })
        .flat_map(u16::to_le_bytes)
        .collect();
    thread::spawn(move || {
        for number in (0u64..).take_while(|_| !end.load(Ordering::Relaxed)) {
            // One of a hundred never comes.
            if number % 100 != 50 {
                sender.send_one(&[&number.to_le_bytes()[..], &frame].concat());
            }
            thread::sleep(Duration::from_millis(1));
        }
    })
}

/// Values that only grow, by where the page has them: the number behind the text, and the path in what `/status` says.
const GROWING: [(&str, &str); 10] = [
    ("came", "/recording/came/packets"),
    ("received", "/recording/received_packets"),
    ("acknowledged", "/recording/acknowledged_packets"),
    ("durable", "/recording/durable_packets"),
    ("missing", "/recording/lost/packets"),
    ("lost-kernel", "/recording/lost/kernel_dropped"),
    ("lost-queue_full", "/recording/lost/queue_full"),
    ("lost-late", "/recording/lost/late"),
    ("seconds", "/recording/seconds"),
    ("reordered", "/recording/reordered_packets"),
];

/// All of them at one moment, and the moment that the page says they are of.
fn values(browser: &mut Browser, page: &BrowserPage) -> Value {
    let ids: Vec<_> = GROWING.iter().map(|(id, _)| format!("\"{id}\"")).collect();
    browser.evaluate(
        page,
        &format!(
            "Object.fromEntries([{}, \"fresh\", \"state\"].map(id => [id, document.getElementById(id).dataset.raw]))",
            ids.join(", ")
        ),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("no number: {value}"))
}

/// What the page shows was true between two moments: not before it was asked for, and not after it is there.
fn shows_the_truth(browser: &mut Browser, page: &BrowserPage, at: SocketAddr) {
    let before = status(at);
    let known = values(browser, page)["fresh"].clone();
    // The next answer was begun before it is asked for here or after, the one behind it certainly after.
    for known in [known, Value::Null] {
        let known = if known.is_null() { values(browser, page)["fresh"].clone() } else { known };
        browser.await_value(page, &format!("document.getElementById(\"fresh\").dataset.raw !== {known}"));
    }
    let shown = values(browser, page);
    let after = status(at);
    assert_eq!(shown["state"], "recording");
    for (id, path) in GROWING {
        let [least, most] = [&before, &after].map(|status| number(status.pointer(path).expect(path)));
        let found = number(&shown[id]);
        assert!((least..=most).contains(&found), "{id}: {found} is not in {least} to {most}");
    }
}

/// Where nothing comes any more, the page has exactly what there is.
fn comes_to_the_truth(browser: &mut Browser, page: &BrowserPage, at: SocketAddr) {
    await_some("the page to show what there is", || {
        let there = status(at);
        let shown = values(browser, page);
        // Time goes on.
        let counts = GROWING.iter().filter(|(id, _)| *id != "seconds");
        let is_same = |(id, path): &(&str, &str)| {
            number(&shown[id]).total_cmp(&number(there.pointer(path).expect(path))).is_eq()
        };
        counts.into_iter().all(is_same).then_some(())
    });
}

/// It fits: nothing has to be pushed aside to be read.
pub(crate) fn fits(browser: &mut Browser, page: &BrowserPage, width: u32) {
    let expression = "[document.documentElement.scrollWidth, innerWidth]";
    let found = browser.evaluate(page, expression);
    let [needed, there] = [0, 1].map(|at| found[at].as_u64().expect("pixels"));
    assert!(needed <= there && there == u64::from(width), "{needed} of {there} px");
}

#[test]
fn the_page_shows_a_recording_while_it_is_made() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let detector = detector(below, sender.port());
    let to = below.to_str().expect("plain");
    let options = ["--name", "scan<b>", "--buffer", "64 MiB", "--reserve", "0 B", "--http", "127.0.0.1:0"];
    let until = ["--duration", "10 min"];
    let mut running = start(below, &[&["record", &detector, "--to", to][..], &options, &until].concat());
    running.await_said("recording scan<b>");
    let http = address(&running, "http");
    let end = Arc::new(AtomicBool::new(false));
    let sending = frames(sender, end.clone());
    let here = format!("http://{http}/");
    for (width, is_dark) in [(1280, false), (390, true)] {
        let page = browser.open(&here, width, is_dark);
        browser.await_value(&page, "Number(document.getElementById(\"missing\")?.dataset.raw) > 0");
        browser.await_value(&page, "!document.getElementById(\"shot\").hidden");
        browser.await_value(&page, "document.querySelectorAll(\"#rate-curve path\").length > 1");
        shows_the_truth(&mut browser, &page, http);
        fits(&mut browser, &page, width);
        has_what_is_recorded(&mut browser, &page, to);
        assert_eq!(browser.complaints(&page), [""; 0]);
        has_a_picture(&mut browser, &page);
        let requested = browser.requested(&page);
        let known =
            |url: &String| ["", "live", "latest-frame"].iter().any(|path| *url == format!("{here}{path}"));
        assert!(requested.len() > 3, "{requested:?}");
        assert!(requested.iter().all(|url| known(url) || url == "data:,"), "{requested:?}");
    }
    let page = browser.open(&here, 390, false);
    browser.await_value(&page, "document.getElementById(\"state\").dataset.raw === \"recording\"");
    end.store(true, Ordering::Relaxed);
    sending.join().expect("no panic");
    comes_to_the_truth(&mut browser, &page, http);
    running.signal(Signal::TERM);
    running.end(Duration::from_mins(1));
    browser.await_value(&page, "!document.getElementById(\"old\").hidden");
    let said = browser.evaluate(&page, "document.getElementById(\"old\").textContent");
    assert!(said.as_str().is_some_and(|said| said.contains("The values are OLD")), "{said}");
}

/// Names are shown as they are, and what a curve shows is said in words.
fn has_what_is_recorded(browser: &mut Browser, page: &BrowserPage, to: &str) {
    let text = browser.evaluate(page, "document.body.innerText");
    let text = text.as_str().expect("a text");
    for part in ["scan<b>", "detector", to, "writing", "no room in the socket buffer"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let ends = browser.evaluate(page, "document.getElementById(\"ends\").textContent");
    assert!(ends.as_str().is_some_and(|ends| ends.contains("after the first packet")), "{ends}");
    let head = browser.evaluate(page, "document.getElementById(\"what\").textContent");
    let lasts = ["room for ", "FULL in "];
    assert!(head.as_str().is_some_and(|head| lasts.iter().any(|lasts| head.contains(lasts))), "{head}");
    let labels = browser.evaluate(
        page,
        "[...document.querySelectorAll(\"svg\")].map(svg => svg.getAttribute(\"aria-label\")).join(\"\\n\")",
    );
    let labels = labels.as_str().expect("a text");
    for curve in
        ["Rate of arrival, last 5 minutes: at most ", "Packets missing a second", "Buffer in use", to]
    {
        assert!(labels.contains(curve), "{curve}: {labels}");
    }
}

/// The bright pixel is the brightest colour, the masked row has a colour that no count has, and both are said in words.
fn has_a_picture(browser: &mut Browser, page: &BrowserPage) {
    let colour = |x: u32, y: u32| {
        format!(
            "[...document.getElementById(\"shot\").getContext(\"2d\").getImageData({x}, {y}, 1, 1).data.slice(0, 3)]"
        )
    };
    let bright = browser.evaluate(page, &colour(2000 % 64, 2000 / 64));
    assert_eq!(bright, serde_json::json!([252, 255, 164]));
    let masked = browser.evaluate(page, &colour(5, 0));
    assert!(number(&masked[1]) > 2.0 * number(&masked[0]), "green: {masked}");
    let said = browser.evaluate(page, "document.getElementById(\"shown\").textContent");
    let said = said.as_str().expect("a text").replace('\u{202f}', "");
    for part in ["64 × 48 pixels", "Greatest 40000", "64 masked or missing"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_service_that_waits_says_so_and_what_it_recorded_last() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let instrument = instrument(below, sender.port());
    let service = Service::start(below, &format!("instrument = \"{instrument}\"\n"));
    let page = browser.open(&format!("http://{}/", service.http), 390, false);
    browser.await_value(&page, "document.getElementById(\"state\").dataset.raw === \"configured\"");
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    service.json(200, "POST", "/start", "");
    sender.send(0..50);
    sender.send(60..100);
    service.await_packets(90);
    browser.await_value(&page, "document.getElementById(\"shown\").textContent.includes(\"not pictures\")");
    service.json(200, "POST", "/stop", "");
    browser.await_value(&page, "document.getElementById(\"last\").rows.length === 1");
    let last = browser.evaluate(&page, "document.getElementById(\"last\").innerText");
    let last = last.as_str().expect("a text");
    for part in ["scan", "90", "10 packets are missing"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let state = browser.evaluate(&page, "document.getElementById(\"state\").textContent");
    assert_eq!(state, "– configured");
    fits(&mut browser, &page, 390);
    assert_eq!(browser.complaints(&page), [""; 0]);
    assert_eq!(service.end(), Some(0));
}

/// Seconds of room that the page shows before anything is recorded; null if it shows none.
const ROOM: &str = "document.getElementById(\"before\").hidden ? null : Number(document.getElementById(\"before-room\").dataset.raw)";

#[test]
fn the_page_shows_the_room_before_a_recording_is_armed() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let instrument = instrument(below, Sender::new().port());
    let service = Service::start(below, &format!("instrument = \"{instrument}\"\n"));
    let page = browser.open(&format!("http://{}/", service.http), 390, true);
    let shown = browser.await_value(&page, ROOM);
    let (_, told) = ask(service.http, "GET", "/status", "");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let configuration = &told["configuration"];
    assert_eq!(shown.as_f64(), configuration["room_seconds"].as_f64(), "{configuration}");
    assert!(configuration["usable_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{configuration}");
    let said = browser.evaluate(&page, "document.getElementById(\"before\").innerText");
    let said = said.as_str().expect("a text");
    assert!(said.contains("at the instrument's rate") && said.contains("beyond the reserve"), "{said}");
    fits(&mut browser, &page, 390);
    service.json(200, "POST", "/arm", "{\"name\": \"scan\", \"duration\": \"4000 days\"}");
    browser.await_value(&page, "document.getElementById(\"before\").hidden");
    let (_, armed) = ask(service.http, "GET", "/status", "");
    let armed: Value = serde_json::from_str(&armed).expect("JSON");
    assert!(armed["configuration"]["room_seconds"].is_null(), "a recording has figures of its own: {armed}");
    assert_eq!(armed["configuration"]["duration_seconds"], 4000.0 * 86_400.0, "{armed}");
    let ends = browser.evaluate(&page, "document.getElementById(\"ends\").innerText");
    assert!(ends.as_str().is_some_and(|ends| ends.contains("after the first packet")), "{ends}");
    let head = browser.evaluate(&page, "document.getElementById(\"what\").textContent");
    assert!(head.as_str().is_some_and(|head| head.contains("4000\u{202f}d 0\u{202f}h do NOT fit")), "{head}");
    fits(&mut browser, &page, 390);
    assert_eq!(browser.complaints(&page), [""; 0]);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_page_takes_nothing_but_get_and_lets_nothing_else_in() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let instrument = instrument(below, Sender::new().port());
    let service = Service::start(below, &format!("instrument = \"{instrument}\"\n"));
    for path in ["/", "/live", "/latest-frame"] {
        assert_eq!(service.ask("GET", path, "").0, 200, "{path}");
        assert_eq!(service.ask("POST", path, "").0, 405, "{path}");
    }
    let mut stream = TcpStream::connect(service.http).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, page) = text.split_once("\r\n\r\n").expect("an answer");
    let nonce =
        head.split_once("script-src 'nonce-").expect("a policy").1.split_once('\'').expect("an end").0;
    assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2, "{head}");
    for line in ["default-src 'none'", "frame-ancestors 'none'", "nosniff", "Resource-Policy: same-origin"] {
        assert!(head.contains(line), "{line}: {head}");
    }
    let (_, empty) = ask(service.http, "GET", "/latest-frame", "");
    assert_eq!(empty, "{\"none\":\"nothing was recorded yet\"}\n");
    assert_eq!(service.end(), Some(0));
}
