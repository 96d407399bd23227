//! The declarations against the header of the library that is linked: sizes and offsets, asked of a C compiler.

use std::{fs, path::Path, process::Command};

/// Constants of the header call these.
const STUBS: &str = "herr_t H5open(void) { return 0; }\nherr_t H5check_version(unsigned a, unsigned b, unsigned c) \
    { return (int)(a + b + c) * 0; }";

/// Prints each of these expressions of C on a line.
fn asked(expressions: &[String]) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, program] = ["a.c", "a"].map(|name| folder.path().join(name));
    let line = |what: &String| format!("printf(\"%llu\\n\", (unsigned long long)({what}));\n");
    let lines = expressions.iter().map(line).collect::<Vec<_>>().concat();
    let text = format!(
        "#include <stdio.h>\n#include <stddef.h>\n#include <hdf5.h>\n#include <H5FDdevelop.h>\n{STUBS}\nint main(void) {{ {lines} }}\n"
    );
    fs::write(&source, text).expect("it is written");
    let cc =
        Command::new("cc").arg(&source).arg("-I").arg(env!("HDF5_INCLUDE")).arg("-o").arg(&program).output();
    let cc = cc.expect("a C compiler is needed to build the library too");
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    let output = Command::new(program).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn sizes_and_offsets_are_those_of_the_header() {
    let declared = nilometer_hdf5::declared();
    let expressions: Vec<_> = declared.iter().map(|(expression, _)| (*expression).to_owned()).collect();
    let found = asked(&expressions);
    assert!(found.len() > 40 && found.len() == declared.len());
    for ((expression, ours), header) in declared.into_iter().zip(found) {
        assert_eq!(ours, header, "{expression}");
    }
}

/// An assertion of the library would end a recording. `CMake` leaves them out of builds of the type `Release`.
#[test]
fn the_library_that_is_linked_has_no_assertions() {
    let folder = Path::new(env!("HDF5_INCLUDE")).parent().expect("it is installed").join("lib");
    let entries = fs::read_dir(folder).expect("it is installed").flatten().map(|entry| entry.path());
    let archives: Vec<_> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "a")).collect();
    assert!(!archives.is_empty());
    for archive in archives {
        let bytes = fs::read(&archive).expect("it can be read");
        let has = |symbol: &[u8]| bytes.windows(symbol.len()).any(|window| window == symbol);
        assert!(has(b"H5D__chunk_file_alloc"), "{}: it is the library", archive.display());
        assert!(!has(b"__assert_fail"), "{}: it has assertions", archive.display());
    }
}
