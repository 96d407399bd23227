//! Temperatures, from the kernel's hardware monitors (Documentation/hwmon/sysfs-interface.rst).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The sensors of a machine, by name.
#[derive(Debug, Default)]
pub(super) struct Thermometers(Vec<(String, PathBuf)>);

/// Drivers that query the disk for its temperature: that would be a request to the observed device.
const OF_DISKS: [&str; 2] = ["drivetemp", "nvme"];

impl Thermometers {
    pub(super) fn found() -> Self {
        Thermometers::below(Path::new("/sys/class/hwmon"))
    }

    fn below(folder: &Path) -> Self {
        let mut sensors: Vec<(String, PathBuf)> = Vec::new();
        for monitor in paths(folder) {
            let name = text(&monitor.join("name")).unwrap_or_default();
            if !OF_DISKS.contains(&name.as_str()) {
                sensors.extend(inputs(&monitor).map(|input| (sensor_name(&name, &input), input)));
            }
        }
        Thermometers(sensors)
    }

    /// Returns degrees Celsius by sensor, without sensors that give nothing.
    pub(super) fn read(&self) -> BTreeMap<String, f64> {
        let degrees = |path: &Path| text(path)?.parse::<f64>().ok().map(|millis| millis / 1000.0);
        self.0.iter().filter_map(|(name, path)| Some((name.clone(), degrees(path)?))).collect()
    }
}

/// Returns files such as `temp1_input`.
fn inputs(monitor: &Path) -> impl Iterator<Item = PathBuf> {
    paths(monitor).into_iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("temp") && name.ends_with("_input")
    })
}

/// Returns `coretemp Core 0`, or `acpitz temp1` without a label. The monitor's number precedes it, since
/// names may repeat.
fn sensor_name(monitor: &str, input: &Path) -> String {
    let file = input.file_name().unwrap_or_default().to_string_lossy();
    let short = file.trim_end_matches("_input");
    let label = text(&input.with_file_name(format!("{short}_label"))).unwrap_or_else(|| short.to_owned());
    let folder = input.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    format!("{folder} {monitor} {label}")
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_of_disks_are_not_asked() {
        let folder = tempfile::tempdir().expect("a directory");
        for (monitor, file, said) in [
            ("hwmon0", "name", "coretemp"),
            ("hwmon0", "temp1_input", "45000"),
            ("hwmon0", "temp1_label", "Package id 0"),
            ("hwmon0", "temp2_input", "nothing"),
            ("hwmon1", "name", "drivetemp"),
            ("hwmon1", "temp1_input", "31000"),
            ("hwmon2", "name", "acpitz"),
            ("hwmon2", "temp1_input", "27800"),
        ] {
            fs::create_dir_all(folder.path().join(monitor)).expect("space");
            fs::write(folder.path().join(monitor).join(file), format!("{said}\n")).expect("space");
        }
        let read = Thermometers::below(folder.path()).read();
        let expected = [("hwmon0 coretemp Package id 0", 45.0), ("hwmon2 acpitz temp1", 27.8)];
        assert_eq!(read, expected.map(|(name, degrees)| (name.to_owned(), degrees)).into());
        assert!(Thermometers::below(Path::new("/no/such")).read().is_empty());
    }
}
