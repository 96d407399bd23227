//! Tells `hdf5-index` where the library is that the program is linked with: a bare loop in C is linked with the same.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let include = std::env::var("DEP_HDF5_INCLUDE").unwrap_or_default();
    println!("cargo::rustc-env=HDF5_INCLUDE={include}");
}
