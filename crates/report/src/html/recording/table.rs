//! The figures of all recordings of an instrument; trials of searches by themselves.

use std::fmt::Write;

use nilometer_model::{
    Bytes, Ingest, Measured,
    plan::Goal,
    search::{SearchEnd, Trial},
};

use nilometer_analysis::{StudyRecording, letter};

use super::{
    super::super::{chart::Escaped, words::NONE},
    Setting,
};

const COLUMNS: [&str; 12] = [
    "rate",
    "frames due",
    "stored",
    "lost",
    "late",
    "long stalls",
    "in all",
    "longest stall",
    "slowest second",
    "most of the buffer",
    "cores",
    "",
];

/// The recordings, then the trials.
pub(super) fn write(page: &mut String, recording: &StudyRecording<'_>) -> std::fmt::Result {
    let made =
        recording.samples.iter().filter_map(|&measured| Some((measured, measured.sample.ingest.as_ref()?)));
    let (trials, others): (Vec<_>, Vec<_>) = made.partition(|(_, ingest)| ingest.goal.searches());
    page.push_str(
        "<div class=\"screen\"><h3>All recordings</h3><div class=\"scroll\"><table><thead><tr><th>target</th><th>pace</th><th>meanwhile</th>",
    );
    for name in COLUMNS {
        write!(page, "<th class=\"f\">{name}</th>")?;
    }
    page.push_str("</tr></thead><tbody>");
    for (measured, ingest) in others {
        write_row(page, measured, ingest)?;
    }
    page.push_str("</tbody></table></div>");
    write_trials(page, &trials)?;
    page.push_str("</div>");
    Ok(())
}

fn write_row(page: &mut String, measured: &Measured, ingest: &Ingest) -> std::fmt::Result {
    let sample = &measured.sample;
    let cores = (sample.user + sample.system).seconds() / sample.wall.seconds().max(1e-9);
    let used = 100.0 * ingest.slots_high as f64 / ingest.slots.max(1) as f64;
    let is_paced = ingest.goal == Goal::Pace;
    let slowest = ingest.slowest_second.map(rate_of_second);
    write!(
        page,
        "<tr><td>{}</td><td class=\"one\">{}</td><td class=\"words\">{}</td>",
        letter(measured.key.target),
        if is_paced { "its own" } else { "as taken" },
        Escaped(&Setting::of(ingest).to_string())
    )?;
    let figures = [
        sample.sustained_rate().to_string(),
        ingest.due.to_string(),
        ingest.stored.to_string(),
        ingest.lost.to_string(),
        if is_paced { ingest.late.to_string() } else { NONE.into() },
        ingest.stall_count.to_string(),
        ingest.stalled.to_string(),
        ingest.longest_stall.to_string(),
        slowest.unwrap_or_else(|| NONE.into()),
        format!("{used:.0} %"),
        format!("{cores:.2}"),
    ];
    for figure in figures {
        write!(page, "<td class=\"f\">{figure}</td>")?;
    }
    let invalid = sample.invalid.as_ref().map(|why| format!("INVALID: {why}")).unwrap_or_default();
    write!(page, "<td class=\"bad\">{}</td></tr>", Escaped(&invalid))
}

fn rate_of_second(bytes: Bytes) -> String {
    nilometer_model::ByteRate(bytes.0 as f64).to_string()
}

fn write_trials(page: &mut String, trials: &[(&Measured, &Ingest)]) -> std::fmt::Result {
    if trials.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<details><summary>{} trials of searches</summary><div class=\"scroll\"><table><thead><tr><th>target</th>\
         <th>searched for</th><th class=\"f\">rate</th><th class=\"f\">slots</th><th class=\"f\">most in use</th>\
         <th class=\"f\">frames due</th><th class=\"f\">lost</th><th>ended</th></tr></thead><tbody>",
        trials.len()
    )?;
    for (measured, ingest) in trials {
        let Some(trial) = Trial::of(&measured.sample) else { continue };
        let why = measured.sample.invalid.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let ended = match trial.ended {
            SearchEnd::Carried => "carried",
            SearchEnd::Lost if ingest.lost == 0 => "lost: the ring was still filling",
            SearchEnd::Lost => "lost",
            SearchEnd::Invalid => "INVALID",
        };
        write!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"f\">{}</td><td class=\"f\">{}</td><td class=\"f\">{}</td>\
             <td class=\"f\">{}</td><td class=\"f\">{}</td><td>{ended}{}</td></tr>",
            letter(measured.key.target),
            if ingest.goal == Goal::Search { "rate" } else { "buffer" },
            trial.rate,
            ingest.slots,
            ingest.slots_high,
            ingest.due,
            ingest.lost,
            Escaped(&why)
        )?;
    }
    page.push_str("</tbody></table></div></details>");
    Ok(())
}
