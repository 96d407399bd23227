//! A filter of HDF5 that is not built in, in its text form. `filter:32015,5` is filter 32015 (Zstandard) with
//! the value 5 (its level).
//!
//! The same filter is `-f UD=32015,0,1,5` in `h5repack`, and `compression=32015, compression_opts=(5,)` in
//! h5py.

use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

/// A filter by its number, with its values (`cd_values`). The program keeps each distinct filter once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PluginFilter(&'static KeptFilter);

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeptFilter {
    number: u32,
    values: Vec<u32>,
    text: String,
}

static UNSTATED: KeptFilter = KeptFilter { number: 0, values: Vec::new(), text: String::new() };

/// The filters so far, by their texts. A forged journal may name any number, so the program refuses more than
/// `KEPT_MAX`.
static KEPT: Mutex<BTreeMap<String, PluginFilter>> = Mutex::new(BTreeMap::new());
const KEPT_MAX: usize = 4096;

/// The least number of a plug-in; the library's own filters have lower ones (`H5Z_FILTER_RESERVED`).
const NUMBER_MIN: u32 = 256;
/// `H5Z_FILTER_MAX`.
const NUMBER_MAX: u32 = 65_535;
const VALUES_MAX: usize = 64;

impl PluginFilter {
    /// The text before its number.
    pub const PREFIX: &str = "filter:";
    /// An unspecified filter: only its presence is certain.
    pub const UNSTATED: PluginFilter = PluginFilter(&UNSTATED);

    /// The filter of this number with these values.
    ///
    /// # Errors
    /// The number is not in the range of plug-ins, there are more values than any filter takes, or the
    /// program keeps `KEPT_MAX` filters already.
    pub fn new(number: u32, values: &[u32]) -> Result<Self, String> {
        if !(NUMBER_MIN..=NUMBER_MAX).contains(&number) {
            return Err(format!(
                "filter {number}: plug-ins have numbers from {NUMBER_MIN} to {NUMBER_MAX}, those below are built into HDF5"
            ));
        }
        if values.len() > VALUES_MAX {
            return Err(format!("filter {number}: write at most {VALUES_MAX} numbers behind it"));
        }
        let numbers = [number].into_iter().chain(values.iter().copied());
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        let text = format!("{}{}", Self::PREFIX, numbers.join(","));
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(filter) = kept.get(&text) {
            return Ok(*filter);
        }
        if kept.len() >= KEPT_MAX {
            return Err(format!(
                "filter {number}: {KEPT_MAX} others were met before it, more than anybody uses"
            ));
        }
        let filter = KeptFilter { number, values: values.to_vec(), text: text.clone() };
        let filter = PluginFilter(Box::leak(Box::new(filter)));
        kept.insert(text, filter);
        Ok(filter)
    }

    /// Its number, as registered with The HDF Group.
    pub fn number(self) -> u32 {
        self.0.number
    }

    /// The values for it.
    pub fn values(self) -> &'static [u32] {
        &self.0.values
    }

    /// Its text form.
    pub fn text(self) -> &'static str {
        &self.0.text
    }
}

impl FromStr for PluginFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}`: write the number of a filter and those that it is given, `filter:32001,0,0,0,0,5`"
            )
        };
        let numbers = text.strip_prefix(Self::PREFIX).ok_or_else(wrong)?;
        let numbers: Option<Vec<u32>> = numbers.split(',').map(|number| number.trim().parse().ok()).collect();
        let numbers = numbers.ok_or_else(wrong)?;
        let (number, values) = numbers.split_first().ok_or_else(wrong)?;
        Self::new(*number, values)
    }
}

impl fmt::Debug for PluginFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_same_is_kept_once() {
        let filter: PluginFilter = "filter:32001, 0,0 ,0,0,5".parse().expect("valid");
        assert_eq!((filter.number(), filter.values()), (32_001, &[0, 0, 0, 0, 5][..]));
        assert_eq!(filter.text(), "filter:32001,0,0,0,0,5");
        let again = PluginFilter::new(32_001, &[0, 0, 0, 0, 5]).expect("valid");
        assert!(std::ptr::eq(filter.0, again.0) && filter == again);
        assert!("filter:65535".parse::<PluginFilter>().is_ok_and(|filter| filter.values().is_empty()));
    }

    #[test]
    fn what_is_none_says_what_would_be() {
        for (text, why) in [
            ("filter:", "write the number of a filter"),
            ("filter:zfp", "write the number of a filter"),
            ("32001", "write the number of a filter"),
            ("filter:32001,-1", "write the number of a filter"),
            ("filter:1,6", "built into HDF5"),
            ("filter:70000", "from 256 to 65535"),
            (&format!("filter:32001{}", ",0".repeat(65)), "at most 64"),
        ] {
            let refused = text.parse::<PluginFilter>().expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
