//! `nilometer facility`: lists and shows the built-in facilities. Also reads the facility that a user names,
//! with its instruments: `size` computes with it, and `evaluate --for` records it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use nilometer_model::{
    ByteRate, Facility, Instrument, Readers,
    catalogue::{BuiltIn, FACILITIES, INSTRUMENTS, has_instrument},
};
use nilometer_storage::user_file::{self, NamedText, find};

use crate::{Blame, Outcome, show::ShownFile, tell};

/// List the facilities of the catalogue, or show the parts of one
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List names and titles
    List,
    /// Show its instruments, readers and retention, and the sources of the figures
    Show(ShownFile),
}

impl Command {
    pub(crate) fn execute(&self) -> Outcome {
        match &self.action {
            Action::List => {
                for BuiltIn { name, text } in FACILITIES {
                    let title = Facility::parse(text, name).input()?.title;
                    tell::result_line(format_args!("{name:<10} {title}"));
                }
            }
            Action::Show(ShownFile { name, toml }) => {
                let NamedText { name: file, text } = find(name, &FACILITIES, "facility").input()?;
                let facility = Facility::parse(&text, &file).input()?;
                if *toml {
                    tell::result_to_copy(text);
                } else {
                    tell::result(shown(&facility));
                }
            }
        }
        Ok(())
    }
}

fn shown(facility: &Facility) -> String {
    let Facility { title, source, instruments, copy_out, retention, capacity } = facility;
    let mut lines = vec![title.clone()];
    lines.extend(source.iter().map(|source| format!("source      {source}")));
    for member in instruments {
        let day = if member.duty < 1.0 {
            format!(", {:.0} % of the day", 100.0 * member.duty)
        } else {
            String::new()
        };
        let readers = member.readers.map(read_by).unwrap_or_default();
        lines.push(format!("instrument  {} x {}{day}{readers}", member.count, member.name));
    }
    lines.extend(copy_out.iter().map(|rate: &ByteRate| format!("copied out  at {rate} ({})", rate.bits())));
    lines.extend(retention.iter().map(|time| format!("kept        {time} at least")));
    lines.extend(capacity.iter().map(|size| format!("capacity    {size}")));
    lines.join("\n") + "\n"
}

fn read_by(readers: Readers) -> String {
    if readers.none() { String::new() } else { format!(", each read by {}", readers.count) }
}

/// A facility by its name or path; an instrument is a facility of one.
pub(crate) fn load(name: &str) -> anyhow::Result<(Facility, Vec<Instrument>)> {
    let known: Vec<_> =
        FACILITIES.into_iter().filter(|known| !has_instrument(known.name)).chain(INSTRUMENTS).collect();
    let NamedText { name: file, text } = find(name, &known, "instrument or facility")?;
    if !Facility::is_meant(&text) {
        let instrument = Instrument::parse(&text, &file)?;
        return Ok((Facility::of(&instrument), vec![instrument]));
    }
    let facility = Facility::parse(&text, &file)?;
    let beside = Path::new(&file).parent().unwrap_or(Path::new(""));
    let instruments = facility.instruments.iter().map(|member| {
        member_of(beside, &member.name).with_context(|| format!("{file}: instrument `{}`", member.name))
    });
    let instruments = instruments.collect::<anyhow::Result<Vec<_>>>()?;
    Ok((facility, instruments))
}

/// An instrument that a facility names: of the catalogue, or by a path relative to the facility's file.
fn member_of(beside: &Path, name: &str) -> anyhow::Result<Instrument> {
    let path: PathBuf = beside.join(name);
    let is_path = !has_instrument(name) && Path::new(name).extension().is_some_and(|end| end == "toml");
    Ok(user_file::instrument(if is_path { path.to_str().unwrap_or(name) } else { name })?)
}
