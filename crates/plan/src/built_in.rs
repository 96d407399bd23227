//! The plans that are built in, each from its own file in the repository, as text; and how others are written.

use nilometer_model::catalogue::BuiltIn;

macro_rules! plans {
    ($($name:literal),*) => {
        [$(BuiltIn { name: $name, text: include_str!(concat!("../../../plans/", $name, ".toml")) }),*]
    };
}

/// The plans of `plans/`.
pub const PLANS: [BuiltIn; 17] = plans!(
    "desy",
    "elements",
    "evlbi",
    "fila10g",
    "h5perf",
    "migration",
    "mpi-io",
    "nus",
    "packets",
    "pandata",
    "quick",
    "stripes",
    "uci",
    "wa105",
    "wa105-files",
    "wa105-network",
    "wa105-processes"
);

macro_rules! published {
    ($($name:literal),*) => {
        [$((
            $name,
            include_str!(concat!("../../../reference/", $name, ".toml")),
            include_str!(concat!("../../../reference/", $name, ".csv")),
        )),*]
    };
}

/// The studies of `reference/`: name, tables and figures.
pub(super) const PUBLISHED: [(&str, &str, &str); 5] =
    published!("evlbi-2013", "nus-gpfs", "pandata-2012", "uci-2014", "wa105-2016");

/// A commented file of a condition.
pub const CONDITION_TEMPLATE: &str = include_str!("../../../conditions/template.toml");

/// A commented plan with criteria.
pub const ACCEPTANCE_TEMPLATE: &str = include_str!("../../../acceptance/template.toml");

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use nilometer_model::{
        Instrument,
        catalogue::{INSTRUMENTS, look_up},
    };

    use super::*;
    use crate::{Condition, parse_with};

    fn instrument(name: &str) -> Result<Instrument, String> {
        let found = look_up(name, &INSTRUMENTS, "instrument").map_err(|error| error.to_string())?;
        let BuiltIn { name, text } = found.ok_or("a path")?;
        Instrument::parse(text, name).map_err(|error| error.to_string())
    }

    #[test]
    fn every_plan_is_built_in_and_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let paths = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut names: Vec<String> =
            paths.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, PLANS.map(|plan| plan.name));
        for BuiltIn { name, text } in PLANS {
            parse_with(text, name, 1.0, &instrument).expect(name);
        }
        let error = look_up("quik", &PLANS, "plan").expect_err("unknown").to_string();
        assert!(error.contains("did you mean quick? "), "{error}");
    }

    #[test]
    fn the_template_of_a_condition_is_one() {
        let condition = Condition::parse(CONDITION_TEMPLATE, "template").expect("valid");
        assert_eq!(condition.name, "one disk lost");
    }

    #[test]
    fn the_template_of_an_acceptance_is_a_plan() {
        // The detector delivers in packets of no known form, so that it is recorded in place.
        let plan = parse_with(ACCEPTANCE_TEMPLATE, "template", 1.0, &instrument).expect("valid");
        assert_eq!((plan.accept.price.len(), plan.accept.criteria.len()), (2, 10));
        assert_eq!(plan.recordings().count(), 3);
    }
}
