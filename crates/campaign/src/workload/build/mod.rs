//! The storage operations of `make -j`. The workers of a process share a queue of sources. The worker that
//! makes the last object also links the program; nobody waits for the program, and it waits for all:
//!
//! ```text
//! worker 0   unit 0 |  unit 2  | unit 3 |
//! worker 1   unit 1      | unit 4             | all objects are read, the program is written
//! ```
//!
//! A unit is a source, its headers, and an object. A worker reads the source, then the headers, each from its
//! open to its close. Then it waits for the think time, in which a compiler would compute. Finally it writes
//! the object under another name beside the source, and renames it.

mod plan;

pub use plan::{BuildPlan, BuildQueue};

use std::sync::Arc;

use nilometer_model::{Nanos, Phase, RandomStream, Seed};
use nilometer_plan::{BuildCell, OBJECT_TIMES};
use nilometer_storage::{Buffer, OpKind, Operation, Slot, Workload};

use super::{
    OneByOne, Steps, Unpack, WorkerPart,
    descent::{Descent, file_name},
    file_pass::{FilePass, FileTask, PageStamps, PassedFile},
    name::Name,
    nothing::Nothing,
};

/// Makes the workload of one worker in one phase. The first worker of a process lays out its tree.
pub(super) fn build(cell: &BuildCell, phase: Phase, part: WorkerPart) -> Box<dyn Workload> {
    let place = part.place;
    let root = place.name_of(place.rank * place.workers);
    let plan = part.share.build(cell);
    match phase {
        Phase::LayOut if place.worker > 0 => Box::new(Nothing),
        Phase::LayOut => Box::new(Unpack::new(plan.tree.clone(), &root, false, part)),
        _ => Box::new(Build::new(plan, part.share.queue(), &root, part)),
    }
}

/// The steps of a worker that builds a tree.
#[derive(Debug)]
pub struct Build {
    plan: Arc<BuildPlan>,
    queue: Arc<BuildQueue>,
    descent: Descent,
    stamps: PageStamps,
    headers: Seed,
    stop_at: Nanos,
    doing: Doing,
    pass: Option<FilePass>,
}

/// The state of a worker while no file is under way.
#[derive(Debug, Clone)]
enum Doing {
    /// It opens the directories of headers; this number are open.
    Include(usize),
    /// It takes the next unit.
    Claim,
    /// It is on the way to the source of a unit.
    Source(u32),
    /// It reads the headers of a unit; `left` is their number.
    Headers { unit: u32, left: u32, choice: RandomStream },
    /// It waits, as a compiler would compute the object of a unit, until this time.
    Thinking { unit: u32, until: Nanos },
    /// It writes the object of a unit next.
    Object(u32),
    /// It renames the file just written: the object of a unit, or after the last of them the program.
    Rename(u32),
    /// It links the program, and has read this number of objects.
    Link(u32),
    /// It closes the directories of headers; this number are closed.
    Leave(usize),
}

impl Build {
    /// A worker's part of the build of the tree in the directory named `root`. Slots: two more than the tree
    /// has levels, those of the plan's directories of headers, and the run's directory.
    pub fn new(plan: Arc<BuildPlan>, queue: Arc<BuildQueue>, root: &str, part: WorkerPart) -> OneByOne<Self> {
        let build = Build {
            descent: Descent::new(plan.tree.clone(), root),
            plan,
            queue,
            stamps: PageStamps::new(part.seed_for("content")),
            // A unit has the same headers, no matter which worker compiles it.
            headers: part.seed.named("headers"),
            stop_at: part.stop_at,
            doing: Doing::Include(0),
            pass: None,
        };
        OneByOne::new(build, part.buffers)
    }

    fn file_slot(&self) -> Slot {
        Slot(self.descent.slots() + 1)
    }

    fn include_slot(&self, directory: usize) -> Slot {
        Slot(self.descent.slots() + 2 + directory as u32)
    }

    /// The next operation while no file is under way.
    fn between(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        match self.doing.clone() {
            Doing::Include(opened) => self.include(opened, buffer),
            Doing::Claim => self.claim(now, buffer),
            Doing::Source(unit) => self.source(unit, buffer),
            Doing::Headers { unit, left, choice } => self.header(unit, left, choice, buffer),
            Doing::Thinking { unit, .. } | Doing::Object(unit) => self.object(unit, buffer),
            Doing::Rename(unit) => Ok(self.rename(unit, buffer)),
            Doing::Link(read) => self.link(read, buffer),
            Doing::Leave(closed) => self.leave(closed, buffer),
        }
    }

    fn include(&mut self, opened: usize, buffer: Buffer) -> Result<Operation, Buffer> {
        let Some(&directory) = self.plan.include.get(opened) else {
            self.doing = Doing::Claim;
            return Err(buffer);
        };
        let buffer = if directory == 0 {
            buffer
        } else {
            match self.descent.toward(self.plan.tree.directory(directory).parent, buffer) {
                Ok(operation) => return Ok(operation),
                Err(buffer) => buffer,
            }
        };
        self.doing = Doing::Include(opened + 1);
        Ok(self.descent.open_into(directory, self.include_slot(opened), buffer))
    }

    fn claim(&mut self, now: Nanos, buffer: Buffer) -> Result<Operation, Buffer> {
        let unit = if now < self.stop_at { self.queue.claim(self.plan.units()) } else { None };
        self.doing = unit.map_or(Doing::Leave(0), Doing::Source);
        Err(buffer)
    }

    fn source(&mut self, unit: u32, buffer: Buffer) -> Result<Operation, Buffer> {
        let file = self.plan.source(unit);
        let operation = self.descent.toward(self.plan.tree.directory_of(file), buffer);
        if operation.is_err() {
            let choice = self.headers.part(unit.into()).stream();
            self.doing = Doing::Headers { unit, left: self.plan.headers_a_unit(), choice };
            let size = self.plan.tree.size(file);
            self.pass_here(file_name(file), size, FileTask::Read);
        }
        operation
    }

    fn header(
        &mut self,
        unit: u32,
        left: u32,
        mut choice: RandomStream,
        buffer: Buffer,
    ) -> Result<Operation, Buffer> {
        let header = if left > 0 { self.plan.header(&mut choice) } else { None };
        let Some(header) = header else {
            self.doing = Doing::Object(unit);
            return Err(buffer);
        };
        self.doing = Doing::Headers { unit, left: left - 1, choice };
        let read = PassedFile {
            dir: self.include_slot(header.directory),
            slot: self.file_slot(),
            name: file_name(header.file),
            size: self.plan.tree.size(header.file),
        };
        self.pass = Some(FilePass::new(read, FileTask::Read));
        Err(buffer)
    }

    fn object(&mut self, unit: u32, buffer: Buffer) -> Result<Operation, Buffer> {
        self.doing = Doing::Rename(unit);
        self.pass_here(Name::numbered(BEING_WRITTEN, unit), self.object_size(unit), WRITTEN);
        Err(buffer)
    }

    fn rename(&self, unit: u32, mut buffer: Buffer) -> Operation {
        let here = self.descent.here();
        let length = Name::numbered(BEING_WRITTEN, unit).put_twice(&mut buffer, LETTER, OBJECT_LETTER);
        Operation { kind: OpKind::Rename, file: here, dir: here, length, offset: 0, tag: 0, buffer }
    }

    /// Counts a renamed object.
    fn renamed(&mut self, unit: u32) {
        self.doing = match unit {
            program if program == self.plan.units() => Doing::Leave(0),
            _ if self.queue.finish() == self.plan.units() => Doing::Link(0),
            _ => Doing::Claim,
        };
    }

    fn link(&mut self, read: u32, buffer: Buffer) -> Result<Operation, Buffer> {
        let units = self.plan.units();
        let directory = if read < units { self.plan.tree.directory_of(self.plan.source(read)) } else { 0 };
        let operation = self.descent.toward(directory, buffer);
        if operation.is_err() && read < units {
            self.doing = Doing::Link(read + 1);
            self.pass_here(Name::numbered(OBJECT, read), self.object_size(read), FileTask::Read);
        } else if operation.is_err() {
            self.doing = Doing::Rename(units);
            let all = (0..units).map(|unit| self.object_size(unit)).sum();
            self.pass_here(Name::numbered(BEING_WRITTEN, units), all, WRITTEN);
        }
        operation
    }

    fn leave(&mut self, closed: usize, buffer: Buffer) -> Result<Operation, Buffer> {
        if closed == self.plan.include.len() {
            return self.descent.leave_all(buffer);
        }
        self.doing = Doing::Leave(closed + 1);
        Ok(Operation::on(OpKind::Close, self.include_slot(closed), buffer))
    }

    /// Begins with a file in the directory that is open.
    fn pass_here(&mut self, name: Name, size: u64, task: FileTask) {
        let file = PassedFile { dir: self.descent.here(), slot: self.file_slot(), name, size };
        self.pass = Some(FilePass::new(file, task));
    }

    fn object_size(&self, unit: u32) -> u64 {
        OBJECT_TIMES * self.plan.tree.size(self.plan.source(unit))
    }

    fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Leave(closed) if closed == self.plan.include.len())
    }
}

const WRITTEN: FileTask = FileTask::Write { durable: false };
/// The name of an object while it is being written, without its number.
const BEING_WRITTEN: &str = "n_t";
/// The name of a finished object, without its number.
const OBJECT: &str = "n_o";
/// The position of the letter in which the two names differ.
const LETTER: usize = 2;
const OBJECT_LETTER: u8 = b'o';

impl Steps for Build {
    fn next(&mut self, now: Nanos, mut buffer: Buffer) -> Result<Operation, Buffer> {
        loop {
            let was_over = self.is_over();
            let asked = match &mut self.pass {
                Some(pass) => pass.next(&mut self.stamps, buffer),
                None => self.between(now, buffer),
            };
            match asked {
                Ok(operation) => return Ok(operation),
                Err(back) if was_over && self.pass.is_none() => return Err(back),
                Err(back) => buffer = back,
            }
            // A new pass always has an operation; only a finished one returns the buffer.
            self.pass.take_if(|pass| pass.is_over());
        }
    }

    fn thinks_until(&mut self, now: Nanos) -> Option<Nanos> {
        self.pass.take_if(|pass| pass.is_over());
        if let (None, Doing::Headers { unit, left: 0, .. }) = (&self.pass, &self.doing) {
            let until = (now + self.plan.think_time).min(self.stop_at);
            self.doing = Doing::Thinking { unit: *unit, until };
        }
        match self.doing {
            Doing::Thinking { until, .. } => Some(until),
            _ => None,
        }
    }

    fn done(&mut self, kind: OpKind, moved: u32) {
        match (&mut self.pass, &self.doing) {
            (Some(pass), _) => pass.done(kind, moved),
            (None, &Doing::Rename(unit)) => self.renamed(unit),
            _ => {}
        }
    }

    fn failed(&mut self) {
        self.queue.fail();
    }
}
