//! Repeats measurements that the tool or its machine spoilt, at the end of their round. A busy minute costs
//! only the samples that it spoilt, and compared samples still come from the same round.
//!
//! A repetition is another attempt at the same repeat. Its sample replaces a spoilt one, if it is not spoilt
//! itself. A valid sample stays, so nothing is chosen by its figure. [`Budget`] limits the time that
//! repetitions take; repetitions in vain end.

use std::collections::BTreeMap;

use nilometer_model::{Invalid, Nanos};
use nilometer_plan::{Event, ResolvedPlan};

use super::{Campaign, CampaignError, State};
use crate::{
    calm::await_calm,
    turns::{Done, ScheduledRepeat, is_broken},
};

/// The most repetitions of a turn in its round.
const ATTEMPTS_MOST: u32 = 2;
/// A cell with this number of repetitions in vain in a row is not repeated again. The machine is too small for
/// it, or will not calm down.
const IN_VAIN_MOST: u32 = 2;
/// Repetitions take at most 1 / `PART` of the time that the planned measurements took so far.
const PART: u64 = 3;

/// The time that repetitions may take.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The time that planned measurements took.
    planned: Nanos,
    /// The time that repetitions took.
    again: Nanos,
    /// The number of repetitions of a cell in vain since its last unspoilt measurement.
    in_vain: BTreeMap<usize, u32>,
}

impl Budget {
    /// Adds a planned measurement of a cell that took the time `took`.
    pub(super) fn plan(&mut self, cell: usize, took: Nanos, spoilt: bool) {
        self.planned += took;
        if !spoilt {
            self.in_vain.remove(&cell);
        }
    }

    /// Returns true if a cell may be repeated, which takes about the time `takes`.
    fn allows(&self, cell: usize, takes: Nanos) -> bool {
        let hopeless = self.in_vain.get(&cell).is_some_and(|count| *count >= IN_VAIN_MOST);
        !hopeless && (self.again + takes).0 <= self.planned.0 / PART
    }

    /// Adds a repetition that took the time `took`; `spoilt` says if it was spoilt, too.
    fn spend(&mut self, cell: usize, took: Nanos, spoilt: bool) {
        self.again += took;
        let in_vain = self.in_vain.entry(cell).or_default();
        *in_vain = if spoilt { *in_vain + 1 } else { 0 };
    }
}

/// A turn that was just measured, and the time that it took.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) turn: ScheduledRepeat,
    pub(super) took: Nanos,
}

/// Splits turns into groups; each group is measured before any of its turns is repeated. A group is a round, or
/// a single search.
pub(super) fn rounds<'a>(
    plan: &'a ResolvedPlan,
    turns: &'a [ScheduledRepeat],
) -> impl Iterator<Item = &'a [ScheduledRepeat]> {
    let place = |turn: &ScheduledRepeat| (turn.repeat, plan.cells[turn.cell].as_recording().is_some());
    turns.chunk_by(move |a, b| place(a) == place(b) && a.search(plan).is_none() && b.search(plan).is_none())
}

/// Returns why a turn should be repeated: the worst reason among its spoilt samples, except on targets where
/// something broke.
pub(super) fn spoilt<'a>(turn: &ScheduledRepeat, plan: &ResolvedPlan, done: &'a Done) -> Option<&'a Invalid> {
    if turn.repeat < plan.warm_up || turn.search(plan).is_some() {
        return None;
    }
    let reasons = turn.targets.iter().flat_map(|&target| spoilt_on(turn, plan, done, target));
    reasons.max_by(|a, b| a.excess().total_cmp(&b.excess()))
}

/// The reasons for the spoilt samples on one target; none if something broke there.
fn spoilt_on<'a>(
    turn: &ScheduledRepeat,
    plan: &ResolvedPlan,
    done: &'a Done,
    target: usize,
) -> impl Iterator<Item = &'a Invalid> + use<'a> {
    let keys = turn.keys(plan, target);
    let reasons: Vec<&Invalid> = keys.iter().filter_map(|key| done.get(key)?.as_ref()).collect();
    let broken = reasons.iter().any(|why| is_broken(why));
    reasons.into_iter().filter(move |why| !broken && why.is_spoilt())
}

impl Campaign {
    /// Repeats the spoilt turns of a round, in the order of the round, as far as the budget allows.
    pub(super) fn take_again(&mut self, state: &mut State<'_>, round: &[Taken]) -> Result<(), CampaignError> {
        for _ in 0..ATTEMPTS_MOST {
            for Taken { turn, took } in round {
                let turn = ScheduledRepeat { targets: state.in_use(&turn.targets), ..turn.clone() };
                let Some(why) = spoilt(&turn, &self.resolved.plan, &self.done).cloned() else { continue };
                if state.run.is_over() {
                    return Ok(());
                }
                if state.budget.allows(turn.cell, *took) {
                    self.attempt(state, &Taken { turn, took: *took }, &why)?;
                }
            }
        }
        Ok(())
    }

    /// Makes one repetition of a turn that took the time `took` before.
    fn attempt(
        &mut self,
        state: &mut State<'_>,
        Taken { turn, took }: &Taken,
        why: &Invalid,
    ) -> Result<(), CampaignError> {
        state.turn_begun = state.run.clock.now();
        let what = self.in_words(turn);
        self.note(state, &format!("{}{what}: {why}", Event::AGAIN))?;
        await_calm(&state.run, *took);
        self.take(state, turn)?;
        let took = state.run.clock.now().since(state.turn_begun);
        let again = spoilt(turn, &self.resolved.plan, &self.done).is_some();
        state.budget.spend(turn.cell, took, again);
        state.remaining.repeated(took);
        Ok(())
    }

    /// The cell, the targets and the round of a turn, in words.
    fn in_words(&self, turn: &ScheduledRepeat) -> String {
        let plan = &self.resolved.plan;
        let cell = &plan.cells[turn.cell];
        let path = |&target: &usize| self.resolved.targets[target].address.to_string();
        let targets: Vec<String> = turn.targets.iter().map(path).collect();
        format!("{}: {cell}, round {}", targets.join(", "), turn.repeat + 1 - plan.warm_up)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicBool};

    use super::*;
    use nilometer_cluster::{Alone, CampaignRanks};

    use crate::{MeasuredRates, Progress, Trials};
    use nilometer_model::{Phase, Sample, Waited};
    use nilometer_plan::{PlannedCampaign, Results, TargetEntry, parse};
    use nilometer_record::Record;
    use nilometer_storage::target::{Posix, probe};
    use proptest::prelude::*;
    use tempfile::TempDir;

    const PLAN: &str = r#"
title = "a test"
repeats = 2
warm_up = 1
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "1 MiB"
block_size = "1 MiB"
access = "buffered"
"#;

    fn plan() -> ResolvedPlan {
        parse(PLAN, "test.toml", 1.0).expect("a valid plan")
    }

    fn turn(targets: &[usize], repeat: u32) -> ScheduledRepeat {
        ScheduledRepeat { targets: targets.into(), cell: 0, repeat }
    }

    fn starved(waited: u64) -> Invalid {
        Invalid::Starved(Some(Waited {
            waited: Nanos(waited),
            of: Nanos(9),
            allowed: Nanos(1),
            throttled: Nanos(0),
        }))
    }

    #[test]
    fn what_the_machine_spoilt_is_measured_again_and_nothing_else() {
        let (plan, mut done) = (plan(), Done::new());
        let both = turn(&[0, 1], 1);
        done.insert(both.key(0, Phase::Write), None);
        done.insert(both.key(1, Phase::Read), Some(Invalid::WarmRead));
        assert_eq!(spoilt(&both, &plan, &done), None, "what the storage did is not asked again");
        done.insert(both.key(0, Phase::Read), Some(starved(2)));
        done.insert(both.key(1, Phase::Write), Some(starved(3)));
        assert_eq!(spoilt(&both, &plan, &done).cloned(), Some(starved(3)), "the worst is named");
        done.insert(both.key(1, Phase::Read), Some(Invalid::Errors));
        assert_eq!(
            spoilt(&both, &plan, &done).cloned(),
            Some(starved(2)),
            "where it failed it is left alone"
        );
        let warm_up = turn(&[0], 0);
        done.insert(warm_up.key(0, Phase::Write), Some(starved(2)));
        assert_eq!(spoilt(&warm_up, &plan, &done), None, "it counts for nothing");
    }

    /// A campaign of one cell on a directory of its own, with a record beside it.
    fn campaign(place: &TempDir) -> Campaign {
        let description = probe(place.path()).expect("a directory");
        let head =
            Results { targets: vec![TargetEntry::default()], cells: plan().cells, ..Results::default() };
        let record = Record::create(&place.path().join("r.sqlite"), &head, 1).expect("a new record");
        let target = Posix::create(description.clone(), 1).expect("writable");
        Campaign {
            resolved: PlannedCampaign::new(plan(), vec![description]),
            targets: vec![Some(Arc::new(target))],
            archive: None,
            load_places: Vec::new(),
            record,
            done: Done::new(),
            trials: Trials::default(),
            rates: MeasuredRates::default(),
            stop: Arc::new(AtomicBool::new(false)),
            cluster: Arc::new(Alone),
            ranks: CampaignRanks::alone(),
            network: Vec::new(),
        }
    }

    fn read(place: &TempDir) -> Results {
        nilometer_record::read(&place.path().join("r.sqlite")).expect("readable")
    }

    #[test]
    fn a_spoilt_sample_gives_way_and_a_valid_one_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let mut campaign = campaign(&place);
        let mut tell = |_: Progress<'_>| {};
        let mut state = campaign.begin(&[], &mut tell);
        let key = turn(&[0], 1).key(0, Phase::Write);
        let sample = |bytes, invalid| Sample { bytes, invalid, ..Sample::new(Nanos(0)) };
        let attempts = [
            (sample(1, Some(starved(2))), 1),
            // This attempt is spoilt, too: the first stays.
            (sample(2, Some(starved(3))), 1),
            (sample(3, None), 3),
            (sample(4, Some(starved(2))), 3),
            (sample(5, None), 3),
        ];
        for (attempt, kept) in attempts {
            campaign.keep(&mut state, key, attempt).expect("space");
            let samples = read(&place).samples;
            assert_eq!(samples.iter().map(|measured| measured.sample.bytes).collect::<Vec<_>>(), [kept]);
        }
        let read_again = turn(&[0], 1).key(0, Phase::Read);
        campaign.keep(&mut state, read_again, sample(1, Some(starved(2)))).expect("space");
        let failed = sample(0, Some(Invalid::Errors));
        campaign.keep_broken(&mut state, &turn(&[0], 1), 0, Phase::Write, failed).expect("space");
        let why = read(&place).samples[1].sample.invalid.clone();
        let Some(Invalid::Refused(why)) = why else { panic!("a failure of the repetition is lost: {why:?}") };
        assert!(why.contains("write was run again"), "{why}");
    }

    /// The test does not check if the repetitions are spoilt, too: that depends on the machine. It checks all
    /// else.
    #[test]
    fn a_spoilt_turn_is_measured_again_told_in_one_line_and_limited() {
        let place = tempfile::tempdir().expect("a directory");
        let mut campaign = campaign(&place);
        let mut told = Vec::new();
        let mut tell = |progress: Progress<'_>| {
            if let Progress::Event(what) = progress {
                told.push(what.to_owned());
            }
        };
        let mut state = campaign.begin(&[], &mut tell);
        let (spoilt, valid) = (turn(&[0], 1), turn(&[0], 2));
        let plan = campaign.resolved.plan.clone();
        for key in [spoilt.keys(&plan, 0), valid.keys(&plan, 0)].concat() {
            let invalid = (key.repeat == 1).then(|| starved(2));
            let sample = Sample { bytes: 1, invalid, ..Sample::new(Nanos(0)) };
            campaign.keep(&mut state, key, sample).expect("space");
        }
        let round = [spoilt, valid].map(|turn| Taken { turn, took: Nanos(1) });
        campaign.take_again(&mut state, &round).expect("space");
        assert!(read(&place).events.is_empty(), "nothing was planned, so there is no time for it");
        state.budget.plan(0, Nanos(u64::MAX), true);
        campaign.take_again(&mut state, &round).expect("space");
        drop(state);
        let results = read(&place);
        assert_eq!(results.events.iter().map(|event| event.what.clone()).collect::<Vec<_>>(), told);
        assert!((1..=ATTEMPTS_MOST as usize).contains(&told.len()), "{told:?}");
        for line in &told {
            let begins = format!("measured again: {}: ", place.path().display());
            assert!(line.starts_with(&begins) && line.contains("round 1: the tool itself waited"), "{line}");
        }
        for measured in &results.samples {
            let bytes = measured.sample.bytes;
            let spoilt_again = measured.sample.invalid.is_some() && told.len() == ATTEMPTS_MOST as usize;
            let expected = if measured.key.repeat == 1 && !spoilt_again { 1 << 20 } else { 1 };
            assert_eq!(bytes, expected, "{:?}", measured.key);
        }
    }

    #[test]
    fn a_round_ends_with_its_repeats() {
        let turns = [turn(&[0], 0), turn(&[1], 0), turn(&[1], 1), turn(&[0], 1), turn(&[0], 2)];
        let plan = plan();
        let lengths: Vec<usize> = rounds(&plan, &turns).map(<[ScheduledRepeat]>::len).collect();
        assert_eq!(lengths, [2, 2, 1]);
    }

    #[test]
    fn a_cell_that_the_machine_can_not_do_is_not_tried_for_ever() {
        let mut budget = Budget { planned: Nanos(1_000_000), ..Budget::default() };
        for _ in 0..IN_VAIN_MOST {
            assert!(budget.allows(0, Nanos(1)));
            budget.spend(0, Nanos(1), true);
        }
        assert!(!budget.allows(0, Nanos(1)) && budget.allows(1, Nanos(1)));
        for spoilt in [true, false, true] {
            budget.spend(1, Nanos(1), spoilt);
        }
        assert!(budget.allows(1, Nanos(1)), "it was of use in between");
        budget.plan(0, Nanos(1), true);
        assert!(!budget.allows(0, Nanos(1)));
        budget.plan(0, Nanos(1), false);
        assert!(budget.allows(0, Nanos(1)), "the machine can do it after all");
    }

    proptest! {
        /// Whatever time turns take, and whatever their result, repetitions take at most a third of the planned
        /// time. This holds if they take as long as predicted.
        #[test]
        fn repetitions_take_at_most_a_third(turns in prop::collection::vec((0..5_usize, 1..1000_u64, any::<bool>()), 1..200)) {
            let mut budget = Budget::default();
            for (cell, took, spoilt) in turns {
                budget.plan(cell, Nanos(took), spoilt);
                for _ in 0..ATTEMPTS_MOST {
                    if budget.allows(cell, Nanos(took)) {
                        budget.spend(cell, Nanos(took), spoilt);
                    }
                }
                prop_assert!(budget.again.0 * PART <= budget.planned.0);
            }
        }
    }
}
