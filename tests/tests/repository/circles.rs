//! Files of a crate that import each other, directly or through others, are one file in pieces: none is understood
//! without the others.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use nilometer_tests::{assert_none, crates, files, is_for_tests, read, root};
use syn::{Item, ItemUse, UseTree};

/// The path of a module: `sink/raw` for `sink/raw.rs` and `sink/raw/mod.rs`, empty for the crate.
fn module(path: &Path) -> Vec<String> {
    let bare = path.with_extension("");
    let mut parts: Vec<String> =
        bare.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The paths that a module imports, from the crate on.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let file = syn::parse_file(text).expect("rustc reads it");
    let mut paths = Vec::new();
    for item in &file.items {
        if let Item::Use(ItemUse { tree, attrs, .. }) = item
            && !is_for_tests(attrs)
        {
            collect(tree, Vec::new(), &mut paths);
        }
    }
    paths.into_iter().filter_map(|path| from_crate(&path, module)).collect()
}

fn collect(tree: &UseTree, mut path: Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            collect(&inner.tree, path, paths);
        }
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            paths.push(path);
        }
        UseTree::Rename(name) => {
            path.push(name.ident.to_string());
            paths.push(path);
        }
        UseTree::Glob(_) => paths.push(path),
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, path.clone(), paths)),
    }
}

/// The same path from the crate on. `None` if it begins with another crate.
fn from_crate(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => return Some([module, &path[1..]].concat()),
        _ if ups == 0 => return None,
        _ => &module[..module.len().checked_sub(ups)?],
    };
    Some([base, &path[ups..]].concat())
}

/// The longest beginning of a path that is a file.
fn file_of<'a>(sources: &BTreeMap<Vec<String>, String>, path: &'a [String]) -> Option<&'a [String]> {
    (0..=path.len()).rev().map(|end| &path[..end]).find(|part| sources.contains_key(*part))
}

type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The files that each file imports. An import between a file and one below it does not count.
fn graph(sources: &BTreeMap<Vec<String>, String>) -> Imports {
    let mut graph = Imports::new();
    for (module, text) in sources {
        let paths = imports(text, module);
        let files = paths.iter().filter_map(|path| file_of(sources, path));
        let others = files.filter(|file| !file.starts_with(module) && !module.starts_with(file));
        graph.insert(module.clone(), others.map(<[String]>::to_vec).collect());
    }
    graph
}

/// The shortest way from a file back to itself along imports, as `a -> b -> c -> a`.
fn circle_of(start: &Vec<String>, graph: &Imports) -> Option<Vec<Vec<String>>> {
    let mut ways = VecDeque::from([vec![start.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way.last().expect("it begins with the start");
        for next in &graph[last] {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// Circles of files that import each other, of any length. A file of a circle has no further circle here: an opened
/// one may show the next.
fn circles(sources: &BTreeMap<Vec<String>, String>) -> Vec<String> {
    let graph = graph(sources);
    let mut known: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut found = Vec::new();
    for start in graph.keys() {
        if known.contains(start) {
            continue;
        }
        if let Some(circle) = circle_of(start, &graph) {
            let names: Vec<String> = circle.iter().map(|file| file.join("/")).collect();
            found.push(names.join(" -> "));
            known.extend(circle);
        }
    }
    found
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for of in crates() {
        let src = root().join("crates").join(&of).join("src");
        let relative = |path: &Path| module(path.strip_prefix(&src).expect("it is below"));
        let sources = files(&src, "rs").iter().map(|path| (relative(path), read(path))).collect();
        let complaint = |circle: &String| {
            format!("{of}: {circle}: move the part that two of them need to a file of its own")
        };
        found.extend(circles(&sources).iter().map(complaint));
    }
    assert_none(&found);
}

#[test]
fn a_circle_is_found_and_a_parent_is_none() {
    let sources = |texts: &[(&str, &str)]| {
        let of = |(path, text): &(&str, &str)| (module(Path::new(path)), (*text).to_owned());
        circles(&texts.iter().map(of).collect())
    };
    let lib = ("lib.rs", "use a::A;");
    assert_eq!(
        sources(&[lib, ("a.rs", "use crate::b::{B, C};"), ("b.rs", "use super::a::A;")]),
        ["a -> b -> a"]
    );
    assert_eq!(sources(&[lib, ("a.rs", "use crate::b::B;"), ("b.rs", "use std::io;")]), [""; 0]);
    let three = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
    assert_eq!(sources(&three), ["a -> b -> c -> a"]);
    let [a, b, _] = three;
    assert_eq!(sources(&[a, b, ("c.rs", "use crate::d::D;"), ("d.rs", "")]), [""; 0]);
    let apart = [a, b, ("c.rs", "use crate::b::B;")];
    assert_eq!(sources(&apart), ["b -> c -> b"], "a only leads to the circle");
    let nested =
        [("a/mod.rs", "use b::B;"), ("a/b.rs", "use super::A;"), ("a/c.rs", "use super::b::B as C;")];
    assert_eq!(sources(&nested), [""; 0]);
    let tests = [("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] use crate::a::A;")];
    assert_eq!(sources(&tests), [""; 0]);
}
