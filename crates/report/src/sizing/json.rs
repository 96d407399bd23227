//! A sizing for programs. Rates are in bytes a second, sizes in bytes, times in seconds; missing values are
//! null.

use nilometer_model::Nanos;
use nilometer_plan::sizing::{Amount, SizingStage};
use serde::Serialize;

use super::{
    Checked, Sized,
    basis::{basis, detail, is_assumed, origin, word},
    text::answer,
};

/// Increase it when a field is renamed, removed or changes its meaning; not when one is added.
const FORMAT_VERSION: u32 = 2;

#[derive(Serialize)]
struct Document<'a> {
    /// `nilometer-sizing`.
    format: &'static str,
    format_version: u32,
    title: &'a str,
    streams: u64,
    peak_bytes_per_second: f64,
    mean_bytes_per_second: f64,
    read_bytes_per_second: f64,
    /// The written part of the mean, which is less if the recorder packs frames.
    written_bytes_per_second: f64,
    /// The sentences of the text.
    answer: Vec<String>,
    /// Caveats of the answer.
    remarks: &'a [String],
    recorders: u64,
    links: u64,
    servers: u64,
    /// Spare recorders and servers, not included in the numbers before.
    spare: u64,
    /// For each kind of instrument.
    kinds: Vec<Kind<'a>>,
    limiting: &'static str,
    stages: Vec<Row>,
    buffer: BufferCapacity,
    assumptions: Vec<Assumption>,
    simulation: Option<Simulation>,
}

#[derive(Serialize)]
struct Kind<'a> {
    instrument: &'a str,
    streams: u64,
    recorders: u64,
    streams_of_one_recorder: u64,
    /// How many times smaller its frames are written.
    packing: f64,
    cores_for_a_gigabyte: f64,
    write_bytes_per_second_of_one_recorder: f64,
}

#[derive(Serialize)]
struct Row {
    stage: &'static str,
    /// Bytes a second, cores, or bytes.
    unit: &'static str,
    demand: f64,
    /// True if the demand depends on an assumption.
    demand_is_assumed: bool,
    /// Capacity of one element, headroom included.
    limit: f64,
    /// `recorder` or `storage server`.
    element: &'static str,
    needed: u64,
    /// Use of the fullest element with the final number of elements.
    used: f64,
    /// `measured`, `written`, `given` or `assumed`: the least certain of the limit's figures.
    limit_is: &'static str,
}

#[derive(Serialize)]
struct BufferCapacity {
    inflow_bytes_per_second: f64,
    growth_bytes_per_second: f64,
    needed_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    full_after_s: Option<f64>,
}

#[derive(Serialize)]
struct Assumption {
    what: &'static str,
    value: String,
    from: &'static str,
    detail: String,
}

#[derive(Serialize)]
struct Simulation {
    duration_s: f64,
    lost: u64,
    grows: bool,
    memory_most_bytes: u64,
    longest_wait_s: f64,
    servers_busy: f64,
    /// True if one element of the limiting stage fewer, with nothing kept free, is overloaded. Null if there is
    /// only one.
    one_fewer_is_overloaded: Option<bool>,
    days: Option<u64>,
    buffer_most_bytes: Option<u64>,
    full_after_s: Option<f64>,
}

/// Writes the document.
pub fn sizing_json(sized: &Sized<'_>) -> String {
    let Sized { title, demand, limits, sizing, .. } = sized;
    let kinds = demand.kinds.iter().zip(&sizing.recorders).map(|(kind, recorders)| Kind {
        instrument: &kind.name,
        streams: kind.streams,
        recorders: recorders.count,
        streams_of_one_recorder: recorders.streams,
        packing: kind.packing.value,
        cores_for_a_gigabyte: kind.cost.value,
        write_bytes_per_second_of_one_recorder: recorders.write.0,
    });
    let document = Document {
        format: "nilometer-sizing",
        format_version: FORMAT_VERSION,
        title,
        streams: demand.streams(),
        peak_bytes_per_second: demand.peak().0,
        mean_bytes_per_second: demand.mean().0,
        read_bytes_per_second: demand.reading().0,
        written_bytes_per_second: demand.written().0,
        answer: answer(sized),
        remarks: sized.remarks,
        recorders: sizing.recorder_count(),
        links: sizing.links(),
        servers: sizing.servers,
        spare: limits.spare.value,
        kinds: kinds.collect(),
        limiting: sizing.limiting().place.what(),
        stages: sizing.stages.iter().map(|stage| row(stage, sized)).collect(),
        buffer: buffer(sized),
        assumptions: assumptions(sized),
        simulation: sized.checked.as_ref().map(simulation),
    };
    serde_json::to_string_pretty(&document).expect("text and numbers") + "\n"
}

fn row(stage: &SizingStage, sized: &Sized<'_>) -> Row {
    let (unit, limit) = number(stage.limit);
    Row {
        stage: stage.place.what(),
        unit,
        demand: number(stage.demand).1,
        demand_is_assumed: is_assumed(stage.place, sized),
        limit,
        element: stage.place.element(),
        needed: stage.needed,
        used: stage.used,
        limit_is: origin(stage.place, sized.limits),
    }
}

fn number(amount: Amount) -> (&'static str, f64) {
    match amount {
        Amount::Rate(rate) | Amount::Network(rate) => ("B/s", rate.0),
        Amount::Cores(cores) => ("cores", cores),
        Amount::Size(bytes) => ("B", bytes.0 as f64),
    }
}

fn buffer(sized: &Sized<'_>) -> BufferCapacity {
    let buffer = &sized.sizing.buffer;
    BufferCapacity {
        inflow_bytes_per_second: buffer.inflow.0,
        growth_bytes_per_second: buffer.growth.0,
        needed_bytes: buffer.needed.map(|bytes| bytes.0),
        capacity_bytes: sized.demand.capacity.map(|bytes| bytes.0),
        full_after_s: buffer.full_after.map(Nanos::seconds),
    }
}

fn assumptions(sized: &Sized<'_>) -> Vec<Assumption> {
    let rows = basis(sized).into_iter().map(|row| Assumption {
        what: row.what,
        from: word(&row.from),
        detail: detail(&row.from).to_owned(),
        value: row.value,
    });
    rows.collect()
}

fn simulation(checked: &Checked) -> Simulation {
    let Checked { trial, found, fewer, days } = checked;
    Simulation {
        duration_s: trial.duration.seconds(),
        lost: found.lost,
        grows: found.grows,
        memory_most_bytes: found.memory.0,
        longest_wait_s: found.longest_wait.seconds(),
        servers_busy: found.servers_busy,
        one_fewer_is_overloaded: fewer
            .as_ref()
            .map(nilometer_plan::sizing::simulation::SimulationResult::is_overloaded),
        days: days.map(|(days, ..)| days),
        buffer_most_bytes: days.map(|(_, most, _)| most.0),
        full_after_s: days.and_then(|(_, _, full)| full).map(Nanos::seconds),
    }
}
