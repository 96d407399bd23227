//! The keys of a TOML file, from the struct that serde reads it into and the structs that its fields name.

use std::collections::BTreeMap;

use syn::{Field, Type};

use super::{
    key_values::{NEEDED, default_of, inner_of, leaf_list, leaf_text},
    markdown::{code, codes, sentence, table},
    source_types::{EnumWord, SourceTypes, doc, has_serde, serde_value, type_name},
};

/// A page of keys.
pub(super) struct KeyPage {
    pub(super) title: &'static str,
    pub(super) intro: &'static str,
    /// Files and directories with the types.
    pub(super) sources: &'static [&'static str],
    /// The struct of the whole file.
    pub(super) root: &'static str,
}

/// A table of the file.
struct KeyTable {
    structure: String,
    /// Headings such as `[packets.serial.at]`, one for each place of the table.
    places: Vec<String>,
    meaning: String,
    rows: Vec<[String; 4]>,
}

/// The words that a key may have.
struct KeyWords {
    keys: Vec<String>,
    words: Vec<EnumWord>,
}

/// The walk over the struct of a file.
struct KeyWalk {
    types: SourceTypes,
    tables: Vec<KeyTable>,
    words: BTreeMap<String, KeyWords>,
}

/// The words for an array: the keys have none but those of two whole numbers.
const PAIR: &str = "two whole numbers";

/// Structs that a file may also write as a word.
const ALSO_WORDS: [(&str, &str); 1] = [("Data", "a table, or a word of its `kind`")];
/// The lists of units, with the quantity of each.
const UNITS: [(&str, &str); 5] = [
    ("size", "SIZES"),
    ("rate", "RATES"),
    ("time", "TIMES"),
    ("frequency", "FREQUENCIES"),
    ("length", "LENGTHS"),
];

pub(super) fn key_page(page: &KeyPage) -> String {
    let types = SourceTypes::of(page.sources);
    let mut walk = KeyWalk { types, tables: Vec::new(), words: BTreeMap::new() };
    walk.add_struct(page.root, "", false);
    let tables: String = walk.tables.iter().map(KeyTable::section).collect();
    let words: String = walk.words.values().map(KeyWords::section).collect();
    let words = if words.is_empty() { words } else { format!("## Words\n\n{words}") };
    format!("# {}\n\n{}\n\n{tables}{words}{}", page.title, page.intro, walk.units())
}

impl KeyWalk {
    /// Adds the table of a struct at `path`, and the tables of its fields. A struct that has a table gets one more
    /// place.
    fn add_struct(&mut self, name: &str, path: &str, is_list: bool) {
        let place = heading(path, is_list);
        if let Some(table) = self.tables.iter_mut().find(|table| table.structure == name) {
            table.places.push(place);
            return;
        }
        let of =
            self.types.structure(name).unwrap_or_else(|| panic!("no struct {name} in the sources")).clone();
        let meaning = first_paragraph(&doc(&of.item.attrs));
        let at = self.tables.len();
        let table = KeyTable { structure: name.to_owned(), places: vec![place], meaning, rows: Vec::new() };
        self.tables.push(table);
        for field in of.item.fields.iter().filter(|field| !has_serde(&field.attrs, "skip")) {
            let key = key_of(field);
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let reader = serde_value(&field.attrs, "deserialize_with").unwrap_or_default();
            let value = self.value(&field.ty, &below, &reader);
            let FieldText { meaning, default } = FieldText::of(field);
            let meaning = if meaning.is_empty() { self.meaning_of(&field.ty) } else { meaning };
            let default = default.unwrap_or_else(|| shown_default(&default_of(&self.types, &of, field)));
            self.tables[at].rows.push([code(&key), value, default, meaning]);
        }
    }

    /// The first paragraph about the struct of a field that has no documentation of its own.
    fn meaning_of(&self, field: &Type) -> String {
        let name = type_name(field).unwrap_or_default();
        self.types.structure(&name).map(|of| first_paragraph(&doc(&of.item.attrs))).unwrap_or_default()
    }

    /// The words for the value of a type. It adds the tables and words that the type names.
    fn value(&mut self, of: &Type, path: &str, reader: &str) -> String {
        if let Some(inner) = inner_of(of, "Option") {
            return self.value(inner, path, reader);
        }
        if let Some(inner) = inner_of(of, "Vec") {
            return self.list(inner, path, reader);
        }
        if matches!(of, Type::Array(_)) {
            return PAIR.to_owned();
        }
        let name = type_name(of).unwrap_or_else(|| panic!("{path}: a type without a name"));
        if let Some(text) = leaf_text(&name) {
            return text.to_owned();
        }
        if let Some(words) = self.types.words(&name) {
            return self.choice(&name, words, path);
        }
        self.add_struct(&name, path, false);
        let also = ALSO_WORDS.iter().find(|(known, _)| *known == name);
        also.map_or("a table", |(_, text)| text).to_owned()
    }

    fn list(&mut self, element: &Type, path: &str, reader: &str) -> String {
        if matches!(element, Type::Array(_)) {
            return format!("a list of lists, each of {PAIR}");
        }
        let name = type_name(element).unwrap_or_default();
        let Some(list) = leaf_list(&name) else {
            self.add_struct(&name, path, true);
            return "a list of tables".to_owned();
        };
        let one = leaf_text(&name).filter(|_| reader.starts_with("one_or_many"));
        one.map_or(list.clone(), |one| format!("{one}; or {list}"))
    }

    /// The words of an enum. A variant with a value is a table of its name.
    fn choice(&mut self, name: &str, words: Vec<EnumWord>, path: &str) -> String {
        let quoted: Vec<_> =
            words.iter().filter(|one| one.payload.is_none()).map(|one| format!("\"{}\"", one.word)).collect();
        let tables: Vec<_> = words.iter().filter(|one| one.payload.is_some()).map(|one| &*one.word).collect();
        let tables = match &tables[..] {
            [] => None,
            [only] => Some(format!("a table `{only}`")),
            several => Some(format!("one of the tables {}", codes(several.iter().copied()))),
        };
        for one in &words {
            if let Some(payload) = one.payload.as_ref().and_then(type_name) {
                self.add_struct(&payload, &format!("{path}.{}", one.word), false);
            }
        }
        let known = self.words.entry(name.to_owned());
        known.or_insert(KeyWords { keys: Vec::new(), words }).keys.push(path.to_owned());
        let quoted = Some(quoted.join(", ")).filter(|text| !text.is_empty());
        quoted.into_iter().chain(tables).collect::<Vec<_>>().join(", or ")
    }

    /// The units of all quantities that the tables have.
    fn units(&self) -> String {
        let values: Vec<_> = self.tables.iter().flat_map(|table| &table.rows).map(|row| &row[1]).collect();
        let has =
            |quantity: &str| values.iter().any(|value| value.contains(&format!("a {quantity}, such as")));
        let rows = UNITS.iter().filter(|(quantity, _)| has(quantity)).map(|(quantity, list)| {
            let units = self.types.list(list).iter().map(String::as_str);
            [(*quantity).to_owned(), codes(units)]
        });
        let head =
            "A quantity is a text of a number and its unit. `kB` is 1000 B. `KiB`, `K` and `k` are 1024 B.";
        format!("## Units\n\n{head}\n\n{}", table(["quantity", "units"], rows))
    }
}

impl KeyTable {
    fn section(&self) -> String {
        let KeyTable { places, meaning, rows, .. } = self;
        let also = match &places[1..] {
            [] => String::new(),
            more => format!(" Also {}.", codes(more.iter().map(String::as_str))),
        };
        let title = if places[0].is_empty() { "Head".to_owned() } else { code(&places[0]) };
        let rows = table(["key", "value", "default", "meaning"], rows.iter().cloned());
        format!("## {title}\n\n{meaning}{also}\n\n{rows}")
    }
}

impl KeyWords {
    fn section(&self) -> String {
        let rows = self.words.iter().map(|one| [code(&one.word), sentence(&plain(&one.meaning))]);
        let keys = codes(self.keys.iter().map(String::as_str));
        format!("### {keys}\n\n{}", table(["word", "meaning"], rows))
    }
}

/// The documentation of a field. Options of commands have their default in it: `[default: 1 GiB]`.
struct FieldText {
    meaning: String,
    default: Option<String>,
}

impl FieldText {
    fn of(field: &Field) -> Self {
        let text = doc(&field.attrs).replace("\n\n", " ").replace('\n', " ");
        let Some((before, rest)) = text.split_once(" [default: ") else {
            return FieldText { meaning: sentence(&plain(&text)), default: None };
        };
        let (default, behind) = rest.split_once(']').expect("a closing bracket behind the default");
        let meaning = sentence(&plain(&format!("{before}{behind}")));
        FieldText { meaning, default: Some(default.to_owned()) }
    }
}

/// The first paragraph of a documentation, as a sentence.
fn first_paragraph(doc: &str) -> String {
    sentence(&plain(doc.split("\n\n").next().unwrap_or_default()))
}

/// A default as code, except the word for a key that must be there.
fn shown_default(default: &str) -> String {
    if default == NEEDED { default.to_owned() } else { code(default) }
}

/// The name of a field in the file.
fn key_of(field: &Field) -> String {
    let plain = || field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    serde_value(&field.attrs, "rename").unwrap_or_else(plain)
}

/// A text for people who write files: they have no `None`.
fn plain(text: &str) -> String {
    let text = text.replace('\n', " ");
    let text = if text.starts_with("`None`") { text.replacen("`None`", "No value", 1) } else { text };
    text.replace(". `None`", ". No value").replace("`None`", "no value")
}

fn heading(path: &str, is_list: bool) -> String {
    match (path.is_empty(), is_list) {
        (true, _) => String::new(),
        (false, true) => format!("[[{path}]]"),
        (false, false) => format!("[{path}]"),
    }
}

#[test]
fn a_default_moves_from_the_text_of_an_option_to_its_column() {
    let field: syn::ItemStruct = syn::parse_str(
        "struct A {\n/// The size of it [default: 1 GiB]. It\n/// grows\n a: u64,\n/// `None` means none.\n #[serde(rename = \"c\")] b: u8 }",
    )
    .expect("Rust");
    let fields: Vec<_> = field.fields.iter().collect();
    let FieldText { meaning, default } = FieldText::of(fields[0]);
    assert_eq!((&*meaning, default.as_deref()), ("The size of it. It grows.", Some("1 GiB")));
    assert_eq!((&*FieldText::of(fields[1]).meaning, &*key_of(fields[1])), ("No value means none.", "c"));
}
