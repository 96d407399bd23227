//! One recording of an instrument: what comes, at which pace, who reads it meanwhile.

use std::{borrow::Cow, fmt};

use nilometer_model::{
    ByteRate, Bytes, Capabilities, Capability, Format, Goal, Instrument, Nanos, Phase, Readers, ReadingWay,
    RecordingLayout, Subnet,
};
use serde::{Deserialize, Serialize};

use super::{AppliedSetting, BackgroundLoad, RecordedInstrument, Swept, Volumes};
use crate::plan_table::plan_table;

/// An instrument to be recorded onto a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingRun {
    /// What delivers frames: as it is in the catalogue, but for what the plan says instead.
    pub instrument: Instrument,
    /// What the plan says instead.
    #[serde(default)]
    pub swept: Swept,
    /// So many of it, each with a recorder of its own.
    pub count: u32,
    /// What the recording is to show.
    pub goal: Goal,
    /// How long frames come at the most.
    pub duration: Nanos,
    /// Memory of each ring.
    pub buffer: Bytes,
    /// Older frames are removed when a recording is larger than this.
    pub keep: Bytes,
    /// Instead of that: up to which level the target is filled.
    #[serde(default)]
    pub fill: Option<Fill>,
    /// How often it is measured.
    pub repeats: u32,
    /// Who reads it while it is made.
    pub readers: Readers,
    /// What is recorded at the same time: all cells of a plan with the same number.
    pub company: Option<u32>,
    /// In which state the target is meanwhile; as it is, if none.
    #[serde(default)]
    pub condition: Option<Condition>,
    /// How frames come to the recorder.
    #[serde(default)]
    pub route: Route,
    /// Where they are stored.
    #[serde(default)]
    pub onto: Onto,
    /// How what was recorded in HDF5 is read, once it is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadingWay>,
    /// No more processes than this record it together: as many as its packets can come to, where they do not come as packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorders: Option<u32>,
    /// The network that packets come over, by its addresses; that of each machine's first address if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Subnet>,
    /// What works on the same target meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<BackgroundLoad>>,
    /// Settings outside of the program, which commands of the user's apply around each repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<AppliedSetting>,
    /// Onto each target, and over how many of them at once: one recording each. Onto each alone, if nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volumes>,
}

/// Where a recorder stores frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Onto {
    /// On the target.
    #[default]
    Target,
    /// Nowhere: writes do nothing and always succeed, so that what is left is what the recorder itself costs.
    Nothing,
}

/// How an instrument's frames come to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// They are made where they are recorded from.
    #[default]
    InPlace,
    /// In packets, which the instrument sends over this machine's own network.
    Loopback,
    /// In packets, which the instrument sends from another machine over the network between them.
    Network,
}

impl Route {
    /// In words, as behind a verb.
    pub const fn words(self) -> &'static str {
        match self {
            Route::InPlace => "in place",
            Route::Loopback => "over loopback",
            Route::Network => "over the network",
        }
    }

    /// Over a network, in packets.
    pub const fn has_packets(self) -> bool {
        matches!(self, Route::Loopback | Route::Network)
    }
}

/// How full a target is kept: a buffer of days that always holds the latest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// A share of the space that its files can take, what is there already included: above 0, at most 1.
    pub level: f64,
    /// Of what there is up to that level, the share of each of this cell's recorders.
    pub share: f64,
}

plan_table! {
    /// A state that the user's own commands bring a target into: one element lost, rebuilding, a link down.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    Condition {
        /// What reports call it.
        name: String,
        /// Brings it about, in a shell, with the target's path in `NILOMETER_TARGET`.
        enter: String as "a command",
        /// Takes it back, in the same way. Runs also after a failure and when the campaign is resumed after a kill.
        leave: String as "a command",
        /// How long to wait after `enter`.
        settle: Nanos = Nanos(0),
        /// Either command is ended when it takes longer.
        time_limit: Nanos = Nanos::from_millis(600_000),
    }
}

impl Condition {
    /// Reads a condition's file. `file` is what messages call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let condition: Condition = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        condition.check().map_err(|why| format!("{file}: {why}"))?;
        Ok(condition)
    }

    /// What makes no sense, with what would.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.time_limit.0 == 0 {
            return Err("time_limit is zero: write more, or leave it out".into());
        }
        let Condition { name, enter, leave, .. } = self;
        let mut texts = [("name", name), ("enter", enter), ("leave", leave)].into_iter();
        match texts.find(|(_, value)| value.trim().is_empty()) {
            Some((key, _)) => Err(format!("{key} is empty: write what it says, or what it does")),
            None => Ok(()),
        }
    }
}

impl Fill {
    /// What each recorder may keep on a target with so much usable space, without what is reserved for the system, and this
    /// much of it free.
    pub fn keep(&self, usable: Bytes, free: Bytes) -> Bytes {
        let used = usable.0.saturating_sub(free.0) as f64;
        let room = self.share * (self.level * usable.0 as f64 - used);
        #[expect(clippy::cast_sign_loss, reason = "it is clamped")]
        Bytes(room.clamp(0.0, usable.0 as f64) as u64)
    }
}

/// A recording of fewer frames, or of less time, says nothing of whether frames would be lost.
pub const FRAMES_LEAST: u64 = 20;
/// The least time of a recording.
pub const DURATION_LEAST: Nanos = Nanos::from_millis(100);

/// How often the limit of the storage is looked for, and how long each time at the most.
const LIMIT_REPEATS: u32 = 3;
const LIMIT_DURATION: Nanos = Nanos::from_millis(40_000);
/// What stays of a recording where nothing else is said.
pub const USUAL_KEEP: Bytes = Bytes(2 << 30);

impl RecordingRun {
    /// One recording of one instrument by itself, at its own pace, made in place: 40 s with a buffer of 1 GiB, of which
    /// 2 GiB stay.
    pub fn new(instrument: Instrument) -> Self {
        RecordingRun {
            instrument,
            swept: Swept::default(),
            count: 1,
            goal: Goal::Pace,
            duration: LIMIT_DURATION,
            buffer: Bytes(1 << 30),
            keep: USUAL_KEEP,
            fill: None,
            repeats: 1,
            readers: Readers::default(),
            company: None,
            condition: None,
            route: Route::InPlace,
            onto: Onto::Target,
            read: None,
            recorders: None,
            network: None,
            background: None,
            settings: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// The same as fast as the storage takes frames, which no network is asked for, so often that what it takes in the long
    /// run is known with its interval. Where it was not said what stays, it is as much as is usual.
    #[must_use]
    pub fn at_full_speed(&self, keep_was_said: bool) -> Self {
        RecordingRun {
            goal: Goal::Limit,
            duration: LIMIT_DURATION.min(self.duration),
            repeats: LIMIT_REPEATS,
            route: Route::InPlace,
            recorders: Some(self.most_processes()).filter(|most| *most < u32::MAX),
            keep: if keep_was_said || self.fill.is_some() { self.keep } else { USUAL_KEEP },
            ..self.clone()
        }
    }

    /// What a target must be able to do for it: who reads must find what was written.
    pub fn needs(&self) -> Capabilities {
        let mut needs = Phase::Ingest.needs().to_vec();
        needs.extend(self.background.iter().flat_map(|load| load.needs()));
        let RecordingLayout { storing, format, frames_per_file, .. } = self.instrument.recording;
        // Packets are stored as the storage takes them, see the recording plan.
        if self.instrument.packets.is_none() {
            needs.extend(storing.needs(frames_per_file));
        }
        if !self.readers.none() || self.read.is_some() {
            needs.push(Capability::Keep);
        }
        // The library of HDF5 reads files by their paths.
        if self.read.is_some() || format == Format::Hdf5 {
            needs.extend([Capability::Mounted, Capability::WriteAnywhere]);
        }
        Capabilities::of(&needs)
    }

    /// Under which key the record's environment says how this is stored on a target.
    pub fn layout_key(&self, target: &str) -> String {
        let pace = if self.goal == Goal::Limit { "as fast as it is taken" } else { "at a pace" };
        format!("layout of {} {pace} on {target}", self.who())
    }

    /// Of what it is.
    pub fn recorded_instrument(&self) -> RecordedInstrument {
        RecordedInstrument { name: self.instrument.name.clone(), swept: self.swept, count: self.count }
    }

    /// The instrument and what the plan says of it instead, in words.
    pub fn label(&self) -> String {
        self.recorded_instrument().label()
    }

    /// The same, and how many of it.
    pub fn who(&self) -> String {
        self.recorded_instrument().to_string()
    }

    /// What is recorded of each: its frames, or blocks of its packets.
    pub fn recorded(&self) -> Cow<'_, Instrument> {
        let blocks = if self.route.has_packets() { self.instrument.in_blocks() } else { None };
        blocks.map_or(Cow::Borrowed(&self.instrument), Cow::Owned)
    }

    /// What is to be recorded of all of them: of VDIF and Mark5B with the headers.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.recorded().rate().0 * f64::from(self.count))
    }

    /// Frames that come of each in its time, at the most.
    pub fn frames(&self) -> u64 {
        let recorded = self.recorded();
        self.duration.0.div_ceil(recorded.period().0) + recorded.streams
    }

    /// Bytes of these.
    pub fn all(&self) -> Bytes {
        Bytes(self.frames().saturating_mul(self.recorded().frame_size().0))
    }

    /// The least time that it can be recorded for: a shorter recording would show nothing. Of packets that come over a
    /// network, frames or the blocks that are recorded of them count, whichever are more.
    pub fn least_duration(&self) -> Nanos {
        let period = self.recorded().period().min(self.instrument.period());
        Nanos(FRAMES_LEAST * period.0).max(DURATION_LEAST)
    }

    /// Whether its duration is long enough to show anything; if not, why, with the least that is accepted. `asked` is what
    /// the user wrote.
    pub fn check_duration(&self, asked: &str) -> Result<(), String> {
        let least = self.least_duration();
        if self.duration >= least {
            return Ok(());
        }
        let name = &self.instrument.name;
        Err(format!(
            "{asked}: too short to show whether frames of {name} are lost: write at least {least} ({FRAMES_LEAST} of its \
             frames, and no less than {DURATION_LEAST})"
        ))
    }

    /// How fast frames come, in words.
    pub fn pace(&self) -> String {
        match self.goal {
            Goal::Limit => "as fast as it is taken".into(),
            Goal::Pace => format!("at {}", self.rate()),
            Goal::Search => "at the highest rate without loss".into(),
            Goal::Buffer => format!("at {}, with the smallest buffer without loss", self.rate()),
        }
    }

    /// All of it in phrases that commas go between.
    pub fn phrases(&self) -> Vec<String> {
        let pace = self.pace();
        let mut phrases =
            vec![format!("{} {pace} for {}", self.who(), self.duration), format!("buffer {}", self.buffer)];
        if self.route.has_packets() {
            phrases.push(self.route.words().into());
        }
        if self.onto == Onto::Nothing {
            phrases.push("onto nothing".into());
        }
        if !self.readers.none() {
            phrases.push(self.readers.to_string());
        }
        phrases.extend(self.read.map(|way| format!("read by {way}")));
        phrases.extend(self.company.map(|number| format!("in company {}", number + 1)));
        phrases.extend(self.fill.map(|fill| format!("filled to {:.0} %", 100.0 * fill.level)));
        phrases.extend(self.condition.iter().map(|condition| condition.name.clone()));
        phrases.extend(self.settings.iter().map(AppliedSetting::phrase));
        phrases.extend(self.background.iter().map(ToString::to_string));
        phrases.extend(Volumes::phrase_of_recording(&self.volumes));
        phrases
    }

    /// It is made onto each target by itself.
    pub fn is_onto_each(&self) -> bool {
        self.volumes.is_empty() || self.volumes.contains(&Volumes::Alone)
    }

    /// Over how many of so many targets it is made at once, two at least: a recording each.
    pub fn at_once(&self, targets: usize) -> Vec<usize> {
        let counts = self.volumes.iter().filter(|volumes| **volumes != Volumes::Alone);
        let mut counts: Vec<usize> = counts.filter_map(|volumes| volumes.at_once(targets)).collect();
        counts.retain(|count| *count >= 2);
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The condition that its target is brought into meanwhile, and its settings; empty for as it is.
    pub fn condition_name(&self) -> String {
        let condition = self.condition.iter().map(|condition| condition.name.clone());
        condition.chain(self.settings.iter().map(AppliedSetting::phrase)).collect::<Vec<_>>().join(", ")
    }

    /// What works on its target meanwhile, in words; empty for nothing.
    pub fn load_words(&self) -> String {
        let load = self.background.as_ref().filter(|load| !load.is_none());
        load.map(ToString::to_string).unwrap_or_default()
    }

    /// Rings of each: streams of packets have one each, and share the memory for it.
    pub fn rings(&self) -> u64 {
        if self.route.has_packets() { self.instrument.streams } else { 1 }
    }
}

impl fmt::Display for RecordingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrases().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_filled_up_to_its_level() {
        let fill = |level, share| Fill { level, share }.keep(Bytes(1000), Bytes(700));
        assert_eq!((fill(0.9, 1.0), fill(0.9, 0.25), fill(0.2, 1.0)), (Bytes(600), Bytes(150), Bytes(0)));
    }

    #[test]
    fn a_condition_needs_a_way_in_and_a_way_out() {
        let text = "name = \"one disk lost\"\nenter = \"true\"\nleave = \"false\"\nsettle = \"10 s\"\n";
        let condition = Condition::parse(text, "c.toml").expect("valid");
        assert_eq!((condition.leave.as_str(), condition.settle), ("false", Nanos::from_millis(10_000)));
        assert_eq!(condition.time_limit, Nanos::from_millis(600_000));
        for (from, to, part) in [
            ("\"false\"", "\" \"", "leave is empty"),
            ("leave", "undo", "`leave`"),
            ("settle = \"10 s\"", "time_limit = \"0 s\"", "time_limit is zero"),
            ("name = \"one disk lost\"\n", "", "missing field `name`"),
        ] {
            let error = Condition::parse(&text.replace(from, to), "c.toml").expect_err(to);
            assert!(error.contains(part) && error.contains("c.toml"), "{error}");
        }
    }

    #[test]
    fn a_recording_of_a_few_frames_is_refused_with_the_least_that_is_accepted() {
        let cell = |rate: &str, duration| {
            let text = format!(
                "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\nframe_rate = \"{rate}\"\n"
            );
            RecordingRun {
                duration,
                buffer: Bytes(0),
                keep: Bytes(0),
                ..RecordingRun::new(Instrument::parse(&text, "camera").expect("valid"))
            }
        };
        for (rate, least) in [("5 Hz", 4000), ("50 Hz", 400), ("1 kHz", 100)] {
            let least = Nanos::from_millis(least);
            assert_eq!(cell(rate, least).check_duration("--duration"), Ok(()));
            for short in [Nanos(0), Nanos(least.0 - 1)] {
                let why = cell(rate, short).check_duration("--duration 1 ms").expect_err("too short");
                assert!(
                    why.starts_with("--duration 1 ms: ") && why.contains(&format!("at least {least} ")),
                    "{why}"
                );
            }
        }
    }

    #[test]
    fn the_word_of_a_goal_is_read_again() {
        for goal in Goal::ALL {
            assert_eq!(Goal::from_name(goal.name()), Some(goal));
        }
    }
}
