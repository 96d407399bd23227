//! Copies of `MooseFS`: the goals of directories and files (mfsgoal(1)). A chunk always has 64 MiB.

use std::path::Path;

use nilometer_model::{Bytes, StripeLayout};

use super::{super::tool::Tool, TargetError, call};

/// The length of a chunk, which is on one server, with copies on others.
const CHUNK: Bytes = Bytes(64 << 20);

/// Returns the goal of a directory, or the number of copies of a file that has chunks.
pub(super) fn layout(path: &Path) -> Result<StripeLayout, TargetError> {
    let goal = read_goal(&Tool::new("mfsgetgoal", &[]).on(path).said()?);
    let stored = if path.is_dir() { None } else { stored_copies(path) };
    let replicas = stored.or(goal);
    Ok(StripeLayout { stripe_size: replicas.map(|_| CHUNK), replicas, ..StripeLayout::default() })
}

fn stored_copies(file: &Path) -> Option<u32> {
    read_copies(&Tool::new("mfsfileinfo", &[]).on(file).said().ok()?)
}

pub(super) fn set(asked: &StripeLayout, directory: &Path) -> Vec<Tool> {
    let goal: Vec<String> = asked.replicas.iter().map(ToString::to_string).collect();
    call("mfssetgoal", &[], &goal, directory)
}

/// Parses `PATH: 2`. A path may contain colons.
fn read_goal(text: &str) -> Option<u32> {
    text.lines().next()?.rsplit(':').next()?.trim().parse().ok()
}

/// Returns the valid copies of the chunk with the fewest; `None` for a file without chunks.
fn read_copies(text: &str) -> Option<u32> {
    let chunks = text.split("\tchunk ").skip(1);
    chunks.map(|chunk| chunk.matches("status:VALID").count() as u32).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "d2/z:\n\tchunk 0: 0000000000000012_00000001 / (id:18 ver:1)\n\
                        \t\tcopy 1: 10.77.0.1:9422 (status:VALID)\n\t\tcopy 2: 10.77.0.1:9423 (status:VALID)\n\
                        \tchunk 1: 0000000000000013_00000001 / (id:19 ver:1)\n\t\tcopy 1: 10.77.0.1:9422 (status:VALID)\n";

    #[test]
    fn replay_of_goals_and_copies() {
        assert_eq!(read_goal("d2: 2\n"), Some(2));
        assert_eq!(read_goal("/mnt/a:b: 3\n"), Some(3));
        assert_eq!(read_goal("d2: no such file\n"), None);
        assert_eq!(read_copies(FILE), Some(1), "the second chunk has lost one");
        assert_eq!(read_copies("empty:\n"), None);
    }
}
