//! Real storage systems: those of the testbed, by mount and by URL, on one machine and on several.

mod automounted;
mod by_url;
mod clients_and_servers;
mod dataset_of_nodes;
mod in_guest;
mod nodes;
mod real_systems;
mod recognised;
mod testbed;
