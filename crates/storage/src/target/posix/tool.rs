//! Programs that come with a storage system, run with a time limit. They may be missing, hang on a server,
//! colour their output or print a licence before it.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread::JoinHandle,
    time::Duration,
};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal};

use super::super::TargetError;

/// The longest wait for a tool: a healthy one answers in milliseconds.
pub(super) const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// The interval between checks that a tool has ended.
const STEP: Duration = Duration::from_millis(1);

/// The most letters of an error message.
const LONGEST: usize = 400;

/// The most bytes of output that are kept: no tool prints more that is useful here.
const MOST: u64 = 4 << 20;

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    program: String,
    arguments: Vec<OsString>,
    limit: Duration,
}

/// Why a call failed.
#[derive(Debug)]
enum ToolFailure {
    Missing,
    Start(std::io::Error),
    Hung,
    Refused(ExitStatus, String),
}

impl Tool {
    /// Creates a call of this program, by name or path, with these arguments.
    pub(super) fn new(program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Tool { program: program.into(), arguments, limit: TOOL_LIMIT }
    }

    /// Adds a path as the last argument.
    pub(super) fn on(mut self, path: &Path) -> Self {
        self.arguments.push(path.into());
        self
    }

    /// Sets another limit.
    #[cfg(test)]
    pub(super) fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the tool and returns its output, without colours and without a licence before it.
    pub(super) fn said(&self) -> Result<String, TargetError> {
        self.run().map(|[said, _]| said).map_err(|failure| self.failed(&failure))
    }

    /// Does the same, and appends its error output: some tools print their version there.
    pub(super) fn said_in_all(&self) -> Result<String, TargetError> {
        self.run().map(|texts| texts.concat()).map_err(|failure| self.failed(&failure))
    }

    fn failed(&self, failure: &ToolFailure) -> TargetError {
        let message = format!("`{self}` {}", self.in_words(failure));
        TargetError::Probe { path: self.program.clone().into(), message }
    }

    fn run(&self) -> Result<[String; 2], ToolFailure> {
        if !installed(&self.program) {
            return Err(ToolFailure::Missing);
        }
        let mut child = self.start().map_err(ToolFailure::Start)?;
        let said = reader(child.stdout.take());
        let complained = reader(child.stderr.take());
        let status = self.wait(&mut child);
        // Processes that the tool started must not keep its pipes open.
        end_group(&child);
        let status = status.ok_or(ToolFailure::Hung)?;
        let texts = [said, complained].map(|reader| reader.join().unwrap_or_default());
        let [said, complained] = texts.map(|text| without_licence(&without_colour(&text)));
        if status.success() {
            return Ok([said, complained]);
        }
        Err(ToolFailure::Refused(status, if complained.trim().is_empty() { said } else { complained }))
    }

    /// Starts the tool in the C locale and in a process group of its own, so that its children end with it.
    /// It ends with this thread, even if this process is killed because it took too long.
    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs([("LC_ALL", "C"), ("NO_COLOR", "1"), ("TERM", "dumb")])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let parent = getpid();
        // SAFETY: between fork and exec two system calls are made, and no memory is taken.
        unsafe { command.pre_exec(move || end_with(parent)) };
        command.spawn()
    }

    /// Waits for the tool's end; `None` if it did not end in time. A tool in uninterruptible sleep can't be
    /// killed and is left behind.
    fn wait(&self, child: &mut Child) -> Option<ExitStatus> {
        for _ in 0..=self.limit.as_millis() / STEP.as_millis() {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(STEP),
                Err(_) => break,
            }
        }
        None
    }

    fn in_words(&self, failure: &ToolFailure) -> String {
        match failure {
            ToolFailure::Missing => {
                format!("can't run: there is no {} in PATH: install the system's client tools", self.program)
            }
            ToolFailure::Start(error) => format!("can't be started: {error}"),
            ToolFailure::Hung => {
                format!("gave no answer within {} s: is a server down?", self.limit.as_secs_f64())
            }
            ToolFailure::Refused(status, text) => {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                // Usage text follows the error message, except in tools of MooseFS, where it comes first.
                let line = if self.program.starts_with("mfs") { lines.next_back() } else { lines.next() };
                let line = line.unwrap_or("it did not say why");
                let line: String = line.chars().take(LONGEST).collect();
                format!("failed ({status}{}): {line}", self.code_in_words(status.code()))
            }
        }
    }

    /// Returns the observed meaning of exit codes of `lfs setstripe`; other tools explain themselves in their
    /// message only.
    fn code_in_words(&self, code: Option<i32>) -> &'static str {
        match (self.program.as_str(), code) {
            ("lfs", Some(4)) => ", it takes no such value",
            ("lfs", Some(17)) => ", the file has a layout already",
            ("lfs", Some(25)) => ", this is not on Lustre",
            _ => "",
        }
    }
}

/// Has the kernel kill this process when its parent ends, which may already have happened.
fn end_with(parent: Pid) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
}

/// Kills the rest of a tool and everything that it started.
fn end_group(child: &Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        kill_process_group(group, Signal::KILL).ok();
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.display()))
    }
}

/// Reads a pipe to its end on a thread, because the program that fills it would block otherwise.
pub(super) fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            pipe.take(MOST).read_to_end(&mut bytes).ok();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns true if a program can be started by this name.
pub(super) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_file = |directory: &Path| directory.join(program).is_file();
    std::env::split_paths::<OsStr>(&path).any(|directory| is_file(&directory))
}

/// Removes the sequences that colour words on a terminal: an escape, `[`, parameters and a letter (ECMA-48).
fn without_colour(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.strip_prefix('[').and_then(|rest| {
            rest.find(|letter: char| letter.is_ascii_alphabetic()).map(|end| &rest[end + 1..])
        });
        plain.push_str(rest.unwrap_or(part));
    }
    plain
}

/// Removes the box that `BeeGFS` prints before a listing: lines of dashes, and between them lines in bars.
fn without_licence(text: &str) -> String {
    let is_rule = |line: &str| line.len() > 40 && line.chars().all(|letter| letter == '-');
    let is_boxed = |line: &str| line.starts_with('|') && line.trim_end().ends_with('|');
    let mut lines = text.lines().peekable();
    if !lines.peek().is_some_and(|line| is_rule(line)) {
        return text.to_owned();
    }
    let rest: Vec<&str> = lines.skip_while(|line| is_rule(line) || is_boxed(line)).collect();
    rest.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Tool {
        Tool::new("sh", &["-c", script])
    }

    #[test]
    fn colours_and_a_licence_are_left_out() {
        let script = r"printf '%060d\n' 0 | tr 0 -; echo '| licence |'; printf '%060d\n' 0 | tr 0 -;
            printf '\033[1;32mPool\033[0m 1\n'";
        assert_eq!(shell(script).said().expect("it works").trim(), "Pool 1");
        assert_eq!(shell("echo '| a table |'").said().expect("it works").trim(), "| a table |");
    }

    #[test]
    fn what_a_tool_leaves_behind_is_not_waited_for() {
        // The background process keeps the pipes open for ever.
        assert_eq!(shell("sleep infinity & echo said").said().expect("it works").trim(), "said");
    }

    #[test]
    fn a_tool_that_fails_hangs_or_is_missing_is_one_message() {
        let error = |tool: Tool| tool.said().expect_err("it does not work").to_string();
        let failed = error(shell("echo no such pool >&2; echo Usage: tool >&2; exit 4"));
        assert!(failed.contains("no such pool") && failed.contains("exit status: 4"), "{failed}");
        assert!(failed.ends_with(": no such pool"), "how it is used is not said: {failed}");
        // Its child has the pipe too, and must not delay the answer.
        let hung = error(shell("sleep 1000 & sleep 1000").within(Duration::from_millis(50)));
        assert!(hung.contains("no answer within 0.05 s") && hung.contains("sleep 1000"), "{hung}");
        let missing = error(Tool::new("no-such-tool", &["get"]).on(Path::new("/data")));
        assert!(missing.contains("`no-such-tool get /data`") && missing.contains("PATH"), "{missing}");
    }

    #[test]
    fn much_output_does_not_stop_a_tool() {
        let text = shell("yes | head -c 300000").said().expect("it works");
        assert_eq!(text.len(), 300_000);
    }
}
