//! One file for each finding: what a report says of it, in whatever format.

mod acceptance;
mod beside_load;
mod comparisons;
mod environment;
mod growth;
mod missing;
mod network;
mod observed;
mod overview;
mod packets;
mod parameters;
mod predictions;
mod siblings;
mod stage;
mod storage;
mod times;
mod verdicts;
mod warnings;

pub(crate) use acceptance::acceptance;
pub(crate) use comparisons::comparisons;
pub(crate) use environment::environment;
pub(crate) use missing::missing;
pub(crate) use network::network;
pub(crate) use observed::observed;
pub(crate) use packets::packets;
pub(crate) use predictions::predictions;
pub(crate) use stage::stages;
pub(crate) use storage::storage;
pub(crate) use verdicts::verdicts;
pub(crate) use warnings::warnings;
