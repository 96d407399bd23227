//! Successive documents of fio. They are interim states of one run (`--status-interval`), of which the last
//! counts, or results of several runs, which are repeats.
//!
//! A document has the time at which fio wrote it and the time for which fio had run until then. The difference
//! is the start of fio:
//!
//! ```text
//! started     first document   second document
//!   |----- elapsed -----|              |          of one run: the second was started before the first was written
//!   |------------- elapsed ------------|
//!
//!   |----- elapsed -----|  |- elapsed -|          of two runs: the second was started later
//! ```

use super::fio_document::{Document, Job};

/// Returns true if a document is an earlier state of the next document's run.
pub(super) fn is_interim(earlier: &Document, later: &Document) -> bool {
    let [jobs, next]: [Vec<&Job>; 2] = [earlier, later].map(|document| document.measured().collect());
    let pairs = || jobs.iter().zip(&next);
    let is_same_plan = jobs.len() == next.len()
        && earlier.version == later.version
        && pairs().all(|(job, next)| job.jobname == next.jobname && job.groupid == next.groupid);
    is_same_plan && pairs().all(|(job, next)| only_grew(job, next)) && began_before(earlier, later)
}

/// Counters of a run never fall.
fn only_grew(job: &Job, next: &Job) -> bool {
    let directions = [(&job.read, &next.read), (&job.write, &next.write), (&job.mixed, &next.mixed)];
    directions.into_iter().all(|pair| match pair {
        (Some(before), Some(after)) => {
            before.io_bytes <= after.io_bytes
                && before.runtime <= after.runtime
                && before.total_ios <= after.total_ios
        }
        (None, None) => true,
        _ => false,
    })
}

/// fio of the later document was running when it wrote the earlier one. Without times that can't be excluded.
fn began_before(earlier: &Document, later: &Document) -> bool {
    let [written, next] = [earlier.written_ms(), later.written_ms()];
    if written == 0 || next == 0 {
        return true;
    }
    // `elapsed` is in whole seconds, rounded up: half of one is in doubt.
    next.saturating_sub(elapsed_ms(later)).saturating_add(500) <= written
}

/// Milliseconds since fio was started; of old versions the time that its jobs ran.
fn elapsed_ms(document: &Document) -> u64 {
    let said = document.measured().map(|job| job.elapsed).max().unwrap_or(0);
    if said > 0 {
        return said.saturating_mul(1000);
    }
    let longest = |job: &Job| {
        let directions = [&job.read, &job.write, &job.mixed];
        directions.into_iter().flatten().map(|direction| direction.runtime).max().unwrap_or(0)
    };
    document.measured().map(longest).max().unwrap_or(0)
}
