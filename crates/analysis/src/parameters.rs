//! The differences between the cells of a stage, found in their parameters for any workload.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_plan::{Cell, ImportedRun, Measurement, Siblings};
use serde_json::Value as Json;

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A count.
    Number(f64),
    /// Bytes.
    Size(Bytes),
    /// A time.
    Time(Nanos),
    /// Bytes a second.
    Rate(ByteRate),
    /// A choice.
    Word(String),
}

impl Value {
    /// Its position on an axis, in counts, bytes or nanoseconds; `None` for a choice.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Size(bytes) => Some(bytes.0 as f64),
            Value::Time(time) => Some(time.0 as f64),
            Value::Rate(rate) => Some(rate.0),
            Value::Word(_) => None,
        }
    }

    fn of(json: &Json) -> Value {
        match json {
            Json::Null => Value::Word("default".into()),
            Json::Bool(yes) => Value::Word(if *yes { "yes" } else { "no" }.into()),
            Json::Number(number) => Value::Number(number.as_f64().unwrap_or(0.0)),
            Json::String(text) => Value::of_text(text),
            other => Value::Word(other.to_string().replace(['{', '}', '"'], "").replace([':', '_'], " ")),
        }
    }

    fn of_text(text: &str) -> Value {
        let size = text.parse().map(Value::Size).ok();
        let time = || text.parse().map(Value::Time).ok();
        size.or_else(time).unwrap_or_else(|| Value::Word(text.replace('_', " ")))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Size(bytes) => write!(f, "{bytes}"),
            Value::Time(time) => write!(f, "{time}"),
            Value::Rate(rate) => write!(f, "{rate}"),
            Value::Word(word) => f.write_str(word),
        }
    }
}

/// A cell's parameters by name.
pub type CommonParameters = BTreeMap<String, Value>;

/// The parameters of a cell: its own, those of its workload, and the workload's name. For a recording, the
/// instrument's parameters in the plan, and the instrument's name.
pub fn parameters(cell: &Cell) -> CommonParameters {
    let json = match &cell.measurement {
        Measurement::Workload(run) => serde_json::to_value(run),
        Measurement::Recording(run) => serde_json::to_value(run),
        Measurement::Imported(run) => return of_imported(run),
    };
    let mut found = json.map(|json| by_name(&json)).unwrap_or_default();
    found.extend(at_work(cell).map(|words| (AT_WORK.to_owned(), Value::Word(words))));
    found
}

/// The parameter for active workers, if each worker is also measured alone.
pub(crate) const AT_WORK: &str = "at_work";

fn at_work(cell: &Cell) -> Option<String> {
    let run = cell.as_workload().filter(|run| run.siblings == Some(Siblings::Workers))?;
    Some(match run.lone_worker {
        Some(worker) => format!("worker {} alone", worker + 1),
        None => format!("all {}", run.workers),
    })
}

/// The parameters of the source, and the operation. A parameter without a name has the source's own words for all
/// of them.
fn of_imported(run: &ImportedRun) -> CommonParameters {
    let given = run.parameters.iter().filter(|(_, value)| !value.is_empty());
    let named = given.map(|(name, value)| {
        let name = if name.is_empty() { "parameters" } else { name };
        (name.to_owned(), of_words(value))
    });
    let mut found: CommonParameters = named.collect();
    found.insert("task".into(), Value::Word(run.task.clone()));
    if !run.figure.is_empty() {
        found.insert("figure".into(), Value::Word(run.figure.clone()));
    }
    found
}

/// Parses a value as another program prints it.
pub(crate) fn of_words(text: &str) -> Value {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map_or_else(|| Value::of_text(text), Value::Number)
}

fn by_name(run: &Json) -> CommonParameters {
    let mut found = CommonParameters::new();
    for (name, value) in run.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("workload", Json::Object(workload)) => found.extend(of_workload(workload)),
            ("offered", Json::Object(offered)) => found.extend(of_offered("", offered)),
            ("background", Json::Object(load)) => found.extend(of_background(load)),
            ("settings", Json::Array(settings)) => found.extend(settings.iter().filter_map(of_setting)),
            ("instrument", Json::Object(instrument)) => {
                found.extend(instrument.get("name").map(|value| (name.clone(), Value::of(value))));
            }
            ("swept", Json::Object(swept)) => {
                let said = swept.iter().filter(|(_, value)| !value.is_null());
                found.extend(said.map(|(name, value)| (name.clone(), Value::of(value))));
            }
            (_, value) => drop(found.insert(name.clone(), Value::of(value))),
        }
    }
    found
}

/// The rates that a workload is held to.
fn of_offered(before: &str, offered: &serde_json::Map<String, Json>) -> CommonParameters {
    let rates = offered.iter().map(|(name, value)| {
        let rate = value.as_str().and_then(|text| text.parse().ok()).map(Value::Rate);
        (format!("{before}{name}"), rate.unwrap_or_else(|| Value::of(value)))
    });
    rates.collect()
}

/// The load beside a cell, as parameters with a common prefix. Without a load, its rate is none.
fn of_background(load: &serde_json::Map<String, Json>) -> CommonParameters {
    let mut found = CommonParameters::new();
    let is_none = load.get("workers").and_then(Json::as_u64) == Some(0);
    let none = [("rate".to_owned(), Value::Rate(ByteRate(0.0)))];
    let offered = load.get("offered").and_then(Json::as_object);
    let offered = offered.map(|offered| of_offered("", offered)).unwrap_or_default();
    found.extend(offered.into_iter().chain(none.into_iter().filter(|_| is_none)));
    let recording = load.get("recording").and_then(Json::as_object);
    let count = if recording.is_some() { "count" } else { "workers" };
    found.extend(load.get("workers").map(|workers| (count.to_owned(), Value::of(workers))));
    found.extend(recording.into_iter().flat_map(of_recording_beside));
    found.extend(load.get("workload").and_then(Json::as_object).into_iter().flat_map(of_workload));
    let named = found.into_iter().map(|(name, value)| (format!("{BESIDE}{name}"), value));
    named.collect()
}

/// The parameters in the plan of an instrument that is a load.
fn of_recording_beside(run: &serde_json::Map<String, Json>) -> CommonParameters {
    let said = |name: &String| ["instrument", "swept", "buffer"].contains(&name.as_str());
    let told = run.iter().filter(|(name, _)| said(name)).map(|(name, value)| (name.clone(), value.clone()));
    by_name(&Json::Object(told.collect()))
}

/// The prefix of a load's parameters.
pub(crate) const BESIDE: &str = "background_";

/// The name and value of a setting outside of the program: a number, if it is one.
fn of_setting(setting: &Json) -> Option<(String, Value)> {
    let text = setting.get("value")?.as_str()?;
    let value = text.parse().map_or_else(|_| Value::of_text(text), Value::Number);
    Some((setting.get("name")?.as_str()?.to_owned(), value))
}

fn of_workload(workload: &serde_json::Map<String, Json>) -> CommonParameters {
    let mut found = CommonParameters::new();
    for (name, fields) in workload {
        found.insert("workload".into(), Value::Word(name.replace('_', " ")));
        let fields = fields.as_object().into_iter().flatten();
        found.extend(
            fields.map(|(name, value)| (name.clone(), of_census(value).unwrap_or_else(|| Value::of(value)))),
        );
    }
    found
}

/// The path and the hash of the census that a tree resembles, without its counts.
fn of_census(value: &Json) -> Option<Value> {
    let text = |key: &str| value.get(key).and_then(Json::as_str);
    let [path, hash] = [text("path")?, text("sha256")?];
    Some(Value::Word(format!("{path} {}", hash.get(..12).unwrap_or(hash))))
}

/// The parameters that vary among cells, and the one for the axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Varying {
    /// The numeric parameter with the most values, if it has at least three.
    pub axis: Option<String>,
    /// The others that vary independently.
    pub others: Vec<String>,
}

impl Varying {
    /// All names, the axis first.
    pub(crate) fn names(&self) -> Vec<&String> {
        self.axis.iter().chain(&self.others).collect()
    }
}

/// Fewer points than this make no curve.
const CURVE_LEAST: usize = 3;

/// The varying parameters of cells, without those that follow from others.
pub(crate) fn varying(cells: &[CommonParameters]) -> Varying {
    let mut names: Vec<(&String, Vec<String>, bool)> = Vec::new();
    for name in cells.first().into_iter().flat_map(BTreeMap::keys) {
        let values: Option<Vec<&Value>> = cells.iter().map(|cell| cell.get(name)).collect();
        let Some(values) = values else { continue };
        let numeric = values.iter().all(|value| value.number().is_some());
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        if distinct(&values) > 1 {
            names.push((name, values, numeric));
        }
    }
    // Numbers first, then choices, each by the number of values; parameters that follow from earlier ones add
    // nothing.
    names.sort_by_key(|(_, values, numeric)| std::cmp::Reverse((*numeric, distinct(values))));
    let mut found = Varying::default();
    let mut known = vec![String::new(); cells.len()];
    for (name, values, numeric) in names {
        let both: Vec<String> = known.iter().zip(&values).map(|(a, b)| format!("{a}\n{b}")).collect();
        if distinct(&both) == distinct(&known) {
            continue;
        }
        if found.axis.is_none() && numeric && distinct(&values) >= CURVE_LEAST {
            found.axis = Some(name.clone());
        } else {
            found.others.push(name.clone());
        }
        known = both;
    }
    found.others.sort();
    found
}

fn distinct(values: &[String]) -> usize {
    let mut values: Vec<&String> = values.iter().collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// `block size 64 KiB, workers 2`: some parameters of a cell in words.
pub(crate) fn words<'a>(cell: &CommonParameters, names: impl Iterator<Item = &'a String>) -> String {
    let word = |name: &'a String| cell.get(name).map(|value| named(name, value));
    names.filter_map(word).collect::<Vec<_>>().join(", ")
}

/// `block size 64 KiB`.
fn named(name: &str, value: &Value) -> String {
    if UNNAMED.contains(&name) { value.to_string() } else { format!("{} {value}", plain(name)) }
}

/// Parameters shown without their names: a source's own words.
const UNNAMED: [&str; 4] = ["parameters", "task", "figure", AT_WORK];

/// A parameter's name for readers.
pub(crate) fn plain(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(text: &str) -> Vec<CommonParameters> {
        let text = format!("title = \"t\"\n[[stage]]\nname = \"s\"\n{text}");
        let cells = nilometer_plan::parse(&text, "t.toml", 1.0).expect("a valid plan").cells;
        cells.iter().map(parameters).collect()
    }

    const STREAM: &str =
        "workers = [1, 2]\n[stage.workload.stream]\naccess = \"direct\"\nfile_size = \"4 MiB\"\n";

    #[test]
    fn the_parameter_with_the_most_numbers_is_the_axis() {
        let cells = stage(&format!("{STREAM}block_size = [\"4 KiB\", \"64 KiB\", \"1 MiB\"]"));
        let varying = varying(&cells);
        assert_eq!(varying.axis.as_deref(), Some("block_size"));
        assert_eq!(varying.others, ["workers"]);
        assert_eq!(words(&cells[2], ["block_size".to_owned()].iter()), "block size 64 KiB");
        assert_eq!(cells[0]["workload"], Value::Word("stream".into()));
    }

    #[test]
    fn two_values_are_no_curve_and_choices_no_axis() {
        let cells = stage(&format!("{STREAM}block_size = \"1 MiB\"\nsync = [\"none\", {{ every = 2 }}]"));
        let varying = varying(&cells);
        assert_eq!((varying.axis.as_deref(), varying.others.len()), (None, 2), "{varying:?}");
        assert_eq!(cells[2]["sync"], Value::Word("every 2".into()));
    }

    #[test]
    fn what_follows_from_another_does_not_vary() {
        let cell = |size: u64, also: &str| {
            by_name(&serde_json::json!({"workers": size, "volumes": also, "depth": 2 * size}))
        };
        let varying = varying(&[cell(1, "alone"), cell(2, "alone"), cell(4, "together")]);
        assert_eq!((varying.axis.as_deref(), varying.others.len()), (Some("depth"), 0), "{varying:?}");
        assert_eq!(by_name(&Json::Null), CommonParameters::new());
        assert_eq!(super::varying(&[]), Varying::default());
    }
}
