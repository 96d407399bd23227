//! Filter plug-ins of HDF5, found in HDF5's own directories but called without HDF5. Any thread can then compress
//! a frame, outside of the library's lock.
//!
//! ```text
//! HDF5_PLUGIN_PATH, or the default directories -> lib*.so: dlopen -> H5PLget_plugin_info -> number, name, filter
//! ```
//!
//! Like HDF5, the first request for a filter loads all plug-in libraries found, and they stay loaded. Loading
//! runs their initialisation code, and a filter that crashes takes this process with it. Nothing is loaded until
//! somebody asks for a filter.
//!
//! A filter may adapt its numbers (`cd_values`) to a dataset (`set_local`), and calls the library for that. The
//! dynamic linker resolves these calls in the program first, if the program exports the functions
//! ([`exports_library`]).

use std::{
    collections::BTreeMap,
    env,
    ffi::{CStr, CString, OsStr, c_int, c_uint, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr, slice,
    sync::OnceLock,
};

use crate::{
    ffi::{self, H5Z_class2_t, hid_t},
    handle::{PropertyClass, number_type, properties, rank, space},
    tree::NumberType,
};

/// Errors of filters: missing, or unable to do the job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// No plug-in provides the filter.
    #[error("no plug-in has filter {number}: {found}")]
    NotFound {
        /// The filter.
        number: u32,
        /// The filters that exist, and the directories searched.
        found: String,
    },
    /// The filter can only decode, or only encode.
    #[error("the plug-in of filter {number} ({name}) can't {what}")]
    OneWay {
        /// The filter.
        number: u32,
        /// Its name, from the plug-in.
        name: String,
        /// The direction that it lacks.
        what: &'static str,
    },
    /// The filter refuses such pixels, chunks or numbers.
    #[error("the plug-in of filter {number} ({name}) {why}")]
    Refused {
        /// The filter.
        number: u32,
        /// Its name, from the plug-in.
        name: String,
        /// The reason.
        why: String,
    },
    /// The filter can't decode a chunk into a frame.
    #[error("the plug-in of filter {number} ({name}) can't decode it{more}")]
    Undecoded {
        /// The filter.
        number: u32,
        /// Its name, from the plug-in.
        name: String,
        /// The wrong size that came out, or empty.
        more: String,
    },
}

/// A filter of a plug-in.
#[derive(Debug)]
pub struct FilterPlugin {
    /// Its number, as registered with The HDF Group.
    pub number: u32,
    /// Its name, from the plug-in.
    pub name: String,
    /// Its library file.
    pub library: PathBuf,
    class: H5Z_class2_t,
}

// SAFETY: a class is never written once its library is loaded, and the library stays loaded. Any thread may call
// filters, as in HDF5.
unsafe impl Send for FilterPlugin {}
// SAFETY: the reasons given for `Send` apply here too.
unsafe impl Sync for FilterPlugin {}

/// The plug-ins found.
#[derive(Debug, Default)]
struct FoundPlugins {
    directories: Vec<PathBuf>,
    filters: BTreeMap<u32, FilterPlugin>,
    /// Libraries that can't be loaded, each with the reason.
    failed: Vec<String>,
}

/// HDF5's default directories: those of its own build, and those of Debian.
const DEFAULT_DIRECTORIES: [&str; 2] = ["/usr/local/hdf5/lib/plugin", DEBIAN];
#[cfg(target_arch = "aarch64")]
const DEBIAN: &str = "/usr/lib/aarch64-linux-gnu/hdf5/serial/plugins";
#[cfg(not(target_arch = "aarch64"))]
const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins";
/// The environment variable for directories of plug-ins.
const VARIABLE: &str = "HDF5_PLUGIN_PATH";
/// Libraries that can't be loaded and are listed in a message, at the most.
const FAILED_MAX: usize = 5;
/// `H5PL_TYPE_FILTER`.
const TYPE_FILTER: c_int = 0;
/// Numbers of a filter for one dataset, at the most.
const VALUES_MAX: usize = 64;

/// Returns the plug-in with a filter of this number.
///
/// # Errors
/// If there is none; the error lists the filters found, and the directories searched.
pub fn filter_plugin(number: u32) -> Result<&'static FilterPlugin, PluginError> {
    static FOUND: OnceLock<FoundPlugins> = OnceLock::new();
    let found = FOUND.get_or_init(FoundPlugins::look);
    found.filters.get(&number).ok_or_else(|| PluginError::NotFound { number, found: found.text() })
}

/// Returns true if plug-ins find the library's functions in this program. The library is linked into the program,
/// which must export its functions.
pub fn exports_library() -> bool {
    // SAFETY: a zero-terminated text; the functions are compared and not called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"H5Pmodify_filter".as_ptr()) };
    ptr::eq(found, ffi::H5Pmodify_filter as *const c_void)
}

impl FoundPlugins {
    fn look() -> Self {
        let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let directories: Vec<PathBuf> = match named {
            Some(path) => env::split_paths(&path).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => DEFAULT_DIRECTORIES.map(PathBuf::from).into(),
        };
        let mut found = FoundPlugins { directories: directories.clone(), ..FoundPlugins::default() };
        for library in directories.iter().flat_map(|directory| libraries(directory)) {
            match FilterPlugin::load(&library) {
                Ok(Some(plugin)) => drop(found.filters.entry(plugin.number).or_insert(plugin)),
                Ok(None) => {}
                Err(why) => found.failed.push(why),
            }
        }
        found
    }

    /// Lists the filters found, and the directories searched.
    fn text(&self) -> String {
        let filters: Vec<_> =
            self.filters.values().map(|plugin| format!("{} ({})", plugin.number, plugin.name)).collect();
        let paths: Vec<_> = self.directories.iter().map(|path| path.display().to_string()).collect();
        let paths = paths.join(" and ");
        let filters = if filters.is_empty() {
            format!("found none in {paths}")
        } else {
            format!("plug-ins in {paths} have {}", filters.join(", "))
        };
        let mut text = format!("{filters}; {VARIABLE} names the directories of plug-ins");
        for why in self.failed.iter().take(FAILED_MAX) {
            text.push_str("; can't be loaded: ");
            text.push_str(why);
        }
        text
    }
}

/// The files that HDF5 would load from a directory, in the order of names.
fn libraries(directory: &Path) -> Vec<PathBuf> {
    let is_one = |name: &OsStr| {
        let name = name.as_bytes();
        name.starts_with(b"lib") && name.windows(3).any(|part| part == b".so")
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        entries.filter(|entry| is_one(&entry.file_name())).map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

type GetType = unsafe extern "C" fn() -> c_int;
type GetInfo = unsafe extern "C" fn() -> *const H5Z_class2_t;

/// The loader's last error message.
fn loader_error(path: &Path) -> String {
    // SAFETY: the text stays valid until this thread calls the loader again.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
    };
    let text = text.unwrap_or_else(|| "nobody knows why".into());
    if text.contains(&*path.to_string_lossy()) { text } else { format!("{}: {text}", path.display()) }
}

impl FilterPlugin {
    /// Loads a library, if it is a plug-in with a filter.
    fn load(path: &Path) -> Result<Option<Self>, String> {
        let text = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the library's own initialisation code runs, and the user chooses the directories. All symbols
        // are resolved now, so that none can be missing in a later call. The functions of plug-ins have these
        // types (`H5PLextern.h`). The values that they return stay valid as long as the library, which is never
        // closed.
        unsafe {
            let library = libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() {
                return Err(loader_error(path));
            }
            let get_type = libc::dlsym(library, c"H5PLget_plugin_type".as_ptr());
            let get_info = libc::dlsym(library, c"H5PLget_plugin_info".as_ptr());
            if get_type.is_null() || get_info.is_null() {
                return Ok(None);
            }
            let get_type = std::mem::transmute::<*mut c_void, GetType>(get_type);
            let get_info = std::mem::transmute::<*mut c_void, GetInfo>(get_info);
            if get_type() != TYPE_FILTER {
                return Ok(None);
            }
            let Some(class) = get_info().as_ref() else { return Ok(None) };
            Ok(FilterPlugin::of(*class, path))
        }
    }

    fn of(class: H5Z_class2_t, library: &Path) -> Option<Self> {
        let number = u32::try_from(class.id).ok()?;
        if class.version != ffi::H5Z_CLASS_T_VERS || class.filter.is_none() {
            return None;
        }
        let name = if class.name.is_null() {
            String::new()
        } else {
            // SAFETY: a zero-terminated text, in a library that stays loaded.
            unsafe { CStr::from_ptr(class.name) }.to_string_lossy().into_owned()
        };
        // The text after a semicolon says where to read more.
        let name = name.split(';').next().unwrap_or_default();
        let name = name.chars().filter(|letter| !letter.is_control()).take(80).collect();
        Some(FilterPlugin { number, name, library: library.into(), class })
    }

    /// Compresses into the first bytes of `into`, and returns their number. `None` if the filter does not
    /// compress the chunk or its result does not fit: then store the bytes as they are.
    ///
    /// # Errors
    /// If it can only decode.
    pub fn encode(
        &self,
        values: &[u32],
        bytes: &[u8],
        into: &mut [u8],
    ) -> Result<Option<usize>, PluginError> {
        if self.class.encoder_present == 0 {
            return Err(self.one_way("encode"));
        }
        let Some(made) = self.call(ffi::H5Z_FLAG_OPTIONAL, values, bytes) else { return Ok(None) };
        let Some(room) = into.get_mut(..made.length) else { return Ok(None) };
        room.copy_from_slice(made.bytes());
        Ok(Some(made.length))
    }

    /// Decodes into `into`, which must have exactly the decoded size.
    ///
    /// # Errors
    /// If the filter fails, or decodes to another number of bytes.
    pub fn decode(&self, values: &[u32], bytes: &[u8], into: &mut [u8]) -> Result<(), PluginError> {
        if self.class.decoder_present == 0 {
            return Err(self.one_way("decode"));
        }
        let undecoded = |more| PluginError::Undecoded { number: self.number, name: self.name.clone(), more };
        let made = self.call(ffi::H5Z_FLAG_OPTIONAL | ffi::H5Z_FLAG_REVERSE, values, bytes);
        let made = made.ok_or_else(|| undecoded(String::new()))?;
        if made.length != into.len() {
            return Err(undecoded(format!(": it makes {} B of it, not {}", made.length, into.len())));
        }
        into.copy_from_slice(made.bytes());
        Ok(())
    }

    fn one_way(&self, what: &'static str) -> PluginError {
        PluginError::OneWay { number: self.number, name: self.name.clone(), what }
    }

    /// Runs the filter on a copy of these bytes. `None` if it failed.
    fn call(&self, flags: c_uint, values: &[u32], bytes: &[u8]) -> Option<MadeBytes> {
        let filter = self.class.filter?;
        // SAFETY: the contract of filters (`H5Zdevelop.h`). The buffer comes from the C library's allocator and
        // has `size` bytes. The filter works in it, or frees it and puts another in its place, with its size. It
        // returns the number of valid bytes, or 0 if it failed; even then the buffer can be freed. The numbers
        // outlive the call.
        unsafe {
            let mut size = bytes.len().max(1);
            let mut buffer = libc::malloc(size);
            if buffer.is_null() {
                return None;
            }
            ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>(), bytes.len());
            let length =
                filter(flags, values.len(), values.as_ptr(), bytes.len(), &raw mut size, &raw mut buffer);
            let made = MadeBytes { buffer, length };
            // A length beyond the buffer's size is rejected.
            (length > 0 && length <= size && !buffer.is_null()).then_some(made)
        }
    }

    /// Returns the numbers that a dataset of this filter stores, given the user's: some filters add facts about
    /// pixels and chunks.
    ///
    /// # Errors
    /// If the filter does not take such chunks or numbers.
    pub fn settled(
        &self,
        element: NumberType,
        chunk: &[u64],
        values: &[u32],
    ) -> Result<Vec<u32>, PluginError> {
        if self.class.encoder_present == 0 {
            return Err(self.one_way("encode"));
        }
        let refused =
            |why: String| PluginError::Refused { number: self.number, name: self.name.clone(), why };
        let asks = self.class.set_local.or(self.class.can_apply);
        if asks.is_none() {
            return Ok(values.to_vec());
        }
        if !exports_library() {
            return Err(refused("asks HDF5 about the dataset, which this build does not let it".into()));
        }
        let unsaid = |error: crate::Hdf5Error| refused(format!("can't examine the dataset: {error}"));
        let creation = properties(PropertyClass::DatasetCreation).map_err(unsaid)?;
        let chunks = space(chunk, None).map_err(unsaid)?;
        let kind = number_type(element);
        let number = self.number.cast_signed();
        // SAFETY: open identifiers, and arrays with the lengths passed. The filter's calls to the library resolve
        // to the one in this program, which knows these identifiers.
        unsafe {
            let id = creation.id();
            if ffi::H5Pset_chunk(id, rank(chunk), chunk.as_ptr()) < 0
                || ffi::H5Pset_filter(id, number, ffi::H5Z_FLAG_OPTIONAL, values.len(), values.as_ptr()) < 0
            {
                return Err(refused(format!("does not take {values:?}")));
            }
            ask(self.class.can_apply, id, kind, chunks.id(), |answer| answer > 0)
                .map_err(|()| refused("can't be applied to such pixels and chunks".into()))?;
            ask(self.class.set_local, id, kind, chunks.id(), |answer| answer >= 0)
                .map_err(|()| refused(format!("does not take {values:?} for such pixels and chunks")))?;
            stored_values(id, number).ok_or_else(|| refused("does not tell its stored settings".into()))
        }
    }
}

/// Calls a filter's function about a dataset. Agrees if the filter has no such function.
///
/// # Safety
/// The identifiers are open.
unsafe fn ask(
    callback: Option<ffi::H5Z_local_t>,
    creation: hid_t,
    kind: hid_t,
    chunk: hid_t,
    agreed: impl FnOnce(c_int) -> bool,
) -> Result<(), ()> {
    let Some(callback) = callback else { return Ok(()) };
    // SAFETY: called as the library calls it; the caller keeps the identifiers open.
    let answer = unsafe { callback(creation, kind, chunk) };
    if agreed(answer) { Ok(()) } else { Err(()) }
}

/// Reads the numbers of a filter in a list of properties.
///
/// # Safety
/// The identifier is open.
unsafe fn stored_values(creation: hid_t, number: c_int) -> Option<Vec<u32>> {
    let mut flags: c_uint = 0;
    let mut values = vec![0; VALUES_MAX];
    let mut count = values.len();
    // SAFETY: the buffer has room for the number of values passed.
    let status = unsafe {
        ffi::H5Pget_filter_by_id2(
            creation,
            number,
            &raw mut flags,
            &raw mut count,
            values.as_mut_ptr(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if status < 0 || count > values.len() {
        return None;
    }
    values.truncate(count);
    Some(values)
}

/// The output of a filter, in a buffer of the C library's allocator.
struct MadeBytes {
    buffer: *mut c_void,
    length: usize,
}

impl MadeBytes {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the filter reported `length` valid bytes, and a buffer at least as large.
        unsafe { slice::from_raw_parts(self.buffer.cast(), self.length) }
    }
}

impl Drop for MadeBytes {
    fn drop(&mut self) {
        // SAFETY: the buffer is ours since the filter returned; `free` accepts null too.
        unsafe { libc::free(self.buffer) };
    }
}
