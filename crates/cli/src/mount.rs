//! `nilometer mount`: shows recordings as plain files until you stop it.

use std::{path::PathBuf, sync::atomic::Ordering, thread, time::Duration};

use clap::Args;
use nilometer_mount::{MountReaders, Mounted};
use nilometer_report::in_line;

use crate::{
    Blame, Outcome,
    lone_file::refuse_unknown_files,
    part::PartOptions,
    signals::stop_on_signal,
    stored_at::{refuse_missing, refuse_urls},
    tell,
};

/// Show each recording as one plain file, even while it grows. Runs until ctrl-C or SIGTERM
#[derive(Debug, Args)]
pub(crate) struct Mount {
    /// The directories of recordings, or those above them. Mount joins all lanes that it finds there. Also
    /// recordings of other programs, as for scan
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Mount on this empty directory
    #[arg(long, value_name = "DIRECTORY")]
    at: PathBuf,
    #[command(flatten)]
    part: PartOptions,
    /// Let other users read it too. Users other than root need `user_allow_other` in /etc/fuse.conf
    #[arg(long)]
    allow_other: bool,
}

const LOOK: Duration = Duration::from_millis(50);

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "h5py reads an HDF5 file without a journal directly; `nilometer export FILE --to FILE.raw` \
                         writes its frames as plain bytes";

impl Mount {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_missing(&self.directories).input()?;
        refuse_unknown_files(&self.directories, FOR_FILES).input()?;
        refuse_urls(&self.directories).input()?;
        let stop = stop_on_signal().run()?;
        let readers = if self.allow_other { MountReaders::All } else { MountReaders::Owner };
        let mounted = Mounted::new(&self.directories, self.part.limits(), &self.at, readers).input()?;
        for name in mounted.names() {
            tell::result_to_copy(format_args!("{}\n", in_line(self.at.join(name).display())));
        }
        tell::note(format_args!("mounted on {}: ctrl-C unmounts it", self.at.display()));
        while !stop.load(Ordering::Relaxed) && !mounted.is_over() {
            thread::sleep(LOOK);
            for fault in mounted.news_of_faults() {
                tell::note(format_args!("nilometer: can't be read: {}", in_line(fault)));
            }
        }
        mounted.unmount().run()
    }
}
