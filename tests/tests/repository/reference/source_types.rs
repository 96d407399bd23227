//! Types of the sources with their documentation, the words of their enums, and the functions that give defaults.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use nilometer_tests::{files, is_for_tests, read, root};
use syn::{
    Attribute, Expr, ImplItem, Item, ItemConst, ItemEnum, ItemFn, ItemImpl, ItemStruct, Lit, Meta, Pat, Stmt,
    Type,
};

/// A struct of a source.
#[derive(Clone)]
pub(super) struct SourceStruct {
    pub(super) item: ItemStruct,
    /// The place of its functions.
    pub(super) file: PathBuf,
}

/// A variant of an enum, for a TOML file.
#[derive(Clone)]
pub(super) struct EnumWord {
    pub(super) word: String,
    pub(super) meaning: String,
    pub(super) is_default: bool,
    /// The type of its value; `None` if it is only a word.
    pub(super) payload: Option<Type>,
}

/// The types, functions and lists of some sources.
#[derive(Default)]
pub(super) struct SourceTypes {
    structs: BTreeMap<String, SourceStruct>,
    enums: BTreeMap<String, ItemEnum>,
    /// The last expression of each function, by its file and name.
    functions: BTreeMap<(PathBuf, String), Expr>,
    /// The word of a variant of an enum that reads itself from a text, by enum and variant.
    own_words: BTreeMap<(String, String), String>,
    /// Names in constant lists of pairs, by the list's name.
    lists: BTreeMap<String, Vec<String>>,
}

/// Texts for variants with a value, of enums that read themselves from a text.
const OWN_FORMS: [(&str, &str); 2] = [("Files", "files:PATH"), ("Filter", "filter:NUMBER,VALUES")];

impl SourceTypes {
    /// Reads files, and all files of directories, below the repository's root.
    pub(super) fn of(places: &[&str]) -> Self {
        let mut types = SourceTypes::default();
        for place in places {
            let path = root().join(place);
            let paths = if path.is_dir() { files(&path, "rs") } else { vec![path] };
            for path in paths {
                types.add(&path, &read(&path));
            }
        }
        types
    }

    pub(super) fn add(&mut self, path: &Path, text: &str) {
        let file = syn::parse_file(text).expect("rustc reads it");
        for item in file.items {
            match item {
                Item::Struct(item) => self.add_struct(path, item),
                Item::Enum(item) => drop(self.enums.insert(item.ident.to_string(), item)),
                Item::Fn(item) if !is_for_tests(&item.attrs) => self.add_function(path, &item),
                Item::Impl(item) if item.trait_.is_none() => self.add_names(&item),
                Item::Const(item) => self.add_list(&item),
                _ => {}
            }
        }
    }

    /// A public struct stays if a private one has the same name.
    fn add_struct(&mut self, path: &Path, item: ItemStruct) {
        let name = item.ident.to_string();
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        if is_public || !self.structs.contains_key(&name) {
            self.structs.insert(name, SourceStruct { item, file: path.to_owned() });
        }
    }

    fn add_function(&mut self, path: &Path, function: &ItemFn) {
        if let Some(Stmt::Expr(value, None)) = function.block.stmts.last() {
            self.functions.insert((path.to_owned(), function.sig.ident.to_string()), value.clone());
        }
    }

    /// Adds the words in `fn name(self)`, whose body is a match.
    fn add_names(&mut self, block: &ItemImpl) {
        let Some(of) = type_name(&block.self_ty) else { return };
        for item in &block.items {
            let ImplItem::Fn(function) = item else { continue };
            if function.sig.ident != "name" {
                continue;
            }
            let Some(Stmt::Expr(Expr::Match(choice), None)) = function.block.stmts.last() else { continue };
            for arm in &choice.arms {
                if let (Some(variant), Some(word)) = (variant_of(&arm.pat), text_of(&arm.body)) {
                    self.own_words.insert((of.clone(), variant), word);
                }
            }
        }
    }

    /// Adds a constant list of pairs that begin with a text, such as `("diffraction", DataKind::Diffraction)`.
    fn add_list(&mut self, constant: &ItemConst) {
        let Expr::Array(list) = &*constant.expr else { return };
        let mut names = Vec::new();
        for element in &list.elems {
            let Expr::Tuple(pair) = element else { return };
            let Some(name) = pair.elems.first().and_then(text_of) else { return };
            if let Some(Expr::Path(path)) = pair.elems.get(1) {
                let parts: Vec<_> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
                if let [of, variant] = &parts[..] {
                    self.own_words.insert((of.clone(), variant.clone()), name.clone());
                }
            }
            names.push(name);
        }
        self.lists.insert(constant.ident.to_string(), names);
    }

    pub(super) fn structure(&self, name: &str) -> Option<&SourceStruct> {
        self.structs.get(name)
    }

    /// The first texts of the pairs in a constant list.
    pub(super) fn list(&self, name: &str) -> &[String] {
        self.lists.get(name).unwrap_or_else(|| panic!("no constant list {name} of pairs in the sources"))
    }

    /// The last expression of a function in a file.
    pub(super) fn function(&self, file: &Path, name: &str) -> Option<&Expr> {
        self.functions.get(&(file.to_owned(), name.to_owned()))
    }

    /// The words of an enum that a file may have. `None` if there is no such enum.
    pub(super) fn words(&self, name: &str) -> Option<Vec<EnumWord>> {
        let item = self.enums.get(name)?;
        let in_snake_case = serde_value(&item.attrs, "rename_all").is_some_and(|case| case == "snake_case");
        let kept = item.variants.iter().filter(|variant| !has_serde(&variant.attrs, "skip"));
        let word = |variant: &syn::Variant| {
            let plain = variant.ident.to_string();
            let own = self.own_words.get(&(name.to_owned(), plain.clone())).cloned();
            let form =
                || OWN_FORMS.iter().find(|(known, _)| *known == plain).map(|(_, form)| (*form).to_owned());
            let renamed = serde_value(&variant.attrs, "rename");
            let derived = in_snake_case.then(|| snake_case(&plain));
            let found = renamed.or(derived).or(own).or_else(form);
            let word = found.unwrap_or_else(|| panic!("{name}::{plain} has no word for a file"));
            let is_default = variant.attrs.iter().any(|attribute| attribute.path().is_ident("default"));
            let payload =
                variant.fields.iter().next().map(|field| field.ty.clone()).filter(|_| in_snake_case);
            EnumWord { word, meaning: doc(&variant.attrs), is_default, payload }
        };
        Some(kept.map(word).collect())
    }
}

/// The variant that a pattern names.
fn variant_of(pattern: &Pat) -> Option<String> {
    let path = match pattern {
        Pat::Path(path) => &path.path,
        Pat::TupleStruct(pattern) => &pattern.path,
        _ => return None,
    };
    path.segments.last().map(|last| last.ident.to_string())
}

/// The name of a type without its path; `None` for references and the like.
pub(super) fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// The text of a literal.
pub(super) fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Reference(reference) => text_of(&reference.expr),
        _ => None,
    }
}

/// The name of a variant in TOML, as serde derives it.
pub(super) fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The documentation of an item; an empty line separates its paragraphs.
pub(super) fn doc(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => text_of(&pair.value),
        _ => None,
    };
    let lines: Vec<_> = attributes.iter().filter_map(line).map(|line| line.trim().to_owned()).collect();
    without_links(&lines.join("\n"))
}

/// A text in which a link to an item is its code.
fn without_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

/// True if an attribute of serde has this key.
pub(super) fn has_serde(attributes: &[Attribute], key: &str) -> bool {
    let mut found = false;
    each_serde(attributes, |name, _| found |= name == key);
    found
}

/// The text that an attribute of serde gives to this key.
pub(super) fn serde_value(attributes: &[Attribute], key: &str) -> Option<String> {
    let mut found = None;
    each_serde(attributes, |name, value| {
        if name == key {
            found = value;
        }
    });
    found
}

fn each_serde(attributes: &[Attribute], mut see: impl FnMut(&str, Option<String>)) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            let value = match meta.value() {
                Ok(value) => text_of(&value.parse::<Expr>()?),
                Err(_) => None,
            };
            see(&name, value);
            Ok(())
        });
        parsed.expect("an attribute of serde is a list of keys");
    }
}

#[test]
fn words_come_from_serde_or_from_the_name_of_a_variant() {
    let mut types = SourceTypes::default();
    let text = "#[serde(rename_all = \"snake_case\")] enum A {\n/// One.\n #[default] OneWord, #[serde(skip)] Gone, \
                #[serde(rename = \"x\")] Renamed(B) }\nenum C { Own, Files(String) }\n\
                impl C { fn name(self) -> &'static str { match self { C::Own => \"own-word\", C::Files(f) => f.text() } } }";
    types.add(Path::new("a.rs"), text);
    let words =
        |name: &str| types.words(name).expect("an enum").into_iter().map(|one| one.word).collect::<Vec<_>>();
    assert_eq!(
        (words("A"), words("C")),
        (vec!["one_word".into(), "x".into()], vec!["own-word".into(), "files:PATH".into()])
    );
    let first = &types.words("A").expect("an enum")[0];
    assert_eq!((&*first.meaning, first.is_default, first.payload.is_none()), ("One.", true, true));
    assert!(types.words("A").expect("an enum")[1].payload.is_some());
}
