//! The recordings of an instrument: rate over time at its pace and at the storage's, and how late frames were.

use std::fmt::Write;

use nilometer_model::{ByteRate, Bytes, Histogram, Ingest, Measured, Nanos, Series, plan::Goal};

use crate::{Quantity, Recording, Study, letter};

use super::{
    super::chart::Escaped,
    latency::{quantiles, timeline},
    write_charts, write_key,
};

/// The section of an instrument.
pub(super) fn write(
    page: &mut String,
    study: &Study<'_>,
    recording: &Recording<'_>,
    number: usize,
) -> std::fmt::Result {
    let Some(ingest) = recording.samples.iter().find_map(|measured| measured.sample.ingest.as_ref()) else {
        return Ok(());
    };
    let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
    write!(
        page,
        "<section class=\"card\" id=\"recording-{number}\"><h2>Recording {}</h2><p class=\"soft\">frames of {} every {}, \
         {rate}; a buffer of {}</p>",
        Escaped(recording.instrument),
        ingest.frame_size,
        ingest.period,
        Bytes(ingest.slots * ingest.frame_size.0)
    )?;
    let mut targets: Vec<usize> = recording.samples.iter().map(|measured| measured.key.target).collect();
    targets.dedup();
    write_key(page, study, &targets)?;
    write_pictures(page, study, recording, ingest)?;
    write_table(page, recording)?;
    page.push_str("</section>");
    Ok(())
}

fn write_pictures(
    page: &mut String,
    study: &Study<'_>,
    recording: &Recording<'_>,
    ingest: &Ingest,
) -> std::fmt::Result {
    let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
    let paced = chosen(recording, Goal::Pace);
    let limit = chosen(recording, Goal::Limit);
    let series = |samples: &[&'_ Measured]| -> Vec<(usize, Series)> {
        samples.iter().map(|measured| (measured.key.target, measured.sample.series.clone())).collect()
    };
    let mut charts = Vec::new();
    for (title, samples) in [("at its own pace", &paced), ("as fast as it is taken", &limit)] {
        let series = series(samples);
        let lines: Vec<(usize, &Series)> = series.iter().map(|(target, series)| (*target, series)).collect();
        charts.extend(timeline(title, Quantity::Bytes, &lines, Some(rate.0)));
    }
    let buffer = Nanos(ingest.slots * ingest.period.0);
    let late = distributions(&paced, |measured| Some(&measured.sample.lateness));
    charts.extend(quantiles("lateness of frames at its own pace", &late, Some(buffer)));
    let latency = distributions(&paced, |measured| study.results.latencies.get(&measured.key.group()));
    charts.extend(quantiles("latency of writes at its own pace", &latency, Some(buffer)));
    write_charts(page, &charts)?;
    page.push_str(
        "<p class=\"soft\">Dashed: the instrument's rate, and the time that the buffer covers.</p>",
    );
    Ok(())
}

/// By target, those that hold anything.
fn distributions<'a>(
    samples: &[&'a Measured],
    of: impl Fn(&'a Measured) -> Option<&'a Histogram>,
) -> Vec<(usize, &'a Histogram)> {
    let found = samples.iter().filter_map(|measured| Some((measured.key.target, of(measured)?)));
    found.filter(|(_, histogram)| histogram.count() > 0).collect()
}

/// Of each target the slowest recording in the long run: it is the one that the verdict rests on.
fn chosen<'a>(recording: &Recording<'a>, goal: Goal) -> Vec<&'a Measured> {
    let same = |measured: &&&'a Measured| {
        measured.sample.invalid.is_none()
            && measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == goal)
    };
    let mut chosen: Vec<&'a Measured> = Vec::new();
    for measured in recording.samples.iter().filter(same) {
        let rate = |measured: &Measured| measured.sample.series.last_third().map_or(0.0, |rate| rate.0);
        match chosen.iter_mut().find(|known| known.key.target == measured.key.target) {
            Some(known) if rate(measured) < rate(known) => *known = measured,
            Some(_) => {}
            None => chosen.push(measured),
        }
    }
    chosen
}

fn write_table(page: &mut String, recording: &Recording<'_>) -> std::fmt::Result {
    page.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>target</th><th>pace</th><th class=\"f\">rate</th>\
         <th class=\"f\">frames due</th><th class=\"f\">stored</th><th class=\"f\">lost</th>\
         <th class=\"f\">most of the buffer</th><th class=\"f\">longest stall</th><th class=\"f\">cores</th>\
         <th></th></tr></thead><tbody>",
    );
    for measured in &recording.samples {
        let Some(ingest) = &measured.sample.ingest else { continue };
        let sample = &measured.sample;
        let cores = (sample.user + sample.system).seconds() / sample.wall.seconds().max(1e-9);
        let used = 100.0 * ingest.slots_high as f64 / ingest.slots.max(1) as f64;
        let invalid = sample.invalid.as_ref().map(|why| format!("INVALID: {why}")).unwrap_or_default();
        write!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"f\">{}</td><td class=\"f\">{}</td><td class=\"f\">{}</td>\
             <td class=\"f\">{}</td><td class=\"f\">{used:.0} %</td><td class=\"f\">{}</td><td class=\"f\">{cores:.2}</td>\
             <td class=\"bad\">{}</td></tr>",
            letter(measured.key.target),
            match ingest.goal {
                Goal::Pace => "its own",
                Goal::Limit => "as taken",
                Goal::Search | Goal::Buffer => "a trial",
            },
            sample.rate(),
            ingest.due,
            ingest.stored,
            ingest.lost,
            ingest.longest_stall,
            Escaped(&invalid)
        )?;
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}
