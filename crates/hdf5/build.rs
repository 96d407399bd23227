//! Tells the tests where the header of the library is that was built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let include = std::env::var("DEP_HDF5_INCLUDE").unwrap_or_default();
    println!("cargo::rustc-env=HDF5_INCLUDE={include}");
}
