//! The operations that mdtest measures, in the words of its tables.

use nilometer_model::Phase;

/// An operation in mdtest's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdtestOperation {
    /// Its name in a table, such as `File creation`.
    pub name: &'static str,
    /// The option that selects it alone.
    pub option: &'static str,
    /// The same operation in a workload of ours.
    pub phase: Phase,
}

const fn operation(name: &'static str, option: &'static str, phase: Phase) -> MdtestOperation {
    MdtestOperation { name, option, phase }
}

/// Operations that are also phases of workloads. Others, such as `File rename`, have no counterpart.
pub const MDTEST_OPERATIONS: [MdtestOperation; 9] = [
    operation("Directory creation", "C", Phase::MakeDirectories),
    operation("Directory stat", "T", Phase::StatDirectories),
    operation("Directory removal", "r", Phase::RemoveDirectories),
    operation("File creation", "C", Phase::CreateFiles),
    operation("File stat", "T", Phase::StatFiles),
    operation("File read", "E", Phase::ReadFiles),
    operation("File removal", "r", Phase::RemoveFiles),
    operation("Tree creation", "C", Phase::MakeTree),
    operation("Tree removal", "r", Phase::RemoveTree),
];
