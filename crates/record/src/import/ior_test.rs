//! A test of IOR: its options, and the accesses that its tables give, checked against each other. Text, CSV and
//! JSON of one test become the same cell.

use nilometer_command_lines::{BINARY, IorCommand};
use nilometer_model::{Bytes, Nanos, Phase};
use nilometer_plan::ImportedRun;

use super::{
    Fault,
    agreement::SameFigure,
    gathered::{GivenFigure, GivenWork, count, nanos},
    stand_in::Known,
};

const MEBI: f64 = 1024.0 * 1024.0;
pub(super) const KIBI: f64 = 1024.0;

/// A row of a table of results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) phase: Phase,
    /// MiB a second.
    pub(super) rate: f64,
    /// From the first open to the last close, in seconds.
    pub(super) total: f64,
    /// Bytes of an operation.
    pub(super) transfer: f64,
    /// Bytes of a block.
    pub(super) block: f64,
    /// Operations a second over the time of reading or writing; `None` if the table has no such columns.
    pub(super) operations: Option<OperationRate>,
    pub(super) line: u64,
}

/// Operations a second, which IOR does not count over the whole time.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationRate {
    pub(super) rate: f64,
    /// Without opening and closing, in seconds.
    pub(super) seconds: f64,
}

pub(super) fn phase(access: &str) -> Option<Phase> {
    match access {
        "write" => Some(Phase::Write),
        "read" => Some(Phase::Read),
        _ => None,
    }
}

/// The last digit that IOR prints of a number, as a share of it.
fn printed_share(number: f64) -> f64 {
    let digit = match number {
        number if number < 1.0 => 1e-6,
        number if number < 3600.0 => 1e-2,
        _ => 1.0,
    };
    if number > 0.0 { digit / number } else { 1.0 }
}

impl Access {
    fn bytes(&self) -> f64 {
        self.rate * MEBI * self.total
    }

    fn work(&self, started: Nanos) -> Result<GivenWork, Fault> {
        let wall = nanos(self.total, self.line)?;
        if wall.0 == 0 {
            return Err(Fault::at(self.line, "an access that took no time"));
        }
        let bytes = count(self.rate * MEBI * wall.seconds(), self.line)?;
        let operations = if self.transfer > 0.0 { bytes as f64 / self.transfer } else { 0.0 };
        let operations = count(operations, self.line)?;
        Ok(GivenWork { bytes, operations, wall, started, ..GivenWork::default() })
    }

    /// The rate of operations follows from that of bytes.
    fn check_operations(&self) -> Result<(), Fault> {
        let Some(OperationRate { rate, seconds }) = self.operations else { return Ok(()) };
        if rate <= 0.0 || seconds <= 0.0 || self.transfer <= 0.0 {
            return Ok(());
        }
        let follows = self.bytes() / self.transfer / seconds;
        let slack = follows * (printed_share(self.total) + printed_share(seconds));
        let source = "bw(MiB/s), xfer(KiB) and the times";
        SameFigure { name: "IOPS", given: rate, source, follows, unit: "1/s", slack }.check(self.line)
    }

    /// The rate follows from the bytes that were moved and the time.
    fn check_bytes(&self, moved: f64) -> Result<(), Fault> {
        if self.total <= 0.0 {
            return Ok(());
        }
        let follows = moved / MEBI / self.total;
        let slack = follows * printed_share(self.total);
        let source = "the bytes moved and total(s)";
        let name = "bw(MiB/s)";
        SameFigure { name, given: self.rate, source, follows, unit: "MiB/s", slack }.check(self.line)
    }
}

/// Options of a test, by the names that IOR gives them, and their names in a cell. They stand there in this
/// order, whatever the order in the file is.
const TOLD: [(&str, &str); 8] = [
    ("api", "api"),
    ("access", ""),
    ("type", ""),
    ("segments", "segments"),
    ("ordering in a file", "order"),
    ("nodes", "nodes"),
    ("tasks", "tasks"),
    ("clients", "tasks"),
];

/// The options of a test, and the accesses of it that were found so far.
#[derive(Debug, Clone, Default)]
pub(super) struct IorTest {
    pub(super) version: String,
    pub(super) path: String,
    pub(super) started: Nanos,
    /// Values of [`TOLD`].
    told: [Option<String>; TOLD.len()],
    transfer: Option<f64>,
    block: Option<f64>,
    /// Bytes of all tasks together, unless a time limit ended the test before.
    aggregate: Option<f64>,
    pub(super) repetitions: Option<u64>,
    is_time_limited: bool,
    /// Options that only the command line has.
    of_command: Vec<(String, String)>,
    pub(super) rows: Vec<Access>,
}

impl IorTest {
    pub(super) fn begun(version: &str, started: Nanos) -> Self {
        IorTest { version: version.to_owned(), started, ..IorTest::default() }
    }

    /// Tells the command line, which has options that no list repeats.
    pub(super) fn tell_command(&mut self, command: &IorCommand) {
        self.is_time_limited |= command.is_time_limited;
        self.of_command.clone_from(&command.told);
    }

    pub(super) fn tell(&mut self, key: &str, value: &str) {
        match key {
            "Path" if self.path.is_empty() => value.clone_into(&mut self.path),
            "test filename" => value.clone_into(&mut self.path),
            "xfersize" => self.transfer = exact_bytes(value),
            "blocksize" => self.block = exact_bytes(value),
            "aggregate filesize" => self.aggregate = bytes(value),
            "repetitions" => self.repetitions = value.parse().ok(),
            "stonewallingTime" | "deadlineForStonewall" => self.is_time_limited |= value != "0",
            // IOR 2 and 3.0: `64 (8 per node)`.
            "clients" => self.tell_clients(value),
            // `segmented (1 segment)`, `strided (16 segments)`.
            "pattern" => self.put(
                "segments",
                value.split(['(', ' ']).find(|word| word.parse::<u64>().is_ok()).unwrap_or(""),
            ),
            // IOR 3.0 writes `sequential offsets`.
            _ => self.put(key, value.trim_end_matches(" offsets")),
        }
    }

    fn put(&mut self, key: &str, value: &str) {
        if let Some(place) = TOLD.iter().position(|(name, _)| *name == key)
            && !value.is_empty()
        {
            self.told[place] = Some(value.to_owned());
        }
    }

    fn tell_clients(&mut self, value: &str) {
        let (tasks, rest) = value.split_once(' ').unwrap_or((value, ""));
        self.put("clients", tasks);
        let of_node = rest.trim_start_matches('(').split(' ').next().unwrap_or_default();
        if let (Ok(tasks), Ok(of_node @ 1..)) = (tasks.parse::<u64>(), of_node.parse::<u64>()) {
            self.put("nodes", &tasks.div_ceil(of_node).to_string());
        }
    }

    fn run(&self, access: &Access) -> ImportedRun {
        let told = TOLD.iter().zip(&self.told);
        let told = told.filter_map(|((_, name), value)| Some(((*name).to_owned(), value.clone()?)));
        let sizes =
            [("transfer size", self.transfer, access.transfer), ("block size", self.block, access.block)];
        let sizes = sizes.into_iter().map(|(name, exact, printed)| (name, exact.unwrap_or(printed)));
        let sizes =
            sizes.filter(|(_, bytes)| *bytes > 0.0).map(|(name, bytes)| (name.to_owned(), size(bytes)));
        ImportedRun {
            source: format!("IOR {}", self.version).trim_end().to_owned(),
            task: String::new(),
            parameters: told.chain(sizes).chain(self.of_command.iter().cloned()).collect(),
            figure: String::new(),
        }
    }

    /// Bytes that a test without a limit of time moves; `None` if its options do not say.
    fn asked_bytes(&self) -> Option<f64> {
        if self.is_time_limited {
            return None;
        }
        let number = |name: &str| {
            let place = TOLD.iter().position(|(known, _)| *known == name)?;
            self.told[place].as_deref().and_then(super::table::number)
        };
        let tasks = number("tasks").or_else(|| number("clients"));
        let of_options = || Some(tasks? * self.block? * number("segments").unwrap_or(1.0));
        self.aggregate.or_else(of_options)
    }

    /// An access of the test. `moved` are the bytes that IOR says it moved in it, if it says so.
    pub(super) fn figure(&mut self, access: Access, moved: Option<f64>) -> Result<GivenFigure, Fault> {
        let access = Access { transfer: self.transfer.unwrap_or(access.transfer), ..access };
        access.check_operations()?;
        if let Some(moved) = moved.or_else(|| self.asked_bytes()) {
            access.check_bytes(moved)?;
        }
        self.rows.push(access);
        Ok(self.given(&access, access.work(self.started)?))
    }

    fn given(&self, access: &Access, did: GivenWork) -> GivenFigure {
        GivenFigure {
            target: if self.path.is_empty() { "IOR".into() } else { self.path.clone() },
            stage: "IOR".into(),
            run: self.run(access),
            phase: access.phase,
            did,
        }
    }

    /// Repeats of which only a summary was printed, as IOR 2 does.
    pub(super) fn of_summary(&self, summary: &IorSummary) -> Result<Vec<GivenFigure>, Fault> {
        let IorSummary { phase, greatest, least, mean, deviation, line } = *summary;
        let known = Known { least, greatest, mean, count: self.repetitions, deviation: Some(deviation) };
        let values = known.values().ok_or_else(|| {
            Fault::at(line, format!("a mean of {mean} between {least} and {greatest}: that can't be"))
        })?;
        let transfer = self.transfer.unwrap_or(0.0);
        let access = Access { phase, rate: 0.0, total: 0.0, transfer, block: 0.0, operations: None, line };
        let work = |rate: f64| -> Result<GivenWork, Fault> {
            let did = GivenWork::of_byte_rate(rate * MEBI, line)?;
            let operations = if transfer > 0.0 { did.bytes as f64 / transfer } else { 0.0 };
            Ok(GivenWork { operations: count(operations, line)?, started: self.started, ..did })
        };
        values.into_iter().map(|rate| Ok(self.given(&access, work(rate)?))).collect()
    }
}

/// A row of the table of all tests, in MiB a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct IorSummary {
    pub(super) phase: Phase,
    pub(super) greatest: f64,
    pub(super) least: f64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) line: u64,
}

impl IorSummary {
    /// The greatest, the least and the mean follow from the rows above.
    pub(super) fn check(&self, rows: &[Access]) -> Result<(), Fault> {
        let rates: Vec<f64> = rows.iter().filter(|row| row.phase == self.phase).map(|row| row.rate).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let given = [
            ("the greatest rate", self.greatest, rates.iter().copied().fold(0.0, f64::max)),
            ("the least rate", self.least, rates.iter().copied().fold(f64::INFINITY, f64::min)),
            ("the mean rate", self.mean, mean),
        ];
        for (name, given, follows) in given {
            let source = "the rows of the table";
            SameFigure { name, given, source, follows, unit: "MiB/s", slack: 0.0 }.check(self.line)?;
        }
        Ok(())
    }
}

fn size(bytes: f64) -> String {
    #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
    Bytes(bytes.round() as u64).to_string()
}

/// `1 MiB`, `9.46 TiB`, `47008 bytes`.
fn bytes(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = if unit == "bytes" { "B" } else { unit };
    Some(nilometer_command_lines::size(&format!("{number}{unit}"), BINARY).ok()?.0 as f64)
}

/// The same, unless it was rounded: the columns of the table are more exact then.
fn exact_bytes(text: &str) -> Option<f64> {
    bytes(text).filter(|_| !text.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_or_left_to_the_table() {
        assert_eq!(exact_bytes("47008 bytes"), Some(47_008.0));
        assert_eq!(exact_bytes("2 GiB"), Some(2_147_483_648.0));
        assert_eq!(bytes("1.50 KiB"), Some(1536.0));
        for text in ["9.46 TiB", "2048.00", "", "many bytes", "1 mile"] {
            assert_eq!(exact_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn clients_are_tasks_and_nodes() {
        let mut test = IorTest::default();
        test.tell("clients", "64 (8 per node)");
        let access = Access {
            phase: Phase::Write,
            rate: 1.0,
            total: 1.0,
            transfer: 1024.0,
            block: 2048.0,
            operations: None,
            line: 1,
        };
        let phrases = test.run(&access).phrases();
        assert_eq!(phrases, ["nodes 8", "tasks 64", "transfer size 1 KiB", "block size 2 KiB"]);
    }
}
