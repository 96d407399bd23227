//! The place of a new recording: checks before anything exists, and its directories.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_model::{Bytes, Capabilities, Format, Phase, StripeLayout, TargetDescription};
use nilometer_remote::{create_directory, is_taken};
use nilometer_storage::{
    PATIENCE, in_time, process,
    target::{Directory, KeptDirectory},
};

use crate::error::{ServiceError, require};

/// The longest name of a recording, in bytes. Files add suffixes to it, and a file system takes 255.
const NAME_MAX: usize = 200;

/// Checks the name of a recording, which is also the name of its directories.
pub fn check_name(name: &str) -> Result<(), ServiceError> {
    let is_odd = |letter: char| letter == '/' || letter.is_control();
    let plain =
        !name.is_empty() && !name.starts_with('.') && !name.contains(is_odd) && name.len() <= NAME_MAX;
    require(plain, || {
        format!(
            "--name {}: write a plain name of at most {NAME_MAX} bytes, without a slash or a control character",
            name.escape_debug()
        )
    })
}

/// Refuses a directory or an address that the user names twice.
pub fn refuse_twice(places: &[PathBuf]) -> Result<(), ServiceError> {
    let twice = places.iter().enumerate().find(|(at, place)| places[..*at].contains(place));
    let Some((_, place)) = twice else { return Ok(()) };
    require(false, || format!("you named {} twice: name each place once", place.display()))
}

/// Checks that this memory holds two slots of a ring.
pub fn check_slots(buffer: Bytes, slot: Bytes) -> Result<(), ServiceError> {
    let needed = Bytes(2 * slot.0);
    require(buffer >= needed, || format!("--buffer {buffer}: two frames of {slot} need {needed}"))
}

/// Checks that this memory holds two slots, and that it is available.
pub fn check_buffer(buffer: Bytes, slot: Bytes) -> Result<(), ServiceError> {
    check_slots(buffer, slot)?;
    let Some(available) = process::available_memory() else { return Ok(()) };
    require(buffer.0 <= available.0 / 2, || {
        let limit = process::memory_limit_words();
        format!(
            "--buffer {buffer}: write at most half of the {available} of memory that are available{limit}"
        )
    })
}

/// Checks that frames can begin at multiples of `align`: whole pages, but not so large that gaps would fill a
/// file.
///
/// # Errors
/// The value is unsuitable; the message names suitable ones.
pub fn check_align(align: Bytes) -> Result<(), ServiceError> {
    let fits = align.0.is_power_of_two() && (ALIGN_LEAST..=ALIGN_MOST).contains(&align.0);
    require(fits, || {
        format!("--align {align}: write a power of 2 from {} to {}", Bytes(ALIGN_LEAST), Bytes(ALIGN_MOST))
    })
}

const ALIGN_LEAST: u64 = 4 << 10;
const ALIGN_MOST: u64 = 1 << 30;

/// Checks that files of this format can be made in these directories. The HDF5 library opens files by their
/// paths after the recording.
///
/// # Errors
/// The directory is unsuitable; the message has a remedy.
pub fn check_mounted(format: Format, described: &[TargetDescription]) -> Result<(), ServiceError> {
    let by_url = described.iter().find(|description| description.address.url().is_some());
    let Some(description) = by_url.filter(|_| format == Format::Hdf5) else { return Ok(()) };
    Err(ServiceError::AskedWrongly(format!(
        "{}: HDF5 needs a directory that is mounted: name one, or --format raw",
        description.address
    )))
}

/// Checks that each of these directories lets the recorder choose the stripes of its files.
///
/// # Errors
/// Nobody can choose them there; the message names the option, with a remedy.
pub fn check_stripes(stripes: &StripeLayout, described: &[TargetDescription]) -> Result<(), ServiceError> {
    let checked = described.iter().try_for_each(|description| description.check_stripes(stripes));
    checked.map_err(|refused| ServiceError::AskedWrongly(refused.of_option()))
}

/// The name, in messages, of the file of a recording that keeps only the latest data.
pub(crate) const KEPT: &str = "file to be kept";

/// Checks that a new recording can begin in this directory. Its smallest part, named `part` and of this size,
/// must fit beside the reserve, which stays free.
pub fn check_place(
    description: &TargetDescription,
    name: &str,
    reserve: Bytes,
    part: &str,
    size: Bytes,
) -> Result<(), ServiceError> {
    let path = &description.address;
    require(description.writable, || {
        let why = description.why_not_written();
        format!("{path}: can't be written{why}: name a directory that this user may write to")
    })?;
    let lacking = description.capabilities.lacking(&Capabilities::of(Phase::Ingest.needs()));
    require(lacking.is_empty(), || {
        let names: Vec<_> = lacking.iter().map(|capability| capability.name()).collect();
        let lacking = names.join(", ");
        format!(
            "{path}: no recording can be made there, since that needs {lacking}: record into a directory, or onto root://, \
             nfs://, s3:// or hdfs://"
        )
    })?;
    let taken = is_taken(path, name).map_err(ServiceError::asked_wrongly)?;
    require(!taken, || format!("{} exists: choose another --name", within(description, name)))?;
    let free = description.space.free;
    let less = if part == KEPT { ", or --keep less" } else { "" };
    require(free.0.saturating_sub(reserve.0) >= size.0, || {
        format!(
            "{path} has {free} free, and {reserve} must stay free: no {part} of {size} fits; name larger storage, or a \
             smaller --reserve{less}"
        )
    })
}

/// The path or URL of `name` in this directory.
fn within(description: &TargetDescription, name: &str) -> String {
    match description.address.url() {
        Some(url) => url.join(name).to_string(),
        None => format!("{}/{name}", description.address),
    }
}

/// Makes the recording's directory in each of the described ones: in all of them or in none.
///
/// # Errors
///
/// One exists already or can't be made, or its storage does not answer.
fn make(described: Vec<TargetDescription>, name: &str) -> Result<Vec<Arc<dyn KeptDirectory>>, ServiceError> {
    let mut made: Vec<Arc<dyn KeptDirectory>> = Vec::new();
    for description in described {
        let path = description.address.to_string().into();
        let name = name.to_owned();
        match in_time(PATIENCE, path, move || create_directory(description, &name)).flatten() {
            Ok(directory) => made.push(directory),
            Err(error) => {
                // They are new and empty.
                for directory in made {
                    drop(directory.remove_unused(&[]));
                }
                return Err(ServiceError::asked_wrongly(error));
            }
        }
    }
    Ok(made)
}

/// Makes the recording's directories, and spreads the files that will be in them over storage devices as `stripes`
/// asks. Tells `note` if storage gives other stripes.
///
/// # Errors
///
/// One exists already or can't be made, its storage does not answer, or it refuses the stripes. No directory is
/// left then.
pub fn make_striped(
    described: Vec<TargetDescription>,
    name: &str,
    stripes: &StripeLayout,
    note: &dyn Fn(&str),
) -> Result<Vec<Arc<dyn KeptDirectory>>, ServiceError> {
    let made = make(described, name)?;
    for directory in &made {
        let asked = stripes.clone();
        let place = directory.path().to_owned();
        let new = directory.clone();
        match in_time(PATIENCE, place, move || new.lay_out(&asked)).flatten() {
            Ok(given) => note_other_stripes(directory.path(), stripes, given, note),
            Err(error) => {
                for unused in &made {
                    discard_unused(unused.clone(), Vec::new());
                }
                return Err(ServiceError::asked_wrongly(error));
            }
        }
    }
    Ok(made)
}

/// Does the same for a directory into which other processes record too. All hold its lock together.
///
/// # Errors
///
/// In the same cases, and if another program holds the lock.
pub fn make_common(
    described: Vec<TargetDescription>,
    name: &str,
    stripes: &StripeLayout,
    note: &dyn Fn(&str),
) -> Result<Vec<Arc<dyn KeptDirectory>>, ServiceError> {
    let made = make_striped(described, name, stripes, note)?;
    let shared = made.iter().try_for_each(|directory| {
        let new = directory.clone();
        in_time(PATIENCE, directory.path().to_owned(), move || new.share_lock()).flatten()
    });
    if let Err(error) = shared {
        for unused in &made {
            discard_unused(unused.clone(), Vec::new());
        }
        return Err(ServiceError::asked_wrongly(error));
    }
    Ok(made)
}

/// Opens the directory that another process of the same recording has made in each of the described ones.
/// `identity` is its inode.
///
/// # Errors
///
/// It is not there, or is another one, or its storage does not answer.
pub fn join_made(
    described: Vec<TargetDescription>,
    name: &str,
    identity: u64,
) -> Result<Vec<Arc<dyn KeptDirectory>>, ServiceError> {
    let joined = described.into_iter().map(|description| {
        let path = description.address.to_string().into();
        let name = name.to_owned();
        let joined = in_time(PATIENCE, path, move || Directory::join(description, &name, identity)).flatten();
        let joined = joined.map_err(ServiceError::asked_wrongly)?;
        Ok(Arc::new(joined) as Arc<dyn KeptDirectory>)
    });
    joined.collect()
}

fn note_other_stripes(path: &Path, asked: &StripeLayout, given: Option<StripeLayout>, note: &dyn Fn(&str)) {
    let differing = given.map(|given| asked.not_given(&given)).unwrap_or_default();
    for what in differing {
        note(&format!("{}: {what}", path.display()));
    }
}

/// Removes a directory in which nothing was recorded, with the files of these names. If it has other files, they
/// and the directory stay. If the storage does not answer, the function gives up.
pub fn discard_unused(directory: Arc<dyn KeptDirectory>, names: Vec<String>) {
    let path = directory.path().to_owned();
    drop(in_time(PATIENCE, path, move || drop(directory.remove_unused(&names))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_leaves_room_for_suffixes() {
        let long = "n".repeat(NAME_MAX);
        for good in ["scan", "exp_ef_no0001", "a b", &long] {
            check_name(good).expect(good);
        }
        for wrong in ["", ".hidden", "..", "a/b", "line\nbreak", &format!("{long}n")] {
            let error = check_name(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("--name ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn memory_holds_two_slots_and_is_there() {
        check_buffer(Bytes(8), Bytes(4)).expect("two slots of little memory");
        assert!(check_buffer(Bytes(7), Bytes(4)).expect_err("too little").to_string().contains("need 8 B"));
        let error = check_buffer(Bytes(1 << 60), Bytes(4)).expect_err("too much").to_string();
        assert!(error.contains("at most half of the "), "{error}");
    }
}
