//! What the file of a recording says of its time: that of its first frame and that of its last.

use std::{fs::File, io, os::unix::fs::FileExt};

use nilometer_acquisition::format::{mark5b, vdif};
use nilometer_model::{Format, Moment, Nanos};

use crate::serve::state::Scan;

/// When the first frame was, and for how long frames were recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) begin: Moment,
    pub(super) seconds: f64,
}

/// Of every header that is read here.
const HEADER: usize = 32;
/// 1970-01-01 as a modified Julian day.
const MJD_1970: u64 = 40_587;
const DAY: u64 = 86_400;
const SECOND: u64 = 1_000_000_000;

/// The time of a recording, as it stands in its frames; none if they have none.
pub(super) fn span(scan: &Scan) -> io::Result<Option<Span>> {
    let Some(mode) = scan.mode else { return Ok(None) };
    let file = File::open(scan.path.join(format!("{}.{}", scan.name, scan.format.name())))?;
    let (size, frame) = (file.metadata()?.len(), mode.frame_size().0);
    if size < frame {
        return Ok(None);
    }
    let frames = mode.megabits() as f64 * 125_000.0 / mode.payload().0 as f64;
    let at = |offset: u64| -> io::Result<Option<(u64, f64)>> {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header[..HEADER.min(frame as usize)], offset)?;
        Ok(time(scan.format, &header, scan.begun)
            .map(|(second, number)| (second, f64::from(number) / frames)))
    };
    let (Some(first), Some(last)) = (at(0)?, at((size / frame - 1) * frame)?) else { return Ok(None) };
    let begin = Moment(Nanos(first.0 * SECOND) + Nanos::from_seconds(first.1));
    let whole = last.0 as f64 - first.0 as f64;
    Ok(Some(Span { begin, seconds: whole + last.1 - first.1 + 1.0 / frames }))
}

/// Second since 1970 and frame of the second.
fn time(format: Format, header: &[u8], near: Moment) -> Option<(u64, u32)> {
    match format {
        Format::Vdif => {
            let header = vdif::Header::parse(header)?;
            let (year, month) = (2000 + u32::from(header.epoch / 2), 1 + 6 * u32::from(header.epoch % 2));
            let epoch: Moment = format!("{year}-{month:02}-01T00:00:00Z").parse().ok()?;
            Some((epoch.0.0 / SECOND + u64::from(header.second), header.frame))
        }
        Format::Mark5b => {
            let header = mark5b::Header::parse(header).ok()?;
            // The day is told in three digits: the last one that is not after the recording.
            let today = near.0.0 / SECOND / DAY + MJD_1970;
            let day = today - (today + 1000 - u64::from(header.day)) % 1000;
            Some(((day - MJD_1970) * DAY + u64::from(header.second), header.frame))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_frame_is_that_of_its_header() {
        let bytes = |text: &str| -> Vec<u8> {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
            (0..text.len()).step_by(2).map(byte).collect()
        };
        // A recorded header: epoch 28 is 2014-01-01, second 14363767.
        let header = bytes("772cdb000000001c75020020fcff010410008003edfeabac00004033831503f2");
        let near = "2026-11-22T18:00:00Z".parse().expect("valid");
        assert_eq!(time(Format::Vdif, &header, near), Some((1_388_534_400 + 14_363_767, 0)));
        // MJD 821 and second 19801: before 2026-11-22 (MJD 61366) that is 60821, which is 2025-05-26.
        let mut header = bytes("eddeadab0000adbe011821985d970000");
        header[8..12].copy_from_slice(&[0x01, 0x98, 0x11, 0x82]);
        header.resize(HEADER, 0);
        let (second, _) = time(Format::Mark5b, &header, near).expect("a header");
        assert_eq!(Moment(Nanos(second * SECOND)).to_string(), "2025-05-26T05:30:01Z");
        assert_eq!(time(Format::Raw, &header, near), None);
    }
}
