//! Several targets as one, for a recording that is striped over them. Its writers are on each of them, and a
//! reader finds its files on any. The members are the campaign's targets, with the places that the campaign
//! made on them.

use std::{collections::BTreeMap, sync::Arc};

use nilometer_model::{DeviceTraffic, FileSystemSpace, Nanos, TargetDescription};
use nilometer_storage::{
    Arena, Completion, Engine, EngineError, Errno, OpKind, Operation, Slot, Target, TargetError, Wait, Wake,
    engine::Options,
};

/// Several targets as one; at least two.
#[derive(Debug)]
pub(crate) struct JoinedTarget {
    description: TargetDescription,
    members: Vec<Arc<dyn Target>>,
}

impl JoinedTarget {
    pub(crate) fn of(description: TargetDescription, members: Vec<Arc<dyn Target>>) -> Self {
        JoinedTarget { description, members }
    }
}

impl Target for JoinedTarget {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn members(&self) -> &[Arc<dyn Target>] {
        &self.members
    }

    /// For reading only, one operation at a time.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let members = self.members.iter().map(|member| member.engine(options));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let last = options.clock.now();
        Ok(Box::new(JoinedEngine { members, open: BTreeMap::new(), done: Vec::new(), last }))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        let with_space = |member: &Arc<dyn Target>| {
            Ok(TargetDescription { space: member.space()?, ..member.description().clone() })
        };
        let now = self.members.iter().map(with_space).collect::<Result<Vec<_>, TargetError>>()?;
        Ok(TargetDescription::joined(&now).space)
    }

    /// The traffic of all their devices, each counted once; `None` if one of them has no device here.
    fn traffic(&self) -> Option<DeviceTraffic> {
        let mut seen = Vec::new();
        let mut sum: Option<DeviceTraffic> = None;
        for member in &self.members {
            let traffic = member.traffic()?;
            let device = &member.description().device;
            if device.is_none() || !seen.contains(device) {
                seen.push(device.clone());
                sum = Some(sum.map_or(traffic, |sum| sum.and(traffic)));
            }
        }
        sum
    }

    fn clear(&self) -> Result<(), TargetError> {
        // Clear all of them, even if one fails.
        let cleared: Vec<_> = self.members.iter().map(|member| member.clear()).collect();
        cleared.into_iter().collect()
    }

    /// Does nothing: each of the members is removed by itself.
    fn remove(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Reads files on any member: it opens each on the first member that has it.
struct JoinedEngine {
    /// The engines, in the order of the targets.
    members: Vec<Box<dyn Engine>>,
    /// For each slot, the member that has its file.
    open: BTreeMap<Slot, usize>,
    /// Operations that are done and not yet reaped.
    done: Vec<Completion>,
    last: Nanos,
}

impl JoinedEngine {
    /// Runs an operation on one member, to its end.
    fn carried_out(&mut self, member: usize, operation: Operation, due: Nanos) -> Completion {
        let engine = &mut self.members[member];
        engine.tick();
        engine.submit(operation, due);
        let mut done = Vec::new();
        while done.is_empty() {
            engine.reap(Wait::ForOne, &mut done);
        }
        done.pop().expect("one operation is in flight")
    }

    /// Opens a file on the first member that has it. If a member has none, the name is still in the buffer.
    fn opened(&mut self, mut operation: Operation, due: Nanos) -> Completion {
        for member in 0..self.members.len() {
            let file = operation.file;
            let completion = self.carried_out(member, operation, due);
            let is_last = member + 1 == self.members.len();
            if is_last || completion.result != Err(Errno::ENOENT) {
                if completion.result.is_ok() {
                    self.open.insert(file, member);
                }
                return completion;
            }
            operation = completion.operation;
        }
        unreachable!("there are members, and the last one's answer counts")
    }

    fn refused(&mut self, operation: Operation, due: Nanos, errno: Errno) -> Completion {
        let now = self.tick();
        Completion { operation, result: Err(errno), due, issued: now, finished: now }
    }
}

impl Engine for JoinedEngine {
    fn depth(&self) -> usize {
        1
    }

    fn now(&self) -> Nanos {
        self.last
    }

    fn tick(&mut self) -> Nanos {
        self.last = self.members[0].tick();
        self.last
    }

    fn submit(&mut self, operation: Operation, due: Nanos) {
        let place = self.open.get(&operation.file).copied();
        let completion = match (operation.kind, place) {
            (OpKind::Open(open), _) if !open.writes() => self.opened(operation, due),
            (OpKind::Read, Some(member)) => self.carried_out(member, operation, due),
            (OpKind::Close, Some(member)) => {
                self.open.remove(&operation.file);
                self.carried_out(member, operation, due)
            }
            (OpKind::Read | OpKind::Close, None) => self.refused(operation, due, Errno::EBADF),
            _ => self.refused(operation, due, Errno::EROFS),
        };
        self.last = completion.finished;
        self.done.push(completion);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        if self.done.is_empty() {
            self.members[0].reap(wait, done);
            self.last = self.last.max(self.members[0].now());
        }
        done.append(&mut self.done);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.members[0].waker()
    }

    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.members.iter_mut().try_for_each(|member| member.register(arena))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::EngineKind;
    use nilometer_storage::{
        Buffer, Clock, Open, ROOT,
        target::{Posix, probe, run_id},
    };

    use super::*;

    fn joined(directories: &[tempfile::TempDir]) -> JoinedTarget {
        let make = |directory: &tempfile::TempDir| {
            let description = probe(directory.path()).expect("a directory");
            Arc::new(Posix::create(description, run_id().0).expect("a place for a run")) as Arc<dyn Target>
        };
        let members: Vec<_> = directories.iter().map(make).collect();
        let descriptions: Vec<_> = members.iter().map(|member| member.description().clone()).collect();
        JoinedTarget::of(TargetDescription::joined(&descriptions), members)
    }

    fn buffer() -> Buffer {
        Arena::shared_out(1, 4096).1.pop().expect("one buffer")
    }

    fn done(engine: &mut dyn Engine, operation: Operation) -> Completion {
        engine.submit(operation, Nanos(0));
        let mut done = Vec::new();
        engine.reap(Wait::ForOne, &mut done);
        assert_eq!(done.len(), 1);
        done.remove(0)
    }

    #[test]
    fn files_are_read_wherever_they_are_and_nothing_is_written() {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
        let target = joined(&directories);
        let run = target.members[1].directory().expect("a path").to_owned();
        std::fs::write(run.join("n_there"), b"frames").expect("space");
        let options = Options { kind: EngineKind::Sync, depth: 1, slots: 4, clock: Clock::start() };
        let mut engine = target.engine(&options).expect("members are directories");
        let open = |name: &[u8], how| Operation::named(OpKind::Open(how), ROOT, Slot(1), name, buffer());
        assert_eq!(done(engine.as_mut(), open(b"n_none", Open::READ)).result, Err(Errno::ENOENT));
        assert!(done(engine.as_mut(), open(b"n_there", Open::READ)).result.is_ok());
        let read = done(engine.as_mut(), Operation::read(Slot(1), 0, 6, buffer()));
        assert_eq!((read.result, &read.operation.buffer[..6]), (Ok(6), &b"frames"[..]));
        assert!(done(engine.as_mut(), Operation::on(OpKind::Close, Slot(1), buffer())).result.is_ok());
        let closed = done(engine.as_mut(), Operation::read(Slot(1), 0, 6, buffer()));
        assert_eq!(closed.result, Err(Errno::EBADF));
        let written = done(engine.as_mut(), open(b"n_new", Open::CREATE));
        assert_eq!(written.result, Err(Errno::EROFS));
        target.clear().expect("what is there is the run's");
        assert!(!run.join("n_there").exists());
        target.members.iter().for_each(|member| member.remove().expect("nothing is left"));
    }
}
