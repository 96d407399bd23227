//! Evaluations from outside: plans, campaigns, verdicts, and the reports of them.

mod acceptance;
mod bad_input;
mod ceiling;
mod clean;
mod compare;
mod elements;
mod evaluated_recordings;
mod explain;
mod faults;
mod import;
mod items_and_frames;
mod load;
mod mpi_io;
mod observed;
mod ranks;
mod report;
mod resume;
mod settings;
mod sites;
mod size;
mod studies;
mod surroundings;
mod terminal;
mod users;
mod verdicts;
mod workloads;
