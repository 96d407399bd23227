//! A browser without a window, which shows a page as a user would see it. It is Chromium, driven by its
//! `DevTools` protocol in a pipe. `--remote-debugging-pipe` sends messages of JSON, each ended by a zero byte,
//! at file descriptors 3 and 4.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{await_some, patience::PATIENCE, tool};

/// A running browser. Dropping it ends the browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Events that the browser sent unasked.
    events: Vec<Value>,
    next: u64,
    _profile: TempDir,
}

/// A page in the browser, by its session.
#[derive(Debug, Clone)]
pub struct BrowserPage {
    session: String,
}

/// Every host name except this machine fails to resolve, whatever a page requests.
const NOWHERE: &str = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
const OPTIONS: [&str; 8] = [
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    NOWHERE,
];
/// The browser's pipes are its standard input and output, which this process holds.
const PIPES: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

impl Browser {
    /// Starts a browser. If there is none, it says that the test is skipped, or panics in CI.
    pub fn start() -> Option<Self> {
        tool("chromium")?;
        let profile = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new("sh");
        command.args(["-c", PIPES, "sh", "chromium"]).args(OPTIONS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // Chromium leaves a directory for each start, so it gets one that is removed.
        command.env("TMPDIR", profile.path());
        if rustix::process::getuid().is_root() {
            // Chromium's sandbox does not run as root.
            command.arg("--no-sandbox");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = child.stdout.take().expect("piped");
        let (sender, messages) = sync_channel(4096);
        thread::spawn(move || receive(output, &sender));
        Some(Browser { child, input, messages, events: Vec::new(), next: 0, _profile: profile })
    }

    /// Opens a page that is `width` pixels wide.
    pub fn open(&mut self, address: &str, width: u32, is_dark: bool) -> BrowserPage {
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", &attach);
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let page = BrowserPage { session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(Some(&page), &format!("{domain}.enable"), &json!({}));
        }
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call(Some(&page), "Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call(Some(&page), "Emulation.setEmulatedMedia", &features);
        self.call(Some(&page), "Page.navigate", &json!({ "url": address }));
        page
    }

    /// Evaluates an expression of JavaScript and returns its value as JSON; null if it fails.
    pub fn evaluate(&mut self, page: &BrowserPage, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        self.call(Some(page), "Runtime.evaluate", &asked)["result"]["value"].clone()
    }

    /// Waits until an expression gives something that is neither null nor false. Panics after two minutes.
    pub fn await_value(&mut self, page: &BrowserPage, expression: &str) -> Value {
        await_some(expression, || {
            let value = self.evaluate(page, expression);
            (!value.is_null() && value != Value::Bool(false)).then_some(value)
        })
    }

    /// The addresses of all requests of a page.
    pub fn requested(&self, page: &BrowserPage) -> Vec<String> {
        let sent = self.told(page, "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str().map(ToOwned::to_owned)).collect()
    }

    /// Complaints about a page: errors and warnings of its console, refused requests, exceptions.
    pub fn complaints(&self, page: &BrowserPage) -> Vec<String> {
        let all = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        all.iter().flat_map(|kind| self.told(page, kind)).map(|event| event["params"].to_string()).collect()
    }

    /// A picture of the whole page (PNG, base64).
    pub fn picture(&mut self, page: &BrowserPage) -> String {
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.call(Some(page), "Page.captureScreenshot", &asked);
        taken["data"].as_str().expect("a picture").to_owned()
    }

    fn told(&self, page: &BrowserPage, kind: &str) -> impl Iterator<Item = &Value> {
        let is_of = move |event: &&Value| event["sessionId"] == page.session.as_str();
        let kind = kind.to_owned();
        self.events.iter().filter(is_of).filter(move |event| event["method"] == kind.as_str())
    }

    fn call(&mut self, page: Option<&BrowserPage>, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(page) = page {
            message["sessionId"] = page.session.clone().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("it reads");
        loop {
            let answer =
                self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }
}

fn receive(output: ChildStdout, to: &SyncSender<Value>) {
    for message in BufReader::new(output).split(0) {
        let Ok(message) = message else { return };
        let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
        if to.send(message).is_err() {
            return;
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser's own processes end with it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
