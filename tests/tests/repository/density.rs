//! How much a line of the product may hold. A limit on the lines of a function can be met by packing more into each; these
//! checks keep that out, so that a page is read line by line. Every check is a function that says the line and what it
//! complains of, and is itself tested on a bad and a good example.

use std::path::{Path, PathBuf};

use nilometer_tests::{assert_none, crates, files, is_for_tests, read, root};
use syn::{
    Expr, File, FnArg, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, Local, Pat, Signature, Type, UnOp,
    spanned::Spanned, visit::Visit,
};

/// A closure with a name is short enough to be read in passing; what is longer is a function.
const NAMED_CLOSURE_LINES_MAX: usize = 5;

/// What is too dense in a source, its tests apart.
fn density(file: &File) -> Vec<String> {
    let mut dense = Dense::default();
    dense.visit_file(file);
    dense.0
}

/// One complaint a place.
#[derive(Default)]
struct Dense(Vec<String>);

impl<'ast> Visit<'ast> for Dense {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            syn::visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if !is_for_tests(&block.attrs) {
            syn::visit::visit_item_impl(self, block);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            syn::visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        self.0.extend(tuple_parameters(signature));
        syn::visit::visit_signature(self, signature);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        self.0.extend(long_named_closure(local));
        self.0.extend(packed_declaration(local));
        syn::visit::visit_local(self, local);
    }

    fn visit_expr_assign(&mut self, assignment: &'ast syn::ExprAssign) {
        self.0.extend(packed_assignment(assignment));
        syn::visit::visit_expr_assign(self, assignment);
    }
}

/// Parameters of a function that are tuples: what belongs together has a type with named fields, what does not is handed
/// over one by one. Closures are free, as iterators give them pairs.
fn tuple_parameters(signature: &Signature) -> Vec<String> {
    let typed = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    });
    let tuples = typed.filter(|parameter| is_tuple(&parameter.ty) || matches!(*parameter.pat, Pat::Tuple(_)));
    tuples.map(|parameter| format!("{}: fn {} takes a tuple", line_of(parameter), signature.ident)).collect()
}

fn is_tuple(of: &Type) -> bool {
    match of {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(reference) => is_tuple(&reference.elem),
        Type::Paren(inner) => is_tuple(&inner.elem),
        _ => false,
    }
}

/// A closure that has a name and is as long as a function.
fn long_named_closure(local: &Local) -> Option<String> {
    let closure = closure(&local.init.as_ref()?.expr)?;
    let span = closure.span();
    let lines = span.end().line - span.start().line + 1;
    (lines > NAMED_CLOSURE_LINES_MAX).then(|| {
        let line = line_of(local);
        format!("{line}: a named closure of {lines} lines: at most {NAMED_CLOSURE_LINES_MAX}, or a function")
    })
}

fn closure(value: &Expr) -> Option<&syn::ExprClosure> {
    match value {
        Expr::Closure(closure) => Some(closure),
        Expr::Reference(reference) => closure(&reference.expr),
        Expr::Paren(inner) => closure(&inner.expr),
        _ => None,
    }
}

/// A declaration that is several statements tied together. With an `else` it is none: there one pattern has several
/// conditions.
fn packed_declaration(local: &Local) -> Option<String> {
    let init = local.init.as_ref().filter(|init| init.diverge.is_none())?;
    let pattern = match &local.pat {
        Pat::Type(typed) => &typed.pat,
        pattern => pattern,
    };
    let packed = matches!(pattern, Pat::Tuple(_)) && works(&init.expr);
    packed.then(|| format!("{}: declarations tied into one tuple", line_of(local)))
}

/// An assignment that is several statements tied together.
fn packed_assignment(assignment: &syn::ExprAssign) -> Option<String> {
    let packed = matches!(*assignment.left, Expr::Tuple(_)) && works(&assignment.right);
    packed.then(|| format!("{}: assignments tied into one tuple", line_of(assignment)))
}

/// Whether a value is a tuple in which something is done, other than to name what is there.
fn works(value: &Expr) -> bool {
    matches!(value, Expr::Tuple(tuple) if !tuple.elems.iter().all(is_plain))
}

/// Paths, fields, literals, and references to these.
fn is_plain(value: &Expr) -> bool {
    match value {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Field(field) => is_plain(&field.base),
        Expr::Reference(reference) => is_plain(&reference.expr),
        Expr::Paren(inner) => is_plain(&inner.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && matches!(*unary.expr, Expr::Lit(_)),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_plain),
        _ => false,
    }
}

fn line_of(node: &impl Spanned) -> String {
    format!("line {}", node.span().start().line)
}

/// Where the modules lie that a source declares for tests only: each as a file or a directory.
pub(super) fn for_tests(path: &Path, file: &File) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default();
    let is_root = ["mod", "lib", "main"].iter().any(|root| stem == *root);
    let below = if is_root { path.with_file_name("") } else { path.with_extension("") };
    let declared = file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => Some(&module.ident),
        _ => None,
    });
    declared.map(|name| below.join(name.to_string())).collect()
}

/// What is too dense in a crate, each with its file.
fn density_of(name: &str) -> Vec<String> {
    let paths = files(&root().join("crates").join(name).join("src"), "rs");
    assert!(!paths.is_empty(), "crates/{name} has no sources");
    let parsed = paths.iter().map(|path| (path, syn::parse_file(&read(path)).expect("rustc reads it")));
    let sources: Vec<(&PathBuf, File)> = parsed.collect();
    let tests: Vec<PathBuf> = sources.iter().flat_map(|(path, file)| for_tests(path, file)).collect();
    let is_product = |path: &Path| !tests.iter().any(|test| path.with_extension("").starts_with(test));
    let product = sources.iter().filter(|(path, _)| is_product(path));
    let place = |path: &Path| path.strip_prefix(root()).unwrap_or(path).display().to_string();
    product
        .flat_map(|(path, file)| density(file).into_iter().map(move |complaint| (path, complaint)))
        .map(|(path, complaint)| format!("{}: {complaint}", place(path)))
        .collect()
}

#[test]
fn a_line_holds_one_statement() {
    let known = crates();
    assert!(known.len() > 5, "{known:?}: the crates of this repository");
    assert_none(&known.iter().flat_map(|name| density_of(name)).collect::<Vec<_>>());
}

fn complaints(text: &str) -> Vec<String> {
    density(&syn::parse_file(text).expect("an example that is Rust"))
}

#[test]
fn a_tuple_as_a_parameter_is_found() {
    for bad in [
        "fn f((a, b): (&mut u8, u8)) {}",
        "fn f(c: u8, pair: (u8, u8)) {}",
        "fn f(pair: &mut (u8, u8)) {}",
        "fn f((a, b): Pair) {}",
        "impl S { fn f(&self, pair: (u8, u8)) {} }",
        "trait T { fn f(&self, pair: (u8, u8)); }",
        "fn f() { fn g(pair: (u8, u8)) {} }",
    ] {
        assert_eq!(complaints(bad).len(), 1, "{bad}");
    }
    for good in [
        "fn f(a: u8, b: &[(u8, u8)], c: ()) -> (u8, u8) {}",
        "fn f() { pairs.map(|(a, b): (u8, u8)| a + b); }",
        "fn f(made: impl Fn((u8, u8)) -> u8, S { a, b }: S) {}",
        "#[cfg(test)] mod tests { fn f(pair: (u8, u8)) {} }",
        "#[cfg(test)] fn f(pair: (u8, u8)) {}",
        "impl S { #[cfg(test)] fn f(pair: (u8, u8)) {} }",
    ] {
        assert_none(&complaints(good));
    }
    assert_eq!(complaints("//! Two.\n\nfn f(\n    pair: (u8, u8)) {}"), ["line 4: fn f takes a tuple"]);
}

#[test]
fn a_named_closure_as_long_as_a_function_is_found() {
    let closure = |before: &str, lines: usize| {
        let body = "    g();\n".repeat(lines - 2);
        format!("fn f() {{\n{before}|a| {{\n{body}}};\n}}")
    };
    for before in ["let c = ", "let mut c = move ", "let c = &", "let c: &dyn Fn(u8) = &"] {
        assert_none(&complaints(&closure(before, NAMED_CLOSURE_LINES_MAX)));
        let bad = closure(before, NAMED_CLOSURE_LINES_MAX + 1);
        let found = complaints(&bad);
        assert!(found.len() == 1 && found[0].starts_with("line 2: a named closure"), "{bad}: {found:?}");
    }
    let handed_over = closure("all.for_each(", 9).replace("};", "});");
    assert_none(&complaints(&handed_over));
    let for_tests = format!("#[cfg(test)] mod tests {{ {} }}", closure("let c = ", 9));
    assert_none(&complaints(&for_tests));
}

#[test]
fn statements_tied_into_one_tuple_are_found() {
    for bad in [
        "let (a, b) = (x(), 1);",
        "let (a, mut b): (u8, Vec<u8>) = (1, Vec::new());",
        "let (a, b) = (x.y(), z);",
        "let (a, b) = (x, &y.z());",
        "let (a, b) = (x, vec![1]);",
        "let (a, b) = (x, { y });",
        "let (a, b) = (x, if y { 1 } else { 2 });",
        "let (a, b) = (x, y + 1);",
        "let (a, b) = (x, !y);",
        "let (a, b) = (x, y as u8);",
        "let (a, (b, c)) = (x, (y, z?));",
        "let (a, b) = (x, |y| y);",
        "(a, b) = (b, a + b);",
        "(self.a, self.b) = (x, Some(y));",
    ] {
        let found = complaints(&format!("fn f() {{\n    {bad}\n}}"));
        assert!(found.len() == 1 && found[0].starts_with("line 2: "), "{bad}: {found:?}");
    }
    for good in [
        "let (a, b) = (x, y);",
        "let (a, b) = (&mut self.a, &self.b.c);",
        "let (a, b) = (-1, true);",
        "let (a, b) = x.split_at(1);",
        "let (a, b) = if c { (x(), y()) } else { z() };",
        "let (Some(a), Some(b)) = (x(), y()) else { return };",
        "if let (Some(a), Some(b)) = (x(), y()) {}",
        "match (x(), y()) { (a, b) => {} }",
        "let pair = (x(), y());",
        "(a, b) = (b, a);",
        "(self.a, self.b) = x();",
    ] {
        assert_none(&complaints(&format!("fn f() {{ {good} }}")));
    }
}

#[test]
fn modules_for_tests_are_left_out_wherever_they_lie() {
    let declares = syn::parse_file("#[cfg(test)] mod made_up; mod product;").expect("Rust");
    let of = |path: &str| for_tests(Path::new(path), &declares);
    assert_eq!(of("src/lib.rs"), [Path::new("src/made_up")]);
    assert_eq!(of("src/engine/mod.rs"), [Path::new("src/engine/made_up")]);
    assert_eq!(of("src/engine.rs"), [Path::new("src/engine/made_up")]);
}
