//! Instructions to repeat a campaign and to read its figures.

use nilometer_plan::Results;

use crate::{
    document::{Block, Heading, Section, Sentence},
    words,
};

/// Longer plans stay on one line.
const PRETTY_MOST: usize = 100_000;

const BY_HAND: &str = "nilometer report RECORD --format csv\nsqlite3 RECORD \"SELECT path, stage, name, phase, \
                       avg(megabytes_per_second) FROM rate WHERE invalid IS NULL GROUP BY 1, 2, 3, 4\"";

pub(crate) fn repeat(results: &Results) -> Vec<Section> {
    let mut blocks: Vec<Block> =
        words::fact(results, "command").into_iter().map(|command| Block::Code(command.to_owned())).collect();
    let seed = results.campaign.as_ref().map(|campaign| campaign.plan.seed);
    let seed = seed.map(|seed| format!(" The seed of all random decisions was {seed}.")).unwrap_or_default();
    let how = if results.is_imported() { "Imported with" } else { "Measured with" };
    blocks.push(Block::plain(format!(
        "{how} nilometer {}.{seed} The record is an SQLite file, which holds every sample:",
        results.version
    )));
    blocks.push(Block::Code(BY_HAND.to_owned()));
    blocks.extend(results.campaign.as_ref().map(|campaign| {
        let mut text = serde_json::to_string_pretty(campaign).unwrap_or_default();
        if text.len() > PRETTY_MOST {
            text = serde_json::to_string(campaign).unwrap_or_default();
        }
        Block::closed("The resolved plan", vec![Block::Code(text)])
    }));
    let section = Section::new(Heading::of("How to repeat it"), blocks).at("repeat", "how to repeat it");
    let method = if results.is_imported() { sentences(&IMPORTED_METHOD) } else { sentences(&METHOD) };
    let reading = Section::new(Heading::of("How to read it"), vec![Block::List(method)]);
    vec![section, reading]
}

/// Makes sentences from pairs of a word and its meaning.
fn sentences(method: &[(&str, &str)]) -> Vec<Sentence> {
    method.iter().map(|(word, meaning)| Sentence::new(*meaning).led(*word)).collect()
}

/// The method of imported figures, whose measurement is unknown.
const IMPORTED_METHOD: [(&str, &str); 4] = [
    (
        "Figures",
        "come from another program or a publication, which do not show whether a write was durable, a read \
         cold or the machine idle.",
    ),
    (
        "±",
        "half the 95 % interval of the mean over runs (Student's t); a repeat is a run. Dots are the runs, whiskers the intervals.",
    ),
    (
        "Comparisons",
        "form no pairs, as runs of different targets are unrelated: they use Welch's method on the \
         logarithms, with the spread of the runs of each. A single run of each decides nothing.",
    ),
    ("Times", "stand for tasks, and for operations slower than one a second, on all targets of a phase."),
];

const METHOD: [(&str, &str); 6] = [
    (
        "±",
        "half the 95 % interval of the mean over repeats (Student's t). A repeat is the unit: workers and operations within one \
         are not independent. Dots are the repeats, bands and whiskers the intervals.",
    ),
    (
        "Writes and reads",
        "a write is done when it is durable, unless its cell is never synced, or the target is memory. A \
         read is cold: Nilometer drops the cache before and inspects it, so that coldness is proved, \
         contradicted or not provable here.",
    ),
    (
        "INVALID",
        "marks a figure that you must not use, with the reason; such repeats are in no mean and no \
         comparison.",
    ),
    (
        "Comparisons",
        "use the ratio of two targets in the same round, so that a common drift cancels. A round counts \
         once, because its cells share the same minutes: Student's t over the means of rounds decides a \
         stage. A cell's own rounds decide it, with a spread estimated from the other cells too. Each has a \
         95 % level of its own.",
    ),
    (
        "Cores",
        "processors kept busy: by the program, by file system services in this machine, and by the whole \
         machine above its idle level.",
    ),
    (
        "Real, user, system, wait",
        "means over repeats, as the shell's `time` shows them; wait is the rest: real times workers, less \
         user and system.",
    ),
];
