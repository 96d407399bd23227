//! Values of attributes and datasets in the form that the library takes.
//!
//! A single ASCII text has a fixed length, as the NeXus API and the file writers of detectors store it. Programs in C
//! (durin, a plug-in of XDS, for one) read texts as `H5T_C_S1`, and the library does not convert UTF-8 of variable
//! length into that. Rows of texts have a variable length each, as h5py writes them: no such program reads rows.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_char, c_void},
};

use crate::{
    Hdf5Error,
    column::text_bytes,
    ffi::{self, hid_t},
    handle::{Handle, begin, checked, element_type, space},
    tree::{ColumnElement, NumberArray, TreeValue},
};

/// Bytes of the longest text with a fixed length, with the zero behind it. An attribute lies in the header of its
/// object, and one block of metadata has to hold that header.
const FIXED_MAX: usize = 1 << 10;

/// A value, its type and its space.
pub(crate) struct Prepared<'a> {
    kind: ValueType,
    space: Handle,
    elements: ValueElements<'a>,
}

/// The type of a value's elements.
enum ValueType {
    /// A type of the library, which stays open.
    Shared(hid_t),
    /// A type for this value alone.
    Own(Handle),
}

/// The elements of a value.
enum ValueElements<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Pointers to texts, which lie beside them.
    Texts(Vec<*const c_char>, #[expect(dead_code, reason = "the pointers lead to them")] Vec<CString>),
}

impl<'a> Prepared<'a> {
    /// Prepares the value of the object at `path`.
    pub(crate) fn of(value: &'a TreeValue, path: &str) -> Result<Self, Hdf5Error> {
        match value {
            TreeValue::Numbers(array) => Self::of_numbers(array, path),
            TreeValue::Truth(truth) => Self::of_truth(*truth),
            TreeValue::Text(text) => Self::of_text(text),
            TreeValue::Texts(texts) => Self::of_texts(texts, &[texts.len() as u64]),
            TreeValue::ColumnTexts(texts) => Self::of_column_texts(texts),
            TreeValue::AtEnd(wanted) => {
                let what = format!("{path} needs `{}`, which only the end of a recording gives", wanted.key);
                Err(Hdf5Error::Description { what })
            }
        }
    }

    fn of_numbers(array: &'a NumberArray, path: &str) -> Result<Self, Hdf5Error> {
        if !array.is_whole() {
            let what = format!("{path} has {} B of numbers, not {:?}", array.bytes.len(), array.shape);
            return Err(Hdf5Error::Description { what });
        }
        let space = space(&array.shape, None)?;
        Ok(Self::of_elements(array.element.into(), space, Cow::Borrowed(&array.bytes)))
    }

    fn of_truth(truth: bool) -> Result<Self, Hdf5Error> {
        let elements = ValueElements::Bytes(Cow::Owned(vec![truth.into()]));
        Ok(Prepared { kind: ValueType::Own(truth_type()?), space: space(&[], None)?, elements })
    }

    fn of_column_texts(texts: &[String]) -> Result<Self, Hdf5Error> {
        let space = space(&[texts.len() as u64], None)?;
        let bytes = texts.iter().flat_map(|text| text_bytes(text)).collect();
        Ok(Self::of_elements(ColumnElement::TEXT, space, Cow::Owned(bytes)))
    }

    fn of_elements(element: ColumnElement, space: Handle, elements: Cow<'a, [u8]>) -> Self {
        let kind = ValueType::Shared(element_type(element));
        Prepared { kind, space, elements: ValueElements::Bytes(elements) }
    }

    fn of_text(text: &str) -> Result<Self, Hdf5Error> {
        let text = without_zeroes(text);
        if !is_fixed(&text) {
            return Self::of_texts(&[text], &[]);
        }
        let mut bytes = text.into_bytes();
        bytes.push(0);
        let kind = ValueType::Own(ascii_type(bytes.len())?);
        Ok(Prepared { kind, space: space(&[], None)?, elements: ValueElements::Bytes(Cow::Owned(bytes)) })
    }

    fn of_texts(texts: &[String], shape: &[u64]) -> Result<Self, Hdf5Error> {
        let space = space(shape, None)?;
        let texts: Vec<_> =
            texts.iter().map(|text| CString::new(without_zeroes(text)).unwrap_or_default()).collect();
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        let kind = ValueType::Own(utf8_type()?);
        Ok(Prepared { kind, space, elements: ValueElements::Texts(pointers, texts) })
    }

    /// The type of its elements.
    pub(crate) fn kind(&self) -> hid_t {
        match &self.kind {
            ValueType::Shared(kind) => *kind,
            ValueType::Own(kind) => kind.id(),
        }
    }

    /// Its dimensions.
    pub(crate) fn space(&self) -> &Handle {
        &self.space
    }

    /// Its elements, in memory that this value keeps.
    pub(crate) fn pointer(&self) -> *const c_void {
        match &self.elements {
            ValueElements::Bytes(bytes) => bytes.as_ptr().cast(),
            ValueElements::Texts(pointers, _) => pointers.as_ptr().cast(),
        }
    }
}

/// The text without zero bytes, at the first of which the library would end it.
fn without_zeroes(text: &str) -> String {
    text.replace('\0', "")
}

/// Returns true if a single text has a fixed length in the file.
fn is_fixed(text: &str) -> bool {
    text.is_ascii() && text.len() < FIXED_MAX
}

/// The names of the two truths, by which h5py knows the type of its own booleans.
const TRUTHS: [(&CStr, i8); 2] = [(c"FALSE", 0), (c"TRUE", 1)];

/// The type of yes or no.
fn truth_type() -> Result<Handle, Hdf5Error> {
    begin();
    let what = || "make a type for yes or no".to_owned();
    // SAFETY: the type exists since the library was started; the names end with a zero, and each value is a number of
    // that type.
    unsafe {
        let handle = Handle::of(ffi::H5Tenum_create(ffi::H5T_STD_I8LE_g), what)?;
        for (name, value) in TRUTHS {
            checked(ffi::H5Tenum_insert(handle.id(), name.as_ptr(), (&raw const value).cast()), what)?;
        }
        Ok(handle)
    }
}

/// The type of ASCII texts of this length, which ends with a zero.
fn ascii_type(length: usize) -> Result<Handle, Hdf5Error> {
    begin();
    let what = || "make a type for text".to_owned();
    // SAFETY: the type exists since the library was started.
    unsafe {
        let handle = Handle::of(ffi::H5Tcopy(ffi::H5T_C_S1_g), what)?;
        checked(ffi::H5Tset_size(handle.id(), length), what)?;
        Ok(handle)
    }
}

/// The type of UTF-8 texts of any length.
fn utf8_type() -> Result<Handle, Hdf5Error> {
    begin();
    let what = || "make a type for text".to_owned();
    // SAFETY: the type exists since the library was started.
    unsafe {
        let handle = Handle::of(ffi::H5Tcopy(ffi::H5T_C_S1_g), what)?;
        checked(ffi::H5Tset_size(handle.id(), ffi::H5T_VARIABLE), what)?;
        checked(ffi::H5Tset_cset(handle.id(), ffi::H5T_CSET_UTF8), what)?;
        Ok(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ascii_has_a_fixed_length() {
        for text in ["NXentry", ".", "", &"x".repeat(FIXED_MAX - 1)] {
            assert!(is_fixed(text), "{text}");
        }
        for text in ["\u{e5}ngstr\u{f6}m", "\u{b5}m", &"x".repeat(FIXED_MAX)] {
            assert!(!is_fixed(text), "{text}");
        }
    }

    #[test]
    fn the_library_gets_fixed_ascii_for_attributes() {
        let stored = |value: &TreeValue| {
            let prepared = Prepared::of(value, "/entry").expect("a text");
            // SAFETY: an open type.
            unsafe { (ffi::H5Tis_variable_str(prepared.kind()), ffi::H5Tget_size(prepared.kind())) }
        };
        assert_eq!(stored(&"NXentry".into()), (0, 8));
        assert_eq!(stored(&"".into()), (0, 1));
        assert_eq!(stored(&"a\0b".into()), (0, 3));
        assert_eq!(stored(&"\u{b5}m".into()).0, 1);
        assert_eq!(stored(&TreeValue::Texts(vec!["row".into()])).0, 1);
    }
}
