//! The page of JSON documents, from the structs that serde writes into them.

use syn::{Attribute, Field, Type};

use super::{
    key_values::inner_of,
    markdown::{code, codes, sentence, table},
    source_types::{SourceTypes, doc, has_serde, serde_value, type_name},
};

/// A JSON document that a command prints.
struct JsonDocument {
    title: &'static str,
    command: &'static str,
    /// Files with the structs, the file of the whole document first: it wins if two files have the same name.
    sources: &'static [&'static str],
}

/// The struct of a whole document.
const ROOT: &str = "Document";

const DOCUMENTS: [JsonDocument; 3] = [
    JsonDocument {
        title: "A report",
        command: "nilometer report RECORD --format json",
        sources: &[
            "crates/report/src/json.rs",
            "crates/report/src/json/stages.rs",
            "crates/report/src/json/incomplete.rs",
            "crates/report/src/json/told.rs",
            "crates/report/src/json/packets.rs",
            "crates/report/src/json/recordings.rs",
            "crates/report/src/json/papers.rs",
            "crates/report/src/json/processes.rs",
            "crates/report/src/json/verdicts.rs",
            "crates/report/src/json/growth.rs",
            "crates/report/src/limiting.rs",
            "crates/report/src/interference.rs",
            "crates/report/src/migration.rs",
            "crates/report/src/optimum.rs",
            "crates/report/src/verdicts.rs",
            "crates/report/src/siblings.rs",
            "crates/report/src/acceptance/mod.rs",
        ],
    },
    JsonDocument {
        title: "A comparison",
        command: "nilometer compare RECORD RECORD --format json",
        sources: &[
            "crates/report/src/json/compared.rs",
            "crates/report/src/json/compared_cells.rs",
            "crates/report/src/json/compared_network.rs",
            "crates/report/src/json.rs",
        ],
    },
    JsonDocument {
        title: "A sizing",
        command: "nilometer size INSTRUMENT --format json",
        sources: &["crates/report/src/sizing/json.rs"],
    },
];

const HEAD: &str = "# JSON documents

A program reads these documents. `format` names the document, and `format_version` grows if a key changes or goes; a new \
key does not raise it. A key ends with the unit of its number, such as `_bytes`, `_s`, `_per_second` or `_percent`. Intervals are \
at 95 %.

`describe`, `doctor`, `network`, `scan` and `verify` print JSON with `--json`, and `evaluate --progress json` prints an \
object a line. The service has [a description of its own](openapi.json).

";

/// An object in a document.
struct JsonObject {
    structure: String,
    /// Places such as `figures[].latency`; empty for the whole document.
    places: Vec<String>,
    meaning: String,
    rows: Vec<[String; 3]>,
}

/// The walk over the structs of a document.
struct JsonWalk {
    types: SourceTypes,
    objects: Vec<JsonObject>,
}

pub(super) fn page() -> String {
    let sections = DOCUMENTS.iter().map(|document| {
        let mut walk = JsonWalk { types: SourceTypes::of(document.sources), objects: Vec::new() };
        walk.add(ROOT, "");
        let objects: String = walk.objects.iter().map(JsonObject::section).collect();
        format!("## {}\n\n```sh\n{}\n```\n\n{objects}", document.title, document.command)
    });
    format!("{HEAD}{}", sections.collect::<String>())
}

impl JsonWalk {
    /// Adds the object of a struct at `place`, and the objects in it. A struct that has an object gets one more
    /// place.
    fn add(&mut self, name: &str, place: &str) {
        if let Some(object) = self.objects.iter_mut().find(|object| object.structure == name) {
            object.places.push(place.to_owned());
            return;
        }
        let of = self.types.structure(name).unwrap_or_else(|| panic!("{place}: no struct {name}")).clone();
        let meaning = meaning(&of.item.attrs);
        let at = self.objects.len();
        let places = vec![place.to_owned()];
        self.objects.push(JsonObject { structure: name.to_owned(), places, meaning, rows: Vec::new() });
        let rows = self.rows(of.item.fields.iter(), place);
        self.objects[at].rows = rows;
    }

    fn rows<'a>(&mut self, fields: impl Iterator<Item = &'a Field>, place: &str) -> Vec<[String; 3]> {
        let mut rows = Vec::new();
        for field in fields {
            if has_serde(&field.attrs, "flatten") {
                rows.extend(self.flattened(field, place));
                continue;
            }
            let key = key_of(field);
            let below = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            let value = self.value(&field.ty, &below);
            let may_lack = has_serde(&field.attrs, "skip_serializing_if");
            let value = if may_lack { value.replace(OR_NULL, ", or no key") } else { value };
            rows.push([code(&key), value, meaning(&field.attrs)]);
        }
        rows
    }

    /// The rows of a field whose keys stand beside those of the struct around it.
    fn flattened(&mut self, field: &Field, place: &str) -> Vec<[String; 3]> {
        let name = type_name(inner_of(&field.ty, "Option").unwrap_or(&field.ty)).expect("a struct or a map");
        if name == MAP {
            return vec![["further keys".to_owned(), "any value".to_owned(), meaning(&field.attrs)]];
        }
        let of = self.types.structure(&name).unwrap_or_else(|| panic!("{place}: no struct {name}")).clone();
        self.rows(of.item.fields.iter(), place)
    }

    /// The words for the value of a type. It adds the objects that the type names.
    fn value(&mut self, of: &Type, place: &str) -> String {
        if let Some(inner) = inner_of(of, "Option") {
            return self.value(inner, place) + OR_NULL;
        }
        match of {
            Type::Reference(reference) => self.value(&reference.elem, place),
            Type::Slice(slice) => self.list(&slice.elem, place),
            Type::Array(array) => self.list(&array.elem, place),
            _ => match inner_of(of, "Vec") {
                Some(element) => self.list(element, place),
                None => self.single(&type_name(of).unwrap_or_default(), place),
            },
        }
    }

    fn list(&mut self, element: &Type, place: &str) -> String {
        format!("a list of {}", several(&self.value(element, &format!("{place}[]"))))
    }

    fn single(&mut self, name: &str, place: &str) -> String {
        let words = match name {
            "String" | "str" => "a text",
            "bool" => "true or false",
            "f64" => "a number",
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
            MAP => "an object with a value for each name",
            "Json" => "any value",
            _ => {
                self.add(name, place);
                "an object"
            }
        };
        words.to_owned()
    }
}

/// The type of a map from names to values.
const MAP: &str = "BTreeMap";
/// The end of the words for a value that may be null.
const OR_NULL: &str = ", or null";

impl JsonObject {
    fn section(&self) -> String {
        let JsonObject { places, meaning, rows, .. } = self;
        let title = if places[0].is_empty() { "The document".to_owned() } else { code(&places[0]) };
        let also = match &places[1..] {
            [] => String::new(),
            more => format!("Also {}.", codes(more.iter().map(String::as_str))),
        };
        let text = [meaning.as_str(), &also].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        let text = if text.is_empty() { String::new() } else { format!("{}\n\n", text.join(" ")) };
        format!("### {title}\n\n{text}{}", table(["key", "value", "meaning"], rows.iter().cloned()))
    }
}

/// The documentation of an item on one line.
fn meaning(attributes: &[Attribute]) -> String {
    sentence(&doc(attributes).replace('\n', " "))
}

/// The words for several values, from those for one: `whole numbers or nulls`.
fn several(one: &str) -> String {
    let (noun, rest) = one.split_once(',').map_or((one, ""), |(noun, _)| (noun, " or nulls"));
    let noun = noun.trim_start_matches("a ").trim_start_matches("an ").trim_start_matches("any ");
    format!("{noun}s{rest}")
}

/// The key of a field.
fn key_of(field: &Field) -> String {
    let plain = || field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    serde_value(&field.attrs, "rename").unwrap_or_else(plain)
}

#[test]
fn an_object_has_its_keys_with_values_and_those_of_flattened_structs() {
    let mut types = SourceTypes::default();
    let text = "/// All.\nstruct Document<'a> { /// The name.\n name: &'a str, list: Vec<Option<f64>>, #[serde(flatten)] more: More, \
                #[serde(skip_serializing_if = \"Option::is_none\")] part: Option<Part> }\n\
                struct More { count: u32 }\n struct Part { #[serde(rename = \"x_s\")] x: f64 }";
    types.add(std::path::Path::new("a.rs"), text);
    let mut walk = JsonWalk { types, objects: Vec::new() };
    walk.add(ROOT, "");
    let page: String = walk.objects.iter().map(JsonObject::section).collect();
    for line in [
        "### The document\n\nAll.",
        "| `name` | a text | The name. |",
        "| `list` | a list of numbers or nulls |  |",
        "| `count` | a whole number |  |",
        "| `part` | an object, or no key |  |",
        "### `part`",
        "| `x_s` | a number |  |",
    ] {
        assert!(page.contains(line), "{line} is missing in {page}");
    }
}
