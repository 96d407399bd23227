//! Every value of the page has its head, and senders, threads and data streams are labels.

use nilometer_acquisition::{DataStreamStatus, Lost};

use super::*;

#[test]
fn labels_are_escaped_and_every_value_has_its_head() {
    let lane = LaneStatus { path: "/a\"b\\c\nd".into(), state: "failed", ..LaneStatus::default() };
    let status = Status { received_packets: 7, lanes: vec![lane], ..Status::default() };
    let report = ServiceReport {
        recording: Some(ReportedRecording { status, ..ReportedRecording::default() }),
        state: ServiceState::Recording,
        ..ServiceReport::default()
    };
    let page = metrics(&report, None);
    assert!(page.contains("nilometer_lost_packets_total{cause=\"unexplained\"} 0\n"), "{page}");
    assert!(page.contains("nilometer_state{state=\"recording\"} 1\n"), "{page}");
    assert!(page.contains("nilometer_received_packets_total 7\n"), "{page}");
    assert!(page.contains("directory_failed{directory=\"/a\\\"b\\\\c\\nd\"} 1\n"), "{page}");
    has_heads(&page);
}

#[test]
fn senders_and_threads_are_labels() {
    let thread = |thread, silent_seconds| ThreadStatus {
        station: Some(0x4d63),
        thread,
        came_frames: 50,
        missing_frames: 3,
        silent_seconds,
    };
    let sender = SenderStatus {
        sender: Some(([10, 0, 0, 2], 4000).into()),
        missing_packets: 7,
        threads: vec![thread(0, None), thread(2, Some(1.5))],
        ..SenderStatus::default()
    };
    let other = SenderStatus { sender: Some(([10, 0, 0, 2], 4001).into()), ..SenderStatus::default() };
    let status = Status { senders: vec![sender, other], ..Status::default() };
    let report = ServiceReport {
        recording: Some(ReportedRecording { status, ..ReportedRecording::default() }),
        ..ServiceReport::default()
    };
    let page = metrics(&report, None);
    for line in [
        "nilometer_sender_missing_packets_total{sender=\"10.0.0.2:4000\"} 7\n",
        "nilometer_sender_missing_packets_total{sender=\"10.0.0.2:4001\"} 0\n",
        "nilometer_thread_silent_seconds{sender=\"10.0.0.2:4000\",station=\"Mc\",thread=\"0\"} 0\n",
        "nilometer_thread_silent_seconds{sender=\"10.0.0.2:4000\",station=\"Mc\",thread=\"2\"} 1.5\n",
        "nilometer_thread_missing_frames_total{sender=\"10.0.0.2:4000\",station=\"Mc\",thread=\"2\"} 3\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    has_heads(&page);
}

#[test]
fn data_streams_have_a_state_each() {
    let stream = |name: &str, ended_by, silent_seconds| DataStreamStatus {
        name: name.into(),
        ended_by,
        received_packets: 50,
        packets_after_end: if ended_by.is_some() { 7 } else { 0 },
        silent_seconds,
        ..DataStreamStatus::default()
    };
    let data_streams = vec![stream("s_dsA", Some("silence"), None), stream("s_dsB", None, Some(1.5))];
    let lost = Lost { queue_full: 9, ..Lost::default() };
    let status = Status { data_streams, lost, packets_after_end: 7, ..Status::default() };
    let report = ServiceReport {
        recording: Some(ReportedRecording { status, ..ReportedRecording::default() }),
        ..ServiceReport::default()
    };
    let page = metrics(&report, None);
    for line in [
        "nilometer_lost_packets_total{cause=\"queue_full\"} 9\n",
        "nilometer_packets_after_end_total 7\n",
        "nilometer_data_stream_ended{stream=\"s_dsA\"} 1\n",
        "nilometer_data_stream_ended{stream=\"s_dsB\"} 0\n",
        "nilometer_data_stream_packets_after_end_total{stream=\"s_dsA\"} 7\n",
        "nilometer_data_stream_received_packets_total{stream=\"s_dsB\"} 50\n",
        "nilometer_data_stream_silent_seconds{stream=\"s_dsB\"} 1.5\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    has_heads(&page);
}

fn has_heads(page: &str) {
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        assert_eq!(page.matches(&format!("# TYPE {name} ")).count(), 1, "{name}");
    }
}

#[test]
fn frames_of_a_series_are_called_so() {
    let status = Status { received_packets: 7, counted_in: "frames", ..Status::default() };
    let report = ServiceReport {
        recording: Some(ReportedRecording { status, ..ReportedRecording::default() }),
        ..ServiceReport::default()
    };
    let page = metrics(&report, None);
    assert!(page.contains("nilometer_received_frames_total 7\n"), "{page}");
    assert!(page.contains("nilometer_lost_frames_total{cause=\"ring_full\"} 0\n"), "{page}");
    assert!(page.contains("Seconds since the first frame of the recording."), "{page}");
    assert!(!page.to_lowercase().contains("packet"), "{page}");
    has_heads(&page);
}
