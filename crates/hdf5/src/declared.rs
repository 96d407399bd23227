//! The values of our declarations, for a check against the header: C expressions, and their values here.

use std::mem::{offset_of, size_of};

use crate::ffi;

macro_rules! structure {
    ($all:ident, $name:ident: $($field:ident)*) => {
        $all.push((concat!("sizeof(", stringify!($name), ")"), size_of::<ffi::$name>() as u64));
        $($all.push((
            concat!("offsetof(", stringify!($name), ", ", stringify!($field), ")"),
            offset_of!(ffi::$name, $field) as u64,
        ));)*
    };
}

macro_rules! constants {
    ($all:ident: $($name:ident)*) => {
        $($all.push((stringify!($name), i128::from(ffi::$name) as u64));)*
    };
}

/// Sizes, offsets and constants as declared here, each with the expression to ask a C compiler for.
#[doc(hidden)]
#[expect(clippy::cast_sign_loss, reason = "none of them is below zero")]
pub fn declared() -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    structure!(all, H5FD_t: driver_id cls fileno access_flags feature_flags maxaddr base_addr threshold alignment paged_aggr);
    structure!(
        all,
        H5FD_class_t: version value name maxaddr fc_degree terminate sb_size sb_encode sb_decode fapl_size fapl_get fapl_copy fapl_free dxpl_size dxpl_copy dxpl_free open close cmp query get_type_map alloc free get_eoa set_eoa get_eof get_handle read write read_vector write_vector read_selection write_selection flush truncate lock unlock del ctl fl_map
    );
    structure!(all, H5E_error2_t: cls_id maj_num min_num line func_name file_name desc);
    structure!(all, H5O_token_t:);
    structure!(all, H5L_info2_t: corder_valid corder cset u);
    structure!(all, H5Z_class2_t: version id encoder_present decoder_present name can_apply set_local filter);
    constants!(
        all: H5F_ACC_RDONLY H5F_ACC_RDWR H5F_ACC_TRUNC H5F_SCOPE_LOCAL H5F_LIBVER_V110 H5F_FSPACE_STRATEGY_NONE
        H5F_CLOSE_WEAK H5P_DEFAULT H5E_DEFAULT H5E_WALK_UPWARD H5S_SCALAR H5S_ALL H5S_SELECT_SET H5S_UNLIMITED
        H5T_CSET_UTF8 H5T_STR_NULLPAD H5T_INTEGER H5T_FLOAT H5T_STRING H5T_REFERENCE H5Z_FILTER_ALL H5L_TYPE_HARD H5D_CHUNKED H5D_VIRTUAL H5I_GROUP H5I_DATASET H5T_SGN_NONE H5_INDEX_NAME H5_ITER_INC H5D_ALLOC_TIME_INCR H5Z_FLAG_OPTIONAL
        H5Z_FLAG_REVERSE H5Z_CLASS_T_VERS HADDR_UNDEF H5FD_CLASS_VERSION
        H5FD_MEM_DRAW H5FD_MEM_OHDR H5FD_FEAT_SUPPORTS_SWMR_IO
    );
    all.push(("H5T_VARIABLE", ffi::H5T_VARIABLE as u64));
    all.push(("H5_VERS_MAJOR * 10000 + H5_VERS_MINOR * 100 + H5_VERS_RELEASE", version()));
    all
}

/// The version of the linked library.
fn version() -> u64 {
    let [mut major, mut minor, mut release] = [0; 3];
    // SAFETY: pointers to three numbers to be filled.
    unsafe { ffi::H5get_libversion(&raw mut major, &raw mut minor, &raw mut release) };
    u64::from(major * 10_000 + minor * 100 + release)
}
