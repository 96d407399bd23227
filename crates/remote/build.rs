//! Compiles the shims over the clients' libraries, of those features that were chosen.

use std::{env, path::Path, process::Command};

/// Where Debian and Red Hat have the headers of `XRootD`.
const XROOTD_HEADERS: &str = "/usr/include/xrootd";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if is_chosen("XROOTD") {
        xrootd();
    }
    if is_chosen("NFS") {
        nfs();
    }
    if is_chosen("S3") || is_chosen("HDFS") {
        must_have_curl();
    }
}

fn is_chosen(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

fn xrootd() {
    println!("cargo::rerun-if-changed=src/xrootd/shim.cc");
    println!("cargo::rerun-if-env-changed=XROOTD_INCLUDE");
    let headers = env::var("XROOTD_INCLUDE").unwrap_or_else(|_| XROOTD_HEADERS.to_owned());
    assert!(
        Path::new(&headers).join("XrdCl/XrdClFile.hh").exists(),
        "the feature `xrootd` needs the headers of XRootD's client in {headers}, or where XROOTD_INCLUDE says: install \
         Debian's libxrootd-client-dev, as `make build REMOTE=1` does"
    );
    cc::Build::new()
        .cpp(true)
        .warnings(false)
        .std("c++17")
        .include(headers)
        .file("src/xrootd/shim.cc")
        .compile("nilometer_xrootd");
    println!("cargo::rustc-link-lib=XrdCl");
}

/// Without it the bindings would build a library of their own, which has no TLS.
fn must_have_curl() {
    let known = Command::new("pkg-config").args(["--exists", "libcurl >= 7.68"]).status();
    assert!(
        known.is_ok_and(|status| status.success()),
        "the features `s3` and `hdfs` need libcurl 7.68 or newer, as pkg-config tells it: install Debian's libcurl4-openssl-dev and \
         pkg-config, as `make build REMOTE=1` does"
    );
}

fn nfs() {
    println!("cargo::rerun-if-changed=src/nfs/shim.c");
    cc::Build::new().file("src/nfs/shim.c").compile("nilometer_nfs");
    println!("cargo::rustc-link-lib=nfs");
}
