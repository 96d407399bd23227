//! The recorder in virtual time: the same source, ring, writers and sinks as on threads, on simulated targets.

mod conformance;
mod crashes;
mod failures;
mod followers;
mod lab;
mod limits;
mod overtaken;
mod packets;
mod pretending;
mod room;
mod scattered;
mod storing;
mod virtual_time;
