//! A whole line: its front, its program, and the program's options.

use crate::{
    dd, elbencho,
    error::LineError,
    fio, ior, iozone,
    launcher::{LineFront, name_of},
    line::{ForeignLine, ForeignProgram},
    mdtest,
    reach::LineReach,
};

/// A line with its front.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadLine {
    /// The words before the program.
    pub front: LineFront,
    /// The program with its options.
    pub line: ForeignLine,
}

impl ReadLine {
    /// All that its launchers and its program work on.
    pub fn reach(&self) -> LineReach {
        let mut reach = self.front.reach.clone();
        reach.extend(&self.line.reach);
        reach
    }
}

/// Reads a line.
pub fn parse(words: &[String]) -> Result<ReadLine, LineError> {
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

fn program_of(command: &str, place: usize) -> Result<ForeignProgram, LineError> {
    let name = name_of(command);
    let known = ForeignProgram::ALL.into_iter().find(|(known, _)| *known == name);
    let Some((_, program)) = known else {
        let all = ForeignProgram::ALL.map(|(name, _)| name).join(", ");
        let why = format!(
            "write a line of {all}, also behind mpirun, srun, aprun, jsrun, ibrun, time, sudo, env, \
             nice, ionice, timeout, numactl, taskset, chrt, stdbuf or variables"
        );
        return Err(LineError::word(command, &format!("word {place}"), why));
    };
    Ok(program)
}
