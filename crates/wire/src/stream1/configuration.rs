//! A detector's configuration in headers of version 1. It has every key that SIMPLON lists, with a detector's
//! defaults, so receivers find the keys that they need.

use serde_json::{Map, Value, json};

use crate::series::{MetadataField, MetadataValue, SeriesStart};

/// Names in version 2 that differ from version 1, with the latter.
const RENAMED: [(&str, &str); 7] = [
    ("arm_date", "data_collection_date"),
    ("detector_description", "description"),
    ("detector_serial_number", "detector_number"),
    ("incident_wavelength", "wavelength"),
    ("incident_energy", "photon_energy"),
    ("pixel_size_x", "x_pixel_size"),
    ("pixel_size_y", "y_pixel_size"),
];
/// Energy and wavelength of photons: their product in eV Å (CODATA 2018).
const ENERGY_WAVELENGTH: f64 = 12_398.419_843_320_026;

/// Returns the configuration of a series. Fields of its start replace the defaults.
pub(super) fn configuration(start: &SeriesStart, rows: u64, columns: u64) -> Value {
    let bits = 8 * start.element.bytes();
    let mut config = usual();
    for MetadataField { name, value } in &start.fields {
        let renamed = RENAMED.iter().find(|(version_2, _)| version_2 == name);
        let name = renamed.map_or(name.as_str(), |(_, version_1)| version_1);
        if let Some(value) = said(value) {
            config.insert(name.to_owned(), value);
        }
    }
    complete(&mut config);
    let of_images = [
        ("nimages", json!(start.images)),
        ("ntrigger", json!(1)),
        ("x_pixels_in_detector", json!(columns)),
        ("y_pixels_in_detector", json!(rows)),
        ("bit_depth_image", json!(bits)),
    ];
    config.extend(of_images.map(|(name, value)| (name.to_owned(), value)));
    config.entry("bit_depth_readout").or_insert(json!(bits));
    Value::Object(config)
}

/// Returns the keys of `detector/api/1.8.0/config` that headers have, with the defaults of a detector.
fn usual() -> Map<String, Value> {
    let off = ["auto_summation", "countrate_correction_applied", "flatfield_correction_applied"];
    let also_off = ["pixel_mask_applied", "virtual_pixel_correction_applied"];
    let numbers = [
        "beam_center_x",
        "beam_center_y",
        "chi_increment",
        "chi_start",
        "count_time",
        "detector_distance",
        "detector_readout_time",
        "frame_time",
        "kappa_increment",
        "kappa_start",
        "omega_increment",
        "omega_start",
        "phi_increment",
        "phi_start",
        "photon_energy",
        "sensor_thickness",
        "threshold_energy",
        "two_theta_increment",
        "two_theta_start",
        "wavelength",
        "x_pixel_size",
        "y_pixel_size",
    ];
    let counts = ["countrate_correction_count_cutoff", "number_of_excluded_pixels"];
    let texts = [
        "data_collection_date",
        "description",
        "detector_number",
        "element",
        "sensor_material",
        "software_version",
    ];
    let mut config = Map::new();
    config.extend(off.into_iter().chain(also_off).map(|name| (name.to_owned(), json!(false))));
    config.extend(numbers.map(|name| (name.to_owned(), json!(0.0))));
    config.extend(counts.map(|name| (name.to_owned(), json!(0))));
    config.extend(texts.map(|name| (name.to_owned(), json!(""))));
    let words = [("compression", "bslz4"), ("roi_mode", "disabled"), ("trigger_mode", "ints")];
    config.extend(words.map(|(name, word)| (name.to_owned(), json!(word))));
    config.extend([("detector_translation".to_owned(), json!([0.0, 0.0, 0.0]))]);
    config
}

/// Adds the values that follow from others.
fn complete(config: &mut Map<String, Value>) {
    let number =
        |config: &Map<String, Value>, name: &str| config.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let count_time = number(config, "count_time");
    config.entry("frame_count_time").or_insert(json!(count_time));
    let energy = number(config, "photon_energy");
    let wavelength = number(config, "wavelength");
    if energy == 0.0 && wavelength > 0.0 {
        config.insert("photon_energy".to_owned(), json!(ENERGY_WAVELENGTH / wavelength));
    }
    if wavelength == 0.0 && energy > 0.0 {
        config.insert("wavelength".to_owned(), json!(ENERGY_WAVELENGTH / energy));
    }
    let distance = config.get("detector_translation").and_then(|axes| axes.get(2)?.as_f64()).unwrap_or(0.0);
    // Detectors count the translation along the beam or against it.
    let distance = distance.abs();
    if number(config, "detector_distance") == 0.0 {
        config.insert("detector_distance".to_owned(), json!(distance));
    }
}

/// Returns a value as JSON. `None` for bytes and arrays, which headers have in other parts.
fn said(value: &MetadataValue) -> Option<Value> {
    match value {
        MetadataValue::Null => Some(Value::Null),
        MetadataValue::Bool(value) => Some(json!(value)),
        MetadataValue::Integer(number) => i64::try_from(*number)
            .map(|number| json!(number))
            .or_else(|_| u64::try_from(*number).map(|number| json!(number)))
            .ok(),
        MetadataValue::Float(number) => Some(json!(number)),
        MetadataValue::Text(text) => Some(json!(text)),
        MetadataValue::List(values) => values.iter().map(said).collect(),
        MetadataValue::Map(fields) => {
            let said = |field: &MetadataField| Some((field.name.clone(), said(&field.value)?));
            Some(Value::Object(fields.iter().filter_map(said).collect()))
        }
        MetadataValue::Bytes(_) | MetadataValue::Array(_) => None,
    }
}
