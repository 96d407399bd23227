//! The tables of a plan. Each key is declared once: name, type, purpose and default. Parsing, `nilometer plan
//! keys`, its page in the documentation and the JSON schema use this declaration.

/// A struct whose fields are the keys of a table. A key with a value after it is optional; so is an `Option`.
/// The text after `as` replaces the type's description in references.
macro_rules! plan_table {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(as $words:literal)? $(= $default:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields, expecting = "a table")]
                struct Written {
                    $($field: crate::plan_table::plan_table!(@written $type $(, $default)?),)*
                }
                let written = Written::deserialize(deserializer)?;
                Ok($name {
                    $($field: crate::plan_table::plan_table!(@value written.$field $(, $default)?),)*
                })
            }
        }

        impl crate::KeyValue for $name {
            fn kind() -> crate::ValueKind {
                crate::ValueKind::Table(vec![$(crate::PlanKey::of::<$type>(
                    stringify!($field),
                    crate::plan_table::plan_table!(@words $($words)?),
                    crate::plan_table::plan_table!(@default $type $(, $default)?),
                    &[$($doc),*],
                ),)*])
            }
        }
    };
    (@written $type:ty) => { $type };
    (@written $type:ty, $default:expr) => { Option<$type> };
    (@value $written:expr) => { $written };
    (@value $written:expr, $default:expr) => { $written.unwrap_or_else(|| $default) };
    (@words) => { None };
    (@words $words:literal) => { Some($words) };
    (@default $type:ty) => { None };
    (@default $type:ty, $default:expr) => { Some(crate::plan_key::KeyDefault(<$type as crate::KeyValue>::shown(&$default))) };
}
pub(crate) use plan_table;
