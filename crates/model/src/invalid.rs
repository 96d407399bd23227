//! Reasons to reject a figure: as a sentence for people, and as a code with figures for the record.
//!
//! The two are apart on purpose. Any version may improve the sentences. Records stay readable because they
//! store a code and `name=value` pairs:
//!
//! ```text
//! starved waited=12.3ms of=100ms allowed=5ms
//! ```

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanos};

/// A reason to reject a figure; reports print it beside the number. Records of early versions lack its
/// figures, which are then `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Invalid {
    /// The worker did not report in time and was given up.
    Hung,
    /// Operations failed.
    Errors,
    /// A read was served by the cache.
    WarmRead,
    /// The plan asked for `O_DIRECT`, but the file system used the page cache.
    NotDirect,
    /// The plan asked to reserve space, but the file system can't.
    NotPreallocated,
    /// A reader found frames that differ from those written, or could not read frames after the recording.
    Wrong,
    /// The tool itself waited too long for a processor: the result may be its own speed.
    Starved(Option<Waited>),
    /// The simulated instrument was slower than its own pace, and nothing was lost: the pace went untested.
    Slow(Option<SourceLag>),
    /// The simulated instrument was late, then sent more packets at once than the socket buffer holds. Its
    /// losses prove nothing.
    Bursts(Option<SentAtOnce>),
    /// The background load did not last for the whole phase, with the reason.
    NoBackground(String),
    /// The phase could not be started.
    Refused(String),
}

/// How long the tool was ready to run but had no processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// The time that it waited.
    pub waited: Nanos,
    /// The time in which it waited.
    pub of: Nanos,
    /// The longest wait with which the figure is still valid.
    pub allowed: Nanos,
    /// How long a quota on its processor time (of a container or a job) stopped it, summed over all
    /// processors; 0 without a quota.
    pub throttled: Nanos,
}

/// How far a simulated instrument stayed behind its own pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceLag {
    /// Half of the frames were later than `late`.
    Late {
        /// The delay after the due time.
        late: Nanos,
        /// The time in which all frames were due.
        of: Nanos,
        /// The longest delay at which the pace counts as kept.
        allowed: Nanos,
    },
    /// Packets that were not sent at all. None is allowed.
    Unsent {
        /// Number of packets not sent.
        unsent: u64,
        /// Number of packets due.
        of: u64,
    },
}

/// The burst that a simulated instrument sent after it had been late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentAtOnce {
    /// Its longest delay.
    pub late: Nanos,
    /// The bytes that came due in that time, by their size in the socket buffer.
    pub at_once: Bytes,
    /// The size of the socket buffer.
    pub room: Bytes,
}

impl Invalid {
    /// A word for the kind. The record's column begins with it, and reports count by it.
    pub const fn code(&self) -> &'static str {
        match self {
            Invalid::Hung => "hung",
            Invalid::Errors => "errors",
            Invalid::WarmRead => "warm-read",
            Invalid::NotDirect => "not-direct",
            Invalid::NotPreallocated => "not-preallocated",
            Invalid::Wrong => "wrong",
            Invalid::Starved(_) => "starved",
            Invalid::Slow(_) => "slow",
            Invalid::Bursts(_) => "bursts",
            Invalid::NoBackground(_) => "no-background",
            Invalid::Refused(_) => "refused",
        }
    }

    /// True if the tool or its machine spoilt the measurement, not the storage. A new measurement may be
    /// valid.
    pub const fn is_spoilt(&self) -> bool {
        matches!(self, Invalid::Starved(_) | Invalid::Slow(_) | Invalid::Bursts(_))
    }

    /// How severe the reason is. The worst: the phase never ran, or hung. Then: its work was wrong, or not
    /// the work requested. Least: only the machine was busy.
    const fn gravity(&self) -> u32 {
        match self {
            // A run must skip a target that hangs on one node, even if it works on the others.
            Invalid::Hung => 9,
            Invalid::Refused(_) => 8,
            Invalid::Errors => 7,
            Invalid::Wrong => 6,
            Invalid::WarmRead => 5,
            Invalid::NotDirect | Invalid::NoBackground(_) => 4,
            Invalid::NotPreallocated => 3,
            Invalid::Starved(_) | Invalid::Slow(_) | Invalid::Bursts(_) => 2,
        }
    }

    /// Returns the graver of two optional reasons; if equally grave, the one further beyond its limit.
    pub fn gravest(one: Option<Invalid>, other: Option<Invalid>) -> Option<Invalid> {
        let graver =
            |a: &Invalid, b: &Invalid| a.gravity().cmp(&b.gravity()).then(a.excess().total_cmp(&b.excess()));
        [one, other].into_iter().flatten().max_by(graver)
    }

    /// The reason in words, without figures.
    pub fn what(&self) -> &str {
        match self {
            Invalid::Hung => "hung: no answer within the time limit",
            Invalid::Errors => "operations failed",
            Invalid::WarmRead => "the read came from the page cache",
            Invalid::NotDirect => "O_DIRECT went through the page cache",
            Invalid::NotPreallocated => "the file system can't preallocate: its data were written without",
            Invalid::Wrong => "a reader did not find the frames that were written",
            Invalid::Starved(_) => "the tool itself waited for a processor",
            Invalid::Slow(_) => "the simulated instrument could not keep its own pace on this machine",
            Invalid::Bursts(_) => {
                "the simulated instrument was late and then sent more packets at once than may wait in the kernel"
            }
            Invalid::NoBackground(_) => "the load beside it did not last",
            Invalid::Refused(why) => why,
        }
    }

    /// The figure and its limit, if recorded: `12 ms of 100 ms, allowed 5 ms`.
    pub fn figures(&self) -> Option<String> {
        match self {
            Invalid::Starved(waited) => waited.map(|waited| waited.to_string()),
            Invalid::Slow(lag) => lag.map(|lag| lag.to_string()),
            Invalid::Bursts(burst) => burst.map(|burst| burst.to_string()),
            Invalid::NoBackground(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// How many times the figure exceeds its limit, to find the worst of a kind; 0 if the figure is missing.
    pub fn excess(&self) -> f64 {
        let ratio = |figure: u64, allowed: u64| figure as f64 / allowed.max(1) as f64;
        match self {
            Invalid::Starved(Some(Waited { waited, allowed, .. })) => ratio(waited.0, allowed.0),
            Invalid::Slow(Some(SourceLag::Late { late, allowed, .. })) => ratio(late.0, allowed.0),
            Invalid::Slow(Some(SourceLag::Unsent { unsent, .. })) => *unsent as f64,
            Invalid::Bursts(Some(burst)) => ratio(burst.at_once.0, burst.room.0),
            _ => 0.0,
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what())?;
        self.figures().map_or(Ok(()), |figures| write!(f, ": {figures}"))
    }
}

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, allowed {}", self.waited, self.of, self.allowed)?;
        if self.throttled == Nanos(0) {
            return Ok(());
        }
        write!(f, "; a quota on processor time kept it from running for {}", self.throttled)
    }
}

impl fmt::Display for SourceLag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLag::Late { late, of, allowed } => {
                write!(f, "half of its frames {late} late or more in {of}, allowed {allowed}")
            }
            SourceLag::Unsent { unsent, of } => {
                write!(f, "{unsent} of {of} packets were not sent, allowed none")
            }
        }
    }
}

impl fmt::Display for SentAtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after it was {} late, allowed {}", self.at_once, self.late, self.room)
    }
}

impl Waited {
    /// `waited=12.3ms of=100ms allowed=5ms`, with `throttled=80ms` if a quota stopped it.
    fn to_text(self) -> String {
        let Waited { waited, of, allowed, throttled } = self;
        let text = format!("waited={} of={} allowed={}", Millis(waited), Millis(of), Millis(allowed));
        if throttled == Nanos(0) { text } else { format!("{text} throttled={}", Millis(throttled)) }
    }
}

impl Invalid {
    /// Adds the time for which a quota on processor time stopped the tool, if the reason is that it waited.
    #[must_use]
    pub fn throttled(self, throttled: Nanos) -> Self {
        match self {
            Invalid::Starved(Some(waited)) => Invalid::Starved(Some(Waited { throttled, ..waited })),
            other => other,
        }
    }

    /// The form in the record: the code, then figures. [`Invalid::from_text`] reads it.
    pub fn to_text(&self) -> String {
        let code = self.code();
        match self {
            Invalid::Starved(Some(waited)) => format!("{code} {}", waited.to_text()),
            Invalid::Slow(Some(SourceLag::Late { late, of, allowed })) => {
                format!("{code} late={} of={} allowed={}", Millis(*late), Millis(*of), Millis(*allowed))
            }
            Invalid::Slow(Some(SourceLag::Unsent { unsent, of })) => {
                format!("{code} unsent={unsent} of={of}")
            }
            Invalid::Bursts(Some(SentAtOnce { late, at_once, room })) => {
                format!("{code} late={} at_once={}B room={}B", Millis(*late), at_once.0, room.0)
            }
            Invalid::NoBackground(why) | Invalid::Refused(why) => format!("{code}: {why}"),
            _ => code.into(),
        }
    }

    /// Reads the form in the record. A text without a known code is the reason of a refusal.
    pub fn from_text(text: &str) -> Self {
        Self::from_coded(text).unwrap_or_else(|| Invalid::Refused(text.to_owned()))
    }

    fn from_coded(text: &str) -> Option<Self> {
        if let Some(why) = text.strip_prefix("refused: ") {
            return Some(Invalid::Refused(why.to_owned()));
        }
        if let Some(why) = text.strip_prefix("no-background: ") {
            return Some(Invalid::NoBackground(why.to_owned()));
        }
        let mut words = text.split(' ');
        let code = words.next()?;
        // Skip figures that only later versions write.
        let figures = words.map(|word| word.split_once('=')).collect::<Option<Vec<_>>>()?;
        let figures = Figures(figures);
        let mut kinds = Self::kinds().into_iter();
        let kind = kinds.find(|kind| kind.code() == code)?;
        Some(match kind {
            Invalid::Starved(_) => Invalid::Starved(figures.waited()),
            Invalid::Slow(_) => Invalid::Slow(figures.lag()),
            Invalid::Bursts(_) => Invalid::Bursts(figures.at_once()),
            kind => kind,
        })
    }

    /// The kinds without text, each without figures.
    fn kinds() -> [Self; 9] {
        [
            Invalid::Hung,
            Invalid::Errors,
            Invalid::WarmRead,
            Invalid::NotDirect,
            Invalid::NotPreallocated,
            Invalid::Wrong,
            Invalid::Starved(None),
            Invalid::Slow(None),
            Invalid::Bursts(None),
        ]
    }
}

/// A time in milliseconds with all digits.
struct Millis(Nanos);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nanos(nanos) = self.0;
        let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
        write!(f, "{}ms", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The `name=value` pairs after a code.
struct Figures<'a>(Vec<(&'a str, &'a str)>);

impl Figures<'_> {
    fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.0.iter().find(|(known, _)| *known == name)?.1.parse().ok()
    }

    fn waited(&self) -> Option<Waited> {
        Some(Waited {
            waited: self.get("waited")?,
            of: self.get("of")?,
            allowed: self.get("allowed")?,
            throttled: self.get("throttled").unwrap_or(Nanos(0)),
        })
    }

    fn lag(&self) -> Option<SourceLag> {
        if let Some(unsent) = self.get("unsent") {
            return Some(SourceLag::Unsent { unsent, of: self.get("of")? });
        }
        Some(SourceLag::Late { late: self.get("late")?, of: self.get("of")?, allowed: self.get("allowed")? })
    }

    fn at_once(&self) -> Option<SentAtOnce> {
        Some(SentAtOnce { late: self.get("late")?, at_once: self.get("at_once")?, room: self.get("room")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times of up to a day, and counts that the text holds exactly.
    fn any_invalid() -> impl Strategy<Value = Invalid> {
        let day = 86_400_000_000_000_u64;
        let three = (0..day, 0..day, 0..day);
        let figured = (three, 0..3_u8).prop_map(|((one, two, three), kind)| match kind {
            0 => {
                let [waited, of, allowed] = [one, two, three].map(Nanos);
                Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(one / 2) }))
            }
            1 => {
                let [late, of, allowed] = [one, two, three].map(Nanos);
                Invalid::Slow(Some(SourceLag::Late { late, of, allowed }))
            }
            _ => {
                let [at_once, room] = [two, three].map(Bytes);
                Invalid::Bursts(Some(SentAtOnce { late: Nanos(one), at_once, room }))
            }
        });
        let unsent = (any::<u64>(), any::<u64>())
            .prop_map(|(unsent, of)| Invalid::Slow(Some(SourceLag::Unsent { unsent, of })));
        let plain = (0..9_usize).prop_map(|index| Invalid::kinds()[index].clone());
        let refused = any::<String>().prop_map(Invalid::Refused);
        let no_load = any::<String>().prop_map(Invalid::NoBackground);
        prop_oneof![figured, unsent, plain, refused, no_load]
    }

    proptest! {
        #[test]
        fn what_the_record_keeps_is_read_back(invalid in any_invalid()) {
            let text = invalid.to_text();
            prop_assert!(text.starts_with(invalid.code()), "{}", text);
            prop_assert_eq!(Invalid::from_text(&text), invalid);
        }

        #[test]
        fn any_text_is_read(text in any::<String>()) {
            Invalid::from_text(&text);
        }
    }

    #[test]
    fn the_record_is_readable_and_the_sentence_has_figure_and_threshold() {
        let [waited, of, allowed] = [12, 100, 5].map(Nanos::from_millis);
        let starved = Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) }));
        assert_eq!(starved.to_text(), "starved waited=12ms of=100ms allowed=5ms");
        let sentence = "the tool itself waited for a processor: 12 ms of 100 ms, allowed 5 ms";
        assert_eq!(starved.to_string(), sentence);
        let kept = starved.throttled(Nanos::from_millis(80));
        assert_eq!(kept.to_text(), "starved waited=12ms of=100ms allowed=5ms throttled=80ms");
        assert!(
            kept.to_string().ends_with("a quota on processor time kept it from running for 80 ms"),
            "{kept}"
        );
        let slow = Invalid::Slow(Some(SourceLag::Unsent { unsent: 3, of: 1000 }));
        assert!(slow.to_string().ends_with(": 3 of 1000 packets were not sent, allowed none"), "{slow}");
        assert_eq!(Invalid::Hung.to_text(), "hung");
    }

    #[test]
    fn a_later_version_may_add_figures() {
        let text = "starved waited=1.5ms of=9ms allowed=1ms cores=2";
        let waited = Waited {
            waited: Nanos(1_500_000),
            of: Nanos(9_000_000),
            allowed: Nanos(1_000_000),
            throttled: Nanos(0),
        };
        assert_eq!(Invalid::from_text(text), Invalid::Starved(Some(waited)));
        assert_eq!(Invalid::from_text("starved by=neighbours"), Invalid::Starved(None));
        let text = "starved of means, the target refused";
        assert_eq!(Invalid::from_text(text), Invalid::Refused(text.into()));
    }
}
