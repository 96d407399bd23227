//! Declarations of the parts of HDF5 1.14 that we call, written by hand: the structures of virtual file drivers
//! in `-sys` crates differ from the header. `tests/header.rs` checks sizes and offsets against the header of the
//! linked library.
//!
//! Source: `H5FDdevelop.h`, `H5Zdevelop.h` and the public headers of HDF5 1.14.6.

#![allow(non_camel_case_types, non_upper_case_globals, missing_docs, missing_debug_implementations)]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

// Links the library.
use hdf5_metno_sys as _;

pub type hid_t = i64;
pub type herr_t = c_int;
pub type hsize_t = u64;
pub type haddr_t = u64;

pub const H5F_ACC_RDONLY: c_uint = 0;
pub const H5F_ACC_RDWR: c_uint = 1;
pub const H5F_ACC_TRUNC: c_uint = 2;
pub const H5F_SCOPE_LOCAL: c_int = 0;
pub const H5F_LIBVER_V110: c_int = 2;
pub const H5F_FSPACE_STRATEGY_NONE: c_int = 3;
pub const H5F_CLOSE_WEAK: c_int = 1;
pub const H5P_DEFAULT: hid_t = 0;
pub const H5E_DEFAULT: hid_t = 0;
pub const H5E_WALK_UPWARD: c_int = 0;
pub const H5S_SCALAR: c_int = 0;
pub const H5S_ALL: hid_t = 0;
pub const H5S_SELECT_SET: c_int = 0;
pub const H5S_UNLIMITED: hsize_t = u64::MAX;
pub const H5T_VARIABLE: usize = usize::MAX;
pub const H5T_CSET_UTF8: c_int = 1;
pub const H5T_STR_NULLPAD: c_int = 1;
pub const H5D_ALLOC_TIME_INCR: c_int = 3;
pub const H5Z_FLAG_OPTIONAL: c_uint = 1;
pub const H5Z_FLAG_REVERSE: c_uint = 0x0100;
pub const H5Z_CLASS_T_VERS: c_int = 1;
pub const H5T_INTEGER: c_int = 0;
pub const H5T_FLOAT: c_int = 1;
pub const H5T_STRING: c_int = 3;
pub const H5T_REFERENCE: c_int = 7;
pub const H5Z_FILTER_ALL: c_int = 0;
pub const H5L_TYPE_HARD: c_int = 0;
pub const H5D_CHUNKED: c_int = 2;
pub const H5D_VIRTUAL: c_int = 3;
pub const H5I_GROUP: c_int = 2;
pub const H5I_DATASET: c_int = 5;
pub const H5T_SGN_NONE: c_int = 0;
pub const H5_INDEX_NAME: c_int = 0;
pub const H5_ITER_INC: c_int = 0;
pub const HADDR_UNDEF: haddr_t = u64::MAX;

pub const H5FD_CLASS_VERSION: c_uint = 1;
pub const H5FD_MEM_DRAW: c_int = 3;
pub const H5FD_MEM_OHDR: c_int = 6;
pub const H5FD_FEAT_SUPPORTS_SWMR_IO: c_ulong = 0x1000;

#[repr(C)]
pub struct H5FD_t {
    pub driver_id: hid_t,
    pub cls: *const H5FD_class_t,
    pub fileno: c_ulong,
    pub access_flags: c_uint,
    pub feature_flags: c_ulong,
    pub maxaddr: haddr_t,
    pub base_addr: haddr_t,
    pub threshold: hsize_t,
    pub alignment: hsize_t,
    pub paged_aggr: bool,
}

/// An opaque identifier of an object in a file: 16 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct H5O_token_t {
    pub words: [u64; 2],
}

/// The last field is a union of such a token and a size.
#[repr(C)]
#[derive(Default)]
pub struct H5L_info2_t {
    pub r#type: c_int,
    pub corder_valid: bool,
    pub corder: i64,
    pub cset: c_int,
    pub u: [u64; 2],
}

type FilePointer = *mut H5FD_t;
type ConstFilePointer = *const H5FD_t;
type Absent = Option<unsafe extern "C" fn()>;

#[repr(C)]
pub struct H5FD_class_t {
    pub version: c_uint,
    pub value: c_int,
    pub name: *const c_char,
    pub maxaddr: haddr_t,
    pub fc_degree: c_int,
    pub terminate: Absent,
    pub sb_size: Absent,
    pub sb_encode: Absent,
    pub sb_decode: Absent,
    pub fapl_size: usize,
    pub fapl_get: Absent,
    pub fapl_copy: Absent,
    pub fapl_free: Absent,
    pub dxpl_size: usize,
    pub dxpl_copy: Absent,
    pub dxpl_free: Absent,
    pub open: Option<unsafe extern "C" fn(*const c_char, c_uint, hid_t, haddr_t) -> FilePointer>,
    pub close: Option<unsafe extern "C" fn(FilePointer) -> herr_t>,
    pub cmp: Option<unsafe extern "C" fn(ConstFilePointer, ConstFilePointer) -> c_int>,
    pub query: Option<unsafe extern "C" fn(ConstFilePointer, *mut c_ulong) -> herr_t>,
    pub get_type_map: Absent,
    pub alloc: Option<unsafe extern "C" fn(FilePointer, c_int, hid_t, hsize_t) -> haddr_t>,
    pub free: Option<unsafe extern "C" fn(FilePointer, c_int, hid_t, haddr_t, hsize_t) -> herr_t>,
    pub get_eoa: Option<unsafe extern "C" fn(ConstFilePointer, c_int) -> haddr_t>,
    pub set_eoa: Option<unsafe extern "C" fn(FilePointer, c_int, haddr_t) -> herr_t>,
    pub get_eof: Option<unsafe extern "C" fn(ConstFilePointer, c_int) -> haddr_t>,
    pub get_handle: Absent,
    pub read: Option<unsafe extern "C" fn(FilePointer, c_int, hid_t, haddr_t, usize, *mut c_void) -> herr_t>,
    pub write:
        Option<unsafe extern "C" fn(FilePointer, c_int, hid_t, haddr_t, usize, *const c_void) -> herr_t>,
    pub read_vector: Absent,
    pub write_vector: Absent,
    pub read_selection: Absent,
    pub write_selection: Absent,
    pub flush: Absent,
    pub truncate: Option<unsafe extern "C" fn(FilePointer, hid_t, bool) -> herr_t>,
    pub lock: Absent,
    pub unlock: Absent,
    pub del: Absent,
    pub ctl: Absent,
    pub fl_map: [c_int; 7],
}

// SAFETY: a class is never written after its creation; its pointers are to functions and static text.
unsafe impl Sync for H5FD_class_t {}

#[repr(C)]
pub struct H5E_error2_t {
    pub cls_id: hid_t,
    pub maj_num: hid_t,
    pub min_num: hid_t,
    pub line: c_uint,
    pub func_name: *const c_char,
    pub file_name: *const c_char,
    pub desc: *const c_char,
}

/// `H5Z_can_apply_func_t` and `H5Z_set_local_func_t`.
pub type H5Z_local_t = unsafe extern "C" fn(hid_t, hid_t, hid_t) -> c_int;
pub type H5Z_func_t =
    unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize;

/// A filter, as plug-ins describe it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct H5Z_class2_t {
    pub version: c_int,
    pub id: c_int,
    pub encoder_present: c_uint,
    pub decoder_present: c_uint,
    pub name: *const c_char,
    pub can_apply: Option<H5Z_local_t>,
    pub set_local: Option<H5Z_local_t>,
    pub filter: Option<H5Z_func_t>,
}

pub type H5E_walk2_t = unsafe extern "C" fn(c_uint, *const H5E_error2_t, *mut c_void) -> herr_t;

unsafe extern "C" {
    pub static H5P_CLS_FILE_CREATE_ID_g: hid_t;
    pub static H5P_CLS_FILE_ACCESS_ID_g: hid_t;
    pub static H5P_CLS_GROUP_CREATE_ID_g: hid_t;
    pub static H5P_CLS_DATASET_CREATE_ID_g: hid_t;
    pub static H5P_CLS_DATASET_ACCESS_ID_g: hid_t;
    pub static H5T_C_S1_g: hid_t;
    pub static H5T_STD_U8LE_g: hid_t;
    pub static H5T_STD_U16LE_g: hid_t;
    pub static H5T_STD_U32LE_g: hid_t;
    pub static H5T_STD_U64LE_g: hid_t;
    pub static H5T_STD_I8LE_g: hid_t;
    pub static H5T_STD_I16LE_g: hid_t;
    pub static H5T_STD_I32LE_g: hid_t;
    pub static H5T_STD_I64LE_g: hid_t;
    pub static H5T_IEEE_F32LE_g: hid_t;
    pub static H5T_IEEE_F64LE_g: hid_t;

    pub fn H5open() -> herr_t;
    pub fn H5get_libversion(major: *mut c_uint, minor: *mut c_uint, release: *mut c_uint) -> herr_t;
    pub fn H5Eset_auto2(stack: hid_t, function: *const c_void, data: *mut c_void) -> herr_t;
    pub fn H5Ewalk2(stack: hid_t, direction: c_int, walk: H5E_walk2_t, data: *mut c_void) -> herr_t;
    pub fn H5Idec_ref(id: hid_t) -> c_int;
    pub fn H5PLset_loading_state(mask: c_uint) -> herr_t;
    pub fn H5FDregister(class: *const H5FD_class_t) -> hid_t;

    pub fn H5Pcreate(class: hid_t) -> hid_t;
    pub fn H5Pset_libver_bounds(fapl: hid_t, low: c_int, high: c_int) -> herr_t;
    pub fn H5Pset_driver(fapl: hid_t, driver: hid_t, info: *const c_void) -> herr_t;
    pub fn H5Pset_link_phase_change(gcpl: hid_t, compact: c_uint, dense: c_uint) -> herr_t;
    pub fn H5Pset_est_link_info(gcpl: hid_t, entries: c_uint, name: c_uint) -> herr_t;
    pub fn H5Pset_attr_phase_change(ocpl: hid_t, compact: c_uint, dense: c_uint) -> herr_t;
    pub fn H5Pset_file_space_strategy(
        fcpl: hid_t,
        strategy: c_int,
        persist: bool,
        threshold: hsize_t,
    ) -> herr_t;
    pub fn H5Pset_chunk(dcpl: hid_t, rank: c_int, dimensions: *const hsize_t) -> herr_t;
    pub fn H5Pset_filter(
        dcpl: hid_t,
        filter: c_int,
        flags: c_uint,
        count: usize,
        values: *const c_uint,
    ) -> herr_t;
    pub fn H5Pmodify_filter(
        dcpl: hid_t,
        filter: c_int,
        flags: c_uint,
        count: usize,
        values: *const c_uint,
    ) -> herr_t;
    pub fn H5Pget_filter_by_id2(
        dcpl: hid_t,
        filter: c_int,
        flags: *mut c_uint,
        count: *mut usize,
        values: *mut c_uint,
        name_length: usize,
        name: *mut c_char,
        configuration: *mut c_uint,
    ) -> herr_t;
    pub fn H5Premove_filter(dcpl: hid_t, filter: c_int) -> herr_t;
    pub fn H5Pset_alloc_time(dcpl: hid_t, time: c_int) -> herr_t;
    pub fn H5Pset_fill_value(dcpl: hid_t, kind: hid_t, value: *const c_void) -> herr_t;
    pub fn H5Pset_chunk_cache(dapl: hid_t, slots: usize, bytes: usize, preempt: f64) -> herr_t;
    pub fn H5Pset_virtual(
        dcpl: hid_t,
        space: hid_t,
        file: *const c_char,
        dataset: *const c_char,
        source: hid_t,
    ) -> herr_t;

    pub fn H5Fcreate(name: *const c_char, flags: c_uint, fcpl: hid_t, fapl: hid_t) -> hid_t;
    pub fn H5Fopen(name: *const c_char, flags: c_uint, fapl: hid_t) -> hid_t;
    pub fn H5Fclose(file: hid_t) -> herr_t;
    pub fn H5Fflush(file: hid_t, scope: c_int) -> herr_t;
    pub fn H5Fstart_swmr_write(file: hid_t) -> herr_t;

    pub fn H5Literate2(
        group: hid_t,
        index: c_int,
        order: c_int,
        number: *mut hsize_t,
        each: unsafe extern "C" fn(hid_t, *const c_char, *const H5L_info2_t, *mut c_void) -> herr_t,
        data: *mut c_void,
    ) -> herr_t;
    pub fn H5Gcreate2(at: hid_t, name: *const c_char, lcpl: hid_t, gcpl: hid_t, gapl: hid_t) -> hid_t;
    pub fn H5Gget_create_plist(group: hid_t) -> hid_t;
    pub fn H5Ocopy(
        from: hid_t,
        name: *const c_char,
        into: hid_t,
        copy: *const c_char,
        ocpypl: hid_t,
        lcpl: hid_t,
    ) -> herr_t;
    pub fn H5Lcopy(
        from: hid_t,
        name: *const c_char,
        into: hid_t,
        copy: *const c_char,
        lcpl: hid_t,
        lapl: hid_t,
    ) -> herr_t;
    pub fn H5Oopen_by_token(at: hid_t, token: H5O_token_t) -> hid_t;
    pub fn H5Oopen(at: hid_t, name: *const c_char, lapl: hid_t) -> hid_t;
    pub fn H5Lget_info2(at: hid_t, name: *const c_char, info: *mut H5L_info2_t, lapl: hid_t) -> herr_t;
    pub fn H5Dget_create_plist(dataset: hid_t) -> hid_t;
    pub fn H5Pget_external_count(dcpl: hid_t) -> c_int;
    pub fn H5Pget_layout(dcpl: hid_t) -> c_int;
    pub fn H5Pget_chunk(dcpl: hid_t, rank: c_int, dimensions: *mut hsize_t) -> c_int;
    pub fn H5Pget_fill_value(dcpl: hid_t, kind: hid_t, value: *mut c_void) -> herr_t;
    pub fn H5Pget_nfilters(dcpl: hid_t) -> c_int;
    pub fn H5Pget_filter2(
        dcpl: hid_t,
        number: c_uint,
        flags: *mut c_uint,
        count: *mut usize,
        values: *mut c_uint,
        name_length: usize,
        name: *mut c_char,
        configuration: *mut c_uint,
    ) -> c_int;
    pub fn H5Zfilter_avail(filter: c_int) -> c_int;
    pub fn H5Iget_type(id: hid_t) -> c_int;
    pub fn H5Tget_size(kind: hid_t) -> usize;
    pub fn H5Tget_sign(kind: hid_t) -> c_int;
    pub fn H5Dget_storage_size(dataset: hid_t) -> hsize_t;
    pub fn H5Lexists(at: hid_t, name: *const c_char, access: hid_t) -> c_int;
    pub fn H5Lcreate_hard(
        from: hid_t,
        name: *const c_char,
        at: hid_t,
        link: *const c_char,
        lcpl: hid_t,
        lapl: hid_t,
    ) -> herr_t;
    pub fn H5Lcreate_soft(
        target: *const c_char,
        at: hid_t,
        link: *const c_char,
        lcpl: hid_t,
        lapl: hid_t,
    ) -> herr_t;
    pub fn H5Lcreate_external(
        file: *const c_char,
        object: *const c_char,
        at: hid_t,
        link: *const c_char,
        lcpl: hid_t,
        lapl: hid_t,
    ) -> herr_t;
    pub fn H5Acreate2(
        at: hid_t,
        name: *const c_char,
        kind: hid_t,
        space: hid_t,
        acpl: hid_t,
        aapl: hid_t,
    ) -> hid_t;
    pub fn H5Aiterate2(
        object: hid_t,
        index: c_int,
        order: c_int,
        number: *mut hsize_t,
        each: unsafe extern "C" fn(hid_t, *const c_char, *const c_void, *mut c_void) -> herr_t,
        data: *mut c_void,
    ) -> herr_t;
    pub fn H5Aopen(object: hid_t, name: *const c_char, aapl: hid_t) -> hid_t;
    pub fn H5Aopen_by_name(
        at: hid_t,
        object: *const c_char,
        name: *const c_char,
        aapl: hid_t,
        lapl: hid_t,
    ) -> hid_t;
    pub fn H5Aexists_by_name(at: hid_t, object: *const c_char, name: *const c_char, lapl: hid_t) -> c_int;
    pub fn H5Aget_type(attribute: hid_t) -> hid_t;
    pub fn H5Aget_space(attribute: hid_t) -> hid_t;
    pub fn H5Aread(attribute: hid_t, kind: hid_t, into: *mut c_void) -> herr_t;
    pub fn H5Awrite(attribute: hid_t, kind: hid_t, value: *const c_void) -> herr_t;

    pub fn H5free_memory(memory: *mut c_void) -> herr_t;
    pub fn H5Tis_variable_str(kind: hid_t) -> c_int;
    pub fn H5Tget_class(kind: hid_t) -> c_int;
    pub fn H5Dget_type(dataset: hid_t) -> hid_t;
    pub fn H5Tcopy(kind: hid_t) -> hid_t;
    pub fn H5Tenum_create(base: hid_t) -> hid_t;
    pub fn H5Tenum_insert(kind: hid_t, name: *const c_char, value: *const c_void) -> herr_t;
    pub fn H5Tdetect_class(kind: hid_t, class: c_int) -> c_int;
    pub fn H5Treclaim(kind: hid_t, space: hid_t, dxpl: hid_t, memory: *mut c_void) -> herr_t;
    pub fn H5Tset_size(kind: hid_t, size: usize) -> herr_t;
    pub fn H5Tset_strpad(kind: hid_t, padding: c_int) -> herr_t;
    pub fn H5Tset_cset(kind: hid_t, set: c_int) -> herr_t;
    pub fn H5Screate(class: c_int) -> hid_t;
    pub fn H5Screate_simple(rank: c_int, dimensions: *const hsize_t, maxima: *const hsize_t) -> hid_t;
    pub fn H5Sselect_hyperslab(
        space: hid_t,
        operation: c_int,
        start: *const hsize_t,
        stride: *const hsize_t,
        count: *const hsize_t,
        block: *const hsize_t,
    ) -> herr_t;

    pub fn H5Dcreate2(
        at: hid_t,
        name: *const c_char,
        kind: hid_t,
        space: hid_t,
        lcpl: hid_t,
        dcpl: hid_t,
        dapl: hid_t,
    ) -> hid_t;
    pub fn H5Dopen2(at: hid_t, name: *const c_char, dapl: hid_t) -> hid_t;
    pub fn H5Dget_space(dataset: hid_t) -> hid_t;
    pub fn H5Dset_extent(dataset: hid_t, dimensions: *const hsize_t) -> herr_t;
    pub fn H5Dwrite(
        dataset: hid_t,
        kind: hid_t,
        memory: hid_t,
        file: hid_t,
        dxpl: hid_t,
        from: *const c_void,
    ) -> herr_t;
    pub fn H5Dread(
        dataset: hid_t,
        kind: hid_t,
        memory: hid_t,
        file: hid_t,
        dxpl: hid_t,
        into: *mut c_void,
    ) -> herr_t;
    pub fn H5Dwrite_chunk(
        dataset: hid_t,
        dxpl: hid_t,
        filters: u32,
        offset: *const hsize_t,
        size: usize,
        from: *const c_void,
    ) -> herr_t;
    pub fn H5Dchunk_iter(
        dataset: hid_t,
        transfer: hid_t,
        each: unsafe extern "C" fn(*const hsize_t, c_uint, haddr_t, hsize_t, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> herr_t;
    pub fn H5Sget_simple_extent_npoints(space: hid_t) -> i64;
    pub fn H5Sget_simple_extent_dims(space: hid_t, dimensions: *mut hsize_t, maxima: *mut hsize_t) -> c_int;

    /// From the library's own `H5private.h`: Jenkins' lookup3, the checksum of all metadata blocks.
    pub fn H5_checksum_metadata(data: *const c_void, length: usize, seed: u32) -> u32;
}
