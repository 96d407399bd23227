//! The hard limits of the code, and the arrows between the crates, read from the sources. Every check is a function that
//! names what it complains of, and is itself tested on a bad example.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_tests::{assert_none, crates, files, is_for_tests, read, root};
use syn::{File, ItemFn, ItemMod, spanned::Spanned, visit::Visit};

/// Which crates a crate may depend on, as in the layout of the design. What stands under `tests` and `bench` may use all.
const ARROWS: [(&str, &[&str]); 25] = [
    ("fuzz", &[]),
    ("model", &["fuzz"]),
    ("plan", &["model", "fuzz"]),
    ("codec", &[]),
    ("storage", &["model"]),
    ("command-lines", &["model"]),
    ("record", &["model", "plan", "command-lines", "fuzz"]),
    ("wire", &["model", "fuzz"]),
    ("recording", &["model", "codec", "storage", "wire", "hdf5", "fuzz"]),
    ("hdf5", &["fuzz"]),
    ("datagram", &["model", "wire"]),
    ("ring", &["model", "storage", "recording"]),
    ("intake", &["model", "codec", "datagram", "storage", "wire", "recording", "hdf5", "ring", "fuzz"]),
    ("hdf5-recording", &["model", "codec", "storage", "recording", "hdf5", "ring", "intake"]),
    (
        "acquisition",
        &[
            "model",
            "codec",
            "datagram",
            "storage",
            "wire",
            "recording",
            "hdf5",
            "ring",
            "intake",
            "hdf5-recording",
            "fuzz",
        ],
    ),
    ("rehearsal", &["model", "plan", "storage", "recording", "ring", "acquisition", "campaign"]),
    ("mount", &["recording"]),
    ("remote", &["model", "storage"]),
    ("cluster", &["model", "plan", "storage"]),
    ("network", &["model", "plan", "datagram", "storage", "wire", "cluster"]),
    (
        "campaign",
        &[
            "model",
            "plan",
            "storage",
            "record",
            "wire",
            "recording",
            "ring",
            "intake",
            "hdf5-recording",
            "acquisition",
            "cluster",
            "network",
            "hdf5",
            "remote",
        ],
    ),
    ("analysis", &["model", "plan"]),
    ("report", &["model", "plan", "analysis"]),
    (
        "service",
        &[
            "model",
            "storage",
            "wire",
            "recording",
            "ring",
            "intake",
            "hdf5-recording",
            "acquisition",
            "remote",
            "fuzz",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "plan",
            "codec",
            "command-lines",
            "storage",
            "record",
            "wire",
            "recording",
            "ring",
            "intake",
            "hdf5-recording",
            "acquisition",
            "hdf5",
            "mount",
            "remote",
            "cluster",
            "network",
            "campaign",
            "analysis",
            "rehearsal",
            "report",
            "service",
            "fuzz",
        ],
    ),
];

/// Of these, the first may use the second for its tests.
const ARROWS_OF_TESTS: [(&str, &str); 1] = [("acquisition", "plan")];

/// Crates in which unsafe code may stand.
const MAY_BE_UNSAFE: [&str; 5] = ["storage", "codec", "datagram", "hdf5", "remote"];
/// Crates that deny it but for one module: the crate, and the file and the line that declare the module.
const UNSAFE_MODULES: [(&str, &str, &str); 2] =
    [("cluster", "lib.rs", "mod mpi;"), ("network", "lib.rs", "mod options;")];
const DENIED: &str = "#![deny(unsafe_code)]";

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;

/// Put together here, so that this file passes its own check.
const UNFINISHED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
    concat!("db", "g!"),
];

/// What is wrong with a crate's dependencies. `folder` is its directory below `crates/`.
fn arrows(folder: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
        return vec![format!("crates/{folder} is not in the layout")];
    };
    let manifest: toml::Table = manifest.parse().expect("cargo reads it");
    let mut targets = vec![&manifest];
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    targets.extend(platforms.iter().flat_map(|table| table.values()).filter_map(toml::Value::as_table));
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut complaints = Vec::new();
    for (table, kind) in targets.iter().flat_map(|target| kinds.map(|kind| (target.get(kind), kind))) {
        let names = table.and_then(toml::Value::as_table).into_iter().flatten();
        let names = names.map(|(key, value)| package(key, value));
        for name in names.filter_map(|name| name.strip_prefix("nilometer-").map(str::to_owned)) {
            let is_of_tests =
                kind == "dev-dependencies" && ARROWS_OF_TESTS.contains(&(folder, name.as_str()));
            // A crate depends on itself where its own tests need a feature of it.
            if name != folder && !allowed.contains(&name.as_str()) && !is_of_tests {
                complaints
                    .push(format!("crates/{folder} must not depend on {name}: the arrows allow {allowed:?}"));
            }
        }
    }
    complaints
}

/// A dependency's real name: it may be renamed.
fn package(key: &str, value: &toml::Value) -> String {
    value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned()
}

/// Blocks of code in doc comments that `cargo test` would run: `scripts/run-tests` runs only programs of tests, so that none may be.
fn doc_tests(text: &str) -> Vec<String> {
    let mut is_open = false;
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("///").or_else(|| line.trim_start().strip_prefix("//!"));
        let Some(language) = comment.and_then(|comment| comment.trim_start().strip_prefix("```")) else {
            continue;
        };
        is_open = !is_open;
        if is_open && !matches!(language.trim(), "text" | "toml") {
            complaints.push(format!(
                "line {}: a block of `{language}` is a doc test, which nothing runs",
                number + 1
            ));
        }
    }
    complaints
}

/// What is wrong with a source file.
fn style(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if !text.starts_with("//!") {
        complaints.push("does not open with //! and what it is for".to_owned());
    }
    for (number, line) in text.lines().enumerate() {
        let words = UNFINISHED.iter().filter(|word| line.contains(**word));
        complaints.extend(words.map(|word| format!("line {}: {word}", number + 1)));
    }
    let file = syn::parse_file(text).expect("rustc reads it");
    complaints.extend(doc_tests(text));
    let lines = text.lines().count() - test_lines(&file);
    if lines > FILE_LINES_MAX {
        complaints.push(format!("{lines} lines without its tests: at most {FILE_LINES_MAX}"));
    }
    let mut long = LongFunctions::default();
    long.visit_file(&file);
    complaints.extend(long.0);
    complaints
}

fn test_lines(file: &File) -> usize {
    let tests = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(ItemMod { attrs, .. }) if is_for_tests(attrs) => Some(lines_of(item)),
        syn::Item::Fn(ItemFn { attrs, .. }) if is_for_tests(attrs) => Some(lines_of(item)),
        _ => None,
    });
    tests.sum()
}

fn lines_of(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

/// One complaint a function that is too long, its attributes and comments apart.
#[derive(Default)]
struct LongFunctions(Vec<String>);

impl LongFunctions {
    fn see(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.0.push(format!("fn {} has {lines} lines: at most {FUNCTION_LINES_MAX}", signature.ident));
        }
    }
}

impl<'ast> Visit<'ast> for LongFunctions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.see(&function.sig, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.see(&function.sig, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.see(&function.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}

/// Whether a crate's root keeps unsafe code out.
fn forbids_unsafe(text: &str) -> bool {
    let file = syn::parse_file(text).expect("rustc reads it");
    file.attrs.iter().any(|attribute| {
        attribute.path().is_ident("forbid")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "unsafe_code")
    })
}

/// What stands below each line that speaks of unsafe code, other than one that denies it for a whole crate.
fn open_to_unsafe(text: &str) -> Vec<&str> {
    let pairs = text.lines().zip(text.lines().skip(1));
    let speaks =
        |line: &str| line.contains("unsafe_code") && line != DENIED && line != "#![forbid(unsafe_code)]";
    pairs.filter(|(line, _)| speaks(line)).map(|(_, below)| below).collect()
}

#[test]
fn the_arrows_point_as_the_layout_says() {
    let names = crates();
    assert!(names.len() >= 7, "only {names:?} found");
    let complaints = names.iter().flat_map(|name| {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        assert!(manifest.contains(&format!("name = \"nilometer-{name}\"")), "crates/{name} has another name");
        arrows(name, &manifest)
    });
    assert_none(&complaints.collect::<Vec<_>>());
}

#[test]
fn a_wrong_arrow_is_found_however_it_is_written() {
    let plain = "[dependencies]\nnilometer-model.workspace = true\nserde = \"1\"\n";
    assert_none(&arrows("storage", plain));
    for wrong in [
        "[dependencies]\nnilometer-campaign.workspace = true\n",
        "[dev-dependencies]\nnilometer-campaign = { path = \"../campaign\" }\n",
        "[build-dependencies.nilometer-campaign]\npath = \"../campaign\"\n",
        "[dependencies]\nother = { package = \"nilometer-campaign\", path = \"../campaign\" }\n",
        "[target.'cfg(unix)'.dependencies]\nnilometer-campaign.workspace = true\n",
    ] {
        for folder in ["storage", "analysis", "model"] {
            assert_eq!(arrows(folder, wrong).len(), 1, "{folder}: {wrong}");
        }
        assert_none(&arrows("cli", wrong));
    }
    let for_tests = "[dev-dependencies]\nnilometer-plan.workspace = true\n";
    assert_none(&arrows("acquisition", for_tests));
    assert_eq!(arrows("acquisition", &for_tests.replace("dev-", "")).len(), 1, "not in the product");
    assert_eq!(arrows("common", plain).len(), 1, "a crate that is not in the layout");
}

#[test]
fn sources_keep_the_limits() {
    let paths: Vec<_> =
        ["crates", "tests"].iter().flat_map(|folder| files(&root().join(folder), "rs")).collect();
    assert!(paths.len() > 50, "only {} sources found", paths.len());
    let complaints = paths.iter().flat_map(|path| {
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        style(&read(path)).into_iter().map(move |complaint| format!("{name}: {complaint}"))
    });
    assert_none(&complaints.collect::<Vec<_>>());
}

#[test]
fn a_source_beyond_a_limit_is_found() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g(\"}\"); // }\n".repeat(lines - 2));
    let good = format!("//! For a test.\n{}", function(FUNCTION_LINES_MAX));
    assert_none(&style(&good));
    let indented = function(FUNCTION_LINES_MAX + 1);
    for bad in [
        format!("//! For a test.\n{indented}"),
        format!("//! For a test.\nimpl S {{\n{indented}}}\n"),
        format!("//! For a test.\ntrait T {{\n{indented}}}\n"),
        format!("//! For a test.\n#[cfg(test)]\nmod tests {{\n{indented}}}\n"),
        good.replacen("//!", "//", 1),
        format!("//! For a test.\n{}", "static A: u8 = 1;\n".repeat(FILE_LINES_MAX)),
    ] {
        assert_eq!(style(&bad).len(), 1, "{bad}");
    }
    for word in UNFINISHED {
        assert!(!style(&format!("{good}// {word}\n")).is_empty(), "{word}");
    }
    for (language, complaints) in [("", 1), ("rust", 1), ("ignore", 1), ("text", 0), ("toml", 0)] {
        let block = format!("/// ```{language}\n/// f();\n/// ```\nfn f() {{}}\n");
        assert_eq!(style(&format!("//! For a test.\n{block}")).len(), complaints, "{block}");
    }
    let tests = "#[test]\nfn f() {}\n".repeat(FILE_LINES_MAX);
    assert_none(&style(&format!("//! For a test.\n#[cfg(test)]\nmod tests {{\n{tests}}}\n")));
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let names = crates();
    let closed = |name: &&String| {
        !MAY_BE_UNSAFE.contains(&name.as_str()) && !UNSAFE_MODULES.iter().any(|(denies, ..)| denies == name)
    };
    let roots = names.iter().filter(closed).map(|name| {
        let source = root().join("crates").join(name).join("src");
        let library = source.join("lib.rs");
        if library.exists() { library } else { source.join("main.rs") }
    });
    let open = roots.filter(|path| !forbids_unsafe(&read(path)));
    assert_none(
        &open.map(|path| format!("{} does not forbid unsafe_code", path.display())).collect::<Vec<_>>(),
    );
    assert!(forbids_unsafe("//! A crate.\n#![forbid(unsafe_code)]\n"));
    for bad in ["//! #![forbid(unsafe_code)]\n", "#![deny(unsafe_code)]\n", "#![forbid(missing_docs)]\n"] {
        assert!(!forbids_unsafe(bad), "{bad}");
    }
}

#[test]
fn one_module_of_a_crate_that_denies_unsafe_code_may_have_it() {
    for (name, file, line) in UNSAFE_MODULES {
        let source = root().join("crates").join(name).join("src");
        let denies = read(&source.join("lib.rs")).lines().any(|line| line == DENIED);
        assert!(denies, "crates/{name} does not deny it");
        let open = files(&source, "rs").into_iter().flat_map(|path| opened_in(&path));
        let open: Vec<_> = open.collect();
        assert_eq!(open, [(source.join(file), line.to_owned())]);
    }
    for bad in ["#[allow(unsafe_code)]\nfn f() {}\n", "#![expect(\n    unsafe_code\n)]\nmod m;\n"] {
        assert_eq!(open_to_unsafe(bad).len(), 1, "{bad}");
    }
    assert!(open_to_unsafe(&format!("{DENIED}\nmod m;\n")).is_empty());
}

/// What stands below each place of a file that is opened to unsafe code, with the file.
fn opened_in(path: &Path) -> Vec<(PathBuf, String)> {
    let text = read(path);
    open_to_unsafe(&text).into_iter().map(|below| (path.to_owned(), below.to_owned())).collect()
}

/// Files below a crate's sources with unsafe code in them, tests apart.
fn with_unsafe_code(name: &str) -> Vec<PathBuf> {
    let source = root().join("crates").join(name).join("src");
    let is_test = |path: &Path| path.file_stem().is_some_and(|stem| stem == "tests");
    let product = files(&source, "rs").into_iter().filter(|path| !is_test(path));
    product.filter(|path| has_unsafe_code(&read(path))).collect()
}

fn has_unsafe_code(text: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let code = code.lines().map(|line| line.split("//").next().unwrap_or(line));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == "unsafe")
}

#[test]
fn the_architecture_names_every_file_with_unsafe_code() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let (_, section) = text.split_once("## Unsafe code").expect("a section");
    let section = section.split("\n## ").next().expect("it has an end");
    let found: Vec<PathBuf> = crates().iter().flat_map(|name| with_unsafe_code(name)).collect();
    assert!(found.len() > 5, "{found:?}");
    let place = |path: &Path| path.strip_prefix(root()).expect("below").display().to_string();
    let named = |path: &Path| section.contains(&format!("]({})", place(path)));
    let missing =
        found.iter().filter(|path| !named(path)).map(|path| format!("{} is not named", place(path)));
    assert_none(&missing.collect::<Vec<_>>());
    assert!(
        has_unsafe_code("let x = unsafe { y() };") && !has_unsafe_code("// unsafe\n#![deny(unsafe_code)]")
    );
}

/// Why a plan can't be used as it stands, if so.
fn plan(name: &str, text: &str) -> Option<String> {
    let instrument = |name: &str| {
        let path = root().join("instruments").join(format!("{name}.toml"));
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        nilometer_model::Instrument::parse(&text, name).map_err(|error| error.to_string())
    };
    nilometer_plan::parse_with(text, name, 1.0, &instrument).err().map(|error| error.to_string())
}

/// Why an instrument can't be used as it stands, if so.
fn instrument(name: &str, text: &str) -> Option<String> {
    match nilometer_model::Instrument::parse(text, name) {
        Ok(instrument) if instrument.name == name => None,
        Ok(instrument) => Some(format!("{name}.toml has name = \"{}\"", instrument.name)),
        Err(error) => Some(error.to_string()),
    }
}

/// Why a facility can't be used as it stands, if so.
fn facility(name: &str, text: &str) -> Option<String> {
    let known = |member: &nilometer_model::Member| {
        root().join("instruments").join(&member.name).with_added_extension("toml").exists()
    };
    match nilometer_model::Facility::parse(text, name) {
        Ok(facility) => {
            let unknown = facility.instruments.into_iter().find(|member| !known(member));
            unknown.map(|member| format!("{name}.toml names the instrument `{}`, which is none", member.name))
        }
        Err(error) => Some(error.to_string()),
    }
}

fn catalogue(folder: &str, check: fn(&str, &str) -> Option<String>) -> Vec<String> {
    let paths = files(&root().join(folder), "toml");
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().filter_map(|path| check(&stem(path), &read(path))).collect()
}

#[test]
fn plans_instruments_and_facilities_can_be_used() {
    assert!(!files(&root().join("plans"), "toml").is_empty(), "no plan found");
    assert_none(&catalogue("plans", plan));
    assert_none(&catalogue("instruments", instrument));
    assert_none(&catalogue("facilities", facility));
}

#[test]
fn a_plan_or_instrument_that_is_wrong_is_found() {
    let quick = read(&root().join("plans/quick.toml"));
    assert_eq!(plan("quick", &quick), None);
    assert!(plan("quick", &quick.replace("block_size", "blok_size")).is_some());
    let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [2, 2]\npixel = \"uint8\"\nframe_rate = \"1 Hz\"\n";
    assert_eq!(instrument("camera", camera), None);
    assert!(instrument("kamera", camera).is_some());
    assert!(instrument("camera", &camera.replace("uint8", "uint9")).is_some());
    let wa105 = read(&root().join("facilities/wa105.toml"));
    assert_eq!(facility("wa105", &wa105), None);
    assert!(facility("wa105", &wa105.replace("wa105-raw", "wa105-row")).is_some());
    assert!(facility("wa105", &wa105.replace("copy_out", "copyout")).is_some());
}
