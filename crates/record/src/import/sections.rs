//! Finds the output of each program in a text. The log of a job may hold a run of IOR, then one of mdtest, and
//! lines of the shell between them: a parser gets the lines of its own program only, and no program's results
//! are lost because another one's came first.

use serde::de::IgnoredAny;

use super::{elbencho, io500, ior};

/// A program, and the form in which it wrote its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fio,
    Ior,
    IorCsv,
    IorJson,
    Mdtest,
    Elbencho,
    ElbenchoJson,
    Io500,
}

/// The output of one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Lines of the file above it.
    pub(super) lines_above: u64,
}

/// All of them, in their order.
#[derive(Debug, Default)]
pub(super) struct Sections<'a> {
    pub(super) sections: Vec<Section<'a>>,
    /// Programs whose results are in the text and are not read, with the number of results.
    pub(super) others: Vec<(&'static str, u64)>,
}

/// Marks of results that import does not read: a part of a line, and the program that writes it.
const OTHERS: [(&str, &str); 26] = [
    (" copied, ", "dd"),
    (" kopiert, ", "dd"),
    (" bytes transferred in ", "dd"),
    ("Children see throughput for", "iozone"),
    ("sysbench 1.", "sysbench"),
    ("sysbench 0.", "sysbench"),
    ("Vdbench distribution:", "vdbench"),
    ("iperf Done.", "iperf3"),
    ("\"sum_received\"", "iperf3"),
    (" MB /  ", "nuttcp"),
    ("Timing buffered disk reads:", "hdparm"),
    ("Timing cached reads:", "hdparm"),
    (" bytes/sec", "rsync"),
    ("+++++,+++", "bonnie++"),
    (" ioping statistics ---", "ioping"),
    (" procs  max_latency=", "dbench"),
    (": IO Summary: ", "filebench"),
    ("% of requested files processed", "smallfile"),
    ("# OSU MPI ", "the OSU micro-benchmarks"),
    (";fio-", "fio as text (--output-format=json is read)"),
    ("Iozone: Performance Test of File I/O", "iozone"),
    ("------Sequential Output------", "bonnie++"),
    ("MD-Workbench total objects", "md-workbench"),
    ("RESULT TYPE  ", "elbencho as text (--csvfile or --jsonfile is read)"),
    (": IOPS=", "fio as text (--output-format=json is read)"),
    (": io=", "fio as text (--output-format=json is read)"),
];

/// A text, and the current position in it.
struct Division<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    line: u64,
    /// The open section: its kind, its start, and the number of lines above it.
    open: Option<(Kind, usize, u64)>,
    found: Sections<'a>,
}

pub(super) fn divide(text: &str) -> Sections<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut division = Division { text, at: 0, line: 0, open: None, found: Sections::default() };
    while division.at < text.len() {
        division.step();
    }
    division.close();
    division.found.with_others(text)
}

impl Division<'_> {
    /// Takes one line, or one document of JSON.
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let line = rest.split_inclusive('\n').next().unwrap_or(rest);
        if line.trim_start().starts_with('{')
            && let Some((kind, length)) = document(rest)
        {
            self.close();
            self.open = Some((kind, self.at, self.line));
            self.advance(length);
            self.close();
            return;
        }
        if let Some(kind) = self.begun(line) {
            self.close();
            self.open = Some((kind, self.at, self.line));
        } else if self.is_behind_table(line) {
            self.close();
        }
        self.advance(line.len());
    }

    fn advance(&mut self, length: usize) {
        let passed = &self.text[self.at..self.at + length];
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.at += length;
    }

    fn close(&mut self) {
        if let Some((kind, begin, lines_above)) = self.open.take() {
            let text = &self.text[begin..self.at];
            self.found.sections.push(Section { kind, text, lines_above });
        }
    }

    /// The kind of section that begins with this line; `None` if the open one goes on.
    fn begun(&self, line: &str) -> Option<Kind> {
        let line = line.trim();
        let open = self.open.map(|(kind, ..)| kind);
        if elbencho::is_header(line) {
            return Some(Kind::Elbencho);
        }
        if ior::is_csv(line) {
            return Some(Kind::IorCsv);
        }
        if ior::version(line).is_some() {
            return Some(Kind::Ior);
        }
        if line.starts_with("-- started at ") {
            return Some(Kind::Mdtest);
        }
        let is_launch = line.starts_with("mdtest-") && line.contains(" was launched with ");
        if is_launch && !self.awaits_launch() {
            return Some(Kind::Mdtest);
        }
        (io500::is_head(line) && open != Some(Kind::Io500)).then_some(Kind::Io500)
    }

    /// mdtest writes its date above the line that says how it was launched.
    fn awaits_launch(&self) -> bool {
        let Some((Kind::Mdtest, begin, _)) = self.open else { return false };
        !self.text[begin..self.at].contains(" was launched with ")
    }

    /// A table that begins the file goes on to its end: a row of it that is broken must not pass as a line of
    /// the shell.
    fn is_behind_table(&self, line: &str) -> bool {
        let is_table = matches!(self.open, Some((Kind::Elbencho | Kind::IorCsv, begin, _)) if begin > 0);
        is_table && !line.contains(',')
    }
}

/// Returns the kind and the length in bytes of a JSON document at the beginning of a text, or `None` if it has
/// no known results.
fn document(text: &str) -> Option<(Kind, usize)> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let length = match documents.next() {
        Some(Ok(_)) => documents.byte_offset(),
        // The rest of the file belongs to it, so that its parser can say where it breaks off.
        _ => text.len(),
    };
    let document = &text[..length];
    let has = |part: &str| document.contains(part);
    let kind = if has("\"fio version\"") {
        Kind::Fio
    } else if has("\"tests\"") && has("\"bwMiB\"") {
        Kind::IorJson
    } else if has("\"phase_type\"") && has("\"last_done\"") {
        Kind::ElbenchoJson
    } else {
        return None;
    };
    Some((kind, length))
}

impl Sections<'_> {
    /// Counts the marks of programs that import does not read.
    fn with_others(mut self, text: &str) -> Self {
        // `--output-format=normal,json` writes every result twice.
        let has_document = self.sections.iter().any(|section| section.kind == Kind::Fio);
        let is_counted = |program: &str| !(has_document && program.starts_with("fio"));
        for line in text.lines() {
            let found = OTHERS.iter().find(|(mark, _)| line.contains(mark));
            if let Some((_, program)) = found.filter(|(_, program)| is_counted(program)) {
                self.count_other(program);
            }
        }
        self
    }

    fn count_other(&mut self, program: &'static str) {
        match self.others.iter_mut().find(|(known, _)| *known == program) {
            Some((_, count)) => *count += 1,
            None => self.others.push((program, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, u64)> {
        divide(text).sections.iter().map(|section| (section.kind, section.lines_above)).collect()
    }

    #[test]
    fn each_program_gets_its_own_lines() {
        let text = "module load ior\nIOR-4.0.0: MPI Coordinated Test of Parallel I/O\na\n\
                    -- started at 01/01/2026 10:00:00 --\n\nmdtest-4.0.0 was launched with 1 total task(s) on 1 node(s)\n\
                    b\nmdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)\nfio: note\n{\n\"fio version\": \"3\"\n}\nc\n";
        assert_eq!(kinds(text), [(Kind::Ior, 1), (Kind::Mdtest, 3), (Kind::Mdtest, 7), (Kind::Fio, 9)]);
        assert!(divide(text).sections[0].text.ends_with("\na\n"));
    }

    #[test]
    fn a_document_that_is_nobodys_and_braces_of_a_shell_are_no_sections() {
        for text in ["{}\n", "{ a\n", "{\"jobs\": []}\n", "f() {\n  echo\n}\n", "", "\n\n"] {
            assert_eq!(kinds(text), [], "{text}");
        }
        assert_eq!(kinds("{\"fio version\": \"3\", \"jobs\": ["), [(Kind::Fio, 0)], "it is cut off");
    }

    #[test]
    fn results_of_other_programs_are_counted() {
        let text = "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s\n  write: IOPS=2, BW=3\n";
        let others = divide(text).others;
        assert_eq!(others.len(), 2, "{others:?}");
        assert!(others.contains(&("dd", 1)));
    }
}
