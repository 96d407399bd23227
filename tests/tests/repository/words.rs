//! One word for one thing: no two public types of the workspace share a name, so that a search for one finds it alone. Types are
//! nouns. Private types that offend against either are counted, and may only become fewer.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use nilometer_tests::{files, is_for_tests, read, root};
use syn::{Item, Visibility};

/// A type of a source.
struct Declared {
    name: String,
    is_public: bool,
}

/// The types of a source, its tests apart.
fn types(text: &str) -> Vec<Declared> {
    let file = syn::parse_file(text).expect("rustc reads it");
    let mut declared = Vec::new();
    collect(&file.items, &mut declared);
    declared
}

/// Public types of a source, its tests apart.
fn public_types(text: &str) -> Vec<String> {
    types(text).into_iter().filter(|one| one.is_public).map(|one| one.name).collect()
}

fn collect(items: &[Item], all: &mut Vec<Declared>) {
    for item in items {
        let declared = match item {
            Item::Struct(item) => Some((&item.vis, &item.ident)),
            Item::Enum(item) => Some((&item.vis, &item.ident)),
            Item::Trait(item) => Some((&item.vis, &item.ident)),
            Item::Type(item) => Some((&item.vis, &item.ident)),
            Item::Union(item) => Some((&item.vis, &item.ident)),
            Item::Mod(module) if !is_for_tests(&module.attrs) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                collect(inner, all);
                None
            }
            _ => None,
        };
        all.extend(declared.map(|(visibility, name)| Declared {
            name: name.to_string(),
            is_public: matches!(visibility, Visibility::Public(_)),
        }));
    }
}

/// Names that more than one of these sources has, with the sources.
fn shared<'a>(sources: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (place, text) in sources {
        for name in public_types(&text) {
            places.entry(name).or_default().push(place);
        }
    }
    let shared = places.into_iter().filter(|(_, places)| places.len() > 1);
    shared.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// Participles that do not end in *ed*, and prepositions, which are names of types.
const NO_NOUNS: [&str; 27] = [
    "Begun", "Beside", "Built", "Done", "Drawn", "Fed", "Found", "Given", "Gone", "Held", "Kept", "Known",
    "Left", "Lost", "Made", "Met", "Put", "Read", "Said", "Seen", "Sent", "Shown", "Spent", "Taken", "Told",
    "Under", "Written",
];
/// Nouns that end in *ed*.
const NOUNS: [&str; 5] = ["Feed", "Need", "Seed", "Shed", "Speed"];
/// A subcommand has this type, whichever it is.
const COMMAND: &str = "Command";
/// Names of types that are no nouns.
const NO_NOUNS_MOST: usize = 93;
/// Names that several sources have, counting private types.
const SHARED_MOST: usize = 178;

/// Whether the name of a type is a bare participle or preposition.
fn is_no_noun(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(char::is_lowercase);
    let is_participle = is_one_word && name.ends_with("ed") && !NOUNS.contains(&name);
    is_participle || NO_NOUNS.contains(&name)
}

/// The sources of all crates, their tests apart, by their path below `crates`.
fn product() -> BTreeMap<String, String> {
    let crates = root().join("crates");
    let below = |path: &PathBuf| path.strip_prefix(&crates).expect("it is below").display().to_string();
    let all = files(&crates, "rs");
    let named = all.iter().map(|path| (below(path), path));
    let ours = named.filter(|(name, _)| name.contains("/src/") && !name.contains("/tests"));
    let sources: BTreeMap<_, _> = ours.map(|(name, path)| (name, read(path))).collect();
    assert!(sources.len() > 400, "only {} sources found", sources.len());
    sources
}

#[test]
fn private_names_that_are_shared_or_no_nouns_only_become_fewer() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, text) in product() {
        for one in types(&text).into_iter().filter(|one| one.name != COMMAND) {
            places.entry(one.name).or_default().insert(place.clone());
        }
    }
    let shared = places.values().filter(|places| places.len() > 1).count();
    let no_nouns: Vec<_> = places.keys().filter(|name| is_no_noun(name)).collect();
    let most = [SHARED_MOST, NO_NOUNS_MOST];
    assert_eq!(
        [shared, no_nouns.len()],
        most,
        "give new types nouns of their own; lower the bound if they are fewer: {no_nouns:?}"
    );
}

#[test]
fn participles_are_told_from_nouns() {
    assert!(["Made", "Cleaned", "Beside"].into_iter().all(is_no_noun));
    assert!(!["Seed", "LeftFigure", "FinishedScan", "Recorder"].into_iter().any(is_no_noun));
}

#[test]
fn no_two_public_types_share_a_name() {
    let ours = product();
    let shared = shared(ours.iter().map(|(path, text)| (path.as_str(), text.clone())));
    assert!(shared.is_empty(), "give one of each a name of its own:\n{}", shared.join("\n"));
}

#[test]
fn a_name_that_is_shared_is_found() {
    let one = "pub struct A; struct B; pub(crate) enum C {} pub mod inner { pub trait D {} }";
    let other = "pub enum A {} pub struct B; pub type C = u8; #[cfg(test)] mod tests { pub struct D; }";
    let both =
        |other: &'static str| shared([("one", one.to_owned()), ("other", other.to_owned())].into_iter());
    assert_eq!(both(other), ["A: one, other"]);
    assert_eq!(both("pub union D { a: u8 }"), ["D: one, other"]);
}
