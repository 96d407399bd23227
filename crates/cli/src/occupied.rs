//! Refuses targets that can't be measured: the same directory twice, or one that another campaign uses. Each
//! measurement would be under the load of the other.

use nilometer_model::TargetDescription;
use nilometer_plan::PlannedCampaign;
use std::{os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, bail};
use nilometer_remote::in_use;
use nilometer_storage::target::Holder;

use crate::tell;

/// Refuses a directory that is given twice, by whichever paths.
pub(crate) fn refuse_twice(targets: &[TargetDescription]) -> Result<()> {
    let beyond = targets.iter().enumerate().filter(|(_, target)| target.directory().is_none());
    for (index, TargetDescription { address, .. }) in beyond {
        if targets[..index].iter().any(|other| other.address == *address) {
            bail!("you named {address} twice: name each target once");
        }
    }
    let mut seen: Vec<((u64, u64), &Path)> = Vec::new();
    for path in targets.iter().filter_map(TargetDescription::directory) {
        let metadata = path.metadata().with_context(|| format!("can't look at {}", path.display()))?;
        let identity = (metadata.dev(), metadata.ino());
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == identity) {
            let path = path.display();
            let other = other.display();
            bail!("{path} is the same directory as {other}: name each target once");
        }
        seen.push((identity, path));
    }
    Ok(())
}

/// Refuses places that another campaign uses: those to measure, to copy from and to copy to.
pub(crate) fn refuse_in_use(resolved: &PlannedCampaign) -> Result<()> {
    let besides = resolved.source.iter().chain(&resolved.archive);
    for description in resolved.targets.iter().chain(besides) {
        if let Some(Holder { directory, process }) = in_use(description)? {
            let process = process.map(|id| format!(" (process {id})")).unwrap_or_default();
            bail!(
                "{}: in use by a running campaign{process}, whose directory is {}: each would measure the other; \
                 wait until it ends",
                description.address,
                directory.display()
            );
        }
    }
    Ok(())
}

/// Warns of a record on the storage under test: the program writes it between phases, and this may show in
/// figures.
pub(crate) fn warn_of_record_on_target(record: &Path, resolved: &PlannedCampaign) {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let parent = record.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut directories = resolved.targets.iter().filter_map(TargetDescription::directory);
    if let Some(target) = directories.find(|target| device(target) == device(parent)) {
        let target = target.display();
        tell::note(format_args!(
            "note: the record lies on the storage under test ({target}); it is written between phases only"
        ));
    }
}
