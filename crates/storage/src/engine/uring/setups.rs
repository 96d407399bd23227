//! Makes the kernel's ring, with the best setup that this kernel accepts.

use std::io;

use io_uring::{Builder, IoUring};

use crate::engine::EngineError;

const NAME: &str = "io_uring";

/// Setups of the ring, the best first; older kernels refuse flags they don't know.
pub(super) const SETUPS: [fn(&mut Builder); 3] = [
    // Linux 6.0. Completions wait for the next system call and never interrupt this thread. Deferring them
    // further (`DEFER_TASKRUN`, 6.1) costs more. A 4 KiB read at depth 32 takes 4210 instead of 3440 ns of
    // processor time, and 2990 instead of 2510 ns of the whole machine's.
    |builder| {
        builder.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    },
    // Linux 5.19.
    |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    },
    |_| (),
];

/// Creates a ring for `entries` entries, with the best setup that this kernel accepts.
pub(super) fn ring(entries: u32) -> Result<IoUring, EngineError> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for setup in SETUPS {
        let mut builder = IoUring::builder();
        setup(&mut builder);
        match builder.build(entries) {
            Ok(ring) => {
                let limited = ring.params().is_feature_ext_arg();
                return usable(ring, limited);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(source) => return Err(not_made(source)),
        }
    }
    Err(not_made(refused))
}

/// Returns the ring if it can wait with a time limit. Otherwise the recorder uses another engine, as it does
/// without a ring.
pub(super) fn usable<R>(ring: R, waits_with_limit: bool) -> Result<R, EngineError> {
    if waits_with_limit {
        return Ok(ring);
    }
    let source = io::Error::new(io::ErrorKind::Unsupported, "it needs Linux 5.11 or newer");
    Err(EngineError::NotPermitted { engine: NAME, source, instead: "sync" })
}

fn not_made(source: io::Error) -> EngineError {
    match source.raw_os_error() {
        // The kernel reports ENOMEM if the limit of locked memory is small (`ulimit -l`).
        Some(libc::EPERM | libc::ENOSYS | libc::EACCES | libc::ENOMEM) => {
            EngineError::NotPermitted { engine: NAME, source, instead: "sync" }
        }
        _ => EngineError::Setup { engine: NAME, what: "make the ring", source },
    }
}

pub(super) fn setup(what: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::Setup { engine: NAME, what, source }
}
