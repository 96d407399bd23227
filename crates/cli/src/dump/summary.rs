//! The lines about dumps that have ended, and their exit code. Pure.

use anyhow::anyhow;
use nilometer_model::{ByteRate, Bytes};
use nilometer_report::in_line;
use nilometer_service::{DumpReport, DumpState, DumpWait, DumpedRange};

use crate::{Failure, Outcome};

/// The most ranges to name.
const NAMED: usize = 5;

/// The words for a wait, to follow the progress.
pub(super) fn reason(wait: DumpWait) -> &'static str {
    match wait {
        DumpWait::Frames => ", waits for frames",
        DumpWait::Buffer => ", waits for the recording",
    }
}

/// A block of lines for each dump.
pub(super) fn summary(reports: &[DumpReport]) -> String {
    reports.iter().map(|report| lines(report).join("\n") + "\n").collect()
}

fn lines(report: &DumpReport) -> Vec<String> {
    let DumpReport { id, recording, path, frames, bytes, .. } = report;
    let state = match report.state {
        DumpState::Running => "running",
        DumpState::Complete => "complete",
        DumpState::Failed => "failed",
        DumpState::Cancelled => "cancelled",
    };
    let mut lines = vec![format!("dump        {id} of {}: {state}", in_line(recording))];
    if report.state == DumpState::Complete {
        let first = report.first_frame.map_or_else(String::new, |first| format!(" from frame {first}"));
        let rate = ByteRate(report.bytes_per_second);
        lines.push(format!("file        {}", in_line(path.display())));
        lines.push(format!("frames      {frames}{first}, {} at {rate}", Bytes(*bytes)));
    }
    lines.extend(lacking(report).into_iter().map(|lack| format!("{:<11} {}", lack.title, lack.text)));
    if report.verified_frames > 0 {
        lines.push(format!("checked     {} frames agree with their checksums", report.verified_frames));
    }
    lines.extend(report.error.iter().map(|error| format!("error       {}", in_line(error))));
    lines
}

/// A part of the request that the file lacks, or has with other bytes.
struct DumpLack {
    title: &'static str,
    text: String,
}

/// All such parts. The file has frames marked as invalid in the place of absent ones.
fn lacking(report: &DumpReport) -> Vec<DumpLack> {
    let mut all = Vec::new();
    let mut add = |is: bool, title, text: String| {
        if is {
            all.push(DumpLack { title, text });
        }
    };
    let DumpReport { overtaken_frames: overtaken, missing_frames: missing, .. } = report;
    let DumpReport { unreadable_frames: unreadable, damaged_frames: damaged, .. } = report;
    add(report.begins_late, "begins late", "the recorder had overwritten the frames at the begin".into());
    add(report.ends_early, "ends early", "the recording ended before the end of the part".into());
    let named = ranges(&report.overtaken);
    add(
        *overtaken > 0,
        "overtaken",
        format!("{overtaken} frames, overwritten before the dump read them: {named}"),
    );
    add(*missing > 0, "missing", format!("{missing} frames, which the recording never had"));
    add(*unreadable > 0, "unreadable", format!("{unreadable} frames, which the storage did not give back"));
    let named = ranges(&report.damaged);
    add(*damaged > 0, "damaged", format!("{damaged} frames differ from their checksums: {named}"));
    all
}

/// The first ranges as numbers of frames.
fn ranges(all: &[DumpedRange]) -> String {
    let text = |range: &DumpedRange| format!("{} to {}", range.first, range.first + range.frames.max(1) - 1);
    let named: Vec<_> = all.iter().take(NAMED).map(text).collect();
    let more = if all.len() > NAMED { ", .." } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Turns a dump that failed, or whose file lacks something, into a failure.
pub(super) fn outcome(reports: &[DumpReport]) -> Outcome {
    let failed: Vec<_> = reports.iter().filter(|report| report.state != DumpState::Complete).collect();
    if let Some(report) = failed.first() {
        let why = report.error.clone().unwrap_or_else(|| "it was cancelled".into());
        return Err(Failure::Run(anyhow!("dump {} has no file: {}", report.id, in_line(why))));
    }
    let lacks: Vec<_> = reports.iter().flat_map(lacking).map(|lack| lack.title).collect();
    if lacks.is_empty() {
        return Ok(());
    }
    Err(Failure::NotWhole(anyhow!("dumped, but not whole: {}", lacks.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> DumpReport {
        DumpReport {
            id: 3,
            state: DumpState::Complete,
            recording: "scan".into(),
            path: "/store/event.vdif".into(),
            first_frame: Some(83_200),
            frames: 16_000,
            bytes: 128_512_000,
            bytes_per_second: 2e8,
            ..DumpReport::default()
        }
    }

    #[test]
    fn a_whole_dump_is_told_with_its_file() {
        let text = summary(&[complete()]);
        assert_eq!(
            text,
            "dump        3 of scan: complete\nfile        /store/event.vdif\n\
             frames      16000 from frame 83200, 129 MB at 200 MB/s\n"
        );
        assert!(outcome(&[complete()]).is_ok());
    }

    #[test]
    fn everything_that_a_file_lacks_is_told_and_decides_the_exit_code() {
        let range = |first| DumpedRange { first, frames: 10 };
        let lacking: [(&str, DumpReport); 6] = [
            ("begins late", DumpReport { begins_late: true, ..complete() }),
            ("ends early", DumpReport { ends_early: true, ..complete() }),
            (
                "10 to 19, 30 to 39, 50 to 59, 70 to 79, 90 to 99, ..",
                DumpReport {
                    overtaken_frames: 60,
                    overtaken: (0..6).map(|number| range(20 * number + 10)).collect(),
                    ..complete()
                },
            ),
            ("missing", DumpReport { missing_frames: 1, ..complete() }),
            ("unreadable", DumpReport { unreadable_frames: 1, ..complete() }),
            ("damaged", DumpReport { damaged_frames: 10, damaged: vec![range(0)], ..complete() }),
        ];
        for (part, report) in lacking {
            let text = summary(std::slice::from_ref(&report));
            assert!(text.contains(part), "{part}: {text}");
            assert!(matches!(outcome(&[complete(), report]), Err(Failure::NotWhole(_))), "{part}");
        }
    }

    #[test]
    fn a_dump_without_a_file_is_a_failure() {
        for state in [DumpState::Failed, DumpState::Cancelled] {
            let report = DumpReport { state, error: Some("No space left".into()), ..complete() };
            assert!(!summary(std::slice::from_ref(&report)).contains("file "));
            assert!(matches!(outcome(&[complete(), report]), Err(Failure::Run(_))));
        }
    }
}
