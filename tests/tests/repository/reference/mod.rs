//! The pages in `docs/reference`, made from the sources that the program itself uses: structs that read TOML files,
//! calls that write metrics, the schema of records. The program prints the page of commands itself. A page that
//! differs from its source fails a test.

mod environment;
mod exit_codes;
mod json;
mod key_values;
mod keys;
mod markdown;
mod metrics;
mod record_schema;
mod source_types;

use std::fs;

use keys::{KeyPage, key_page};
use nilometer_tests::{assert_none, read, root, run};

/// A page of the reference.
struct ReferencePage {
    /// The file's name in `docs/reference`.
    file: &'static str,
    text: String,
}

impl ReferencePage {
    /// A page with a last line that names its maker.
    fn made(file: &'static str, text: &str) -> Self {
        let text = format!("{}\n\n{MAKER}\n", text.trim_end());
        ReferencePage { file, text }
    }
}

const MAKER: &str =
    "A [test](../../tests/tests/repository/reference/mod.rs) makes this page from the sources.";

const INSTRUMENT: KeyPage = KeyPage {
    title: "The keys of an instrument",
    intro: "An instrument is a TOML file. `nilometer instrument show NAME` prints one of the catalogue, and `--for FILE.toml` \
            measures yours. An unknown key is an error. A key without a default may be absent.",
    sources: &["crates/model/src"],
    root: "Instrument",
};

const FACILITY: KeyPage = KeyPage {
    title: "The keys of a facility",
    intro: "A facility is a TOML file with instruments that deliver at the same time. `nilometer facility show NAME` prints one \
            of the catalogue. An unknown key is an error. A key without a default may be absent.",
    sources: &["crates/model/src"],
    root: "Facility",
};

const SERVICE: KeyPage = KeyPage {
    title: "The keys of the recorder's configuration",
    intro: "`nilometer serve --config FILE` reads this TOML file. `nilometer record --config FILE` reads the keys of \
            `[record]`, outside any table. A request to the service has the same keys in JSON. Options of the command line \
            win over the file.\n\nThe texts are those of the command's options: `--frames-per-file` is the key \
            `frames_per_file`. If you can repeat an option, write a list. An unknown key is an error.",
    sources: &[
        "crates/cli/src/serve.rs",
        "crates/model/src",
        "crates/recording/src/missing.rs",
        "crates/service/src/access/tls.rs",
        "crates/service/src/preview/options.rs",
        "crates/service/src/recording/options.rs",
    ],
    root: "Configured",
};

const README: &str = "# Reference

Lists of everything that you can write, read or set, each complete.

| page | |
|---|---|
| [Commands by example](../commands.md) | The commands, each with a typical line. |
| [Commands](commands.md) | All options of all commands, with their values and defaults. |
| [Keys of a plan](../plan-keys.md) | The file for `nilometer evaluate --plan`. |
| [Keys of an instrument](instrument-keys.md) | The file that describes a detector or a telescope. |
| [Keys of a facility](facility-keys.md) | The file that names several instruments at one storage system. |
| [Keys of the recorder's configuration](service-keys.md) | The file for `record --config` and `serve --config`. |
| [JSON documents](json.md) | Keys of reports, comparisons and sizings for programs. |
| [Metrics](metrics.md) | Names, types and labels of `GET /metrics`. |
| [Requests of the service](openapi.json) | Requests, bodies and answers of the service over HTTP, in OpenAPI 3.1. |
| [Tables of a record](record-schema.md) | The SQLite file in which a campaign keeps its results. |
| [Environment variables](environment.md) | Variables that the program, its build and its tests read. |
| [Exit codes](exit-codes.md) | Codes for scripts. |

`nilometer COMMAND --help` lists the options of a command, with their defaults.
";

/// The page of commands, as the program prints it.
fn commands_page() -> String {
    let ended = run(&["generate", "commands"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

fn pages() -> Vec<ReferencePage> {
    vec![
        ReferencePage::made("README.md", README),
        ReferencePage::made("commands.md", &commands_page()),
        ReferencePage::made("environment.md", &environment::page()),
        ReferencePage::made("exit-codes.md", &exit_codes::page()),
        ReferencePage::made("facility-keys.md", &key_page(&FACILITY)),
        ReferencePage::made("instrument-keys.md", &key_page(&INSTRUMENT)),
        ReferencePage::made("json.md", &json::page()),
        ReferencePage::made("metrics.md", &metrics::page()),
        ReferencePage { file: "openapi.json", text: nilometer_service::openapi_document() },
        ReferencePage::made("record-schema.md", &record_schema::page()),
        ReferencePage::made("service-keys.md", &key_page(&SERVICE)),
    ]
}

#[test]
fn reference_pages_agree_with_the_sources() {
    let folder = root().join("docs/reference");
    let pages = pages();
    if std::env::var_os("NILOMETER_WRITE_REFERENCE").is_some() {
        fs::create_dir_all(&folder).expect("the repository can be written");
        for page in &pages {
            fs::write(folder.join(page.file), &page.text).expect("the repository can be written");
        }
    }
    let is_stale = |page: &&ReferencePage| {
        let path = folder.join(page.file);
        !path.exists() || read(&path) != page.text
    };
    let stale: Vec<_> = pages.iter().filter(is_stale).map(|page| page.file).collect();
    assert!(
        stale.is_empty(),
        "docs/reference is stale ({}): run `NILOMETER_WRITE_REFERENCE=1 cargo test -p nilometer-tests --test repository \
         reference`",
        stale.join(", ")
    );
}

#[test]
fn every_page_of_the_reference_has_a_link() {
    let pages = nilometer_tests::files(&root().join("docs/reference"), "md");
    let names = pages.iter().filter_map(|path| path.file_name()?.to_str());
    let unlinked = names.filter(|name| *name != "README.md" && !README.contains(&format!("({name})")));
    let complaint = |name| format!("docs/reference/README.md has no link to {name}");
    assert_none(&unlinked.map(complaint).collect::<Vec<_>>());
}
