//! A recording that stays, from the options to the results: by this process, or by several together.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow};
use nilometer_acquisition::{Outcome as Recorded, Recorder, RecordingPlan, Setup, sink::RawLayout};
use nilometer_cluster::StoredPart;
use nilometer_hdf5_recording::{
    FileWishes, Hdf5Contents, MasterError, SharedDatasetError, SharedDatasetFile, put_master,
};
use nilometer_model::{Moment, Picture, StorageRoom, TargetDescription, check_expected};
use nilometer_recording::instrument::Content;
use nilometer_ring::MemoryPlan;
use nilometer_service::recording::place::{discard_unused, join_made, make_common, make_striped};
use nilometer_storage::{Clock, Target, in_time, target::KeptDirectory};

use super::{
    Asked,
    files::{Files, check_layout, file_wishes},
    stored::{own_part, summary, went_well},
    turns::shared,
};
use crate::{
    Blame, Failure, Outcome,
    describe::described_place,
    ranks,
    recorded::durable_when,
    signals::stop_on_signal,
    tell,
    together::{OwnLanes, Together, directories_of, unseen},
};

/// The recording's places and ways of storing, before anything exists.
struct ArrangedFiles {
    described: Vec<TargetDescription>,
    plan: RecordingPlan,
    /// The account of the memory that it takes.
    memory: MemoryPlan,
    wishes: FileWishes,
}

/// This process's part of the recording.
struct OwnPart {
    lanes: OwnLanes,
    clock: Clock,
    /// The calendar's time when the clock is at zero.
    start: Moment,
    stop: Arc<AtomicBool>,
}

/// The directories and files that this process has made or joined, before it was ready to record.
#[derive(Default)]
struct BegunFiles {
    targets: Vec<Arc<dyn KeptDirectory>>,
    /// The names of all files that may exist in each directory.
    names: Vec<String>,
}

/// All objects that the recording needs.
struct MadeFiles {
    targets: Vec<Arc<dyn KeptDirectory>>,
    layouts: Vec<RawLayout>,
    recorder: Recorder,
    clock: Clock,
    plan: RecordingPlan,
    wishes: FileWishes,
}

impl Files {
    /// Records the instrument of the options.
    pub(super) fn record(&self, asked: &Asked, to: &[PathBuf]) -> Outcome {
        let stop = stop_on_signal().run()?;
        let cluster = ranks::cluster()?;
        // From here on all processes send the same messages in the same order, even if one of them fails.
        let together = Together::share(cluster.as_ref(), &shared(self.name(), asked));
        let is_one = asked.instrument.recording.is_one_dataset();
        let together = if is_one { together.in_one_directory() } else { together };
        let asked = &together.own(asked);
        let (arranged, lanes) = match self.arranged(asked, to, &together) {
            Ok(arranged) => {
                let lanes = arranged.plan.lanes();
                (Some(arranged), Ok(lanes))
            }
            Err(failure) => (None, Err(failure)),
        };
        let (Some(lanes), Some(arranged)) = (together.lanes(lanes)?, arranged) else { return Ok(()) };
        let (clock, start) = together.clock();
        let own = OwnPart { lanes, clock, start, stop: stop.clone() };
        let mut begun = BegunFiles::default();
        let made = self.made(asked, arranged, own, &together, &mut begun);
        let Some(made) = all_prepared(&together, made, &begun, MadeFiles::discard)? else { return Ok(()) };
        self.kept(asked, made, &together, &stop)
    }

    /// Refuses all that can be refused, before anything exists.
    fn arranged(
        &self,
        asked: &Asked,
        to: &[PathBuf],
        together: &Together<'_>,
    ) -> Result<ArrangedFiles, Failure> {
        let instrument = &asked.instrument;
        let wishes = file_wishes(instrument, |text| together.note(text)).input()?;
        let described = to.iter().map(|path| described_place(path));
        let described = described.collect::<anyhow::Result<Vec<_>>>().input()?;
        check_expected(&described, self.expected()).input()?;
        let (plan, memory) = self.plan(asked, &described, &wishes)?;
        self.check(instrument, &plan, &described, together).input()?;
        if let Some(warning) = self.shortage(asked, &described) {
            together.note(warning);
        }
        let writers = plan.lanes() as usize * together.size() as usize;
        check_layout(&wishes, instrument, writers, plan.is_bounded()).input()?;
        Ok(ArrangedFiles { described, plan, memory, wishes })
    }

    /// A warning if the storage is full before all frames have come.
    fn shortage(&self, asked: &Asked, on: &[TargetDescription]) -> Option<String> {
        let room = StorageRoom::for_instrument(&asked.instrument, 1, on, self.reserve());
        let frames = asked.frames.map(|frames| asked.instrument.schedule().due(frames));
        room.shortage(frames.map_or(asked.duration, |takes| takes.min(asked.duration)))
    }

    /// Its directories and the recorder. If there is no recorder, `begun` has the files that exist already.
    fn made(
        &self,
        asked: &Asked,
        arranged: ArrangedFiles,
        own: OwnPart,
        together: &Together<'_>,
        begun: &mut BegunFiles,
    ) -> Result<MadeFiles, Failure> {
        let ArrangedFiles { described, plan, memory, wishes } = arranged;
        let targets = self.directories(described, together)?;
        begun.targets.clone_from(&targets);
        let OwnPart { lanes, clock, start, stop } = own;
        let instrument = &asked.instrument;
        let seed = together.shared.seed.named("content");
        let content = Content::prepare(&instrument.data, &instrument.shape, instrument.pixel, seed).run()?;
        let hdf5 = Hdf5Contents::asked(instrument, start, &wishes);
        hdf5.iter().flat_map(|hdf5| &hdf5.left_out).for_each(|what| together.note(what));
        let mut lanes = lanes_on(&plan, &targets, lanes, together, &content, hdf5.as_ref());
        for (_, layout) in &mut lanes {
            layout.picture = layout.picture.map(|picture| Picture { begun: Some(start), ..picture });
        }
        let layouts: Vec<RawLayout> = lanes.iter().map(|(_, layout)| layout.clone()).collect();
        begun.names = names_before_frames(&layouts);
        let turn = together.turn(&instrument.recording);
        let setup = self.setup(asked, &plan, lanes, content, turn, clock);
        let setup = setup.map(|setup| Setup { stop, ..setup });
        let recorder = setup.and_then(|setup| Recorder::prepare(setup).map_err(Into::into)).run()?;
        recorder.memory().state(&memory);
        Ok(MadeFiles { targets, layouts, recorder, clock, plan, wishes })
    }

    /// Makes the recording's directories, or joins that of process 0.
    fn directories(
        &self,
        described: Vec<TargetDescription>,
        together: &Together<'_>,
    ) -> Result<Vec<Arc<dyn KeptDirectory>>, Failure> {
        let name = together.directory();
        let note = |text: &str| together.note(text);
        let others = described.clone();
        let make = if together.is_in_common() { make_common } else { make_striped };
        together.directories(
            || make(described, &name, &self.stripes(), &note).input(),
            |identity| join_made(others, &name, identity).input(),
        )
    }

    /// Starts the recording, and reports its results at the end.
    fn kept(
        &self,
        asked: &Asked,
        made: MadeFiles,
        together: &Together<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Outcome {
        let MadeFiles { targets, layouts, mut recorder, clock, plan, wishes } = made;
        let instrument = &asked.instrument;
        let name = &together.shared.name;
        together.note(format!("stored as {plan}"));
        if recorder.engine().why().is_some() {
            together.note(format!("engine {}", recorder.engine()));
        }
        together.note(format!("recording {name}: {} for {}", instrument.mean_rate(), asked.extent()));
        let begun = recorder.begin_at(together.start(clock));
        let engine = recorder.engine().clone();
        let outcome = if begun.is_ok() { recorder.wait_to_end() } else { recorder.give_up() };
        let what = if plan.writers() > 1 { "writers" } else { "directories" };
        let interrupted = stop.load(Ordering::Relaxed);
        let mut part = own_part(together, &instrument.recording, &outcome, &targets, what, interrupted);
        part.faults.extend(begun.err().map(|error| error.to_string()));
        let parts = together.stored(part);
        if parts.is_empty() {
            // Process 0 reports the results of all.
            std::mem::forget(targets);
            return Ok(());
        }
        tell::result(summary(&parts, instrument));
        let datasets = wishes.joined.as_ref().and_then(|joined| joined.tally().datasets);
        if let Some(tally) = datasets {
            tell::result_line(format_args!("datasets    {}", tally.line()));
        }
        tell::result_line(format_args!("durable     {}", durable_when(layouts[0].durability, &targets)));
        if engine.why().is_some() {
            tell::result_line(format_args!("engine      {engine}"));
        }
        let master = self.master(&layouts[0], &outcome, &targets, &parts);
        let paths: Vec<_> = directories_of(&parts).iter().map(|path| path.display().to_string()).collect();
        tell::result_to_copy(format_args!("\nnilometer verify {}\n", paths.join(" ")));
        // Closing a directory on storage that hangs would block, and the program must end.
        std::mem::forget(targets);
        let went = went_well(&parts);
        let master = master.context("can't write the file over those of the recording");
        match (went, master) {
            (Err(lost), Err(file)) => Err(Failure::Run(anyhow!("{lost:#}; {file:#}"))),
            (went, master) => went.and(master).run(),
        }
    }

    /// Writes the file over those of a recording in HDF5, if this process sees all of them.
    fn master(
        &self,
        layout: &RawLayout,
        outcome: &Recorded,
        targets: &[Arc<dyn KeptDirectory>],
        parts: &[StoredPart],
    ) -> Result<(), MasterError> {
        let Some(contents) = layout.hdf5.as_ref().filter(|_| !outcome.hung) else { return Ok(()) };
        if layout.head.is_one_dataset() {
            return self.complete(contents, layout, &targets[0], parts);
        }
        let others = directories_of(&parts[1..]);
        if let Some(unseen) = unseen(&others) {
            tell::result_line(format_args!(
                "all frames  no file over all: this machine does not see {}; run `nilometer repair` with all \
                 directories on one that does",
                unseen.display()
            ));
            return Ok(());
        }
        let master = put_master(contents, &layout.name, targets, others, self.patience())?;
        if let Some(master) = master {
            tell::result_line(format_args!("all frames  {}", master.display()));
        }
        Ok(())
    }

    /// Writes the index of the one file of all writers, and checks that readers find all frames.
    fn complete(
        &self,
        contents: &Hdf5Contents,
        layout: &RawLayout,
        directory: &Arc<dyn KeptDirectory>,
        parts: &[StoredPart],
    ) -> Result<(), MasterError> {
        if let Some(part) = parts.iter().find(|part| part.hung) {
            tell::result_line(format_args!(
                "one file    no index: writes of {} hang and may still come; run `nilometer repair` when that machine is down",
                part.node
            ));
            return Ok(());
        }
        let frames: u64 = parts.iter().map(|part| part.stored).sum();
        let patience = self.patience() + SharedDatasetFile::index_time_max(frames);
        let names = layout.head.journal_names(&layout.name);
        let journals: Vec<_> = names.iter().map(|name| directory.path().join(name)).collect();
        let tree = contents.tree.clone();
        let completed = in_time(patience, directory.path().to_owned(), move || {
            let file = SharedDatasetFile::open(&journals)?;
            file.complete(&tree)?;
            file.check(&tree)?;
            Ok::<_, SharedDatasetError>((file.path().to_owned(), file.frames()))
        })?;
        let (path, frames) = completed?;
        let lanes = layout.head.lanes;
        let path = path.display();
        tell::result_line(format_args!(
            "one file    {path}: {frames} frames of {lanes} writers in one dataset"
        ));
        Ok(())
    }
}

impl MadeFiles {
    /// Gives the recording up before its start. Removes its files, as far as the storage answers.
    fn discard(self) {
        let MadeFiles { targets, layouts, recorder, .. } = self;
        if recorder.cancel() {
            BegunFiles { targets, names: names_before_frames(&layouts) }.remove();
        }
    }
}

impl BegunFiles {
    /// Removes the files, and each directory that is then empty.
    fn remove(&self) {
        for target in &self.targets {
            discard_unused(target.clone(), self.names.clone());
        }
    }
}

fn names_before_frames(layouts: &[RawLayout]) -> Vec<String> {
    layouts.iter().flat_map(RawLayout::names_before_frames).collect()
}

/// Waits until all processes are ready or have failed. If one has failed, each removes the files that it made. A
/// process that has failed may not do so earlier: another one may be preparing the file that they share.
fn all_prepared<T>(
    together: &Together<'_>,
    made: Result<T, Failure>,
    begun: &BegunFiles,
    discard: impl FnOnce(T),
) -> Result<Option<T>, Failure> {
    let failed = made.is_err();
    let prepared = together.all_prepared(made, discard);
    if failed {
        begun.remove();
    }
    prepared
}

/// The writers in each directory.
fn lanes_on(
    plan: &RecordingPlan,
    targets: &[Arc<dyn KeptDirectory>],
    own: OwnLanes,
    together: &Together<'_>,
    content: &Content,
    hdf5: Option<&Hdf5Contents>,
) -> Vec<(Arc<dyn Target>, RawLayout)> {
    let each = targets.iter().flat_map(|target| std::iter::repeat_n(target, plan.writers() as usize));
    let mut lanes: Vec<(Arc<dyn Target>, RawLayout)> = Vec::new();
    for (target, lane) in each.zip(own.first..) {
        let mut layout = plan.layout(&together.shared.name, together.shared.id, lane);
        layout.head.lanes = own.all;
        layout.origin = content.origin();
        layout.hdf5 = hdf5.cloned();
        // Frames that can't be generated again need a checksum.
        layout.checksums |= layout.origin.is_none();
        lanes.push((target.clone(), layout));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, thread};

    use nilometer_cluster::{
        Cluster, MessageCluster,
        testing::{ThreadMessages, thread_ranks},
    };
    use nilometer_model::{Nanos, StripeLayout};
    use nilometer_storage::target::probe;

    use super::*;
    use crate::together::tests::shared;

    /// A process makes its files, and fails then. Returns true if the common file was there until all had said that
    /// they are ready or not.
    fn fails_beside_others(ranks: ThreadMessages, below: &Path) -> bool {
        let cluster = MessageCluster::new(ranks);
        let together = Together::share(&cluster, &shared()).in_one_directory();
        let described = vec![probe(below).expect("a directory")];
        let others = described.clone();
        let targets = together.directories(
            || make_common(described, "scan", &StripeLayout::default(), &|_| ()).input(),
            |identity| join_made(others, "scan", identity).input(),
        );
        let names = vec!["scan.h5".to_owned(), format!("scan.{}.journal", together.rank())];
        let begun = BegunFiles { targets: targets.unwrap_or_else(|_| panic!("made or joined")), names };
        for name in &begun.names {
            fs::write(below.join("scan").join(name), "").expect("space");
        }
        // All have made their files. Process 1 fails at once; process 0 prepares for longer.
        cluster.barrier();
        let is_there = together.rank() == 1 || {
            Clock::start().sleep_until(Nanos::from_millis(50));
            below.join("scan/scan.h5").exists()
        };
        let made: Result<(), Failure> = Err(Failure::Run(anyhow!("no memory")));
        let prepared = all_prepared(&together, made, &begun, |()| ());
        assert_eq!(prepared.is_err(), together.rank() == 0, "process 0 reports it");
        is_there
    }

    #[test]
    fn a_process_that_fails_leaves_the_common_file_until_no_other_one_prepares_it() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let there: Vec<bool> = thread::scope(|scope| {
            let begin = |ranks| scope.spawn(|| fails_beside_others(ranks, below.path()));
            let ranks: Vec<_> = thread_ranks(2).into_iter().map(begin).collect();
            ranks.into_iter().map(|rank| rank.join().expect("it does not panic")).collect()
        });
        assert_eq!(there, [true, true]);
        assert_eq!(fs::read_dir(below.path()).expect("listed").count(), 0, "nothing is left");
    }
}
