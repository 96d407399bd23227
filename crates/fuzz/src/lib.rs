//! Fuzzing of decoders that read bytes from outside, on the repository's own toolchain. Inputs are almost
//! valid: the fuzzer changes those of a corpus in ways that a decoder may trip over.
//!
//! In a run of the tests each target gets a fixed number of inputs that follow from its name, so you can repeat
//! the run. With `NILOMETER_FUZZ_SECONDS` fuzzing goes on for that time, from another seed each time. If an
//! input fails, the message states the seed.
//!
//! The fuzzer shrinks a failing input as far as it still fails, and prints it. Add it to the corpus, as a file
//! of its own, when you have fixed its cause.

#![forbid(unsafe_code)]

mod metadata;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};

pub use metadata::with_changed_metadata;

/// Inputs of a target in a run of the tests.
pub const INPUTS: u32 = 3000;
/// Environment variable with the seconds for which to fuzz each target. If unset, a target gets [`INPUTS`]
/// inputs.
pub const SECONDS: &str = "NILOMETER_FUZZ_SECONDS";
/// Longest time for one input, on any machine: a decoder that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_mins(1);

/// The files of a directory as a corpus, in the order of their names.
///
/// # Panics
///
/// If there are none: nothing would be tested.
pub fn corpus(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let read = files.iter().map(|path| fs::read(path).expect("a file of the repository"));
    let corpus: Vec<Vec<u8>> = read.collect();
    assert!(!corpus.is_empty(), "{}: no corpus", directory.display());
    corpus
}

/// Gives a decoder each input of the corpus, and then changed ones. It may refuse an input, but must not panic,
/// and must return.
///
/// # Panics
///
/// Panics with the smallest input that fails, and the seed that led to it.
pub fn fuzz(name: &str, corpus: Vec<Vec<u8>>, decode: impl Fn(&[u8]) + Send + 'static) {
    let (sender, over) = sync_channel(1);
    let last = Arc::<Mutex<(u64, Vec<u8>)>>::default();
    let seen = last.clone();
    let target = name.to_owned();
    thread::spawn(move || run(&target, corpus, &decode, &seen, &sender));
    let mut count = u64::MAX;
    loop {
        match over.recv_timeout(HANGS_AFTER) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => panic!("{name}: {why}"),
            Err(RecvTimeoutError::Disconnected) => panic!("{name}: the fuzzer itself failed"),
            Err(RecvTimeoutError::Timeout) => {
                let (inputs, input) = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                assert!(inputs != count, "{name}: hangs on {}", shown(&input));
                count = inputs;
            }
        }
    }
}

/// Number of inputs tried, and the last of them.
type Last = Mutex<(u64, Vec<u8>)>;

fn run(
    name: &str,
    corpus: Vec<Vec<u8>>,
    decode: &impl Fn(&[u8]),
    last: &Last,
    over: &SyncSender<Result<(), String>>,
) {
    let given = |input: &[u8]| survives(input, decode, last);
    let failed = corpus.iter().find(|input| !given(input));
    let result = match failed {
        Some(input) => Err(format!("fails on {} of the corpus", shown(input))),
        None => rounds(name, corpus, &given),
    };
    // If an input hung, nobody waits for the result any more.
    drop(over.send(result));
}

/// Returns true if the decoder returns without a panic. Stores the input first.
fn survives(input: &[u8], decode: &impl Fn(&[u8]), last: &Last) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    *last = (last.0 + 1, input.to_vec());
    drop(last);
    catch_unwind(AssertUnwindSafe(|| decode(input))).is_ok()
}

/// Runs one round in a run of the tests, or as many as the time allows.
fn rounds(name: &str, corpus: Vec<Vec<u8>>, given: &impl Fn(&[u8]) -> bool) -> Result<(), String> {
    let seconds: Option<u64> = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    let begun = now();
    let inputs = changed(corpus);
    let first = if seconds.is_some() { begun.as_nanos() as u64 } else { 0 };
    for count in 0.. {
        let seed = first.wrapping_add(count);
        round(name, seed, &inputs, given).map_err(|why| format!("seed {seed}: {why}"))?;
        let Some(seconds) = seconds else { break };
        if now().saturating_sub(begun).as_secs() >= seconds {
            tell(name, (count + 1) * u64::from(INPUTS));
            break;
        }
    }
    Ok(())
}

/// Prints the number of inputs that a long run of a target tried.
#[expect(clippy::print_stderr, reason = "how much a long run tried is what it is for")]
pub fn tell(name: &str, inputs: u64) {
    eprintln!("{name}: {inputs} inputs tried, none failed");
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn round(
    name: &str,
    seed: u64,
    inputs: &impl Strategy<Value = Vec<u8>>,
    given: &impl Fn(&[u8]) -> bool,
) -> Result<(), String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    for (place, letter) in bytes[8..].iter_mut().zip(name.bytes()) {
        *place = letter;
    }
    let config =
        Config { cases: INPUTS, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner
        .run(inputs, |input| if given(&input) { Ok(()) } else { Err(TestCaseError::fail(shown(&input))) });
    outcome.map_err(|error| error.to_string())
}

/// An input as text that `printf` can write to a file.
fn shown(input: &[u8]) -> String {
    format!("{} bytes: {}", input.len(), input.escape_ascii())
}

/// One change of an input.
#[derive(Debug, Clone)]
enum Change {
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    Repeat(Index, Index, usize),
    /// Replaces the digits of a number by those of another.
    Number(Index, &'static str),
    /// Replaces eight bytes by a binary number.
    Binary(Index, u64),
    /// Replaces the rest by that of another input.
    Splice(Index, Index, Index),
    Cut(Index),
}

/// Numbers at which counting goes wrong.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "nan",
    "99999999999999999999999999999999999999",
];
const BINARY: [u64; 8] = [0, 1, u64::MAX, 1 << 63, 1 << 62, u32::MAX as u64, 1 << 32, (1 << 53) + 1];

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (at(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), at()).prop_map(|(from, to)| Change::Remove(from, to)),
        (at(), at(), 1..200_usize).prop_map(|(from, to, times)| Change::Repeat(from, to, times)),
        (at(), select(&NUMBERS[..])).prop_map(|(at, number)| Change::Number(at, number)),
        (at(), select(&BINARY[..])).prop_map(|(at, number)| Change::Binary(at, number)),
        (at(), at(), at()).prop_map(|(other, from, to)| Change::Splice(other, from, to)),
        at().prop_map(Change::Cut),
    ]
}

fn changed(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let inputs = (any::<Index>(), vec(change(), 0..6));
    inputs.prop_map(move |(which, changes)| {
        let mut input = which.get(&corpus).clone();
        for change in changes {
            change.apply(&mut input, &corpus);
        }
        input
    })
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let end = input.len() + 1;
        let range = |from: &Index, to: &Index| {
            let from = from.index(end);
            let to = to.index(end);
            from.min(to)..from.max(to)
        };
        match self {
            Change::Flip(at, bit) => at_byte(input, *at, |byte| byte ^ 1 << bit),
            Change::Set(at, value) => at_byte(input, *at, |_| *value),
            Change::Insert(at, bytes) => {
                drop(input.splice(at.index(end)..at.index(end), bytes.iter().copied()));
            }
            Change::Remove(from, to) => drop(input.drain(range(from, to))),
            Change::Repeat(from, to, times) => {
                let piece: Vec<u8> = input[range(from, to)].iter().copied().take(500).collect();
                let place = to.index(end);
                drop(input.splice(place..place, piece.repeat(*times)));
            }
            Change::Number(at, number) => {
                let behind = at.index(end);
                let begin = input[behind..].iter().position(u8::is_ascii_digit).map(|digit| behind + digit);
                let Some(begin) = begin else { return };
                let digits = input[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                drop(input.splice(begin..begin + digits, number.bytes()));
            }
            Change::Binary(at, number) => {
                let bytes = number.to_le_bytes();
                for (place, byte) in input.iter_mut().skip(at.index(end)).zip(bytes) {
                    *place = byte;
                }
            }
            Change::Splice(other, from, to) => {
                let other = other.get(corpus);
                input.truncate(from.index(end));
                input.extend(&other[to.index(other.len() + 1)..]);
            }
            Change::Cut(at) => input.truncate(at.index(end)),
        }
    }
}

fn at_byte(input: &mut [u8], at: Index, change: impl Fn(u8) -> u8) {
    if !input.is_empty() {
        let at = at.index(input.len());
        input[at] = change(input[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(decode: impl Fn(&[u8]) + Send + 'static) -> String {
        let corpus = vec![b"length = 12\n".to_vec(), b"length = 7; more\n".to_vec()];
        let failed = catch_unwind(AssertUnwindSafe(|| fuzz("a target", corpus, decode)));
        let failed = failed.expect_err("it fails");
        failed.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn a_decoder_that_counts_too_far_is_found_and_its_input_is_made_small() {
        let counts = |input: &[u8]| {
            let digits: Vec<u8> = input.iter().copied().filter(u8::is_ascii_digit).collect();
            let number: u64 = String::from_utf8(digits).expect("digits").parse().unwrap_or(0);
            assert!(number < 1 << 62, "too much");
        };
        let why = failure(counts);
        assert!(why.contains("seed 0") && why.contains("9223372036854775807"), "{why}");
    }

    #[test]
    fn a_decoder_that_reads_beyond_the_end_is_found() {
        let reads_behind = |input: &[u8]| {
            let sign = input.iter().position(|byte| *byte == b'=');
            assert!(sign.is_none_or(|sign| sign + 1 < input.len()), "beyond");
        };
        let why = failure(reads_behind);
        assert!(why.contains("bytes: "), "{why}");
    }

    #[test]
    fn one_that_refuses_what_it_can_not_read_is_well() {
        fuzz("another", vec![b"x".to_vec()], |input| drop(String::from_utf8(input.to_vec())));
    }
}
