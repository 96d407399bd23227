//! Data that the workers of a process share, made before they begin: the tree that they work on, and the queue
//! of a build. Otherwise each worker would make its own tree within the measured time.

use std::sync::Arc;

use nilometer_plan::{BuildCell, TreeShape, WorkloadCell};

use super::{BuildPlan, BuildQueue, SourceTree};

/// The shared data of a process's workers, for one phase.
#[derive(Debug, Clone, Default)]
pub struct CrewShare {
    tree: Option<Arc<SourceTree>>,
    build: Option<Arc<BuildPlan>>,
    queue: Arc<BuildQueue>,
}

impl CrewShare {
    /// The shared data for the workers of this cell.
    pub fn of(cell: &WorkloadCell) -> Self {
        let tree = shape(cell).map(|shape| Arc::new(SourceTree::of(shape)));
        let build = match (cell, &tree) {
            (WorkloadCell::Build(cell), Some(tree)) => Some(Arc::new(BuildPlan::new(cell, tree.clone()))),
            _ => None,
        };
        CrewShare { tree, build, queue: Arc::default() }
    }

    /// The tree that a worker of this cell works on.
    pub(super) fn tree(&self, cell: &WorkloadCell) -> Arc<SourceTree> {
        let made = || Arc::new(SourceTree::of(shape(cell).expect("only workloads on trees ask for one")));
        self.tree.clone().unwrap_or_else(made)
    }

    /// The plan of the build.
    pub(super) fn build(&self, cell: &BuildCell) -> Arc<BuildPlan> {
        let made = || Arc::new(BuildPlan::new(cell, Arc::new(SourceTree::of(cell.shape()))));
        self.build.clone().unwrap_or_else(made)
    }

    /// The queue of the build's units.
    pub(super) fn queue(&self) -> Arc<BuildQueue> {
        self.queue.clone()
    }
}

/// The shape of the tree that a cell works on, if it works on one.
fn shape(cell: &WorkloadCell) -> Option<TreeShape> {
    match cell {
        WorkloadCell::Walk(cell) => Some(cell.shape()),
        WorkloadCell::Unpack(cell) => Some(cell.shape()),
        WorkloadCell::Search(cell) => Some(cell.shape()),
        WorkloadCell::OpenFiles(cell) => Some(cell.shape()),
        WorkloadCell::Build(cell) => Some(cell.shape()),
        _ => None,
    }
}
