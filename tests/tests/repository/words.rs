//! One word for one thing: no two public types of the workspace share a name, so that a search for one finds it alone.

use std::{collections::BTreeMap, path::PathBuf};

use nilometer_tests::{files, is_for_tests, read, root};
use syn::{Ident, Item, Visibility};

/// Public types of a source, its tests apart.
fn public_types(text: &str) -> Vec<String> {
    let file = syn::parse_file(text).expect("rustc reads it");
    let mut names = Vec::new();
    collect(&file.items, &mut names);
    names
}

fn collect(items: &[Item], names: &mut Vec<String>) {
    for item in items {
        let declared = match item {
            Item::Struct(item) => Some((&item.vis, &item.ident)),
            Item::Enum(item) => Some((&item.vis, &item.ident)),
            Item::Trait(item) => Some((&item.vis, &item.ident)),
            Item::Type(item) => Some((&item.vis, &item.ident)),
            Item::Union(item) => Some((&item.vis, &item.ident)),
            Item::Mod(module) if !is_for_tests(&module.attrs) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                collect(inner, names);
                None
            }
            _ => None,
        };
        names.extend(declared.and_then(public));
    }
}

fn public((visibility, name): (&Visibility, &Ident)) -> Option<String> {
    matches!(visibility, Visibility::Public(_)).then(|| name.to_string())
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

#[test]
fn no_two_public_types_share_a_name() {
    let crates = root().join("crates");
    let below = |path: &PathBuf| path.strip_prefix(&crates).expect("it is below").display().to_string();
    let all: Vec<String> = files(&crates, "rs").iter().map(below).collect();
    let ours: Vec<_> = all.iter().filter(|path| path.contains("/src/") && !path.contains("/tests")).collect();
    assert!(ours.len() > 400, "only {} sources found", ours.len());
    let shared = shared(ours.into_iter().map(|path| (path.as_str(), read(&crates.join(path)))));
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
