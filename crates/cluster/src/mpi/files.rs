//! Files through MPI-IO: an engine on a run's directory, alone or together with other processes.
//!
//! A call takes as long as the storage, and a collective call as long as its slowest process. An engine
//! therefore needs its own thread. While it works, nothing else in this process calls MPI.

use std::{
    ffi::{CString, c_char, c_int, c_longlong, c_void},
    fmt,
    fs::{DirBuilder, remove_dir, remove_file},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    ptr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use nilometer_model::{MpiIoHints, MpiIoImplementation, MpiIoInForce};
use nilometer_plan::{MpiIo, MpiIoCalls};
use nilometer_storage::{
    Clock, Engine, Errno, OpKind, Open, Operation, ROOT, Slot,
    engine::{Execute, Immediate, plain},
    target::run_id,
};

use super::adapter::Adapter;

/// This process's files through MPI-IO.
pub struct MpiFiles {
    adapter: Arc<Adapter>,
    /// MPI's description of itself.
    library: String,
    implementation: OnceLock<MpiIoImplementation>,
    /// Settings of the last file opened.
    in_force: Mutex<Option<MpiIoInForce>>,
}

/// The settings of an engine.
#[derive(Debug)]
pub struct MpiIoSetup<'a> {
    /// The run's directory. Only this user may write to it: MPI-IO follows symlinks.
    pub directory: &'a Path,
    /// The ranks that open each file together, in order and with this one; `None` if each rank opens its own
    /// files.
    pub together: Option<&'a [u32]>,
    /// The calls and hints to use.
    pub mpi_io: &'a MpiIo,
    /// Slots for open files, the run's directory included.
    pub slots: u32,
    /// The run's clock.
    pub clock: Clock,
}

/// Flags that the adapter knows.
const READS: c_int = 1;
const WRITES: c_int = 2;
const CREATES: c_int = 4;
const MUST_BE_NEW: c_int = 8;

/// Size of the buffer for the hints in force.
const HINTS_TEXT: c_int = 1 << 16;
/// Size of the buffer for the name of a component of Open MPI.
const PREFERRED_TEXT: c_int = 64;

impl MpiFiles {
    pub(crate) fn new(adapter: Arc<Adapter>, library: String) -> Self {
        MpiFiles { adapter, library, implementation: OnceLock::new(), in_force: Mutex::default() }
    }

    /// Returns true if a call has hung, so that MPI can't be called any more.
    pub fn is_stuck(&self) -> bool {
        self.adapter.is_busy()
    }

    /// Returns the settings of the last file opened, or `None` if no file was opened since the last call.
    pub fn take_in_force(&self) -> Option<MpiIoInForce> {
        self.in_force().take()
    }

    fn in_force(&self) -> MutexGuard<'_, Option<MpiIoInForce>> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Detects this process's implementation of MPI-IO by opening a file in a directory for temporary files.
    ///
    /// # Errors
    /// Returns an error if that file can't be made, or the implementation is not recognized.
    pub fn implementation(self: &Arc<Self>) -> Result<MpiIoImplementation, String> {
        if let Some(known) = self.implementation.get() {
            return Ok(*known);
        }
        let found = self.tried()?;
        Ok(*self.implementation.get_or_init(|| found))
    }

    fn tried(self: &Arc<Self>) -> Result<MpiIoImplementation, String> {
        let directory = std::env::temp_dir().join(format!("nilometer-mpi-io-{:016x}", run_id().0));
        let failed =
            |why: &dyn fmt::Display| format!("MPI-IO can't be tried in {}: {why}", directory.display());
        DirBuilder::new().mode(0o700).create(&directory).map_err(|error| failed(&error))?;
        let told = self.told_of_file_in(&directory);
        // If this fails, an empty temporary file remains.
        remove_file(directory.join(TRIED)).ok();
        remove_dir(&directory).ok();
        let told = told.map_err(|errno| failed(&errno))?;
        known_by(&told).ok_or_else(|| format!("{}: its MPI-IO is neither ompio nor ROMIO", self.library))
    }

    fn told_of_file_in(self: &Arc<Self>, directory: &Path) -> Result<ToldOfMpiIo, Errno> {
        let calls = FileCalls::alone(self.clone(), directory, &MpiIo::default());
        let file = calls.opened(TRIED.as_bytes(), Open::CREATE)?;
        let told = ToldOfMpiIo { preferred: self.preferred(), hints: calls.hints_in_force(file) };
        calls.closed(file).map(|()| told)
    }

    /// Returns the component that Open MPI prefers, or an empty text for other libraries.
    fn preferred(&self) -> String {
        let mut name = [0_u8; PREFERRED_TEXT as usize];
        let _turn = self.adapter.turn();
        // SAFETY: the buffer has this length.
        let code = unsafe { (self.adapter.preferred)(name.as_mut_ptr().cast(), PREFERRED_TEXT) };
        if code == 0 { text_of(&name) } else { String::new() }
    }

    /// Makes an engine for the calling thread. Ranks that open files together make theirs at the same time.
    ///
    /// # Errors
    /// Returns the reason if there can be none.
    pub fn engine(self: &Arc<Self>, setup: &MpiIoSetup<'_>) -> Result<Box<dyn Engine>, String> {
        setup.mpi_io.check()?;
        let implementation = self.implementation()?;
        let mut calls = FileCalls::alone(self.clone(), setup.directory, setup.mpi_io);
        if let Some(ranks) = setup.together {
            calls.group = Some(self.group(ranks)?);
        }
        calls.table.resize(setup.slots.max(1) as usize, None);
        *self.in_force() = None;
        calls.implementation = implementation;
        Ok(Box::new(Immediate::around(calls, 1, setup.clock)))
    }

    /// Makes a group of these ranks.
    fn group(&self, ranks: &[u32]) -> Result<*mut c_void, String> {
        let ranks: Vec<c_int> = ranks.iter().map(|rank| rank.cast_signed()).collect();
        let mut group = ptr::null_mut();
        let _turn = self.adapter.turn();
        // SAFETY: the slice has this number of ranks, all of the campaign.
        let code = unsafe { (self.adapter.group)(ranks.as_ptr(), counted(ranks.len()), &raw mut group) };
        if code == 0 { Ok(group) } else { Err(format!("MPI makes no group of processes ({})", Errno(code))) }
    }
}

impl fmt::Debug for MpiFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MpiFiles({})", self.library)
    }
}

/// The file that detects the implementation.
const TRIED: &str = "n_tried";

/// Hints in the adapter's form: each key followed by its value.
struct HintTexts(Vec<CString>);

impl HintTexts {
    /// A text with a zero byte is no valid hint, and was refused before.
    fn of(hints: &MpiIoHints) -> Self {
        let texts = hints.iter().flat_map(|(key, value)| [key, value]);
        HintTexts(texts.map(|text| CString::new(text.as_str()).unwrap_or_default()).collect())
    }
}

/// Open files by slot, and the calls on them.
struct FileCalls {
    files: Arc<MpiFiles>,
    directory: PathBuf,
    /// The group of ranks that open files together.
    group: Option<*mut c_void>,
    mpi_io: MpiIo,
    implementation: MpiIoImplementation,
    hints: HintTexts,
    table: Vec<Option<*mut c_void>>,
}

impl FileCalls {
    fn alone(files: Arc<MpiFiles>, directory: &Path, mpi_io: &MpiIo) -> Self {
        FileCalls {
            files,
            directory: directory.into(),
            group: None,
            mpi_io: mpi_io.clone(),
            // Detection does not use this field.
            implementation: MpiIoImplementation::Ompio,
            hints: HintTexts::of(&mpi_io.hints),
            table: Vec::new(),
        }
    }

    /// Returns 1 if all ranks make each data call together.
    fn together(&self) -> c_int {
        c_int::from(self.group.is_some() && self.mpi_io.calls == MpiIoCalls::Collective)
    }

    fn at(&self, slot: Slot) -> Result<*mut c_void, Errno> {
        self.table.get(slot.0 as usize).copied().flatten().ok_or(Errno::EBADF)
    }

    fn open(&mut self, operation: &Operation, open: Open) -> Result<u32, Errno> {
        let name = operation.name();
        let slot = operation.file.0 as usize;
        let is_ours = operation.dir == ROOT && plain(name) && !open.is_direct() && !open.grows();
        if !is_ours || slot == 0 || slot >= self.table.len() {
            return Err(Errno::EINVAL);
        }
        let file = self.opened(name, open)?;
        *self.files.in_force() = Some(MpiIoInForce {
            implementation: self.implementation,
            library: self.files.library.clone(),
            hints: self.hints_in_force(file),
        });
        if let Some(before) = self.table[slot].replace(file) {
            self.closed(before)?;
        }
        Ok(0)
    }

    fn opened(&self, name: &[u8], open: Open) -> Result<*mut c_void, Errno> {
        let path = [self.directory.as_os_str().as_bytes(), b"/", name].concat();
        let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
        let bits = [
            (open.reads(), READS),
            (open.writes(), WRITES),
            (open.creates(), CREATES),
            (open.must_be_new(), MUST_BE_NEW),
        ];
        let how = bits.into_iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit).sum();
        let texts: Vec<*const c_char> = self.hints.0.iter().map(|text| text.as_ptr()).collect();
        let count = counted(texts.len() / 2);
        let group = self.group.unwrap_or(ptr::null_mut());
        let mut file = ptr::null_mut();
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the group is valid or null. The path and the texts end with a zero, and there are twice
        // `count` texts.
        let code = unsafe { (adapter.open)(group, path.as_ptr(), how, texts.as_ptr(), count, &raw mut file) };
        done(code).map(|()| file)
    }

    /// Returns the hints that the library reports for an open file.
    fn hints_in_force(&self, file: *mut c_void) -> MpiIoHints {
        let mut text = vec![0_u8; HINTS_TEXT as usize];
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the file is open and the buffer has this length.
        let code = unsafe { (adapter.hints)(file, text.as_mut_ptr().cast(), HINTS_TEXT) };
        let text = if code == 0 { text_of(&text) } else { String::new() };
        let hints = text.lines().filter_map(|line| line.split_once('='));
        hints.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn closed(&self, file: *mut c_void) -> Result<(), Errno> {
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the file is open, and nothing uses it after this call.
        done(unsafe { (adapter.close)(file) })
    }

    fn close(&mut self, slot: Slot) -> Result<u32, Errno> {
        let file = self.table.get_mut(slot.0 as usize).and_then(Option::take).ok_or(Errno::EBADF)?;
        self.closed(file).map(|()| 0)
    }

    fn sync(&self, slot: Slot) -> Result<u32, Errno> {
        let file = self.at(slot)?;
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the file is open.
        done(unsafe { (adapter.sync)(file) }).map(|()| 0)
    }

    #[inline]
    fn write(&self, operation: &Operation) -> Result<u32, Errno> {
        let file = self.at(operation.file)?;
        let bytes = &operation.buffer[..operation.length as usize];
        let place = place_of(operation)?;
        let mut moved = 0;
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the file is open, and the buffer has `count` bytes.
        let code = unsafe {
            (adapter.write)(
                file,
                place.at,
                bytes.as_ptr().cast(),
                place.count,
                self.together(),
                &raw mut moved,
            )
        };
        done(code).map(|()| moved.cast_unsigned())
    }

    #[inline]
    fn read(&self, operation: &mut Operation) -> Result<u32, Errno> {
        let file = self.at(operation.file)?;
        let place = place_of(operation)?;
        let bytes = &mut operation.buffer[..operation.length as usize];
        let mut moved = 0;
        let adapter = &self.files.adapter;
        let _turn = adapter.turn();
        // SAFETY: the file is open, and the buffer has room for `count` bytes.
        let code = unsafe {
            (adapter.read)(
                file,
                place.at,
                bytes.as_mut_ptr().cast(),
                place.count,
                self.together(),
                &raw mut moved,
            )
        };
        done(code).map(|()| moved.cast_unsigned())
    }
}

/// Position and length of data in a file, in MPI's types.
struct FilePlace {
    at: c_longlong,
    count: c_int,
}

fn place_of(operation: &Operation) -> Result<FilePlace, Errno> {
    let at = c_longlong::try_from(operation.offset);
    let count = c_int::try_from(operation.length);
    at.ok().zip(count.ok()).map(|(at, count)| FilePlace { at, count }).ok_or(Errno::EINVAL)
}

/// Converts a number of ranks or hints to C's type.
fn counted(number: usize) -> c_int {
    c_int::try_from(number).expect("MPI counts processes so, and a plan has fewer hints")
}

/// Translates the adapter's result of a call.
fn done(code: c_int) -> Result<(), Errno> {
    if code == 0 { Ok(()) } else { Err(Errno(code)) }
}

/// A library's information about its MPI-IO.
struct ToldOfMpiIo {
    /// The component that opens files; empty for a library without components.
    preferred: String,
    /// Hints of a file that was opened without any.
    hints: MpiIoHints,
}

/// Prefix of component names and hints that only one implementation has.
const ROMIO: &str = "romio";

fn known_by(told: &ToldOfMpiIo) -> Option<MpiIoImplementation> {
    let ToldOfMpiIo { preferred, hints } = told;
    if preferred.starts_with(ROMIO) || preferred.is_empty() && hints.keys().any(|key| key.starts_with(ROMIO))
    {
        return Some(MpiIoImplementation::Romio);
    }
    (preferred == "ompio").then_some(MpiIoImplementation::Ompio)
}

/// Returns the text before the first zero byte.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Execute for FileCalls {
    #[inline]
    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        match operation.kind {
            OpKind::Write => self.write(operation),
            OpKind::Read => self.read(operation),
            OpKind::Sync | OpKind::SyncData => self.sync(operation.file),
            OpKind::Open(open) => self.open(operation, open),
            OpKind::Close => self.close(operation.file),
            OpKind::Nop => Ok(0),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}

impl Drop for FileCalls {
    fn drop(&mut self) {
        for file in std::mem::take(&mut self.table).into_iter().flatten() {
            // Nobody needs the error of closing a file left open.
            self.closed(file).ok();
        }
        if let Some(group) = self.group.take() {
            let adapter = &self.files.adapter;
            let _turn = adapter.turn();
            // SAFETY: the group is valid, and nothing uses it after this call.
            unsafe { (adapter.ungroup)(group) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_implementation_is_known_by_the_part_that_is_preferred_or_by_hints_that_nobody_gave() {
        let known = |preferred: &str, hint: &str| {
            let hints = MpiIoHints::from([(hint.to_owned(), "enable".to_owned())]);
            known_by(&ToldOfMpiIo { preferred: preferred.into(), hints })
        };
        assert_eq!(known("ompio", "cb_nodes"), Some(MpiIoImplementation::Ompio));
        assert_eq!(known("romio321", "cb_nodes"), Some(MpiIoImplementation::Romio));
        assert_eq!(known("", "romio_cb_write"), Some(MpiIoImplementation::Romio));
        assert_eq!(known("", "cb_nodes"), None);
        assert_eq!(text_of(b"ompio\0\0rest"), "ompio");
    }
}
