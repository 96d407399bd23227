//! Files of a crate that import each other, directly or through others, are one file in pieces: none is understood
//! without the others.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
};

use nilometer_tests::{assert_none, crates, files, is_for_tests, read, root};
use syn::{
    Item, ItemFn, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

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

/// An imported path, from the crate on, and the name that it has in the importing file.
struct Import {
    path: Vec<String>,
    name: String,
    /// True if other files may import it from this one: `pub use`, `pub(crate) use`.
    is_passed_on: bool,
}

/// The imports of a module from its own crate. A path in its code imports too.
fn imports(text: &str, module: &[String]) -> Vec<Import> {
    let file = syn::parse_file(text).expect("rustc reads it");
    let own_modules: Vec<String> = file.items.iter().filter_map(declared_module).collect();
    let mut found = Vec::new();
    for item in &file.items {
        if let Item::Use(ItemUse { tree, attrs, vis, .. }) = item
            && !is_for_tests(attrs)
        {
            let mut paths = Vec::new();
            collect(tree, Vec::new(), &mut paths);
            let is_passed_on = !matches!(vis, Visibility::Inherited);
            let own = paths.into_iter().filter_map(|(path, name)| {
                from_crate(&path, module, &own_modules).map(|path| Import { path, name, is_passed_on })
            });
            found.extend(own);
        }
    }
    let mut code = CodePaths(Vec::new());
    code.visit_file(&file);
    let in_code = code.0.iter().filter_map(|path| from_crate(path, module, &own_modules));
    found.extend(in_code.map(|path| Import { path, name: String::new(), is_passed_on: false }));
    found
}

/// The paths in the code of a source, its tests apart.
struct CodePaths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for CodePaths {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn declared_module(item: &Item) -> Option<String> {
    let Item::Mod(declared) = item else { return None };
    Some(declared.ident.to_string())
}

/// Adds the paths of a tree of imports, each with its name in the importing file.
fn collect(tree: &UseTree, mut path: Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            collect(&inner.tree, path, paths);
        }
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            paths.push((path, name.ident.to_string()));
        }
        UseTree::Rename(name) => {
            path.push(name.ident.to_string());
            paths.push((path, name.rename.to_string()));
        }
        UseTree::Glob(_) => paths.push((path, "*".to_owned())),
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, path.clone(), paths)),
    }
}

/// The same path from the crate on. `None` if it begins with another crate.
fn from_crate(path: &[String], module: &[String], own_modules: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => return Some([module, &path[1..]].concat()),
        first if own_modules.iter().any(|own| own == first) => return Some([module, path].concat()),
        _ if ups == 0 => return None,
        _ => &module[..module.len().checked_sub(ups)?],
    };
    Some([base, &path[ups..]].concat())
}

/// The files of a crate with their imports.
type Sources = BTreeMap<Vec<String>, Vec<Import>>;

/// Longest chain of `pub use` that leads from a name to the file that declares it.
const CHAIN_MOST: usize = 8;

/// The file that declares the last name of a path. It is the longest beginning of the path that is a file, unless
/// that file only passes the next name on from another one.
fn file_of<'a>(sources: &'a Sources, path: &[String]) -> Option<&'a Vec<String>> {
    let mut path = path.to_vec();
    for _ in 0..CHAIN_MOST {
        let length = (0..=path.len()).rev().find(|end| sources.contains_key(&path[..*end]))?;
        let (file, imports) = sources.get_key_value(&path[..length])?;
        let declared = path
            .get(length)
            .and_then(|name| imports.iter().find(|import| import.is_passed_on && import.name == *name));
        let Some(import) = declared else { return Some(file) };
        path = [&import.path[..], &path[length + 1..]].concat();
    }
    None
}

type Graph = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The files that each file imports. An import between a file and one below it does not count.
fn graph(sources: &Sources) -> Graph {
    let mut graph = Graph::new();
    for (module, imports) in sources {
        let files = imports.iter().filter_map(|import| file_of(sources, &import.path));
        let others = files.filter(|file| !file.starts_with(module) && !module.starts_with(file));
        graph.insert(module.clone(), others.cloned().collect());
    }
    graph
}

/// The shortest way from a file back to itself along imports, as `a -> b -> c -> a`.
fn circle_of(start: &Vec<String>, graph: &Graph) -> Option<Vec<Vec<String>>> {
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
fn circles(sources: &Sources) -> Vec<String> {
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

/// The sources of a crate, its tests apart.
fn sources_of(of: &str) -> Sources {
    let src = root().join("crates").join(of).join("src");
    let parsed = |path: &PathBuf| {
        let module = module(path.strip_prefix(&src).expect("it is below"));
        let imports = imports(&read(path), &module);
        (module, imports)
    };
    files(&src, "rs").iter().map(parsed).collect()
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for of in crates() {
        let complaint = |circle: &String| {
            format!("{of}: {circle}: move the part that two of them need to a file of its own")
        };
        found.extend(circles(&sources_of(&of)).iter().map(complaint));
    }
    assert_none(&found);
}

#[test]
fn a_circle_is_found_and_a_parent_is_none() {
    let sources = |texts: &[(&str, &str)]| {
        let of = |(path, text): &(&str, &str)| {
            let module = module(Path::new(path));
            let imports = imports(text, &module);
            (module, imports)
        };
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
    let passed_on = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::{B as C, D};"),
        ("a.rs", "use crate::C;"),
        ("b.rs", "use super::A;"),
    ];
    assert_eq!(sources(&passed_on), ["a -> b -> a"], "through the file that passes both on");
    assert_eq!(sources(&[passed_on[0], passed_on[1], ("b.rs", "")]), [""; 0]);
    let in_code = ("b.rs", "fn f() -> u8 { let all = Some(super::a::A); all.map_or(0, crate::c::of) }");
    assert_eq!(sources(&[a, in_code, ("c.rs", "")]), ["a -> b -> a"], "its code names the file");
    let tests = [("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] use crate::a::A;")];
    assert_eq!(sources(&tests), [""; 0]);
    let test = "#[cfg(test)] mod tests { fn f() { crate::a::A; } }";
    assert_eq!(sources(&[a, ("b.rs", test)]), [""; 0]);
}
