//! The question of a campaign, with its answers in a few words. They are at the top of a page, for readers who
//! stop there.

use nilometer_model::{ByteRate, Bytes};

use crate::{Decision, Finding, OpenQuestion, Study, TrialVerdict, Verdict, verdict::lost_frames};

/// The question with its answers, one for each instrument on each target.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortAnswers {
    /// `Can /data carry pco-edge?`; the plan's title if no instrument was recorded.
    pub question: String,
    /// Answers in the order of verdicts, then those for instruments that were planned but not recorded.
    pub answers: Vec<ShortAnswer>,
}

/// The answer for one instrument on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortAnswer {
    /// Index into [`nilometer_plan::Results::targets`].
    pub target: usize,
    /// The instrument, its number, and its total rate.
    pub instrument: String,
    /// Yes, no, or not decided.
    pub decision: Decision,
    /// The margin, or the reason against it: a sentence without its subject.
    pub claim: String,
    /// The evidence, a short sentence each.
    pub evidence: Vec<String>,
}

impl ShortAnswers {
    /// The answers of a study.
    pub fn of(study: &Study<'_>) -> Self {
        let mut answers: Vec<ShortAnswer> = study.verdicts.iter().map(answer).collect();
        answers.extend(study.missing.open.iter().map(open));
        ShortAnswers { question: question(study), answers }
    }
}

impl Decision {
    /// The decision as a reply to the question.
    pub const fn reply(self) -> &'static str {
        match self {
            Decision::Carries => "Yes",
            Decision::DoesNotCarry => "No",
            Decision::NotDecided => "Not decided",
        }
    }
}

fn question(study: &Study<'_>) -> String {
    let recorded = study.verdicts.iter().map(|verdict| (verdict.who(), verdict.target));
    let asked = study.missing.open.iter().map(|open| (open.instrument.to_string(), open.target));
    let mut instruments: Vec<String> = Vec::new();
    let mut targets: Vec<usize> = Vec::new();
    for (instrument, target) in recorded.chain(asked) {
        if !instruments.contains(&instrument) {
            instruments.push(instrument);
        }
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if instruments.is_empty() {
        return study.results.title.clone();
    }
    let path = |target: &usize| study.results.targets.get(*target).map_or("", |entry| &entry.path).to_owned();
    let carried = listed(&instruments, "and");
    if targets.len() > NAMED_MOST {
        return format!("Which of {} targets carry {carried}?", targets.len());
    }
    format!("Can {} carry {carried}?", listed(&targets.iter().map(path).collect::<Vec<_>>(), "or"))
}

/// More names are only counted.
const NAMED_MOST: usize = 3;

/// `a, b and c`; `a, b and 3 more`.
fn listed(names: &[String], conjunction: &str) -> String {
    let shown = if names.len() > NAMED_MOST { NAMED_MOST - 1 } else { names.len() };
    let mut parts: Vec<String> = names[..shown].to_vec();
    if shown < names.len() {
        parts.push(format!("{} more", names.len() - shown));
    }
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {conjunction} {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn answer(verdict: &Verdict) -> ShortAnswer {
    ShortAnswer {
        target: verdict.target,
        instrument: format!("{}, {}", verdict.who(), verdict.rate),
        decision: verdict.decision(),
        claim: verdict.claim(),
        evidence: verdict.trial().map(|trial| evidence(verdict, trial)).unwrap_or_default(),
    }
}

fn open(open: &OpenQuestion) -> ShortAnswer {
    ShortAnswer {
        target: open.target,
        instrument: format!("{}, {}", open.instrument, open.rate),
        decision: Decision::NotDecided,
        claim: open.to_string(),
        evidence: Vec::new(),
    }
}

/// The evidence for the answer; if company or a condition decides, that comes first.
fn evidence(verdict: &Verdict, trial: &TrialVerdict) -> Vec<String> {
    if let Some((_, finding)) = verdict.decided_beside() {
        let mut evidence = Vec::new();
        if let Finding::Lost(beside) = finding {
            evidence.push(format!("{} were lost there", lost_frames(beside)));
            evidence.push(format!("The longest stall was {} there", beside.longest_stall));
        }
        evidence
            .extend(by_itself(verdict, trial).into_iter().map(|sentence| format!("By itself: {sentence}")));
        return evidence;
    }
    by_itself(verdict, trial)
}

/// The evidence for the instrument alone.
fn by_itself(verdict: &Verdict, trial: &TrialVerdict) -> Vec<String> {
    let TrialVerdict { duration, longest_stall, .. } = trial;
    let size = |bytes: Bytes| ByteRate(bytes.0 as f64).to_string().replace("/s", "");
    let mut evidence = vec![format!("Tested for {duration} at {}", verdict.rate)];
    match (&verdict.finding, verdict.decision_alone()) {
        (Finding::Lost(_), _) => evidence.push(format!("{} were lost", lost_frames(trial))),
        (_, Decision::DoesNotCarry) => {
            evidence.push(format!(
                "No {} lost meanwhile: a buffer of {} hid it",
                trial.smallest(),
                size(trial.buffer)
            ));
        }
        _ => {
            evidence.push(format!("No {} lost{}", trial.smallest(), trial.proof()));
        }
    }
    let covered = match verdict.decision_alone() {
        Decision::Carries => format!(", which a buffer of {} covers", size(trial.covering(verdict.rate))),
        _ => String::new(),
    };
    evidence.push(format!("The longest stall was {longest_stall}{covered}"));
    evidence.extend(trial.cores_words().map(|cores| format!("The recorder used {cores}")));
    evidence.extend(verdict.room_words().map(|room| room.replacen("room", "Room", 1)));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hidden, TrialVerdict, Under};
    use nilometer_model::{Nanos, StorageRoom};
    use nilometer_plan::{RecordedInstrument, Route};

    /// A recording of a minute at 100 MB/s that lost `lost` frames.
    fn trial(lost: u64) -> TrialVerdict {
        TrialVerdict {
            duration: Nanos::from_millis(60_000),
            due: 6000,
            lost,
            late: 0,
            allowance: Nanos(0),
            stalls: (0, Nanos(0)),
            longest_stall: Nanos::from_millis(310),
            latest: Nanos::from_millis(320),
            buffer_used: Bytes(50_000_000),
            buffer: Bytes(100_000_000),
            frame_size: Bytes(1_000_000),
            filling: false,
            grows: false,
            hidden: Hidden { came: Bytes(6_000_000_000), buffer: Bytes(100_000_000), cache: Some(Bytes(0)) },
            cores: 0.25,
            client_cores: 0.0,
            read_back: None,
            durable: None,
            compressed: 1.0,
            packets: None,
        }
    }

    fn verdict(finding: Finding, under: Option<Finding>) -> Verdict {
        let condition = |finding| Under {
            condition: "a disk lost".into(),
            load: String::new(),
            finding,
            limit: None,
            beside: None,
        };
        Verdict {
            target: 0,
            instrument: RecordedInstrument { name: "camera".into(), ..RecordedInstrument::default() },
            stages: Vec::new(),
            rate: ByteRate(1e8),
            limit: None,
            limit_tried: false,
            limit_cached: None,
            cache: None,
            finding,
            route: Route::InPlace,
            stored: None,
            dealt_out: None,
            volatile: false,
            room: Some(StorageRoom { usable: Bytes(138_000_000_000), rate: ByteRate(1e8) }),
            by_itself: true,
            read: Vec::new(),
            together: Vec::new(),
            under: under.into_iter().map(condition).collect(),
            highest: None,
            ceiling: None,
            smallest: None,
        }
    }

    fn said(finding: Finding, under: Option<Finding>) -> (Decision, String, String) {
        let short = answer(&verdict(finding, under));
        (short.decision, short.claim, short.evidence.join(". "))
    }

    #[test]
    fn what_an_answer_rests_on_does_not_contradict_it() {
        let carried = || Finding::Carried(trial(0));
        let (decision, claim, evidence) = said(carried(), None);
        assert_eq!((decision, claim.as_str()), (Decision::Carries, "carries it"));
        assert!(
            evidence.contains("No frame lost: fewer than 180 losses an hour are proved (95 %)"),
            "{evidence}"
        );
        assert!(evidence.contains("which a buffer of 50 MB covers"), "{evidence}");
        assert!(evidence.contains("Room for 23 min at this rate (138 GB)"), "{evidence}");
        let (decision, claim, evidence) = said(Finding::Lost(trial(60)), None);
        assert_eq!((decision, claim.as_str()), (Decision::DoesNotCarry, "loses frames at 100 MB/s"));
        assert!(evidence.contains("1.00 % of frames (60 of 6000) were lost"), "{evidence}");
        let (decision, claim, evidence) = said(carried(), Some(Finding::Lost(trial(60))));
        let place = "in the condition a disk lost";
        assert_eq!((decision, claim), (Decision::DoesNotCarry, format!("loses frames {place}")));
        assert!(evidence.starts_with("1.00 % of frames (60 of 6000) were lost there. "), "{evidence}");
        assert!(evidence.contains("By itself: No frame lost"), "{evidence}");
        let (decision, claim, _) = said(carried(), Some(Finding::Undecided("too busy".into())));
        assert_eq!((decision, claim), (Decision::NotDecided, format!("not decided {place}: too busy")));
        let (decision, claim, evidence) = said(Finding::Undecided("too busy".into()), None);
        assert_eq!((decision, claim.as_str(), evidence.as_str()), (Decision::NotDecided, "too busy", ""));
    }

    #[test]
    fn many_names_are_counted() {
        let names = |count: usize| (1..=count).map(|number| format!("i{number}")).collect::<Vec<_>>();
        let texts: Vec<String> = (0..=5).map(|count| listed(&names(count), "and")).collect();
        assert_eq!(texts, ["", "i1", "i1 and i2", "i1, i2 and i3", "i1, i2 and 2 more", "i1, i2 and 3 more"]);
    }
}
