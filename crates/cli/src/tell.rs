//! All output of the program. Nothing here can fail, panic or delay the work. A recording outlives the
//! terminal, the pipe and the log that it writes to.
//!
//! Results go to stdout. A reader that has left (`| head`) needs no more of them, and that is no fault.
//! Results lost for another reason, such as a full disk, become the exit code once the work itself is done.
//!
//! Notes go to stderr. A note that would wait is left out, because the terminal is stopped or nobody empties
//! the pipe. The next one that gets through reports the number of lost notes.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// The longest wait of a note: enough for a terminal across an ocean, and too short for the work to notice.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// The longest wait of the last note, which explains why the program ends.
const LAST_PATIENCE: Nanos = Nanos::from_millis(5000);
/// The bytes that a ready pipe takes without waiting (`PIPE_BUF`, pipe(7)).
const PIECE: usize = 4096;

/// The number of notes left out since the last that got through.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// True if notes are JSON objects.
static AS_JSON: AtomicBool = AtomicBool::new(false);
/// True if the reader of the results has left.
static LEFT: AtomicBool = AtomicBool::new(false);
/// The error by which results were lost.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Notes that wait for the end of a view; `None` if there is no view.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);
/// The most notes that wait.
const HELD_MOST: usize = 1000;

/// Prints a part of the results, without characters that would command a terminal. On a terminal, long lines break
/// between words.
pub(crate) fn result(text: impl Display) {
    let text = visible(&text.to_string());
    result_unchanged(wrapped_for(&io::stdout(), text));
}

/// Prints the text of a file or a command line, without characters that would command a terminal. Its lines stay
/// whole, so that you can copy them.
pub(crate) fn result_to_copy(text: impl Display) {
    result_unchanged(visible(&text.to_string()));
}

/// Prints a part of the results in JSON.
pub(crate) fn json_result(text: impl Display) {
    result_unchanged(without_commands(&text.to_string()));
}

/// Prints a part of the results unchanged, with its colours and other commands for the terminal. Its names
/// must be free of control characters already.
pub(crate) fn result_unchanged(text: impl Display) {
    if LEFT.load(Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => LEFT.store(true, Ordering::Relaxed),
        Err(error) => {
            LOST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// Prints a line of the results.
pub(crate) fn result_line(text: impl Display) {
    result(format_args!("{text}\n"));
}

/// The error by which results were lost, if any.
pub(crate) fn lost_results() -> Option<io::Error> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Prints a line of its own on stderr, or keeps it while a view fills the terminal.
pub(crate) fn note(text: impl Display) {
    let text = visible(&text.to_string());
    if let Some(held) = held().as_mut() {
        held.push(text);
        let excess = held.len().saturating_sub(HELD_MOST);
        held.drain(..excess);
    } else if AS_JSON.load(Ordering::Relaxed) {
        note_object(&serde_json::json!({ "event": "note", "text": text }));
    } else {
        note_line(&wrapped_for(&io::stderr(), text));
    }
}

/// Keeps notes from now on, until [`release_notes`].
pub(crate) fn hold_notes() {
    held().get_or_insert_default();
}

/// The latest notes that are kept.
pub(crate) fn held_notes(count: usize) -> Vec<String> {
    let held = held();
    let notes = held.as_deref().unwrap_or_default();
    notes[notes.len().saturating_sub(count)..].to_vec()
}

/// Prints all notes that were kept.
pub(crate) fn release_notes() {
    let notes = held().take().unwrap_or_default();
    notes.into_iter().for_each(note);
}

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a view over the terminal on stderr. Leaves it out if it would wait: another follows.
pub(crate) fn rewrite_screen(text: &str) {
    write_in_time(text, Nanos(0));
}

/// The text with lines no wider than this terminal, or unchanged if it is none or does not state its width.
fn wrapped_for(stream: &(impl IsTerminal + AsFd), text: String) -> String {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns >= COLUMNS_LEAST);
    match columns {
        Some(columns) => wrapped(&text, columns),
        None => text,
    }
}

/// A narrower terminal breaks lines itself.
const COLUMNS_LEAST: usize = 40;

/// Breaks each line between words, so that none is wider than `columns`. A continued line begins below the last
/// column of its line.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut broken = String::new();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            broken.push('\n');
        }
        let indent = continued_at(line, columns);
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let width = word.trim_end().chars().count();
            if used > indent && width > 0 && used + width > columns {
                broken.truncate(broken.trim_end_matches(' ').len());
                broken.push('\n');
                broken.push_str(&" ".repeat(indent));
                used = indent;
            }
            broken.push_str(word);
            used += word.chars().count();
        }
    }
    broken
}

/// The place below which a continued line begins: the last column, which two blanks separate from the one before it.
fn continued_at(line: &str, columns: usize) -> usize {
    let letters: Vec<char> = line.chars().collect();
    let indent = letters.iter().take_while(|letter| **letter == ' ').count();
    let within = 2..letters.len().min(columns * 2 / 3);
    let begins = |at: &usize| letters[*at] != ' ' && letters[at - 2..*at] == [' ', ' '];
    let last = within.rev().find(begins).filter(|at| *at > indent);
    last.unwrap_or(if indent == 0 { CONTINUED } else { indent + 2 })
}

/// The indentation of a continued line without columns.
const CONTINUED: usize = 4;

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

/// The same for callers with an [`OperatorLog`](nilometer_service::OperatorLog).
pub(crate) fn log(text: &str) {
    note(text);
}

/// Prints the reason why the program ends.
pub(crate) fn last_note(text: impl Display) {
    let text = visible(&text.to_string());
    let line = if AS_JSON.load(Ordering::Relaxed) {
        serde_json::json!({ "event": "fault", "text": text }).to_string()
    } else {
        format!("nilometer: {text}")
    };
    let line = if AS_JSON.load(Ordering::Relaxed) { line } else { wrapped_for(&io::stderr(), line) };
    write_in_time(&format!("{line}\n"), LAST_PATIENCE);
}

/// Removes characters that would command a terminal: names of files and of recordings may have any.
pub(crate) fn visible(text: &str) -> String {
    let commands = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(commands) {
        return text.to_owned();
    }
    let shown =
        |letter: char| if commands(letter) { letter.escape_default().collect() } else { letter.to_string() };
    text.chars().map(shown).collect()
}

/// Replaces the last `shown` lines of the terminal on stderr. Leaves lines out that would wait: more follow.
pub(crate) fn rewrite_lines(text: &str, shown: usize) {
    write_in_time(&rewriting(text, shown), Nanos(0));
}

/// The commands to the terminal for that. The cursor stands at the end of the last line, before and after.
/// `ESC [ A` moves it up, `ESC [ J` erases everything below (ECMA-48, 8.3.22 and 8.3.39).
fn rewriting(text: &str, shown: usize) -> String {
    let up = match shown {
        0 | 1 => String::new(),
        lines => format!("\x1b[{}A", lines - 1),
    };
    format!("\r{up}\x1b[J{text}")
}

/// Prints notes as JSON objects from now on, one a line, for a program that reads them.
pub(crate) fn notes_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// True if notes are objects.
pub(crate) fn is_json() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// Prints an object on a line of its own on stderr. Leaves it out, and counts it, if it would wait.
pub(crate) fn note_object(object: &serde_json::Value) {
    note_line(&without_commands(&object.to_string()));
}

/// Escapes control characters from U+007F on. JSON leaves them as they are, and a terminal may take them for
/// commands.
fn without_commands(json: &str) -> String {
    let shown = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    json.chars().map(shown).collect()
}

/// Writes to stderr, and waits for at most `patience`. True if stderr took all.
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
            // Nobody reads stderr, or the log's disk is full: nobody misses the note.
            Err(_) => return false,
        }
    }
    true
}

/// True if stderr takes a piece within this time.
fn has_room(stderr: &io::StderrLock<'_>, patience: Nanos) -> bool {
    let limit = Timespec::try_from(patience.duration()).expect("seconds");
    let mut fds = [PollFd::new(stderr, PollFlags::OUT)];
    // Interrupted by a signal: one repeat is enough.
    let ready = poll(&mut fds, Some(&limit)).or_else(|_| poll(&mut fds, Some(&limit)));
    ready.is_ok_and(|ready| ready > 0)
}

/// `1 bit`, `2 bits`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
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
        let columns = "missing     6 packets, 3 gaps";
        assert_eq!(wrapped(columns, 24), "missing     6 packets, 3\n            gaps");
        assert_eq!(
            wrapped("name        a-long-path", 20),
            "name        a-long-path",
            "no word is alone on a line"
        );
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
