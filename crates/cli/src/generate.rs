//! `nilometer generate`: writes man pages, shell completions and the page of commands from the definition of the
//! arguments, for packages and for the documentation. It also writes the adapter to MPI, for runs on several
//! machines. No help lists it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

use nilometer_cluster::ADAPTER_SOURCE;

use crate::{
    Blame, Outcome, commands_page::commands_page, completion_values::with_values, help, tell, version,
};

/// Write man pages or completions into a directory, or the page of commands or the adapter to MPI to stdout
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Generate {
    /// Write this
    what: Generated,
    /// Write into this directory, and make it if needed
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    to: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Generated {
    /// A page for the program and for each of its commands
    Man,
    /// A file for each shell
    Completions,
    /// The page of the documentation with all commands and their options, in Markdown
    Commands,
    /// The adapter between the program and MPI, as source, to be compiled:
    /// `nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o libnilometer_mpi.so`
    Mpi,
}

impl Generate {
    pub(crate) fn execute(&self) -> Outcome {
        match self.what {
            Generated::Man => return self.files(|to| man(&definition(), to)),
            Generated::Completions => return self.files(completions),
            Generated::Commands => tell::result_to_copy(commands_page()),
            Generated::Mpi => tell::result_to_copy(ADAPTER_SOURCE),
        }
        Ok(())
    }

    /// Writes files into the directory.
    fn files(&self, write: impl FnOnce(&Path) -> io::Result<()>) -> Outcome {
        let to = &self.to;
        let written = fs::create_dir_all(to).and_then(|()| write(to));
        written.with_context(|| format!("can't write into {}", to.display())).run()
    }
}

/// The definition of the program's arguments. Pages have the version of the package and the day of the commit.
fn definition() -> Command {
    with_version(help::command())
}

fn with_version(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    let mut command = command.version(version::PACKAGE).long_version(None::<&str>);
    command.build();
    command
}

/// The section of the first page about installed files.
const FILES: &str = r".SH FILES
Below the prefix of the installation, such as /usr:
.TP
\fBshare/doc/nilometer/docs\fR
The documentation. \fBtutorial.md\fR is the beginning, \fBSUMMARY.md\fR the list of pages.
.TP
\fBshare/doc/nilometer/contrib\fR
Files to copy: Grafana dashboards, alert rules, a weekly check, batch jobs, the C library that sends frames.
.TP
\fBshare/doc/nilometer/instruments\fR, \fBfacilities\fR, \fBplans\fR, \fBreference\fR
The files behind the names that commands take, to begin your own with; the figures of published studies.
";

/// Writes the pages of a command and of its subcommands.
fn man(command: &Command, to: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        man(subcommand, to)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(version::DAY)
        .source(format!("Nilometer {}", version::PACKAGE))
        .manual("Nilometer");
    let mut file = File::create(to.join(format!("{name}.1")))?;
    page.render(&mut file)?;
    match name.as_str() {
        "nilometer" => file.write_all(FILES.as_bytes())?,
        _ => file.write_all(b".SH \"SEE ALSO\"\n\\fBnilometer\\fR(1)\n")?,
    }
    file.flush()
}

/// A file for each shell, with the name by which the shell finds it.
fn completions(to: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut command = with_version(with_values(help::command(), shell));
        generate_to(shell, &mut command, "nilometer", to)?;
    }
    Ok(())
}
