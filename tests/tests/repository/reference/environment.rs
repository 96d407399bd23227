//! The page of environment variables. The sources give the names and places; [`MEANINGS`] has the meaning of each.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_tests::{assert_none, crates, files, is_for_tests, read, root};
use syn::{
    Expr, ExprCall, ExprLit, FnArg, Item, ItemConst, ItemFn, ItemMod, Lit, Pat, PatType, Signature, Type,
    visit::Visit,
};

use super::{
    markdown::{code, codes, table},
    source_types::text_of,
};

const HEAD: &str = "# Environment variables

Nilometer has options and files for settings. It reads the environment only for keys that must not be on a command line, and for \
conventions of other programs. Commands in a plan get `NILOMETER_TARGET` and `NILOMETER_VALUE` ([keys of a plan](../plan-keys.md)).

";

/// The lists of the page.
const GROUPS: [(&str, &str); 5] = [
    ("run", "Running"),
    ("launcher", "Set by launchers of several processes"),
    ("build", "Building"),
    ("test", "Testing"),
    ("child", "Internal: do not set them"),
];

/// The name for variables that a file of the user names.
const ANY: &str = "${NAME}";

/// Names of variables that cargo sets for builds.
const OF_CARGO: [&str; 3] = ["CARGO_", "DEP_", "TARGET"];

/// Texts without which a source reads no variable. Most sources need no parser then.
const MARKS: [&str; 2] = ["env::var", "variable: impl Fn"];

/// Group, name and meaning of each variable.
const MEANINGS: [(&str, &str, &str); 33] = [
    (
        "run",
        "NILOMETER_TOKEN",
        "The token by which `dump` tells a recorder who asks, if there is no `--token-file`.",
    ),
    ("run", "AWS_ACCESS_KEY_ID", "The name of the key for `s3://` targets. They need it."),
    ("run", "AWS_SECRET_ACCESS_KEY", "The secret of that key. Nilometer neither prints nor records it."),
    ("run", "AWS_SESSION_TOKEN", "The token of a temporary key."),
    (
        "run",
        "AWS_ENDPOINT_URL_S3",
        "The object store, `http://` or `https://`. It wins over `AWS_ENDPOINT_URL`.",
    ),
    ("run", "AWS_ENDPOINT_URL", "The object store. Without it, Nilometer uses Amazon's of the region."),
    ("run", "AWS_REGION", "The region in signatures, by default `us-east-1`."),
    ("run", "AWS_DEFAULT_REGION", "The region if `AWS_REGION` is not set."),
    ("run", "AWS_CA_BUNDLE", "A PEM file with the authorities to trust for `https://`."),
    (
        "run",
        "HADOOP_USER_NAME",
        "The user of `hdfs://` targets, if the URL has none. Default: the local user.",
    ),
    ("run", "USER", "The local user for `hdfs://`, if `/etc/passwd` does not have it."),
    ("run", "HDF5_PLUGIN_PATH", "Directories of HDF5 filter plug-ins, with colons between them."),
    (
        "run",
        "NILOMETER_MPI",
        "The path of the MPI adapter, instead of the one beside the program. A program with extra rights ignores it.",
    ),
    (
        "run",
        "NILOMETER_STATE",
        "The directory of the notes of settings in force on this machine, instead of `/var/tmp/nilometer-UID`.",
    ),
    ("run", "NO_COLOR", "Any value except an empty one: no colours in results."),
    ("run", "TERM", "The value `dumb`: no colours in results, and no status line."),
    ("run", "PATH", "Directories of the tools of file systems, and of other benchmarks for `explain`."),
    ("run", ANY, "Any variable that a job file of fio names in this form, for `explain`."),
    ("launcher", "OMPI_COMM_WORLD_SIZE", "Number of processes, from Open MPI."),
    ("launcher", "OMPI_COMM_WORLD_LOCAL_SIZE", "Number of processes on this machine, from Open MPI."),
    ("launcher", "PMI_SIZE", "Number of processes, from MPICH."),
    ("launcher", "MPI_LOCALNRANKS", "Number of processes on this machine, from MPICH."),
    ("launcher", "MV2_COMM_WORLD_SIZE", "Number of processes, from MVAPICH."),
    ("launcher", "MV2_COMM_WORLD_LOCAL_SIZE", "Number of processes on this machine, from MVAPICH."),
    ("launcher", "SLURM_STEP_NUM_TASKS", "Number of processes, from `srun`."),
    ("launcher", "SLURM_STEP_TASKS_PER_NODE", "Number of processes on each machine, from `srun`."),
    ("build", "NILOMETER_COMMIT", "The commit for `--version`, in builds outside git."),
    ("build", "NILOMETER_DATE", "The day of that commit, such as 2026-11-24."),
    ("build", "XROOTD_INCLUDE", "The directory of XRootD's headers. Default: `/usr/include/xrootd`."),
    (
        "test",
        "NILOMETER_FUZZ_SECONDS",
        "Seconds for which a test fuzzes each decoder. Default: 3000 inputs each.",
    ),
    (
        "test",
        "NILOMETER_LONG",
        "Any value: more seeds, more kills and bigger scales, as in `make test-long`.",
    ),
    ("child", "NILOMETER_READS_FILE", "Marks the child process that reads an HDF5 file without a journal."),
    ("child", "NILOMETER_WATCHED", "Marks the child process that does the work while its parent watches it."),
];

/// The names of variables in a source.
#[derive(Default)]
struct VariableNames {
    /// Names of variables in calls that read them.
    read: BTreeSet<String>,
    /// Names of constants in such calls.
    named: BTreeSet<String>,
    /// The texts of constants.
    constants: BTreeMap<String, String>,
    /// Texts that look like names of variables.
    candidates: BTreeSet<String>,
    /// True if a name reaches its call through a parameter. Every candidate then counts.
    is_indirect: bool,
}

/// The variables that a source reads. Its tests do not count.
fn variables(text: &str) -> BTreeSet<String> {
    if !MARKS.iter().any(|mark| text.contains(mark)) {
        return BTreeSet::new();
    }
    let file = syn::parse_file(text).expect("rustc reads it");
    let mut names = VariableNames::default();
    names.visit_file(&file);
    let VariableNames { mut read, named, constants, candidates, is_indirect } = names;
    for constant in &named {
        let text = constants.get(constant);
        read.insert(
            text.unwrap_or_else(|| panic!("{constant} must stand in the file that reads it")).clone(),
        );
    }
    if is_indirect {
        read.extend(candidates);
    }
    read.retain(|name| !OF_CARGO.iter().any(|begin| name.starts_with(begin)));
    read
}

impl<'ast> Visit<'ast> for VariableNames {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(ItemMod { attrs, .. }) | Item::Fn(ItemFn { attrs, .. }) => &attrs[..],
            _ => &[],
        };
        let is_test = is_for_tests(attributes) || attributes.iter().any(|one| one.path().is_ident("test"));
        if !is_test {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_const(&mut self, constant: &'ast ItemConst) {
        if let Some(text) = text_of(&constant.expr) {
            self.constants.insert(constant.ident.to_string(), text);
        }
        syn::visit::visit_item_const(self, constant);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        let is_reader = |input: &FnArg| match input {
            FnArg::Typed(PatType { pat, ty, .. }) => {
                is_named(pat, "variable") && matches!(**ty, Type::ImplTrait(_))
            }
            FnArg::Receiver(_) => false,
        };
        self.is_indirect |= signature.inputs.iter().any(is_reader);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let callee = last_part(&call.func).unwrap_or_default();
        match call.args.first() {
            Some(name) if is_of_environment(&call.func) => self.see_read(name),
            Some(Expr::Lit(literal)) if callee.starts_with(char::is_lowercase) => self.see_argument(literal),
            _ => {}
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_lit(&mut self, literal: &'ast ExprLit) {
        if let Lit::Str(text) = &literal.lit {
            let text = text.value();
            self.candidates.extend(Some(text).filter(|text| is_name(text) && text.contains('_')));
        }
    }
}

impl VariableNames {
    /// Sees the name in a call of `env::var`.
    fn see_read(&mut self, name: &Expr) {
        match (text_of(name), last_part(name)) {
            (Some(text), _) => drop(self.read.insert(text)),
            (None, Some(constant)) if is_name(&constant) => drop(self.named.insert(constant)),
            (None, Some(_)) => self.is_indirect = true,
            (None, None) if matches!(name, Expr::Macro(_)) => {}
            (None, None) => drop(self.read.insert(ANY.to_owned())),
        }
    }

    /// Sees the first argument of a call of a function or a closure.
    fn see_argument(&mut self, literal: &ExprLit) {
        if let Lit::Str(text) = &literal.lit {
            self.candidates.extend(Some(text.value()).filter(|text| is_name(text)));
        }
    }
}

fn is_named(pattern: &Pat, name: &str) -> bool {
    matches!(pattern, Pat::Ident(pattern) if pattern.ident == name)
}

/// True for `env::var` and `env::var_os`.
fn is_of_environment(callee: &Expr) -> bool {
    let Expr::Path(path) = callee else { return false };
    let parts: Vec<_> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
    matches!(&parts[..], [.., module, function] if module == "env" && function.starts_with("var"))
}

fn last_part(value: &Expr) -> Option<String> {
    match value {
        Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// True if a text has the form of a variable's name, such as `HOME`.
fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.len() > 3 && text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(is_part)
}

/// The variables of all crates, each with the files that read it.
fn found() -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in crates() {
        let folder = root().join("crates").join(name);
        let script = Some(folder.join("build.rs")).filter(|path| path.exists());
        for path in files(&folder.join("src"), "rs").into_iter().chain(script) {
            let place = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            for variable in variables(&read(&path)) {
                places.entry(variable).or_default().push(place.clone());
            }
        }
    }
    places
}

pub(super) fn page() -> String {
    let found = found();
    let sections = GROUPS.iter().map(|(group, title)| {
        let rows = MEANINGS.iter().filter(|(of, ..)| of == group).map(|(_, name, meaning)| {
            let places = found.get(*name).map(Vec::as_slice).unwrap_or_default();
            let places = codes(places.iter().map(String::as_str));
            [code(name), (*meaning).to_owned(), places]
        });
        format!("## {title}\n\n{}", table(["variable", "meaning", "read in"], rows))
    });
    format!("{HEAD}{}", sections.collect::<String>())
}

#[test]
fn every_variable_that_a_crate_reads_has_a_meaning() {
    let found = found();
    let has_meaning = |name: &str| MEANINGS.iter().any(|(_, known, _)| *known == name);
    let nameless = found.iter().filter(|(name, _)| !has_meaning(name));
    let missing = nameless.map(|(name, places)| format!("{}: give {name} a meaning", places.join(", ")));
    let gone = MEANINGS.iter().filter(|(_, name, _)| !found.contains_key(*name));
    let gone = gone.map(|(_, name, _)| format!("no crate reads {name}: remove its meaning"));
    let groupless = MEANINGS.iter().filter(|(of, ..)| !GROUPS.iter().any(|(group, _)| group == of));
    let groupless = groupless.map(|(of, name, _)| format!("{name}: no group {of}"));
    assert_none(&missing.chain(gone).chain(groupless).collect::<Vec<_>>());
}

#[test]
fn a_variable_is_found_however_its_name_reaches_the_call() {
    let names = |text: &str| variables(text).into_iter().collect::<Vec<_>>().join(" ");
    for (text, expected) in [
        ("fn f() { env::var(\"HOME\"); }", "HOME"),
        ("const NAME: &str = \"C_D\"; fn f() { std::env::var_os(NAME); }", "C_D"),
        ("fn f() { let is = |name: &str| env::var_os(name); is(\"TERM\"); }", "TERM"),
        ("const ALL: [(&str, u8); 1] = [(\"NAME_X\", 1)]; fn f(variable: impl Fn(&str) -> A) {}", "NAME_X"),
        ("fn f(name: String) { env::var(&name); }", ANY),
        ("fn f() { env::var(\"CARGO_X\"); other(\"NO_NAME\"); }", ""),
        ("#[cfg(test)] mod tests { fn f() { env::var(\"HOME\"); } }", ""),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}
