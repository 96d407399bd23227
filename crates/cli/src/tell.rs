//! All that the program prints. Nothing here can fail, panic or hold up the work: a recording outlives the terminal, the
//! pipe and the log that it talks to.
//!
//! Results go to stdout. A reader that has left (`| head`) wants no more of them, and that is no fault; results that could
//! not be written for another reason (a full disk) become the exit code, once the work itself is done.
//!
//! Notes go to stderr. One that would wait, because the terminal was stopped or nobody empties the pipe, is left out, and
//! the next that gets through says how many were.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// How long a note waits for room: longer than a terminal at the other end of an ocean takes, and too short to be missed
/// by the work.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// Of why the program ends, which is worth more.
const LAST_PATIENCE: Nanos = Nanos::from_millis(5000);
/// What a pipe that is ready takes without waiting (`PIPE_BUF`, pipe(7)).
const PIECE: usize = 4096;

/// Notes that found no room since the last that did.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// Whether notes are JSON objects.
static AS_JSON: AtomicBool = AtomicBool::new(false);
/// Whether the reader of the results has left.
static LEFT: AtomicBool = AtomicBool::new(false);
/// Why results could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// A part of the results, without characters that would command a terminal.
pub(crate) fn result(text: impl Display) {
    result_unchanged(visible(&text.to_string()));
}

/// A part of the results in JSON.
pub(crate) fn json_result(text: impl Display) {
    result_unchanged(without_commands(&text.to_string()));
}

/// A part of the results with commands for the terminal, such as colours, or with line ends of its own. Names in it were
/// cleaned when it was made.
pub(crate) fn result_unchanged(text: impl Display) {
    if LEFT.load(Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => LEFT.store(true, Ordering::Relaxed),
        Err(error) => {
            LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// A line of the results.
pub(crate) fn result_line(text: impl Display) {
    result(format_args!("{text}\n"));
}

/// Why results could not be written, if so.
pub(crate) fn lost_results() -> Option<io::Error> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// A line of its own on stderr.
pub(crate) fn note(text: impl Display) {
    let text = visible(&text.to_string());
    if AS_JSON.load(Ordering::Relaxed) {
        note_object(&serde_json::json!({ "event": "note", "text": text }));
    } else {
        note_line(&columns().map_or_else(|| text.clone(), |columns| wrapped(&text, columns)));
    }
}

/// Of the terminal on stderr; none if it is none, or does not say.
fn columns() -> Option<usize> {
    let stderr = io::stderr();
    let size = stderr.is_terminal().then(|| rustix::termios::tcgetwinsize(&stderr).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= COLUMNS_LEAST)
}

/// A narrower terminal breaks lines itself.
const COLUMNS_LEAST: usize = 40;

/// Each line broken between words, so that none is wider; what goes on below is moved to the right.
fn wrapped(text: &str, columns: usize) -> String {
    let mut broken = String::new();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            broken.push('\n');
        }
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let width = word.trim_end().chars().count();
            if used > 0 && used + width > columns {
                broken.truncate(broken.trim_end_matches(' ').len());
                broken.push_str("\n    ");
                used = 4;
            }
            broken.push_str(word);
            used += word.chars().count();
        }
    }
    broken
}

fn note_line(text: &str) {
    let left_out = LEFT_OUT.swap(0, Ordering::Relaxed);
    let before = match left_out {
        0 => String::new(),
        _ if AS_JSON.load(Ordering::Relaxed) => format!("{{\"event\":\"left_out\",\"lines\":{left_out}}}\n"),
        _ => format!("({left_out} lines before this one found no room on the terminal or in the pipe)\n"),
    };
    if !write_in_time(&format!("{before}{text}\n"), PATIENCE) {
        LEFT_OUT.fetch_add(left_out + 1, Ordering::Relaxed);
    }
}

/// The same for those who know notes as an [`OperatorLog`](nilometer_service::OperatorLog).
pub(crate) fn log(text: &str) {
    note(text);
}

/// Why the program ends.
pub(crate) fn last_note(text: impl Display) {
    let text = visible(&text.to_string());
    let line = if AS_JSON.load(Ordering::Relaxed) {
        serde_json::json!({ "event": "fault", "text": text }).to_string()
    } else {
        format!("nilometer: {text}")
    };
    write_in_time(&format!("{line}\n"), LAST_PATIENCE);
}

/// Without characters that would command a terminal: names of files and of recordings may hold any.
pub(crate) fn visible(text: &str) -> String {
    let commands = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(commands) {
        return text.to_owned();
    }
    let shown =
        |letter: char| if commands(letter) { letter.escape_default().collect() } else { letter.to_string() };
    text.chars().map(shown).collect()
}

/// Puts lines in the place of the last `shown` ones of the terminal on stderr. What would wait is left out: more follows.
pub(crate) fn rewrite_lines(text: &str, shown: usize) {
    write_in_time(&rewriting(text, shown), Nanos(0));
}

/// What a terminal does for that: the cursor stands at the end of the last of the lines, before and after. `ESC [ A` moves it
/// up, `ESC [ J` erases what is below (ECMA-48, 8.3.22 and 8.3.39).
fn rewriting(text: &str, shown: usize) -> String {
    let up = match shown {
        0 | 1 => String::new(),
        lines => format!("\x1b[{}A", lines - 1),
    };
    format!("\r{up}\x1b[J{text}")
}

/// Notes are objects from now on, a JSON object a line, for a program that reads them.
pub(crate) fn notes_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Whether notes are objects.
pub(crate) fn is_json() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// A line of its own on stderr: one that would wait is left out and counted.
pub(crate) fn note_object(object: &serde_json::Value) {
    note_line(&without_commands(&object.to_string()));
}

/// JSON leaves the control characters from U+007F on as they are, and a terminal may take them for commands.
fn without_commands(json: &str) -> String {
    let shown = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    json.chars().map(shown).collect()
}

/// Writes to stderr as far as it takes it without waiting for longer; whether it took all.
fn write_in_time(text: &str, patience: Nanos) -> bool {
    let stderr = io::stderr().lock();
    let mut left = text.as_bytes();
    while !left.is_empty() {
        if !has_room(&stderr, patience) {
            return false;
        }
        match rustix::io::write(&stderr, &left[..left.len().min(PIECE)]) {
            Ok(written) => left = &left[written..],
            Err(Errno::INTR) => {}
            // Nobody listens, or the log's disk is full: it can't be helped, and is not missed.
            Err(_) => return false,
        }
    }
    true
}

/// Whether stderr takes a piece now, or within this time.
fn has_room(stderr: &io::StderrLock<'_>, patience: Nanos) -> bool {
    let limit = Timespec::try_from(patience.duration()).expect("seconds");
    let mut fds = [PollFd::new(stderr, PollFlags::OUT)];
    // Interrupted by a signal: once more is enough.
    let ready = poll(&mut fds, Some(&limit)).or_else(|_| poll(&mut fds, Some(&limit)));
    ready.is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_commands_no_terminal_and_says_the_same() {
        let object = serde_json::json!({ "path": "a\u{9b}2J\u{1b}[31m" });
        let line = without_commands(&object.to_string());
        assert!(line.is_ascii(), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).ok(), Some(object));
    }

    #[test]
    fn notes_break_between_words() {
        assert_eq!(wrapped("aaa bbb ccc", 40), "aaa bbb ccc");
        assert_eq!(wrapped("aaa bbb ccc\n  dd eee", 8), "aaa bbb\n    ccc\n  dd eee");
        assert_eq!(wrapped("longer-than-that b", 6), "longer-than-that\n    b");
    }

    #[test]
    fn lines_are_rewritten_from_the_first() {
        assert_eq!(rewriting("a", 0), "\r\x1b[Ja");
        assert_eq!(rewriting("a\nb", 1), "\r\x1b[Ja\nb");
        assert_eq!(rewriting("", 2), "\r\x1b[1A\x1b[J");
    }

    #[test]
    fn a_name_commands_no_terminal() {
        assert_eq!(visible("scan\u{1b}[31m\r\u{9b}2J é\n"), "scan\\u{1b}[31m\\r\\u{9b}2J é\n");
    }
}
