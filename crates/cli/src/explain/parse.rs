//! A whole line: its front, its program, and the program's options.

use anyhow::bail;

use super::{
    dd, elbencho, fio, ior, iozone,
    launcher::{LineFront, name_of},
    line::{ForeignLine, ForeignProgram},
    mdtest,
};

/// A line with its front.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadLine {
    pub(super) front: LineFront,
    pub(super) line: ForeignLine,
}

impl ReadLine {
    /// Refuses to run a line on anything that exists already.
    pub(super) fn check_reach(&self) -> anyhow::Result<()> {
        let mut reach = self.front.reach.clone();
        reach.extend(&self.line.reach);
        reach.check()
    }
}

/// Reads a line.
pub(super) fn parse(words: &[String]) -> anyhow::Result<ReadLine> {
    let front = LineFront::read(words)?;
    let command = &words[front.words];
    let program = program_of(command, front.words + 1)?;
    let mut line = ForeignLine::new(program, front.processes);
    line.left_out = front.left_out.clone();
    let arguments = &words[front.words + 1..];
    // Words are counted from 1, and the program is one.
    let first = front.words + 2;
    match program {
        ForeignProgram::Fio => fio::take(&mut line, arguments, first)?,
        ForeignProgram::Dd => dd::take(&mut line, arguments, first)?,
        ForeignProgram::Ior => ior::take(&mut line, arguments, first)?,
        ForeignProgram::Mdtest => mdtest::take(&mut line, arguments, first)?,
        ForeignProgram::Elbencho => elbencho::take(&mut line, arguments, first)?,
        ForeignProgram::Iozone => iozone::take(&mut line, arguments, first)?,
    }
    Ok(ReadLine { front, line: line.completed()? })
}

fn program_of(command: &str, place: usize) -> anyhow::Result<ForeignProgram> {
    let name = name_of(command);
    let known = ForeignProgram::ALL.into_iter().find(|(known, _)| *known == name);
    let Some((_, program)) = known else {
        let all = ForeignProgram::ALL.map(|(name, _)| name).join(", ");
        bail!(
            "`{command}` (word {place}): write a line of {all}, also behind mpirun, srun, aprun, jsrun, ibrun, time, sudo, env, \
             nice, ionice, timeout, numactl, taskset, chrt, stdbuf or variables"
        );
    };
    Ok(program)
}
