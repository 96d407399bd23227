//! `nilometer evaluate --for`: instruments recorded one by one and together, with readers and a copy beside them, and
//! searches for what a target carries.

use std::{fs, path::Path, time::Duration};

use nilometer_model::{Goal, Ingest};
use nilometer_plan::{RecordingRun, Results};
use nilometer_tests::{
    FileSystem, RECORDINGS_ONLY, Running, await_some, camera, may_mount, run_directories, start,
};
use rustix::process::Signal;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(5);

/// A directory with a plan, a camera and a target.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let plan = format!("hang_after = \"20 s\"{RECORDINGS_ONLY}");
    for (name, text) in [("plan.toml", plan), ("camera.toml", camera(50))] {
        fs::write(home.path().join(name), text).expect("space");
    }
    fs::create_dir(home.path().join("target")).expect("space");
    home
}

/// Evaluates the target of such a directory with the plan.
fn begin(home: &Path, options: &[&str]) -> Running {
    let common = ["evaluate", "target", "--plan", "./plan.toml"];
    start(home, &[&common[..], options].concat())
}

/// Keeps this much of each recording.
const SMALL: [&str; 4] = ["--buffer", "16 MiB", "--keep", "16 MiB"];

/// Evaluates the target for what the options name: whether it answered, what it said, its record.
fn evaluated(directory: &Path, options: &[&str]) -> (bool, String, Results) {
    let buffer = if options.contains(&"--buffer") { &[][..] } else { &["--buffer", "64 MiB"] };
    let ended = begin(directory, &[buffer, &["--keep", "64 MiB"], options].concat()).end(LIMIT);
    let results = nilometer_record::read(&directory.join("evaluation.sqlite")).expect("a record");
    (ended.has_answered(), ended.stdout + &ended.stderr, results)
}

fn recordings(results: &Results, goal: Goal) -> Vec<&Ingest> {
    let ingests = results.samples.iter().filter_map(|measured| measured.sample.ingest.as_ref());
    ingests.filter(|ingest| ingest.goal == goal).collect()
}

#[test]
fn readers_and_a_copy_get_every_frame_while_it_is_recorded() {
    let home = home();
    let second = tempfile::tempdir().expect("a temporary directory");
    let to = second.path().to_str().expect("a plain name");
    let options = ["--for", "./camera.toml", "--duration", "2 s", "--readers", "0,2", "--copy-to", to];
    // All 100 frames fit, so that what is kept is not what a busy machine left of them.
    let options = [&options[..], &["--buffer", "128 MiB"]].concat();
    let (answered, said, results) = evaluated(home.path(), &options);
    assert!(answered, "{said}");
    let paced = recordings(&results, Goal::Pace);
    assert_eq!(paced.len(), 3, "without readers, with two, with two and a copy");
    for ingest in &paced {
        // 2 s at 50 Hz. How many a busy machine loses is not the question here.
        assert_eq!((ingest.due, ingest.stored + ingest.lost), (100, 100));
        let [meanwhile, after]: [Vec<_>; 2] =
            [false, true].map(|after| ingest.readers.iter().filter(|reader| reader.after == after).collect());
        for reader in &meanwhile {
            assert_eq!((reader.wrong, reader.failed), (0, 0), "{reader:?}");
            assert_eq!(reader.frames + reader.missed, ingest.stored, "{reader:?}");
        }
        let [after] = after[..] else { panic!("what was kept is read back once: {after:?}") };
        assert!(after.frames >= 50 && after.wrong == 0, "64 MiB are kept: {after:?}");
        assert_eq!(ingest.read.count(), meanwhile.iter().map(|reader| reader.frames).sum::<u64>());
    }
    let copied = |ingest: &&Ingest| ingest.readers.iter().filter(|reader| reader.copies).count();
    assert_eq!(paced.iter().map(copied).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(said.contains("beside 2 readers and a copy:") && said.contains("re-read and verified"), "{said}");
    for directory in [&home.path().join("target"), second.path()] {
        assert_eq!(run_directories(directory).len(), 0, "nothing stays");
    }
}

#[test]
fn the_verdict_of_a_detector_in_hdf5_says_how_far_it_compresses_and_what_that_costs() {
    let home = home();
    let more = "data = \"diffraction\"\nrecording.format = \"hdf5\"\nrecording.compression = \"bslz4\"\n";
    // 3.6 MB/s: the buffer covers 18 s, in which any disk takes some, so that no frame is lost and the costs are told.
    let detector = camera(20).replace("uint8", "uint16").replace("[1000, 1000]", "[300, 300]") + more;
    fs::write(home.path().join("camera.toml"), detector).expect("space");
    let options = ["--for", "./camera.toml", "--duration", "2 s"];
    let (answered, said, results) = evaluated(home.path(), &options);
    assert!(answered, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let ratio =
        said.split(" compressed ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(ratio.is_some_and(|ratio| ratio > 2.0), "{said}");
    assert!(said.contains(" times: the storage got "), "the rate that is left: {said}");
    assert!(said.contains("the recorder used "), "cores: {said}");
    for ingest in recordings(&results, Goal::Pace) {
        let wrong = ingest.readers.iter().map(|reader| reader.wrong + reader.failed).sum::<u64>();
        assert!(wrong == 0 && ingest.stored > 0, "what was kept is read back: {ingest:?}");
    }
}

/// Chunks are numbered over all disks, and a copy has them too.
#[test]
fn a_copy_of_an_instrument_whose_frames_are_scattered_is_made_while_it_is_recorded() {
    let home = home();
    let scattered =
        format!("recording.storing = \"scattered\"\nrecording.frames_per_file = 10\n{}", camera(50));
    fs::write(home.path().join("camera.toml"), scattered).expect("space");
    let second = tempfile::tempdir().expect("a temporary directory");
    let to = second.path().to_str().expect("a plain name");
    let options = ["--for", "./camera.toml", "--duration", "2 s", "--readers", "0", "--copy-to", to];
    let (answered, said, results) = evaluated(home.path(), &options);
    assert!(answered && !said.contains("the copy hung"), "{said}");
    let paced = recordings(&results, Goal::Pace);
    let copies: Vec<_> = paced
        .iter()
        .flat_map(|ingest| ingest.readers.iter().map(move |reader| (ingest.stored, reader)))
        .filter(|(_, reader)| reader.copies)
        .collect();
    let [(stored, copy)] = copies[..] else { panic!("one is copied: {copies:?}") };
    assert!(!copy.hung && (copy.wrong, copy.failed) == (0, 0), "{copy:?}");
    assert!(copy.frames > 0 && copy.frames + copy.missed == stored, "{stored} stored: {copy:?}");
}

#[test]
fn several_instruments_are_recorded_together_and_by_themselves() {
    let home = home();
    let small = camera(50).replace("camera", "small").replace("[1000, 1000]", "[100, 100]");
    fs::write(home.path().join("small.toml"), small).expect("space");
    let facility = "title = \"two kinds\"\n[[instrument]]\nname = \"camera.toml\"\n[[instrument]]\n\
                    name = \"small.toml\"\ncount = 3\nreaders = { count = 1 }\n";
    fs::write(home.path().join("facility.toml"), facility).expect("space");
    let options = ["--for", "./facility.toml", "--duration", "1 s"];
    let (answered, said, results) = evaluated(home.path(), &options);
    assert!(answered, "{said}");
    let paced = recordings(&results, Goal::Pace);
    let runs = results.samples.iter().filter_map(|measured| results.recording(measured.key));
    let names: Vec<String> = runs.filter(|run| run.goal == Goal::Pace).map(RecordingRun::label).collect();
    let seen: Vec<_> = names
        .iter()
        .zip(&paced)
        .map(|(name, ingest)| (name.as_str(), ingest.count, ingest.company.as_str(), ingest.due))
        .collect();
    assert_eq!(names.len(), paced.len());
    let company = "camera + 3 x small";
    let expected = [
        ("camera", 1, "", 50),
        ("small", 3, "", 150),
        ("small", 3, "", 150),
        ("camera", 1, company, 50),
        ("small", 3, company, 150),
    ];
    assert_eq!(seen, expected, "the small ones without their reader and with it");
    assert!(paced.iter().all(|ingest| ingest.stored + ingest.lost == ingest.due));
    let reading = |ingest: &&Ingest| ingest.readers.iter().filter(|reader| !reader.after).count();
    assert_eq!(paced.iter().map(reading).collect::<Vec<_>>(), [0, 0, 3, 0, 3], "each recorder has its own");
    assert!(said.contains("together with the others (camera + 3 x small)"), "{said}");
}

#[test]
fn the_answer_is_there_first_and_what_was_not_reached_is_said_at_the_top() {
    let home = home();
    let options = ["--for", "./camera.toml", "--duration", "1 s", "--find-limit", "--trial", "400 ms"];
    let mut running = begin(home.path(), &[&SMALL[..], &options].concat());
    running.await_said("trial 2: ");
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(matches!(ended.code, Some(1 | 3)), "interrupted, or frames were lost: {ended:?}");
    let results = nilometer_record::read(&home.path().join("evaluation.sqlite")).expect("a record");
    let goals: Vec<Goal> = results
        .samples
        .iter()
        .filter_map(|measured| measured.sample.ingest.as_ref().map(|ingest| ingest.goal))
        .take(5)
        .collect();
    assert_eq!(goals, [Goal::Pace, Goal::Limit, Goal::Limit, Goal::Limit, Goal::Search]);
    assert!(ended.stderr.contains("at most 60 trials, and none after"), "{ended:?}");
    for text in [&ended.stdout, &start(home.path(), &["report", "evaluation.sqlite"]).end(LIMIT).stdout] {
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("`{part}` in {text}"));
        assert!(place("INCOMPLETE") < place("FIGURES"), "above the figures: {text}");
        assert!(text.contains("the search for the highest rate: A not begun (0 of 1)"), "{text}");
        assert!(text.contains("VERDICT for camera"), "{text}");
    }
}

#[test]
fn the_exit_code_is_the_answer_and_a_report_of_it_is_well() {
    let home = home();
    let hungry = camera(50_000);
    fs::write(home.path().join("camera.toml"), hungry).expect("space");
    let options = ["--for", "./camera.toml", "--duration", "400 ms", "--buffer", "4 MiB", "--keep", "4 MiB"];
    let ended = begin(home.path(), &options).end(LIMIT);
    // Frames at 50 GB/s can be neither made nor stored.
    assert!(matches!(ended.code, Some(3 | 4)), "{ended:?}");
    assert!(ended.stdout.contains("VERDICT for camera"), "{ended:?}");
    let report = start(home.path(), &["report", "evaluation.sqlite"]).end(LIMIT);
    assert_eq!(report.code, Some(0), "{report:?}");
}

#[test]
fn a_search_goes_on_where_it_was_killed() {
    let home = home();
    let options = ["--for", "./camera.toml", "--duration", "400 ms", "--find-limit", "--trial", "400 ms"];
    let mut running = begin(home.path(), &[&SMALL[..], &options].concat());
    running.await_said("trial 1: ");
    running.signal(Signal::KILL);
    drop(running.end(LIMIT));
    let record = home.path().join("evaluation.sqlite");
    let before = recordings_of(&record);
    assert!((1..20).contains(&before.len()), "killed within the first trials: {before:?}");
    let ended = start(home.path(), &["evaluate", "--resume"]).end(LIMIT);
    assert!(ended.has_answered(), "{}", ended.stderr);
    let after = recordings_of(&record);
    assert_eq!(after[..before.len()], before, "what was tried is not tried again");
    assert!(after.len() > before.len());
    assert!(
        ended.stdout.contains("searched: ") && ended.stdout.contains("the smallest buffer: "),
        "{}",
        ended.stdout
    );
}

/// The trials of the record for the highest rate, in order: period and frames due.
fn recordings_of(record: &Path) -> Vec<(u64, u64)> {
    let results = nilometer_record::read(record).expect("a record");
    let mut trials: Vec<_> = results
        .samples
        .iter()
        .filter_map(|measured| Some((measured.key.repeat, measured.sample.ingest.as_ref()?)))
        .filter(|(_, ingest)| ingest.goal == Goal::Search)
        .collect();
    trials.sort_by_key(|(repeat, _)| *repeat);
    trials.into_iter().map(|(_, ingest)| (ingest.period.0, ingest.due)).collect()
}

#[test]
fn a_condition_is_entered_for_its_recordings_and_left() {
    let home = home();
    let condition = "name = \"one element lost\"\nenter = \"echo in $NILOMETER_TARGET >> log; touch lost\"\n\
                     leave = \"echo out >> log; rm lost\"\n";
    fs::write(home.path().join("lost.toml"), condition).expect("space");
    let options = ["--for", "./camera.toml", "--duration", "400 ms", "--condition", "./lost.toml"];
    let (answered, said, results) = evaluated(home.path(), &options);
    assert!(answered, "{said}");
    let paced = recordings(&results, Goal::Pace);
    let conditions: Vec<_> = paced.iter().map(|ingest| ingest.condition.as_str()).collect();
    assert_eq!(conditions, ["", "one element lost"]);
    let log = fs::read_to_string(home.path().join("log")).expect("the commands ran");
    let target = home.path().join("target").canonicalize().expect("it is there");
    let both = format!("in {}\nout\n", target.display());
    // Once for the limit and once at the instrument's pace, and again for each that a busy machine has spoilt.
    let times = log.len() / both.len();
    assert!(times >= 2 && log == both.repeat(times), "{log}");
    assert!(!home.path().join("lost").exists());
    assert!(said.contains("one element lost: "), "{said}");
}

#[test]
fn a_condition_that_a_kill_left_behind_is_left_when_the_campaign_is_resumed() {
    let home = home();
    let condition = "name = \"rebuilding\"\nenter = \"touch rebuilds\"\nleave = \"rm rebuilds\"\n";
    fs::write(home.path().join("rebuilds.toml"), condition).expect("space");
    let options = ["--for", "./camera.toml", "--duration", "400 ms", "--condition", "./rebuilds.toml"];
    let running = begin(home.path(), &[&SMALL[..], &options].concat());
    await_some("the condition", || home.path().join("rebuilds").exists().then_some(()));
    running.signal(Signal::KILL);
    drop(running.end(LIMIT));
    assert!(home.path().join("rebuilds").exists(), "nobody was left to take it back");
    let refused = start(home.path(), &["evaluate", "--resume"]).end(LIMIT);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("run `touch rebuilds`, run `rm rebuilds` as you"), "{}", refused.stderr);
    assert!(home.path().join("rebuilds").exists(), "a command of the record was run and nobody had named it");
    let ended = start(home.path(), &["evaluate", "--resume", "--condition", "rebuilds.toml"]).end(LIMIT);
    assert!(ended.has_answered(), "{}", ended.stderr);
    assert!(!home.path().join("rebuilds").exists());
    assert!(ended.stderr.contains("condition `rebuilding` on"), "{}", ended.stderr);
}

#[test]
fn a_target_is_filled_up_to_a_level() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::tmpfs("size=400m");
    let home = home();
    let frames = camera(50) + "recording.frames_per_file = 10\n";
    fs::write(home.path().join("camera.toml"), frames).expect("space");
    let target = disk.path().to_str().expect("a plain name");
    let arguments = [
        "evaluate",
        target,
        "--plan",
        "./plan.toml",
        "--buffer",
        "64 MiB",
        "--for",
        "./camera.toml",
        "--duration",
        "1 s",
        "--keep",
        "60 %",
    ];
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(ended.has_answered(), "{}", ended.stderr);
    let results = nilometer_record::read(&home.path().join("evaluation.sqlite")).expect("a record");
    // The limit is far beyond 250 MB in its time, so that much stays; at its pace all 50 frames fit into the buffer, and stay.
    let read = |goal| recordings(&results, goal).first().and_then(|ingest| ingest.readers.first().copied());
    assert_eq!(read(Goal::Pace).map(|reader| reader.frames), Some(50));
    assert!(ended.stdout.contains("VERDICT for camera"), "{}", ended.stdout);
}

#[test]
fn what_can_t_be_recorded_is_refused_before_anything_starts() {
    let home = home();
    for (options, part) in [
        (&["--for", "0*pilatus-6m"][..], "write 1 to 1000"),
        (&["--for", "six*pilatus-6m"], "`six` is no number"),
        (&["--for", "pilatus-6m+"], "an instrument is missing"),
        (&["--for", "pilatus-6m+pilatos-6m"], "no instrument `pilatos-6m`"),
        (&["--for", "./camera.toml", "--keep", "0 %"], "at most 100 %"),
        (&["--for", "./camera.toml", "--condition", "./camera.toml"], "unknown key"),
        (&["--readers", "1"], "--for"),
        (&["--for", "./camera.toml", "--readers", "1001"], "write a number from 0 to 1000"),
        (&["--for", "./camera.toml", "--copy-to", "/no/such/place"], "/no/such/place"),
        (&["--for", "./camera.toml", "--trial", "1 s"], "--find-limit"),
        (&["--for", "4*./camera.toml", "--buffer", "500 GiB"], "of available memory"),
        (&["--for", "./camera.toml", "--duration", "0s"], "write at least 400 ms"),
        (&["--for", "./camera.toml", "--duration", "399 ms"], "write at least 400 ms"),
        (&["--for", "./camera.toml", "--find-limit", "--trial", "0s"], "--trial 0 ns: too short"),
    ] {
        let arguments: Vec<&str> =
            ["evaluate", "target"].into_iter().chain(options.iter().copied()).collect();
        let ended = start(home.path(), &arguments).end(LIMIT);
        assert_eq!(ended.code, Some(2), "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{options:?}: {}", ended.stderr);
        assert!(!home.path().join("evaluation.sqlite").exists());
    }
}

#[test]
fn an_instrument_that_is_recorded_at_full_speed_only_has_its_figure() {
    let home = home();
    let stage = "title = \"as fast as it goes\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"images\"\n[stage.ingest]\n\
                 instrument = \"./camera.toml\"\ngoal = \"limit\"\nduration = \"2 s\"\nbuffer = \"64 MiB\"\nkeep = \"64 MiB\"\n";
    fs::write(home.path().join("plan.toml"), stage).expect("space");
    let ended = begin(home.path(), &[]).end(LIMIT);
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("AT FULL SPEED: camera"), "{}", ended.stdout);
    let report = start(home.path(), &["report", "evaluation.sqlite", "--format", "json"]).end(LIMIT);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    let of = &report["full_speeds"][0];
    let known = of["bytes_per_second"].is_array();
    let words = of["sentence"].as_str().unwrap_or_default();
    assert!(words.contains(if known { "sustains " } else { "has no known rate" }), "{of}");
    assert_eq!(of["bytes_per_second_needed"], 50e6, "{of}");
}
