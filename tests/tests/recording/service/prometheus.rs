//! Prometheus itself collects the metrics of a recorder with the alerts in `contrib/`, and every panel of the dashboard has a value.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use nilometer_tests::{await_some, free_port, read, root, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::service::{commanded::Service, instrument, sender::Sender};

/// A server of Prometheus that collects metrics every second.
struct Prometheus {
    child: Child,
    url: String,
    _home: TempDir,
}

impl Prometheus {
    /// Collects the metrics of a recorder. `None` if Prometheus is not installed.
    fn start(recorder: SocketAddr) -> Option<Self> {
        let mut server = tool("prometheus")?;
        let home = tempfile::tempdir().expect("a temporary directory");
        let rules = root().join("contrib/prometheus/nilometer.rules.yml").canonicalize().expect("the alerts");
        let configuration = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [{}]\nscrape_configs:\n\
             - job_name: nilometer\n  static_configs: [{{targets: [\"{recorder}\"]}}]\n",
            rules.display()
        );
        fs::write(home.path().join("prometheus.yml"), configuration).expect("space");
        let at = format!("127.0.0.1:{}", free_port());
        server.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        server.arg(format!("--web.listen-address={at}")).current_dir(home.path());
        let child = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        Some(Prometheus { child, url: format!("http://{at}"), _home: home })
    }

    /// The lines of a query's answer. `None` if the server does not answer yet, or the answer is empty.
    fn found(&self, query: &str) -> Option<String> {
        let mut promtool = Command::new("promtool");
        let output = promtool.args(["query", "instant", &self.url, query]).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// The queries of the dashboard that a recorder of packets answers.
fn queries() -> Vec<String> {
    let board: Value =
        serde_json::from_str(&read(&root().join("contrib/grafana/recorder.json"))).expect("JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("queries"));
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    let of_packets = queries.filter(|query| !query.contains("_frames_"));
    of_packets.map(|query| query.replace("$__rate_interval", "1m").replace("$instance", ".*")).collect()
}

#[test]
fn every_panel_of_the_dashboard_has_a_value_and_a_loss_raises_an_alert() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let record = format!("instrument = \"{}\"\n", instrument(below, sender.port()));
    // A recorder that may make dumps counts them.
    let dumps = format!("dumps = [\"{}\"]\n", below.display());
    let service = Service::reached(below, &dumps, &record);
    let Some(prometheus) = Prometheus::start(service.http) else { return };
    assert_eq!(service.json(200, "POST", "/arm", "{\"name\": \"scan\"}")["state"], "armed");
    assert_eq!(service.json(200, "POST", "/start", "")["state"], "recording");
    sender.send(0..300);
    service.await_packets(300);
    for query in queries() {
        await_some(&query, || prometheus.found(&query));
    }
    let recording = "nilometer_state{state=\"recording\"} == 1";
    assert!(await_some(recording, || prometheus.found(recording)).contains("job=\"nilometer\""));
    // The buffer's alert does not fire, and one does whose condition holds.
    assert_eq!(prometheus.found("ALERTS{alertname=\"NilometerBufferHigh\"}"), None);
    // Packets are missing for good when enough others have come behind them.
    for first in (400..3000).step_by(100) {
        sender.send(first..first + 100);
        service.await_packets(first - 100);
    }
    let alert = "ALERTS{alertname=\"NilometerLossElsewhere\",alertstate=\"firing\"}";
    let fired = await_some(alert, || prometheus.found(alert));
    assert!(fired.contains("cause=\"unexplained\""), "{fired}");
    assert_eq!(service.end(), Some(0));
}
