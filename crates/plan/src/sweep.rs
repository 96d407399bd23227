//! A parameter as written: one value, or a list that makes the stage a matrix.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IntoDeserializer},
};

/// One or more values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep<T>(Vec<T>);

impl<T> From<T> for Sweep<T> {
    fn from(value: T) -> Self {
        Sweep(vec![value])
    }
}

impl<T: Default> Default for Sweep<T> {
    fn default() -> Self {
        Sweep::from(T::default())
    }
}

impl<T> Sweep<T> {
    /// All values, in the order in which the plan has them.
    pub(super) fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T> Sweep<T> {
    /// All values, to replace them.
    pub(super) fn values_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Clone> Sweep<T> {
    /// At least one.
    pub(super) fn of(values: Vec<T>) -> Self {
        Sweep(values)
    }

    /// The first value.
    pub(super) fn first(&self) -> T {
        self.0[0].clone()
    }

    /// Each of `cells` once with each value.
    pub fn over<C: Clone>(&self, cells: Vec<C>, set: impl Fn(&mut C, T)) -> Vec<C> {
        let mut all = Vec::with_capacity(cells.len() * self.0.len());
        for cell in cells {
            for value in &self.0 {
                let mut cell = cell.clone();
                set(&mut cell, value.clone());
                all.push(cell);
            }
        }
        all
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sweep<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

impl<T: Serialize> Serialize for Sweep<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for OneOrMany<T> {
    type Value = Sweep<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Sweep<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        if values.is_empty() {
            return Err(de::Error::custom("an empty list: write at least one value"));
        }
        Ok(Sweep(values))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Sweep<T>, E> {
        T::deserialize(text.into_deserializer()).map(Sweep::from)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Sweep<T>, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::from)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Sweep<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Sweep::from)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Sweep<T>, E> {
        T::deserialize(number.into_deserializer()).map(Sweep::from)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Sweep<T>, E> {
        T::deserialize(number.into_deserializer()).map(Sweep::from)
    }
}
