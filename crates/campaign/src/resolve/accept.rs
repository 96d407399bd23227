//! Criteria of acceptance that these targets or this machine can't decide.

use std::thread::available_parallelism;

use nilometer_model::{
    BlockLayer, BlockLayerKind, TargetDescription,
    plan::{Acceptance, CoresOf, Requirement},
};

use super::ResolveError;

/// Refuses what could never be violated, or never be decided, before it is measured.
pub(super) fn check_acceptance(
    accept: &Acceptance,
    targets: &[TargetDescription],
) -> Result<(), ResolveError> {
    let refused = |why| ResolveError::Acceptance { why };
    if !accept.price.is_empty() && accept.price.len() != targets.len() && !accept.is_empty() {
        return Err(refused(format!(
            "price has {} texts, and there are {} targets: write one for each, in their order, or none",
            accept.price.len(),
            targets.len()
        )));
    }
    for criterion in &accept.criteria {
        let found = match criterion.demand {
            Requirement::Cores { of, most } => check_cores(of, most),
            Requirement::SyncFlushes => targets.iter().try_for_each(check_flushes),
            _ => Ok(()),
        };
        found.map_err(|why| refused(format!("{}: {why}", criterion.stage)))?;
    }
    Ok(())
}

fn check_cores(of: CoresOf, most: f64) -> Result<(), String> {
    let there = available_parallelism().map_or(1, Into::into);
    if most < there as f64 {
        return Ok(());
    }
    Err(format!(
        "cores: at most {most} of {} can't be exceeded on a machine with {there} processors: write less, or measure on a \
         larger one",
        of.words()
    ))
}

/// Whether the kernel counts what reaches the devices below.
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
            "sync_flushes: the kernel does not count what reaches {} below {address}: leave it out",
            layer.name
        )),
        None => Ok(()),
    }
}

/// Devices that only pass requests on do not count them.
fn counts_flushes(layer: &BlockLayer) -> bool {
    let passes_on = matches!(
        layer.kind,
        BlockLayerKind::Md { .. }
            | BlockLayerKind::Mapped { .. }
            | BlockLayerKind::ZfsVolume
            | BlockLayerKind::Memory
    );
    !passes_on || layer.write_cache == Some(false)
}
