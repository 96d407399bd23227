//! The compared storage as a table, like the feature tables of studies: the kind, layout and features of each
//! target. Also the differences between targets that change the meaning of their figures.

use nilometer_model::{FeatureBasis, StorageFeature, TargetDescription, option_meanings};
use nilometer_plan::Results;

use crate::letter;

/// A row of the table: its name, and an answer for each target, empty if unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixRow {
    /// The row's name.
    pub name: String,
    /// An answer for each target.
    pub answers: Vec<MatrixAnswer>,
}

/// The answer for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixAnswer {
    /// In words; empty if unknown.
    pub words: String,
    /// The basis of an answer that was not tested; `None` if the mount showed it.
    pub basis: Option<FeatureBasis>,
    /// The file that states it; `None` for an answer without a source.
    pub source: Option<String>,
}

/// The table, and the sentences below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageMatrix {
    /// The letters and paths of the targets.
    pub targets: Vec<(String, String)>,
    /// The rows with at least one answer.
    pub rows: Vec<MatrixRow>,
    /// The differences in configuration, each a sentence without its end.
    pub differences: Vec<String>,
}

impl StorageMatrix {
    /// The table of all targets with a description in the record; a group of targets counts as each of its
    /// members.
    pub fn of(results: &Results) -> Self {
        let described = results.targets.iter().enumerate().filter_map(|(index, target)| {
            let description =
                target.description.as_ref().filter(|on| on.is_on_storage() && !on.is_joined())?;
            Some((letter(index), description))
        });
        let (letters, described): (Vec<String>, Vec<&TargetDescription>) = described.unzip();
        let paths = described.iter().map(|description| description.address.to_string());
        let mut rows: Vec<MatrixRow> = PROPERTIES
            .iter()
            .map(|(name, words)| row(name, &described, |description| plain(words(description))))
            .collect();
        for feature in StorageFeature::ALL {
            rows.push(row(feature.name(), &described, |description| offered(description, *feature)));
        }
        rows.retain(|row| row.answers.iter().any(|answer| !answer.words.is_empty()));
        let differences = differences(&letters, &described);
        StorageMatrix { targets: letters.into_iter().zip(paths).collect(), rows, differences }
    }
}

/// A property of a target, with its name.
type Property = (&'static str, fn(&TargetDescription) -> String);

/// Properties of a target, before its features.
const PROPERTIES: [Property; 12] = [
    ("file system", recognised),
    ("version", |description| fact(description, "version")),
    ("servers", |description| fact(description, "servers")),
    ("devices", devices),
    ("volume", |description| fact(description, "volume")),
    ("shared path", |description| fact(description, "shared path")),
    ("engine of recordings", engine),
    ("layout", |description| {
        description.profile.layout.as_ref().map(ToString::to_string).unwrap_or_default()
    }),
    ("redundancy", |description| description.profile.redundancy.clone().unwrap_or_default()),
    ("client cache", |description| fact(description, "client cache")),
    ("size", |description| description.space.size.to_string()),
    ("options that change figures", changed_by_options),
];

/// Properties that must be alike for figures to be comparable.
const COMPARED: [Property; 5] = [
    ("redundancy", redundancy),
    ("layout of files", stripes),
    ("waiting for storage", |description| {
        one_of(description, &["sync", "noac"], "at every write", "on request")
    }),
    ("flushing of disk caches", |description| {
        one_of_local(description, &["nobarrier", "barrier=0", "barrier=none"], "off", "on")
    }),
    ("journal of data", |description| one_of_local(description, &["data=journal"], "yes", "no")),
];

fn row(
    name: &str,
    described: &[&TargetDescription],
    answer: impl Fn(&TargetDescription) -> MatrixAnswer,
) -> MatrixRow {
    MatrixRow {
        name: name.into(),
        answers: described.iter().map(|description| answer(description)).collect(),
    }
}

fn plain(words: String) -> MatrixAnswer {
    MatrixAnswer { words, ..MatrixAnswer::default() }
}

fn offered(description: &TargetDescription, feature: StorageFeature) -> MatrixAnswer {
    let finding = description.profile.finding(feature);
    finding.map_or_else(MatrixAnswer::default, |finding| MatrixAnswer {
        words: finding.answer.clone(),
        basis: Some(finding.basis).filter(|basis| *basis != FeatureBasis::Measured),
        source: finding.source.clone(),
    })
}

fn recognised(description: &TargetDescription) -> String {
    let kind = description.profile.kind.name();
    let called = description.file_system.as_str();
    if kind == called || kind == "unknown" { called.into() } else { format!("{kind} ({called})") }
}

fn fact(description: &TargetDescription, name: &str) -> String {
    let found = description.facts.iter().filter(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("; ")
}

/// The engine that a trial on the storage chose, with its figures; empty without a trial.
fn engine(description: &TargetDescription) -> String {
    let trial = description.profile.engines.as_ref();
    trial.map(|trial| format!("{}: {trial}", trial.suited().name())).unwrap_or_default()
}

fn devices(description: &TargetDescription) -> String {
    let layers: Vec<_> = description.profile.layers.iter().map(ToString::to_string).collect();
    layers.join(" + ")
}

fn changed_by_options(description: &TargetDescription) -> String {
    let meanings = option_meanings(description.profile.kind, &description.options);
    let words: Vec<_> =
        meanings.into_iter().map(|(option, meaning)| format!("{option}: {meaning}")).collect();
    words.join("; ")
}

fn stripes(description: &TargetDescription) -> String {
    let layout = description.profile.layout.clone().unwrap_or_default();
    match (layout.stripe_count, layout.stripe_size) {
        (Some(count), Some(size)) => format!("{count} x {size}"),
        (Some(count), None) => format!("over {count}"),
        _ => String::new(),
    }
}

/// Without redundancy, the number of devices does not matter.
fn redundancy(description: &TargetDescription) -> String {
    let said = description.profile.redundancy.clone().unwrap_or_default();
    if said.starts_with("none") { "none known".into() } else { said }
}

fn one_of(description: &TargetDescription, options: &[&str], yes: &str, no: &str) -> String {
    let is_set = description.options.split(',').any(|option| options.contains(&option));
    (if is_set { yes } else { no }).to_owned()
}

/// The answer is unknown for a server's behaviour without a mount option.
fn one_of_local(description: &TargetDescription, options: &[&str], yes: &str, no: &str) -> String {
    let is_known = description.profile.kind.is_certainly_local();
    one_of(description, options, yes, if is_known { no } else { "" })
}

/// A sentence, without its end, for each property in which targets differ: `not configured alike: redundancy is 2
/// copies on A, and none on B`. Targets with an unknown property are not mentioned.
fn differences(letters: &[String], described: &[&TargetDescription]) -> Vec<String> {
    COMPARED.iter().filter_map(|(name, words)| difference(name, *words, letters, described)).collect()
}

fn difference(
    name: &str,
    words: fn(&TargetDescription) -> String,
    letters: &[String],
    described: &[&TargetDescription],
) -> Option<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (letter, description) in letters.iter().zip(described) {
        let answer = words(description);
        match groups.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, on)) => on.push(letter),
            None if answer.is_empty() => {}
            None => groups.push((answer, vec![letter])),
        }
    }
    let parts = groups.iter().map(|(answer, on)| format!("{answer} on {}", on.join(", ")));
    let parts: Vec<String> = parts.collect();
    (parts.len() > 1).then(|| format!("not configured alike: {name} is {}", parts.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::described;
    use nilometer_model::{
        Bytes, EngineTrial, FeatureFinding, FileSystemKind, Nanos, StripeLayout, TriedEngine,
        published_features,
    };
    use nilometer_plan::TargetEntry;

    fn moosefs(path: &str, copies: u32) -> TargetDescription {
        let mut made = described(path);
        made.file_system = "fuse".into();
        made.source = "mfs#10.0.0.1:9421".into();
        made.profile.kind = FileSystemKind::MooseFs;
        made.profile.redundancy =
            Some(StripeLayout { replicas: Some(copies), ..StripeLayout::default() }.to_string());
        made.profile.features = published_features(FileSystemKind::MooseFs);
        let refused = Err("Operation not supported".to_owned());
        made.profile.features.push(FeatureFinding::measured(StorageFeature::Preallocation, refused));
        made.facts = vec![("version".into(), "client 3.0.117".into())];
        made.profile.engines = Some(EngineTrial {
            round: Bytes(1 << 20),
            io_uring: TriedEngine::Failed("EIO".into()),
            pool: TriedEngine::Wrote { rounds: 5, fastest: Nanos::from_millis(10) },
        });
        made
    }

    fn results(descriptions: Vec<TargetDescription>) -> Results {
        let entry = |description: TargetDescription| TargetEntry {
            path: description.address.to_string(),
            description: Some(description),
            ..TargetEntry::default()
        };
        Results { targets: descriptions.into_iter().map(entry).collect(), ..Results::default() }
    }

    #[test]
    fn each_cell_says_what_and_whether_it_was_tried() {
        let matrix = StorageMatrix::of(&results(vec![moosefs("/a", 2), described("/b")]));
        assert_eq!(matrix.targets, [("A".to_owned(), "/a".to_owned()), ("B".to_owned(), "/b".to_owned())]);
        let row = |name: &str| matrix.rows.iter().find(|row| row.name == name).expect(name).answers.clone();
        assert_eq!(row("file system")[0].words, "moosefs (fuse)");
        assert_eq!(
            row("striping of a file")[0],
            MatrixAnswer {
                words: "chunks of 64 MiB".into(),
                basis: Some(FeatureBasis::Published),
                source: None,
            }
        );
        let licence = MatrixAnswer {
            words: "GPL-2.0".into(),
            basis: Some(FeatureBasis::Published),
            source: Some("moosefs/moosefs, README.md".into()),
        };
        assert_eq!(row("licence")[0], licence);
        assert_eq!(row("support")[0].basis, Some(FeatureBasis::Unsourced));
        let refused = plain("no: Operation not supported".into());
        assert_eq!(
            row("engine of recordings"),
            [plain("pool: io_uring failed: EIO, pool 105 MB/s in a trial".into()), MatrixAnswer::default()]
        );
        assert_eq!(row("fallocate"), [refused, MatrixAnswer::default()]);
        assert!(matrix.rows.iter().all(|row| row.name != "layout"), "nothing is known of it");
    }

    #[test]
    fn what_is_not_alike_is_said_and_what_is_alike_is_not() {
        let alike = StorageMatrix::of(&results(vec![moosefs("/a", 2), moosefs("/b", 2)]));
        assert_eq!(alike.differences, Vec::<String>::new());
        let mut third = moosefs("/c", 2);
        third.options = "rw,sync".into();
        let matrix = StorageMatrix::of(&results(vec![moosefs("/a", 2), moosefs("/b", 1), third]));
        let expected = [
            "not configured alike: redundancy is 2 copies on A, C, and 1 copy on B",
            "not configured alike: waiting for storage is on request on A, B, and at every write on C",
        ];
        assert_eq!(matrix.differences, expected);
        assert_eq!(StorageMatrix::of(&Results::default()), StorageMatrix::default());
    }
}
