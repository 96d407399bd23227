//! Copies from a target to other storage beside users, in words and for programs.

use nilometer_analysis::{
    CopiedTreeRate, CopyLevel, Migration, MoveAmount, MoveForecast, Quantity,
    effect::{Answer, Effect},
    letter,
};
use nilometer_model::{ByteRate, Nanos, Phase, statistics::Summary};
use serde::Serialize;

use super::words;

/// The headings of the columns.
pub(super) const COLUMNS: [&str; 5] = ["copy", "of", "rate", "files", "users"];

/// `ls -lR on A, walk`, or `copy alone on A` if nobody works.
pub(super) fn heading(migration: &Migration) -> String {
    let Migration { stage, phase, target, .. } = migration;
    let on = letter(*target);
    if *phase == Phase::Wait {
        format!("{stage}, on {on}")
    } else {
        format!("{stage}, {} on {on}", phase.name())
    }
}

/// A row for each tree of a level, with texts in the order of [`COLUMNS`]. A change of the users' rate below `margin`
/// percent does not count.
pub(super) fn rows(level: &CopyLevel, margin: f64) -> impl Iterator<Item = [String; 5]> {
    level.trees.iter().map(move |tree| {
        let figure = |quantity: Quantity, of: &Summary| {
            format!("{} {}", quantity.show(of.mean).trim_end(), words::interval(of)).trim_end().to_owned()
        };
        [
            level.load.clone(),
            tree.tree.clone(),
            figure(Quantity::Bytes, &tree.bytes),
            figure(Quantity::Operations, &tree.files),
            tree.users.as_ref().map_or_else(|| words::NONE.into(), |users| cost_words(users, margin)),
        ]
    })
}

/// True if some level has an effect of the copy on users.
pub(super) fn has_users(migration: &Migration) -> bool {
    migration.levels.iter().flat_map(|level| &level.trees).any(|tree| tree.users.is_some())
}

fn cost_words(users: &Effect, margin: f64) -> String {
    match users.answer(margin) {
        Answer::Undecided => "not decided".into(),
        Answer::Alike => format!("within {margin} %"),
        Answer::Faster | Answer::Slower => users.change_words(),
    }
}

/// The forecast of each level.
pub(super) fn forecasts(migration: &Migration) -> Vec<String> {
    migration.levels.iter().map(|level| forecast_words(level, migration.amount)).collect()
}

fn forecast_words(level: &CopyLevel, amount: MoveAmount) -> String {
    let load = &level.load;
    match &level.forecast {
        Some(forecast) => format!("{load}: {} take {}", amount_words(amount), time_words(forecast)),
        None => format!("{load}: no forecast, since no repeat is valid"),
    }
}

/// `340 TB in 100000000 files`, or `1 TB of such files`.
fn amount_words(amount: MoveAmount) -> String {
    match amount.files {
        Some(files) => format!("{} in {files} files", amount.bytes),
        None => format!("{} of such files", amount.bytes),
    }
}

/// `78.7 days (78.1 to 79.3 days): 100 us a file, and 100 MB/s`.
fn time_words(forecast: &MoveForecast) -> String {
    let time = |seconds: f64| Nanos::from_seconds(seconds.min(LONGEST)).to_string();
    let (least, greatest) = forecast.expected;
    let [least, greatest] = [least, greatest].map(time);
    let expected = if least == greatest { least } else { format!("{least} to {greatest}") };
    let interval = forecast.interval.map(|(low, high)| match low {
        0.0 => format!(" (up to {})", time(high)),
        _ => format!(" ({} to {})", time(low), time(high)),
    });
    let costs = forecast.costs.map(|costs| {
        let rate = if costs.per_byte > 0.0 {
            format!("{}", ByteRate(costs.per_byte.recip()))
        } else {
            "no time for bytes".into()
        };
        format!(": {} a file, and {rate}", Nanos::from_seconds(costs.per_file))
    });
    format!("{expected}{}{}", interval.unwrap_or_default(), costs.unwrap_or_default())
}

/// A hundred years, in seconds: longer moves are shown as this one.
const LONGEST: f64 = 100.0 * 365.25 * 86_400.0;

/// The same for programs.
#[derive(Serialize)]
pub(super) struct MigrationTold<'a> {
    target: String,
    stage: &'a str,
    /// The work of the users; `wait` if nobody works.
    phase: &'static str,
    amount_bytes: u64,
    /// Null if the files are as large as those of the copied trees.
    amount_files: Option<u64>,
    levels: Vec<CopyLevelTold<'a>>,
    cautions: &'a [String],
}

#[derive(Serialize)]
struct CopyLevelTold<'a> {
    load: &'a str,
    trees: Vec<CopiedTreeTold<'a>>,
    /// The least and the greatest estimate; null without a valid repeat.
    forecast_least_s: Option<f64>,
    forecast_greatest_s: Option<f64>,
    /// The interval around both; null with one repeat.
    forecast_low_s: Option<f64>,
    forecast_high_s: Option<f64>,
    /// Null if the trees do not tell the time of a file from that of its bytes.
    file_s: Option<f64>,
    byte_s: Option<f64>,
}

#[derive(Serialize)]
struct CopiedTreeTold<'a> {
    tree: &'a str,
    bytes_per_second: f64,
    files_per_second: f64,
    /// The users' rate beside the copy as a share of their rate alone; null without pairs.
    users_ratio: Option<f64>,
    users_ratio_low: Option<f64>,
    users_ratio_high: Option<f64>,
}

pub(super) fn migration_told(migration: &Migration) -> MigrationTold<'_> {
    MigrationTold {
        target: letter(migration.target),
        stage: &migration.stage,
        phase: migration.phase.name(),
        amount_bytes: migration.amount.bytes.0,
        amount_files: migration.amount.files,
        levels: migration.levels.iter().map(level_told).collect(),
        cautions: &migration.cautions,
    }
}

fn level_told(level: &CopyLevel) -> CopyLevelTold<'_> {
    let forecast = level.forecast;
    let interval = forecast.and_then(|forecast| forecast.interval);
    let costs = forecast.and_then(|forecast| forecast.costs);
    CopyLevelTold {
        load: &level.load,
        trees: level.trees.iter().map(tree_told).collect(),
        forecast_least_s: forecast.map(|forecast| forecast.expected.0),
        forecast_greatest_s: forecast.map(|forecast| forecast.expected.1),
        forecast_low_s: interval.map(|(low, _)| low),
        forecast_high_s: interval.map(|(_, high)| high),
        file_s: costs.map(|costs| costs.per_file),
        byte_s: costs.map(|costs| costs.per_byte),
    }
}

fn tree_told(tree: &CopiedTreeRate) -> CopiedTreeTold<'_> {
    let end =
        |of: fn(&Effect) -> f64| tree.users.as_ref().map(of).map(f64::exp).filter(|end| end.is_finite());
    CopiedTreeTold {
        tree: &tree.tree,
        bytes_per_second: tree.bytes.mean,
        files_per_second: tree.files.mean,
        users_ratio: end(|effect| effect.log_ratio),
        users_ratio_low: end(|effect| effect.low),
        users_ratio_high: end(|effect| effect.high),
    }
}
