//! What the workers of a process have together, made before they begin: the tree that they work on, which each would otherwise
//! make for itself within the measured time, and the queue of a build.

use std::sync::Arc;

use nilometer_plan::{BuildCell, TreeShape, WorkloadCell};

use super::{BuildPlan, BuildQueue, SourceTree};

/// See the module. It is for one phase.
#[derive(Debug, Clone, Default)]
pub struct CrewShare {
    tree: Option<Arc<SourceTree>>,
    build: Option<Arc<BuildPlan>>,
    queue: Arc<BuildQueue>,
}

impl CrewShare {
    /// What the workers of this cell need.
    pub fn of(cell: &WorkloadCell) -> Self {
        let tree = shape(cell).map(|shape| Arc::new(SourceTree::of(shape)));
        let build = match (cell, &tree) {
            (WorkloadCell::Build(cell), Some(tree)) => Some(Arc::new(BuildPlan::new(cell, tree.clone()))),
            _ => None,
        };
        CrewShare { tree, build, queue: Arc::default() }
    }

    /// The tree of a worker of this cell.
    pub(super) fn tree(&self, cell: &WorkloadCell) -> Arc<SourceTree> {
        let made = || Arc::new(SourceTree::of(shape(cell).expect("only workloads on trees ask for one")));
        self.tree.clone().unwrap_or_else(made)
    }

    /// What is built.
    pub(super) fn build(&self, cell: &BuildCell) -> Arc<BuildPlan> {
        let made = || Arc::new(BuildPlan::new(cell, Arc::new(SourceTree::of(cell.shape()))));
        self.build.clone().unwrap_or_else(made)
    }

    /// Who builds what.
    pub(super) fn queue(&self) -> Arc<BuildQueue> {
        self.queue.clone()
    }
}

/// The tree that a cell works on, if it does on one of these.
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
