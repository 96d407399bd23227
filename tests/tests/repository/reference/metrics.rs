//! The page of metrics, from the calls that write them in `crates/service/src/metrics.rs` and in
//! `crates/report/src/evaluation_metrics.rs`, and from the script of the weekly check.
//!
//! The walk knows the texts of literals, of variables with a literal or a `format!` of known texts, and of loops over
//! local lists of tuples. It stops at a metric whose name, type or help it can't know.

use std::collections::BTreeMap;

use nilometer_tests::{read, root};
use syn::{Block, Expr, ExprForLoop, ExprMethodCall, Item, Local, Pat, Stmt};

use super::{
    markdown::{code, codes, table},
    source_types::text_of,
};

const HEAD: &str = "# Metrics

Nilometer has metrics of a recorder, of an evaluation, and of the weekly check. [Monitoring](../monitoring.md) shows how to \
collect them.

## Recorder

`GET /metrics` of `nilometer serve` and of `nilometer record --http` has these metrics in Prometheus' text format 0.0.4. \
[The recorder as a service](../service.md) explains the counters.

- Counters begin at zero with each recording, except `nilometer_recordings_total` and those of the preview and of dumps.
- Without a recording the page has only `nilometer_state`, `nilometer_recordings_total`, `nilometer_info`, \
`nilometer_state_since_seconds` and `nilometer_stopping`. With `--preview` it also has the metrics of the preview, and with `--dumps` those of dumps.
- For a series of frames over TCP, `packets` in a name is `frames`, as in `nilometer_lost_frames_total`.
- Only such a series has `nilometer_refused_connections_total`.
- If the recorder does not know a value, its line is missing.

";

const EVALUATION_HEAD: &str = "## Evaluation

`nilometer report RECORD --format prometheus` writes these metrics of a record, for the textfile collector of node_exporter.

- `title` is the title of the plan, `target` the path of the target.
- Values are those of the [report](../report.md). If the record has no such value, its line is missing.

";

const CHECK_HEAD: &str = "## Weekly check

The script of the [weekly check](../monitoring.md#a-weekly-check) writes these metrics. `check` is the name of the check.

";

/// A metric of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MetricEntry {
    name: String,
    kind: String,
    help: String,
    labels: Vec<String>,
    /// The values of the only label, if the source lists them.
    values: Vec<String>,
}

/// The walk through the functions, with the texts and lists that it knows.
#[derive(Default)]
struct MetricWalk {
    metrics: Vec<MetricEntry>,
    texts: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<Expr>>,
}

/// The metrics of a source in its order.
fn metrics(source: &str) -> Vec<MetricEntry> {
    let file = syn::parse_file(source).expect("rustc reads it");
    let mut walk = MetricWalk::default();
    for item in &file.items {
        if let Item::Fn(function) = item {
            walk.texts.clear();
            walk.lists.clear();
            walk.block(&function.block);
        }
    }
    walk.metrics
}

impl MetricWalk {
    fn block(&mut self, block: &Block) {
        for statement in &block.stmts {
            match statement {
                Stmt::Local(local) => self.local(local),
                Stmt::Expr(value, _) => self.expression(value),
                _ => {}
            }
        }
    }

    fn local(&mut self, local: &Local) {
        let pattern = match &local.pat {
            Pat::Type(typed) => &typed.pat,
            pattern => pattern,
        };
        let (Pat::Ident(name), Some(init)) = (pattern, &local.init) else { return };
        let name = name.ident.to_string();
        if let Expr::Array(list) = &*init.expr {
            self.lists.insert(name, list.elems.iter().cloned().collect());
        } else if let Some(text) = self.text(&init.expr) {
            self.texts.insert(name, text);
        }
    }

    fn expression(&mut self, value: &Expr) {
        match value {
            Expr::MethodCall(call) if is_page(&call.receiver) => self.call(call),
            Expr::ForLoop(each) => self.each(each),
            Expr::If(choice) => {
                self.block(&choice.then_branch);
                assert!(
                    choice.else_branch.is_none(),
                    "metrics in an `else`: teach the reference to read them"
                );
            }
            Expr::Block(inner) => self.block(&inner.block),
            _ => {}
        }
    }

    /// Walks through the body once for each tuple of a local list, with the texts of that tuple. For anything else it
    /// walks once.
    fn each(&mut self, each: &ExprForLoop) {
        let list = path(&each.expr).and_then(|name| self.lists.get(&name)).cloned();
        let (Some(list), Pat::Tuple(pattern)) = (list, &*each.pat) else { return self.block(&each.body) };
        for element in &list {
            let Expr::Tuple(tuple) = element else { continue };
            for (name, value) in pattern.elems.iter().zip(&tuple.elems) {
                if let (Pat::Ident(name), Some(text)) = (name, text_of(value)) {
                    self.texts.insert(name.ident.to_string(), text);
                }
            }
            self.block(&each.body);
        }
    }

    /// Adds the metric of a call such as `page.gauge("name", "help", value)`, or the labels of `page.value`.
    fn call(&mut self, call: &ExprMethodCall) {
        let arguments: Vec<&Expr> = call.args.iter().collect();
        // The end of the page has none.
        let Some(name) = arguments.first().map(|name| self.known(name)) else { return };
        match call.method.to_string().as_str() {
            "value" => self.add_labels(&name, arguments[1]),
            "head" | "one" => self.add(&name, &self.known(arguments[1]), &self.known(arguments[2])),
            "gauge" => self.add(&name, "gauge", &self.known(arguments[1])),
            "counter" => self.add(&format!("{name}_total"), "counter", &self.known(arguments[1])),
            "counters" => {
                self.add(&format!("{name}_total"), "counter", &self.known(arguments[1]));
                let label = self.known(arguments[2]);
                let values = path(arguments[3]).map(|list| self.first_texts(&list)).unwrap_or_default();
                let metric = self.metrics.last_mut().expect("it was just added");
                metric.labels.push(label);
                metric.values = values;
            }
            other => panic!("page.{other}: teach the reference this method of a page of metrics"),
        }
    }

    fn add(&mut self, name: &str, kind: &str, help: &str) {
        let entry = MetricEntry {
            name: format!("nilometer_{name}"),
            kind: kind.to_owned(),
            help: help.to_owned(),
            labels: Vec::new(),
            values: Vec::new(),
        };
        self.metrics.push(entry);
    }

    /// Adds the labels in `&[("label", ..), ..]`, or in a local list of that form, to the metric of this name.
    fn add_labels(&mut self, name: &str, labels: &Expr) {
        let Expr::Reference(reference) = labels else { return };
        let labels = match &*reference.expr {
            Expr::Array(list) => list.elems.iter().filter_map(first_text).collect(),
            list => path(list).map(|list| self.first_texts(&list)).unwrap_or_default(),
        };
        let full = format!("nilometer_{name}");
        let metric = self.metrics.iter_mut().rev().find(|metric| metric.name == full);
        metric.unwrap_or_else(|| panic!("{full} has a value and no head")).labels = labels;
    }

    /// The first text of each tuple in a local list.
    fn first_texts(&self, list: &str) -> Vec<String> {
        self.lists.get(list).into_iter().flatten().filter_map(first_text).collect()
    }

    fn known(&self, value: &Expr) -> String {
        self.text(value)
            .unwrap_or_else(|| panic!("the text of a metric is unknown: write a literal or a local list"))
    }

    /// The text of a literal, a known variable, or a `format!` of known variables.
    fn text(&self, value: &Expr) -> Option<String> {
        match value {
            Expr::Reference(reference) => self.text(&reference.expr),
            Expr::Path(_) => self.texts.get(&path(value)?).cloned(),
            Expr::Macro(call) if call.mac.path.is_ident("format") => {
                let form: syn::LitStr = call.mac.parse_body().ok()?;
                let filled = self
                    .texts
                    .iter()
                    .fold(form.value(), |text, (name, known)| text.replace(&format!("{{{name}}}"), known));
                (!filled.contains('{')).then_some(filled)
            }
            _ => text_of(value),
        }
    }
}

fn is_page(receiver: &Expr) -> bool {
    path(receiver).is_some_and(|name| name == "page")
}

/// The name of a variable.
fn path(value: &Expr) -> Option<String> {
    match value {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

fn first_text(tuple: &Expr) -> Option<String> {
    match tuple {
        Expr::Tuple(tuple) => tuple.elems.first().and_then(text_of),
        _ => None,
    }
}

impl MetricEntry {
    fn row(&self) -> [String; 4] {
        let labels = codes(self.labels.iter().map(String::as_str));
        let values = codes(self.values.iter().map(String::as_str));
        let labels = if values.is_empty() { labels } else { format!("{labels}: {values}") };
        [code(&self.name), self.kind.clone(), labels, self.help.clone()]
    }
}

/// The metrics in the lines `# HELP` and `# TYPE` of a script. Their labels are those of the first value.
fn metrics_of_script(script: &str) -> Vec<MetricEntry> {
    let mut entries = Vec::new();
    for line in script.lines() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let after = |start: &str| {
            let mut lines = script.lines().filter_map(|line| line.split_once(start));
            lines.next().unwrap_or_else(|| panic!("{name}: no line with {start}")).1
        };
        let kind = after(&format!("# TYPE {name} ")).to_owned();
        let labels = after(&format!("{name}{{")).split_once('}').map_or("", |(labels, _)| labels);
        let labels =
            labels.split(',').filter_map(|label| label.split('=').next()).map(str::to_owned).collect();
        let (name, help) = (name.to_owned(), help.to_owned());
        entries.push(MetricEntry { name, kind, help, labels, values: Vec::new() });
    }
    entries
}

fn rows(metrics: &[MetricEntry]) -> String {
    table(["name", "type", "labels", "meaning"], metrics.iter().map(MetricEntry::row))
}

pub(super) fn page() -> String {
    let [recorder, evaluation] = ["crates/service/src/metrics.rs", "crates/report/src/evaluation_metrics.rs"]
        .map(|source| metrics(&read(&root().join(source))));
    let check = metrics_of_script(&read(&root().join("contrib/weekly/nilometer-weekly")));
    for (found, least) in [(&recorder, 50), (&evaluation, 20), (&check, 3)] {
        assert!(found.len() >= least, "only {} metrics found", found.len());
    }
    format!("{HEAD}{}{EVALUATION_HEAD}{}{CHECK_HEAD}{}", rows(&recorder), rows(&evaluation), rows(&check))
}

#[test]
fn metrics_are_read_from_calls_and_from_loops_over_lists() {
    let source = "fn a(page: &mut Page) { page.gauge(\"a\", \"Help.\", 1.0);\n\
                  let list = [(\"b\", \"B.\", 1), (\"c\", \"C.\", 2)];\n\
                  for (name, help, value) in list { let name = format!(\"{name}_x\"); page.head(&name, \"gauge\", help);\n\
                  for one in all { page.value(&name, &[(\"label\", one)], value); } }\n\
                  let causes = [(\"k\", 1), (\"l\", 2)]; page.counters(\"d\", \"D.\", \"cause\", causes); }";
    let rows: Vec<_> = metrics(source).iter().map(|metric| metric.row().join(" ")).collect();
    let expected = [
        "`nilometer_a` gauge  Help.",
        "`nilometer_b_x` gauge `label` B.",
        "`nilometer_c_x` gauge `label` C.",
        "`nilometer_d_total` counter `cause`: `k`, `l` D.",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn metrics_of_a_script_are_read_from_their_heads() {
    let script = "cat <<E\n# HELP nilometer_a_b Seconds.\n# TYPE nilometer_a_b gauge\nnilometer_a_b{check=\"$c\",step=\"d\"} $v\nE\n";
    let rows: Vec<_> = metrics_of_script(script).iter().map(|metric| metric.row().join(" ")).collect();
    assert_eq!(rows, ["`nilometer_a_b` gauge `check`, `step` Seconds."]);
}
