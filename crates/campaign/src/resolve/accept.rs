//! Checks criteria of acceptance that these targets or this machine can't decide.

use std::thread::available_parallelism;

use nilometer_model::{BlockLayer, BlockLayerKind, TargetDescription};
use nilometer_plan::{Acceptance, CoresOf, Requirement};

use super::ResolveError;

/// Refuses criteria that could never be violated, or never be decided, before anything is measured.
pub(super) fn check_acceptance(
    accept: &Acceptance,
    targets: &[TargetDescription],
) -> Result<(), ResolveError> {
    let refused = |why| ResolveError::Acceptance { why };
    // A campaign that goes on has the null target beside those that were offered.
    let offered = targets.iter().filter(|target| target.is_on_storage()).count();
    let counts = [0, offered, targets.len()];
    if !counts.contains(&accept.price.len()) && !accept.is_empty() {
        return Err(refused(format!(
            "price has {} texts, and there are {} targets: write one for each, in their order, or none",
            accept.price.len(),
            targets.len()
        )));
    }
    for criterion in &accept.criteria {
        let found = match criterion.demand {
            Requirement::Cores { of, most } => check_cores(of, most)
                .and_then(|()| targets.iter().try_for_each(|target| check_client(of, target))),
            Requirement::SyncFlushes => targets.iter().try_for_each(check_flushes),
            _ => Ok(()),
        };
        found.map_err(|why| refused(format!("{}: {why}", criterion.stage)))?;
    }
    Ok(())
}

fn check_cores(of: CoresOf, most: f64) -> Result<(), String> {
    let there = if of == CoresOf::Machine { online() } else { available_parallelism().map_or(1, Into::into) };
    if most < there as f64 {
        return Ok(());
    }
    Err(format!(
        "cores: at most {most} of {} can't be exceeded on a machine with {there} processors: write less, or measure on a \
         larger one",
        of.words()
    ))
}

/// The number of processors of the machine, including those that this process may not use.
fn online() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_processor = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    stat.lines().filter(is_processor).count().max(1)
}

/// Checks that the target's client does not run within this program, where its work could not be separated.
fn check_client(of: CoresOf, target: &TargetDescription) -> Result<(), String> {
    if of != CoresOf::Client || target.address.url().is_none() {
        return Ok(());
    }
    Err(format!(
        "cores.client: the client of {} works within this program, and counts as cores.process: write that",
        target.address
    ))
}

/// Checks that the kernel counts the flushes that reach the devices below.
fn check_flushes(target: &TargetDescription) -> Result<(), String> {
    let address = &target.address;
    let layers = &target.profile.layers;
    if layers.is_empty() {
        return Err(format!(
            "sync_flushes: this machine sees no device below {address}: leave it out, or measure on the server's own file system"
        ));
    }
    match layers.iter().find(|layer| !counts_flushes(layer)) {
        Some(layer) => Err(format!(
            "sync_flushes: the kernel does not count the flushes that reach {} below {address}: leave it out",
            layer.name
        )),
        None => Ok(()),
    }
}

/// Returns true if the kernel counts the flushes of this layer, or if the layer has no volatile write cache.
/// Devices that only pass requests on do not count them, and those of a partition count with those of others.
fn counts_flushes(layer: &BlockLayer) -> bool {
    let passes_on = matches!(
        layer.kind,
        BlockLayerKind::Partition
            | BlockLayerKind::Md { .. }
            | BlockLayerKind::Mapped { .. }
            | BlockLayerKind::ZfsVolume
            | BlockLayerKind::Memory
    );
    !passes_on || layer.write_cache == Some(false)
}
