//! The words for the value and the default of a key, from the type of its field.

use syn::{Expr, Field, GenericArgument, Lit, PathArguments, Type};

use super::source_types::{
    SourceStruct, SourceTypes, has_serde, serde_value, snake_case, text_of, type_name,
};

/// The value of a type in TOML.
struct LeafValue {
    one: &'static str,
    many: &'static str,
    /// The value of `Default::default()`.
    default: &'static str,
}

const fn leaf(one: &'static str, many: &'static str, default: &'static str) -> LeafValue {
    LeafValue { one, many, default }
}

/// The types whose value is no table and no enum.
fn leaf_of(name: &str) -> Option<LeafValue> {
    Some(match name {
        "String" => leaf("a text", "texts", "\"\""),
        "PathBuf" => leaf("a path", "paths", ""),
        "bool" => leaf("true or false", "", "false"),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => leaf("a whole number", "whole numbers", "0"),
        "f64" => leaf("a number", "numbers", "0.0"),
        "Bytes" => leaf("a size, such as \"4 MiB\"", "sizes", "\"0 B\""),
        "ByteRate" => leaf("a rate, such as \"500 MB/s\"", "rates", "\"0 B/s\""),
        "Frequency" => leaf("a frequency, such as \"100 Hz\"", "frequencies", "\"0 Hz\""),
        "Nanos" => leaf("a time, such as \"100 ms\"", "times", "\"0 s\""),
        "Length" => leaf("a length, such as \"200 mm\" or \"1.0 A\"", "lengths", "\"0 m\""),
        "Moment" => leaf("a time in UTC, such as \"2026-11-22T18:00:00Z\"", "", ""),
        "IpAddr" => leaf("an address, such as \"10.0.0.1\"", "addresses", ""),
        "AllowedSender" => leaf("an address, a network, or \"any\"", "addresses, networks, or \"any\"", ""),
        "ChunkShape" => leaf("a text, such as \"256x512\", or a list of whole numbers", "", ""),
        "ScanShape" => leaf("a text, such as \"20x30\", or a list of whole numbers", "", ""),
        "FileSystemKind" => leaf("a type of file system, such as \"lustre\"", "types of file system", ""),
        "StreamAddress" => leaf("an address, such as \"tcp://detector:31001\"", "addresses", ""),
        "ListenAddress" => {
            leaf("an address, such as \"udp://10.0.0.1:46227\" or \"tcp://*:31001\"", "addresses", "")
        }
        "LabelledSender" => leaf("a label and a sender, such as \"A=10.0.2.20\"", "labels and senders", ""),
        "VlbiMode" => leaf("a text, such as \"VDIF_8000-4096-16-2\"", "texts", ""),
        "Station" => {
            leaf("two characters, or a whole number", "stations: two characters, or a whole number", "")
        }
        _ => return None,
    })
}

/// The words for a value that is no table and no enum. `None` for the others.
pub(super) fn leaf_text(name: &str) -> Option<&'static str> {
    leaf_of(name).map(|leaf| leaf.one)
}

/// The words for a list of such values.
pub(super) fn leaf_list(name: &str) -> Option<String> {
    leaf_of(name).filter(|leaf| !leaf.many.is_empty()).map(|leaf| format!("a list of {}", leaf.many))
}

/// The type between the angle brackets of `Option<T>` or `Vec<T>`.
pub(super) fn inner_of<'a>(of: &'a Type, outer: &str) -> Option<&'a Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == outer)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    })
}

/// The word for a key that must be there.
pub(super) const NEEDED: &str = "needed";

/// The default of a field: [`NEEDED`], a value as in TOML, or nothing if the key may be absent.
pub(super) fn default_of(types: &SourceTypes, of: &SourceStruct, field: &Field) -> String {
    if let Some(function) = serde_value(&field.attrs, "default") {
        let value = types.function(&of.file, &function).and_then(shown);
        return value
            .unwrap_or_else(|| panic!("write a default of {function}() that the reference can show"));
    }
    let has_default = has_serde(&of.item.attrs, "default") || has_serde(&field.attrs, "default");
    let is_optional = inner_of(&field.ty, "Option").is_some();
    match has_default {
        true => usual(types, &field.ty),
        false if is_optional => String::new(),
        false => NEEDED.to_owned(),
    }
}

/// The value of `Default::default()`.
fn usual(types: &SourceTypes, of: &Type) -> String {
    let name = type_name(of).unwrap_or_default();
    if let Some(leaf) = leaf_of(&name) {
        return leaf.default.to_owned();
    }
    let words = types.words(&name).unwrap_or_default();
    let word = words.into_iter().find(|one| one.is_default).map(|one| format!("\"{}\"", one.word));
    word.unwrap_or_default()
}

/// An expression as a value of TOML: a literal, a size, the largest number of a type, or the variant of an enum.
fn shown(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => Some(number.base10_digits().to_owned()),
            Lit::Float(number) => Some(number.base10_digits().to_owned()),
            _ => text_of(value).map(|text| format!("\"{text}\"")),
        },
        Expr::Call(call) if last_part(&call.func)? == "Bytes" => {
            call.args.first().and_then(shown).map(|bytes| format!("\"{bytes} B\""))
        }
        Expr::MethodCall(call) if call.method == "into" => shown(&call.receiver),
        Expr::Path(_) => match last_part(value)?.as_str() {
            "MAX" => is_byte(value).then(|| u8::MAX.to_string()),
            variant => Some(format!("\"{}\"", snake_case(variant))),
        },
        _ => None,
    }
}

fn is_byte(value: &Expr) -> bool {
    matches!(value, Expr::Path(path) if path.path.segments.first().is_some_and(|first| first.ident == "u8"))
}

fn last_part(value: &Expr) -> Option<String> {
    match value {
        Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

#[test]
fn defaults_are_shown_as_in_a_file() {
    let value = |text: &str| shown(&syn::parse_str(text).expect("Rust"));
    for (text, expected) in [
        ("46227", "46227"),
        ("1.0", "1.0"),
        ("Bytes(8000)", "\"8000 B\""),
        ("u8::MAX", "255"),
        ("DataKind::LiquidArgon.into()", "\"liquid_argon\""),
    ] {
        assert_eq!(value(text), Some(expected.to_owned()), "{text}");
    }
    assert_eq!(value("made(5)"), None);
}
