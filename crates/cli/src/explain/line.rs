//! What a line of fio, dd, IOR or mdtest asks of the storage, as far as it can be said as a cell of ours.

use std::{
    iter::Peekable,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail, ensure};
use nilometer_model::Bytes;

use super::tree_line::TreeLine;

/// The programs whose lines are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignProgram {
    Fio,
    Dd,
    Ior,
    Mdtest,
}

impl ForeignProgram {
    const ALL: [(&'static str, ForeignProgram); 4] = [
        ("fio", ForeignProgram::Fio),
        ("dd", ForeignProgram::Dd),
        ("ior", ForeignProgram::Ior),
        ("mdtest", ForeignProgram::Mdtest),
    ];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, program)| *program == self).map_or("", |(name, _)| name)
    }

    fn of(command: &str) -> anyhow::Result<Self> {
        let name = Path::new(command).file_name().unwrap_or_default().to_string_lossy();
        let known = Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, program)| program);
        known.with_context(|| format!("`{command}`: write a line of fio, dd, ior or mdtest"))
    }
}

/// Which way data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Write,
    Read,
    RandomWrite,
    RandomRead,
}

/// When written data are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Never,
    AtClose,
    Every(u64),
}

/// What a line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForeignLine {
    pub(super) program: ForeignProgram,
    pub(super) directory: PathBuf,
    pub(super) way: Way,
    pub(super) block: Bytes,
    /// Of each worker.
    pub(super) size: Bytes,
    pub(super) workers: u32,
    pub(super) depth: u32,
    pub(super) direct: bool,
    pub(super) durable: Durable,
    /// What is written is zeros.
    pub(super) zeros: bool,
    /// All workers have parts of one file.
    pub(super) is_shared: bool,
    /// A tree of items in the place of all that, of mdtest.
    pub(super) tree: Option<TreeLine>,
    /// What of the line has no counterpart here.
    pub(super) not_taken: Vec<String>,
}

impl ForeignLine {
    /// Reads a line, the program first.
    pub(super) fn parse(line: &[String]) -> anyhow::Result<Self> {
        let (processes, line) = without_launcher(line)?;
        let (command, arguments) = line.split_first().context("write the line behind `--`")?;
        let program = ForeignProgram::of(command)?;
        let mut read = ForeignLine {
            program,
            directory: PathBuf::from("."),
            way: Way::Write,
            block: Bytes(4096),
            size: Bytes(0),
            workers: processes,
            depth: 1,
            direct: false,
            durable: Durable::Never,
            zeros: false,
            is_shared: false,
            tree: None,
            not_taken: Vec::new(),
        };
        match program {
            ForeignProgram::Fio => read.take_fio(arguments)?,
            ForeignProgram::Dd => read.take_dd(arguments)?,
            ForeignProgram::Ior => read.take_ior(arguments)?,
            ForeignProgram::Mdtest => {
                let tree = TreeLine::parse(arguments, &mut read.not_taken)?;
                read.directory.clone_from(&tree.directory);
                read.tree = Some(tree);
                return Ok(read);
            }
        }
        read.whole_blocks()?;
        if read.way == Way::RandomWrite && read.durable != Durable::AtClose {
            read.not_taken
                .push("when random writes are synced: here once, when the file is closed".to_owned());
            read.durable = Durable::AtClose;
        }
        Ok(read)
    }

    /// Files of ours are whole blocks.
    fn whole_blocks(&mut self) -> anyhow::Result<()> {
        ensure!(
            self.size.0 > 0,
            "the line does not say how much: write a size (fio --size, dd count=, ior -b)"
        );
        ensure!((1..=1 << 30).contains(&self.block.0), "blocks of {}: write 1 B to 1 GiB", self.block);
        let odd = self.size.0 % self.block.0;
        if odd != 0 {
            self.not_taken.push(format!("the last {odd} bytes, which are no whole block"));
            self.size = Bytes((self.size.0 - odd).max(self.block.0));
        }
        Ok(())
    }

    fn take_fio(&mut self, arguments: &[String]) -> anyhow::Result<()> {
        self.zeros = false;
        let mut file: Option<PathBuf> = None;
        let mut arguments = arguments.iter().peekable();
        // What fio takes by itself waits for each operation.
        let mut engine = "psync".to_owned();
        while let Some(argument) = arguments.next() {
            let Some(option) = argument.strip_prefix("--") else {
                bail!(
                    "`{argument}`: write the job as options (fio --name=... --rw=...), a job file is not read"
                );
            };
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, value.to_owned()),
                None if FIO_FLAGS.contains(&option) => (option, "1".to_owned()),
                None => (option, next_value(&mut arguments)),
            };
            match key {
                "rw" | "readwrite" => self.way = way(&value)?,
                "bs" | "blocksize" => self.block = size(&value, 1024)?,
                "size" | "filesize" => self.size = size(&value, 1024)?,
                "numjobs" => self.workers = count(key, &value, 4096)?,
                "iodepth" => self.depth = count(key, &value, 4096)?,
                "direct" => self.direct = value == "1",
                "fsync" | "fdatasync" => self.durable = every(count(key, &value, 4096)?),
                "end_fsync" | "fsync_on_close" if value == "1" => self.durable = Durable::AtClose,
                "zero_buffers" => self.zeros = value == "1",
                "directory" => self.directory = PathBuf::from(&value),
                "filename" => file = Some(PathBuf::from(&value)),
                "ioengine" => engine = value,
                "name" | "group_reporting" | "output" | "output-format" | "thread" | "invalidate" => {}
                _ => self.not_taken.push(argument.clone()),
            }
        }
        if let Some(parent) =
            file.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty())
        {
            self.directory = self.directory.join(parent);
        }
        self.take_engine(&engine);
        Ok(())
    }

    /// Engines that wait for each operation have depth 1 whatever is written.
    fn take_engine(&mut self, name: &str) {
        if ["libaio", "io_uring", "posixaio"].contains(&name) {
            if name == "libaio" && !self.direct && self.depth > 1 {
                self.not_taken.push(
                    "that libaio waits for each operation without --direct=1: here --iodepth are in flight"
                        .to_owned(),
                );
            }
            return;
        }
        self.depth = 1;
        if !["sync", "psync", "pvsync", "pvsync2", "vsync"].contains(&name) {
            self.not_taken.push(format!("--ioengine={name}"));
        }
    }

    fn take_dd(&mut self, arguments: &[String]) -> anyhow::Result<()> {
        self.block = Bytes(512);
        let mut blocks = None;
        let (mut from, mut to) = (None, None);
        for argument in arguments {
            let (key, value) =
                argument.split_once('=').with_context(|| format!("`{argument}`: dd has key=value"))?;
            let flags = || value.split(',');
            match key {
                "if" => from = Some(PathBuf::from(value)),
                "of" => to = Some(PathBuf::from(value)),
                "bs" => self.block = size(value, 1000)?,
                "count" => blocks = Some(size(value, 1000)?.0),
                "conv" => self.take_conversions(flags()),
                "oflag" | "iflag" => {
                    self.direct |= flags().any(|flag| flag == "direct");
                    if flags().any(|flag| ["sync", "dsync"].contains(&flag)) {
                        self.durable = Durable::Every(1);
                    }
                }
                "status" => {}
                _ => self.not_taken.push(argument.clone()),
            }
        }
        let is_device = |path: &Option<PathBuf>| path.as_ref().is_none_or(|path| path.starts_with("/dev"));
        self.way = if is_device(&to) && !is_device(&from) { Way::Read } else { Way::Write };
        self.zeros = from.as_deref() == Some(Path::new("/dev/zero"));
        let file = if self.way == Way::Read { from } else { to };
        let file = file
            .filter(|file| !file.starts_with("/dev"))
            .context("dd: write of=FILE, or if=FILE of=/dev/null")?;
        let whole = || std::fs::metadata(&file).map_or(0, |file| file.len());
        self.size = Bytes(blocks.map_or_else(whole, |blocks| blocks.saturating_mul(self.block.0)));
        self.directory = parent_of(&file);
        Ok(())
    }

    /// `conv=` of dd. How a file is opened, and what is done about errors, is ours.
    fn take_conversions<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            match name {
                "fsync" | "fdatasync" => self.durable = Durable::AtClose,
                "notrunc" | "nocreat" | "excl" | "noerror" => {}
                _ => self.not_taken.push(format!("conv={name}")),
            }
        }
    }

    fn take_ior(&mut self, arguments: &[String]) -> anyhow::Result<()> {
        self.block = Bytes(256 << 10);
        self.size = Bytes(1 << 20);
        let mut segments = 1;
        let (mut writes, mut reads, mut is_random) = (false, false, false);
        self.is_shared = true;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().cloned().with_context(|| format!("`{argument}`: its value is missing"));
            match argument.as_str() {
                "-t" => self.block = size(&value()?, 1024)?,
                "-b" => self.size = size(&value()?, 1024)?,
                "-s" => segments = size(&value()?, 1024)?.0,
                "-o" => self.directory = parent_of(Path::new(&value()?)),
                "-w" => writes = true,
                "-r" => reads = true,
                "-z" => is_random = true,
                "-e" => self.durable = Durable::AtClose,
                "-Y" => self.durable = Durable::Every(1),
                "--posix.odirect" | "-B" => self.direct = true,
                "-F" => self.is_shared = false,
                "-k" | "-v" => {}
                "-a" | "-i" | "-d" => {
                    let value = value()?;
                    if (argument.as_str(), value.as_str()) != ("-a", "POSIX") {
                        self.not_taken.push(format!("{argument} {value}"));
                    }
                }
                _ => self.not_taken.push(argument.clone()),
            }
        }
        self.size = Bytes(self.size.0.saturating_mul(segments));
        self.way = match (reads && !writes, is_random) {
            (false, false) => Way::Write,
            (true, false) => Way::Read,
            (false, true) => Way::RandomWrite,
            (true, true) => Way::RandomRead,
        };
        if writes == reads {
            self.not_taken.push("what it reads: it is compared by what it writes".to_owned());
        }
        self.share_one_file(segments, is_random);
        Ok(())
    }

    /// One process has the file to itself.
    fn share_one_file(&mut self, segments: u64, is_random: bool) {
        self.is_shared &= self.workers > 1;
        if self.is_shared && is_random {
            self.is_shared = false;
            self.not_taken.push("one file of all processes: here each has one of its own".to_owned());
        }
        if self.is_shared && segments > 1 {
            self.not_taken.push(format!("-s {segments}: the part of each process is in one piece here"));
        }
    }
}

/// Options of fio that have no value.
const FIO_FLAGS: [&str; 5] = ["group_reporting", "thread", "zero_buffers", "time_based", "refill_buffers"];

/// The value of an option, if what follows is one.
fn next_value<'a>(arguments: &mut Peekable<impl Iterator<Item = &'a String>>) -> String {
    arguments.next_if(|next| !next.starts_with("--")).cloned().unwrap_or_default()
}

pub(super) fn parent_of(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

fn way(text: &str) -> anyhow::Result<Way> {
    Ok(match text {
        "write" => Way::Write,
        "read" => Way::Read,
        "randwrite" => Way::RandomWrite,
        "randread" => Way::RandomRead,
        _ => bail!("--rw={text}: write one of read, write, randread, randwrite"),
    })
}

fn every(count: u32) -> Durable {
    if count == 0 { Durable::Never } else { Durable::Every(u64::from(count)) }
}

pub(super) fn count(key: &str, text: &str, most: u32) -> anyhow::Result<u32> {
    let count = text.parse::<u32>().ok().filter(|count| *count <= most);
    count.ok_or_else(|| anyhow!("{key}={text}: write a number, {most} at the most"))
}

/// How many processes a launcher starts, and the line without it: `mpirun -n 4 ior ...`.
pub(super) fn without_launcher(line: &[String]) -> anyhow::Result<(u32, &[String])> {
    let name = line.first().and_then(|command| Path::new(command).file_name()).unwrap_or_default();
    if !["mpirun", "mpiexec", "srun"].iter().any(|known| name == *known) {
        return Ok((1, line));
    }
    let mut processes = 1;
    let mut at = 1;
    while let Some(option) = line.get(at).filter(|word| word.starts_with('-')) {
        if ["-n", "-np"].contains(&option.as_str()) {
            let value = line.get(at + 1).with_context(|| format!("`{option}`: its value is missing"))?;
            processes = count(option, value, 1024)?.max(1);
            at += 1;
        } else if !LAUNCHER_FLAGS.contains(&option.as_str()) {
            bail!("`{option}`: of {} write -n NUMBER and {} only", name.display(), LAUNCHER_FLAGS.join(", "));
        }
        at += 1;
    }
    Ok((processes, &line[at..]))
}

/// Options of launchers that have no value, and change nothing here.
const LAUNCHER_FLAGS: [&str; 3] = ["--allow-run-as-root", "--oversubscribe", "--quiet"];

/// `4k`, `1M`, `2GiB`, `10MB`: a letter is of powers of 1024 everywhere; `kB` and the like are of powers of `decimal`, as each
/// program has it.
pub(super) fn size(text: &str, decimal: u64) -> anyhow::Result<Bytes> {
    let wrong = || anyhow!("`{text}`: write a size such as 4k, 1M or 2G");
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = text[digits..].to_ascii_lowercase();
    let power = match unit.chars().next() {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return Err(wrong()),
    };
    let base: u64 = match &unit[usize::from(power > 0)..] {
        "" | "ib" => 1024,
        "b" => decimal,
        _ => return Err(wrong()),
    };
    number.checked_mul(base.pow(power)).map(Bytes).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<ForeignLine> {
        ForeignLine::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn lines_of_three_programs_say_the_same() {
        let expected = ForeignLine {
            program: ForeignProgram::Fio,
            directory: PathBuf::from("/data"),
            way: Way::Write,
            block: Bytes(1 << 20),
            size: Bytes(1 << 30),
            workers: 1,
            depth: 1,
            direct: false,
            durable: Durable::AtClose,
            zeros: false,
            is_shared: false,
            tree: None,
            not_taken: Vec::new(),
        };
        let fio =
            read("fio --name=a --rw=write --bs=1M --size=1G --directory=/data --end_fsync=1").expect("valid");
        assert_eq!(fio, expected);
        let dd = read("dd if=/dev/zero of=/data/file bs=1M count=1K conv=fsync").expect("valid");
        assert_eq!(dd, ForeignLine { program: ForeignProgram::Dd, zeros: true, ..expected.clone() });
        let ior = read("ior -w -t 1m -b 512m -s 2 -F -e -o /data/file").expect("valid");
        assert_eq!(ior, ForeignLine { program: ForeignProgram::Ior, ..expected.clone() });
        let many =
            read("mpirun --allow-run-as-root -np 4 /opt/ior -w -t 1m -b 512m -s 2 -F -e -o /data/file");
        let of_four = ForeignLine { program: ForeignProgram::Ior, workers: 4, ..expected };
        assert_eq!(many.expect("valid"), of_four);
        let tree = read("mdtest -n 100 -F -d /data/x").expect("valid");
        assert_eq!((tree.directory, tree.tree.is_some()), (PathBuf::from("/data"), true));
    }

    #[test]
    fn what_is_random_direct_or_deep_is_taken_over_and_what_is_not_is_named() {
        let line = "fio --name a --rw randread --bs 4k --size 16m --ioengine=libaio --iodepth=16 --direct=1 --numjobs=2 --runtime=9 --filename=/x/y";
        let read_line = read(line).expect("valid");
        assert_eq!((read_line.way, read_line.depth, read_line.workers), (Way::RandomRead, 16, 2));
        assert_eq!((read_line.direct, read_line.directory), (true, PathBuf::from("/x")));
        assert_eq!(read_line.not_taken, ["--runtime=9"]);
        let synced = read("dd if=/dev/zero of=a bs=4kB count=3 oflag=direct,dsync").expect("valid");
        assert_eq!((synced.block, synced.size), (Bytes(4000), Bytes(12_000)));
        assert_eq!((synced.durable, synced.direct), (Durable::Every(1), true));
        assert_eq!(synced.directory, PathBuf::from("."));
        let deep = read("fio --rw=write --size=1m --iodepth=8 --ioengine=psync").expect("valid");
        assert_eq!(deep.depth, 1, "it waits for each");
        let order =
            read("fio --ioengine=psync --norandommap --bs=1M --rw=randwrite --size=1m --iodepth=8 --fsync=1");
        let order = order.expect("valid");
        assert_eq!((order.depth, order.block, order.not_taken.len()), (1, Bytes(1 << 20), 2), "{order:?}");
        assert_eq!(
            read("fio --rw=write --size=1m --iodepth=8").expect("valid").depth,
            1,
            "its own engine waits"
        );
    }

    #[test]
    fn what_is_not_as_the_line_has_it_is_named() {
        let shared = read("mpirun -n 4 ior -w -t 1m -b 4m -a MPIIO -i 3 -o /x/y").expect("valid");
        assert_eq!(
            (shared.is_shared, shared.not_taken),
            (true, vec!["-a MPIIO".to_owned(), "-i 3".to_owned()])
        );
        let alone = read("ior -a POSIX -w -t 1m -b 4m -o /x/y").expect("valid");
        assert_eq!((alone.is_shared, alone.not_taken), (false, Vec::new()), "one process has it to itself");
        for (line, part) in [
            ("ior -t 1m -b 4m -F -o /x/y", "what it reads"),
            ("ior -w -r -t 1m -b 4m -F -o /x/y", "what it reads"),
            ("mpirun -n 4 ior -r -z -t 1m -b 4m -o /x/y", "one file of all processes"),
            ("mpirun -n 4 ior -w -s 8 -t 1m -b 4m -o /x/y", "-s 8: the part of each"),
            ("dd if=/dev/zero of=/x/y bs=1M count=1 conv=sparse,notrunc", "conv=sparse"),
            ("fio --rw=read --size=1m --ioengine=libaio --iodepth=4", "without --direct=1"),
            ("mdtest -n 10 -d /x -i 3", "-i 3"),
        ] {
            let not_taken = read(line).expect(line).not_taken;
            assert!(not_taken.len() == 1 && not_taken[0].contains(part), "{line}: {not_taken:?}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_refused_with_what_would_do() {
        for (line, part) in [
            ("iozone -a", "write a line of fio, dd, ior or mdtest"),
            ("mpirun --host a,b ior -w", "of mpirun write -n NUMBER and"),
            ("mpirun -n", "its value is missing"),
            ("fio job.fio", "a job file is not read"),
            ("fio --rw=trim --size=1m", "write one of read, write"),
            ("fio --rw=write", "does not say how much"),
            ("fio --rw=write --size=1x", "`1x`: write a size"),
            ("dd bs=1M count=1", "write of=FILE"),
            ("dd of", "dd has key=value"),
            ("ior -t", "its value is missing"),
            ("fio --rw=write --size=1m --numjobs=99999", "4096 at the most"),
            ("fio --rw=write --size=99999999999999t", "write a size"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
