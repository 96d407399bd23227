//! Packets that were recorded, read back: as one file, through a mount, and sent again.

mod described;
mod disks;
mod dump_command;
mod dumped;
mod dumped_beside;
mod dumped_killed;
mod dumped_on_page;
mod exported;
mod kept;
mod lab;
mod mounted;
mod replayed;
