//! Cells that move data from one end of files to the other, of this program and of others.

use nilometer_plan::{Cell, ImportedRun, WorkloadCell};

/// Returns true if the rate of a cell is in bytes a second, even for small operations.
pub(crate) fn is_stream(cell: &Cell) -> bool {
    if let Some(run) = cell.as_imported() {
        return is_imported_stream(run);
    }
    cell.as_workload().is_some_and(|run| matches!(run.workload, WorkloadCell::Stream(_)))
}

/// Returns true if another program moved data in sequence: as IOR calls its order, and as fio and elbencho do
/// without another word.
fn is_imported_stream(run: &ImportedRun) -> bool {
    let has = |name: &str, value: &str| run.parameters.iter().any(|(n, v)| n == name && v == value);
    match run.source.split(' ').next() {
        Some("fio") => ["read", "write", "rw", "readwrite"].into_iter().any(|way| has("", way)),
        Some("IOR") => has("order", "sequential"),
        Some("elbencho") => !has("", "random"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_access_of_other_programs_is_a_stream() {
        let run = |source: &str, parameters: &[(&str, &str)]| {
            let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            is_imported_stream(&ImportedRun {
                source: source.to_owned(),
                task: String::new(),
                parameters: parameters.collect(),
                figure: String::new(),
            })
        };
        assert!(run("fio 3.34", &[("", "write"), ("block size", "4k")]));
        assert!(!run("fio 3.34", &[("", "randwrite")]));
        assert!(run("IOR 4.0.0", &[("order", "sequential")]) && !run("IOR 4.0.0", &[("order", "random")]));
        assert!(run("elbencho 3.0", &[("", "direct")]) && !run("elbencho 3.0", &[("", "random")]));
        assert!(!run("mdtest 4.0.0", &[]) && !run("u", &[("", "write")]));
    }
}
