//! One recording of an instrument: its frames, their pace, and the readers meanwhile.

use std::{borrow::Cow, fmt};

use nilometer_model::{
    ByteRate, Bytes, Capabilities, Capability, Format, Goal, Instrument, Nanos, Phase, Readers, ReadingWay,
    RecordingLayout, Subnet, read_toml,
};
use serde::{Deserialize, Serialize};

use super::{AppliedSetting, BackgroundLoad, InstrumentTurn, RecordedInstrument, Swept, Volumes};
use crate::plan_table::plan_table;

/// An instrument to be recorded onto a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingRun {
    /// The instrument that delivers frames, with the plan's changes.
    pub instrument: Instrument,
    /// The plan's changes to the instrument of the catalogue.
    #[serde(default)]
    pub swept: Swept,
    /// Number of such instruments, each with its own recorder.
    pub count: u32,
    /// The question that the recording answers.
    pub goal: Goal,
    /// The longest time in which frames arrive.
    pub duration: Nanos,
    /// Memory of each ring.
    pub buffer: Bytes,
    /// Older frames are removed when a recording is larger than this.
    pub keep: Bytes,
    /// In place of `keep`: the level up to which the target is filled.
    #[serde(default)]
    pub fill: Option<Fill>,
    /// The number of repeats.
    pub repeats: u32,
    /// The readers during the recording.
    pub readers: Readers,
    /// The recordings at the same time: all cells of a plan with the same number.
    pub company: Option<u32>,
    /// The state of the target during the recording; `None` leaves it as it is.
    #[serde(default)]
    pub condition: Option<Condition>,
    /// The route of frames to the recorder.
    #[serde(default)]
    pub route: Route,
    /// The destination of frames.
    #[serde(default)]
    pub onto: Onto,
    /// The way to read an HDF5 recording afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadingWay>,
    /// The most processes that record it together. A recording at full speed has no packets, and takes this
    /// from the places that its packets can go to. `None` means no further limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorders: Option<u32>,
    /// The frames of this part, if several processes take an instrument's frames in turn. `None` if this process
    /// takes all frames of its streams.
    #[serde(skip)]
    pub turn: Option<InstrumentTurn>,
    /// The network of packets, by its addresses; `None` means that of each machine's first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Subnet>,
    /// The background load on the same target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<BackgroundLoad>>,
    /// Settings outside of the program, which the user's commands apply around each repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<AppliedSetting>,
    /// The recordings: onto each target, and one over several at once for each of these counts. Empty means
    /// onto each alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volumes>,
}

/// The destination of a recorder's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Onto {
    /// On the target.
    #[default]
    Target,
    /// Nowhere: writes do nothing and always succeed. The rest is the cost of the recorder itself.
    Nothing,
}

/// The route of an instrument's frames to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// The recorder's process makes the frames in its memory.
    #[default]
    InPlace,
    /// In packets that the instrument sends over this machine's own network.
    Loopback,
    /// In packets that the instrument sends from another machine over the network.
    Network,
}

impl Route {
    /// A description in words, to follow a verb.
    pub const fn words(self) -> &'static str {
        match self {
            Route::InPlace => "in place",
            Route::Loopback => "over loopback",
            Route::Network => "over the network",
        }
    }

    /// True if frames come over a network, in packets.
    pub const fn has_packets(self) -> bool {
        matches!(self, Route::Loopback | Route::Network)
    }
}

/// The level up to which a target is kept full: a buffer of days that always holds the latest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// The share of the usable space that files may take, including those already there: above 0, at most 1.
    pub level: f64,
    /// The share of each of this cell's recorders in the space up to that level.
    pub share: f64,
}

plan_table! {
    /// A state that the user's own commands bring a target into: one element lost, rebuilding, a link down.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    Condition {
        /// The condition's name in reports.
        name: String,
        /// Start the condition with this command. A shell runs it, with the target's path in
        /// `NILOMETER_TARGET`.
        enter: String as "a command",
        /// End the condition with this command, in the same way. It also runs after a failure, and at
        /// `--resume` after a kill.
        leave: String as "a command",
        /// Wait for this time after `enter`.
        settle: Nanos = Nanos(0),
        /// End either command if it takes longer.
        time_limit: Nanos = Nanos::from_millis(600_000),
    }
}

impl Condition {
    /// Reads a condition's file. Messages call it `file`.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let condition: Condition = read_toml(text).map_err(|error| format!("{file}: {error}"))?;
        condition.check().map_err(|why| format!("{file}: {why}"))?;
        Ok(condition)
    }

    /// Refuses values that make no sense; the message says how to correct them.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.time_limit.0 == 0 {
            return Err("time_limit is zero: write more, or leave it out".into());
        }
        let Condition { name, enter, leave, .. } = self;
        let mut texts = [("name", name), ("enter", enter), ("leave", leave)].into_iter();
        match texts.find(|(_, value)| value.trim().is_empty()) {
            Some((key, _)) => Err(format!("{key} is empty: write a name, or a command")),
            None => Ok(()),
        }
    }
}

impl Fill {
    /// Bytes that each recorder may keep on a target, given its usable space (without the part reserved for
    /// the system) and its free space.
    pub fn keep(&self, usable: Bytes, free: Bytes) -> Bytes {
        let used = usable.0.saturating_sub(free.0) as f64;
        let room = self.share * (self.level * usable.0 as f64 - used);
        #[expect(clippy::cast_sign_loss, reason = "it is clamped")]
        Bytes(room.clamp(0.0, usable.0 as f64) as u64)
    }
}

/// The least frames of a recording: a shorter one can't show losses.
pub const FRAMES_LEAST: u64 = 20;
/// The least time of a recording.
pub const DURATION_LEAST: Nanos = Nanos::from_millis(100);

/// Number of recordings that find the limit of the storage, and the longest duration of each.
const LIMIT_REPEATS: u32 = 3;
const LIMIT_DURATION: Nanos = Nanos::from_millis(40_000);
/// The space that a recording keeps by default.
pub const USUAL_KEEP: Bytes = Bytes(2 << 30);

impl RecordingRun {
    /// One recording of one instrument by itself, at its own pace, without a network. It lasts 40 s with a
    /// buffer of 1 GiB, and keeps 2 GiB.
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
            turn: None,
            network: None,
            background: None,
            settings: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// The recording at full speed, without a network, repeated often enough for an interval of the long-run
    /// rate. Unless the user set the space to keep, it is the default.
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

    /// The capabilities that a target must have for it; readers must find the data written.
    pub fn needs(&self) -> Capabilities {
        let mut needs = Phase::Ingest.needs().to_vec();
        needs.extend(self.background.iter().flat_map(|load| load.needs()));
        let RecordingLayout { storing, format, frames_per_file, .. } = self.instrument.recording;
        // The recording plan stores packets as the storage takes them.
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

    /// The key for the way of storing on a target, in the record's environment.
    pub fn layout_key(&self, target: &str) -> String {
        let pace = if self.goal == Goal::Limit { "as fast as it is taken" } else { "at a pace" };
        format!("layout of {} {pace} on {target}", self.who())
    }

    /// The recorded instrument, with its changes and count.
    pub fn recorded_instrument(&self) -> RecordedInstrument {
        RecordedInstrument { name: self.instrument.name.clone(), swept: self.swept, count: self.count }
    }

    /// The instrument and the plan's changes to it, in words.
    pub fn label(&self) -> String {
        self.recorded_instrument().label()
    }

    /// The instrument in words, with its count.
    pub fn who(&self) -> String {
        self.recorded_instrument().to_string()
    }

    /// The recorded form of each instrument: its frames, or blocks of its packets.
    pub fn recorded(&self) -> Cow<'_, Instrument> {
        let blocks = if self.route.has_packets() { self.instrument.in_blocks() } else { None };
        blocks.map_or(Cow::Borrowed(&self.instrument), Cow::Owned)
    }

    /// The rate to record, over all instruments; for VDIF and Mark5B it includes the headers.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.recorded().rate().0 * f64::from(self.count))
    }

    /// The most frames of each instrument in the duration.
    pub fn frames(&self) -> u64 {
        let recorded = self.recorded();
        self.duration.0.div_ceil(recorded.period().0) + recorded.streams
    }

    /// Bytes of a frame, or a block of packets, of all recorders.
    fn slot(&self) -> Bytes {
        Bytes(self.recorded().frame_size().0.saturating_mul(self.rings()))
    }

    /// Bytes of these.
    pub fn all(&self) -> Bytes {
        Bytes(self.frames().saturating_mul(self.recorded().frame_size().0))
    }

    /// The least duration; a shorter recording would show nothing. For packets over a network it counts
    /// frames or recorded blocks, whichever are more.
    pub fn least_duration(&self) -> Nanos {
        let period = self.recorded().period().min(self.instrument.period());
        Nanos(FRAMES_LEAST * period.0).max(DURATION_LEAST)
    }

    /// Checks that the duration is long enough to show anything. The message gives the least duration.
    /// `asked` is the user's text.
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

    /// Checks that the buffer has room for two frames, or blocks of packets. `asked` is the user's text.
    pub fn check_buffer(&self, asked: &str) -> Result<(), String> {
        let slot = self.slot();
        if self.buffer.0 / 2 >= slot.0 {
            return Ok(());
        }
        Err(format!("{asked}: write room for at least two frames of {slot}"))
    }

    /// The pace of frames, in words.
    pub fn pace(&self) -> String {
        match self.goal {
            Goal::Limit => "at full speed".into(),
            Goal::Pace => format!("at {}", self.rate()),
            Goal::Search => "at the highest rate without loss".into(),
            Goal::Buffer => format!("at {}, with the smallest buffer without loss", self.rate()),
        }
    }

    /// The whole recording in phrases, to be joined with commas.
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

    /// True if there is a recording onto each target alone.
    pub fn is_onto_each(&self) -> bool {
        self.volumes.is_empty() || self.volumes.contains(&Volumes::Alone)
    }

    /// The numbers of targets that it stripes over, each at least two, if there are `targets` targets: one
    /// recording each.
    pub fn at_once(&self, targets: usize) -> Vec<usize> {
        let counts = self.volumes.iter().filter(|volumes| **volumes != Volumes::Alone);
        let mut counts: Vec<usize> = counts.filter_map(|volumes| volumes.at_once(targets)).collect();
        counts.retain(|count| *count >= 2);
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The condition of its target and its settings, in words; empty if the target is left as it is.
    pub fn condition_name(&self) -> String {
        let condition = self.condition.iter().map(|condition| condition.name.clone());
        condition.chain(self.settings.iter().map(AppliedSetting::phrase)).collect::<Vec<_>>().join(", ")
    }

    /// The background load on its target, in words; empty if there is none.
    pub fn load_words(&self) -> String {
        let load = self.background.as_ref().filter(|load| !load.is_none());
        load.map(ToString::to_string).unwrap_or_default()
    }

    /// Rings of each recording. Each stream of packets has one, and they share the memory.
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
            ("name = \"one disk lost\"\n", "", "the key `name` is missing"),
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
