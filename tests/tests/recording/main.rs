//! Recordings from outside: frames, packets and series that come, the files that they become, and the commanded recorder.

mod codec;
mod detector_stream;
mod experiment;
mod foreign_files;
mod hdf5;
mod layout;
mod loopback;
mod memory;
mod nexus;
mod other_recorders;
mod packets;
mod power_loss;
mod python_client;
mod reading;
mod record;
mod recorded_over_disks;
mod recorded_together;
mod recordings;
mod sending;
mod series;
mod service;
mod torn_writes;
mod wire_formats;
