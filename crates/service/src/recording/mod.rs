//! One recording: its options, looked up and checked; its preparation; and its summary.

pub(crate) mod account;
pub(crate) mod addresses;
pub(crate) mod allowed_sender;
mod awaited_peers;
mod common_engine;
pub(crate) mod data_streams;
pub mod ended;
mod inlets;
mod joining;
pub(crate) mod kept_connections;
mod known_stream;
mod late_values;
pub(crate) mod less_data;
mod listening;
pub mod memory;
mod needed_memory;
pub(crate) mod options;
pub mod place;
pub(crate) mod prepare;
pub(crate) mod recorded_file;
mod routes;
pub(crate) mod series;
mod series_name;
pub(crate) mod settings;
mod source;
pub mod thrown_away;
