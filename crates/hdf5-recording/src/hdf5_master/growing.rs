//! The master file in the layout of DECTRIS, while frames come. It is there before the first frame, with links to the
//! files of frames. A new one replaces it when the recorder begins a file that it does not link.
//!
//! It has no virtual dataset: HDF5 can't read one whose parts still grow. The master file that [`super::put_master`]
//! makes after the last frame has one.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use nilometer_hdf5::{
    nexus::AngleColumn,
    tree::{DatasetContent, TreeAttribute, TreeDataset, TreeGroup, TreeNode, WriteTime},
};
use nilometer_model::Nanos;
use nilometer_recording::journal::Head;
use nilometer_storage::{
    in_time,
    target::{KeptDirectory, TargetError},
};

use super::{LINKS_MAX, MasterError, link_name, master_name, shown_at, written};
use crate::Hdf5Contents;

/// The recording that a growing master file belongs to.
#[derive(Debug, Clone)]
pub struct GrowthTerms {
    /// The name of the recording.
    pub name: String,
    /// The head of its journal.
    pub head: Head,
    /// Number of frames announced; 0 if nobody announced it.
    pub frames_due: u64,
    /// The longest that storage may take for a step.
    pub at_most: Nanos,
}

/// A master file that a thread keeps up to date until [`GrowingMaster::end`].
#[derive(Debug)]
pub struct GrowingMaster {
    stop: SyncSender<()>,
    /// Disconnected as soon as the thread is over.
    over: Receiver<()>,
    terms: GrowthTerms,
}

/// How often the thread looks for a file that the master file does not link.
const LOOK: Duration = Duration::from_millis(200);

impl GrowingMaster {
    /// Writes the first master file into a directory, and keeps it up to date from now on.
    ///
    /// # Errors
    /// If HDF5 refuses, or the directory does not take the file in time.
    pub fn begin(
        contents: &Hdf5Contents,
        directory: &Arc<dyn KeptDirectory>,
        terms: GrowthTerms,
    ) -> Result<Self, MasterError> {
        let files = terms.frames_due.div_ceil(terms.head.frames_per_file).max(1);
        let mut links = FileLinks { contents: contents.clone(), directory: directory.clone(), terms, files };
        links.write()?;
        let (stop, stopped) = sync_channel(0);
        let (alive, over) = sync_channel(0);
        let terms = links.terms.clone();
        thread::Builder::new().name("master".into()).spawn(move || links.keep(&stopped, alive))?;
        Ok(GrowingMaster { stop, over, terms })
    }

    /// Ends the thread, so that nobody replaces the file any more.
    ///
    /// # Errors
    /// If the directory does not take the file in time.
    pub fn end(self) -> Result<(), TargetError> {
        let GrowingMaster { stop, over, terms } = self;
        drop(stop);
        match over.recv_timeout(terms.at_most.duration()) {
            Err(RecvTimeoutError::Timeout) => {
                Err(TargetError::Hung { path: master_name(&terms.name).into(), limit: terms.at_most })
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }
}

/// The links of a master file.
struct FileLinks {
    contents: Hdf5Contents,
    directory: Arc<dyn KeptDirectory>,
    terms: GrowthTerms,
    /// Number of linked files.
    files: u64,
}

impl FileLinks {
    /// Looks for files without a link until the other end of `stopped` is gone. Holds `_alive` as long.
    fn keep(&mut self, stopped: &Receiver<()>, _alive: SyncSender<()>) {
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let before = self.files;
            while self.files < LINKS_MAX as u64 && self.is_there(self.files) {
                self.files += 1;
            }
            // If the storage refuses, readers keep the links so far; the recording's own writes report the reason.
            if self.files > before && self.write().is_err() {
                self.files = before;
            }
        }
    }

    /// The name of the file with this index.
    fn file(&self, file: u64) -> String {
        let number = u32::try_from(file).unwrap_or(u32::MAX);
        self.terms.head.chunk_name(&self.terms.name, number)
    }

    fn is_there(&self, file: u64) -> bool {
        let path = self.directory.path().join(self.file(file));
        let place = path.clone();
        let length = in_time(self.terms.at_most, path, move || place.metadata().map(|file| file.len()));
        matches!(length, Ok(Ok(1..)))
    }

    fn write(&mut self) -> Result<(), MasterError> {
        let file = master_name(&self.terms.name);
        let tree = &self.contents.tree;
        let path =
            tree.frames().into_iter().next().map(|(path, _)| shown_at(tree, &path)).unwrap_or_default();
        let bytes = written(&file, &self.over(tree, "", &path))?;
        let directory = self.directory.clone();
        let shown = directory.path().join(&file);
        Ok(in_time(self.terms.at_most, shown, move || directory.replace(&file, &bytes))??)
    }

    /// The tree of the files without values of frames, and with links to the files in place of the frames at `frames`.
    fn over(&self, group: &TreeGroup, path: &str, frames: &str) -> TreeGroup {
        let mut made = TreeGroup { attributes: group.attributes.clone(), members: Vec::new() };
        for (name, node) in &group.members {
            let path = format!("{path}/{name}");
            match node {
                TreeNode::Group(group) => {
                    made.members.push((name.clone(), TreeNode::Group(self.over(group, &path, frames))));
                }
                TreeNode::Dataset(_) if path == frames => {
                    made.members
                        .extend((0..self.files.min(LINKS_MAX as u64)).map(|file| self.link(file, frames)));
                    signal_first(&mut made.attributes, name);
                }
                TreeNode::Dataset(dataset) => made.members.extend(self.value(name, dataset)),
                TreeNode::SoftLink(to) | TreeNode::HardLink(to) if to == frames => {}
                other => made.members.push((name.clone(), other.clone())),
            }
        }
        made
    }

    fn link(&self, file: u64, path: &str) -> (String, TreeNode) {
        (link_name(file), TreeNode::ExternalLink { file: self.file(file), path: path.into() })
    }

    /// A dataset that has its value before the first frame; `None` for others. Angles follow from the announced number.
    fn value(&self, name: &str, dataset: &TreeDataset) -> Option<(String, TreeNode)> {
        let content = match &dataset.content {
            DatasetContent::Value(_, WriteTime::Opening) => dataset.content.clone(),
            DatasetContent::Column(column) => {
                let angle = AngleColumn::of_key(&column.key).filter(|_| self.terms.frames_due > 0)?;
                DatasetContent::Value(angle.angles(self.terms.frames_due)?.into(), WriteTime::Opening)
            }
            _ => return None,
        };
        let dataset = TreeDataset { attributes: dataset.attributes.clone(), content };
        Some((name.into(), TreeNode::Dataset(dataset)))
    }
}

/// Makes the first link the dataset to plot, if the frames `name` are it.
fn signal_first(attributes: &mut [TreeAttribute], name: &str) {
    let is_signal = |attribute: &TreeAttribute| attribute.name == "signal" && attribute.value == name.into();
    if let Some(signal) = attributes.iter_mut().find(|attribute| is_signal(attribute)) {
        *signal = TreeAttribute::new("signal", link_name(0).as_str());
    }
}
