//! What `nilometer --version` says of the build: the commit and its day, the features and the target, as variables of the
//! compiler. The commit is git's where this is a working copy; packagers of other sources set `NILOMETER_COMMIT` and
//! `NILOMETER_DATE` (2026-11-24); else both are unknown. And which functions of HDF5 the program lets plug-ins have.

use std::{env, path::Path, process::Command};

/// What plug-ins of HDF5 find in the program.
const EXPORTED: &str = "hdf5-for-plugins.txt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let ours = is_working_copy(&root);
    if ours {
        watch_commits(&root);
    }
    for (name, format) in [("NILOMETER_COMMIT", "%h"), ("NILOMETER_DATE", "%cs")] {
        println!("cargo::rerun-if-env-changed={name}");
        let said = env::var(name).ok().filter(|text| !text.is_empty());
        let format = format!("--format={format}");
        let of_git = || {
            git(&root, &["show", "--no-patch", "--no-show-signature", "--abbrev=12", &format, "HEAD"])
                .filter(|_| ours)
        };
        println!("cargo::rustc-env={name}={}", said.or_else(of_git).unwrap_or_else(|| "unknown".to_owned()));
    }
    let exported = Path::new(&variable("CARGO_MANIFEST_DIR")).join(EXPORTED);
    println!("cargo::rerun-if-changed={EXPORTED}");
    // All that is global would be exported, but for the script: not every linker driver knows a list of what is.
    println!("cargo::rustc-link-arg-bins=-rdynamic");
    println!("cargo::rustc-link-arg-bins=-Wl,--version-script={}", exported.display());
    println!("cargo::rustc-env=NILOMETER_FEATURES={}", features());
    println!("cargo::rustc-env=NILOMETER_TARGET={}", variable("TARGET"));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The features of the package that were chosen, `none` where there are none.
fn features() -> String {
    let features = variable("CARGO_CFG_FEATURE");
    if features.is_empty() { "none".to_owned() } else { features.replace(',', ", ") }
}

/// Whether these sources are a working copy by themselves: what was unpacked inside another project's is none of it.
fn is_working_copy(root: &Path) -> bool {
    let top =
        git(root, &["rev-parse", "--show-toplevel"]).and_then(|top| Path::new(&top).canonicalize().ok());
    top.is_some() && top == root.canonicalize().ok()
}

/// Has this repeated when another commit is checked out.
fn watch_commits(root: &Path) {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    // The log of HEAD grows with every commit, also where the branch is in a packed file or did not exist before.
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
        // One that is not there would have the program built anew each time.
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// What git says, if it is there and knows.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
