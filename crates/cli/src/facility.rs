//! A facility as the user names it, with its instruments: what `size` reckons with and `evaluate --for` records.

use std::path::{Path, PathBuf};

use anyhow::Context;
use nilometer_model::{
    Facility, Instrument,
    catalogue::{FACILITIES, INSTRUMENTS, has_instrument},
};
use nilometer_storage::user_file::{self, NamedText, find};

/// A facility by its name or path; an instrument is a facility of one.
pub(crate) fn load(name: &str) -> anyhow::Result<(Facility, Vec<Instrument>)> {
    let known: Vec<_> = FACILITIES.into_iter().chain(INSTRUMENTS).collect();
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

/// An instrument that a facility names: of the catalogue, or by a path from where the facility's file is.
fn member_of(beside: &Path, name: &str) -> anyhow::Result<Instrument> {
    let path: PathBuf = beside.join(name);
    let is_path = !has_instrument(name) && Path::new(name).extension().is_some_and(|end| end == "toml");
    Ok(user_file::instrument(if is_path { path.to_str().unwrap_or(name) } else { name })?)
}
