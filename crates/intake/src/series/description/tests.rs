//! Tests of descriptions against both versions of the stream.

use super::*;
use nilometer_wire::series::SeriesName;

fn described(fields: Vec<MetadataField>) -> DescribedSeries {
    let start = SeriesStart {
        series: SeriesName { number: 1, unique: "a series".into() },
        images: 6,
        shape: vec![64, 80],
        element: ElementType::Uint16,
        channels: vec!["threshold_1".into()],
        fields,
    };
    DescribedSeries::of(&start, &ZmqMessage::default(), "detector")
}

fn float(name: &str, number: f64) -> MetadataField {
    MetadataField::new(name, MetadataValue::Float(number))
}

fn translation(axes: &[f64]) -> MetadataField {
    let axes = axes.iter().map(|metres| MetadataValue::Float(*metres)).collect();
    MetadataField::new("detector_translation", MetadataValue::List(axes))
}

#[test]
fn the_distance_is_positive_in_either_direction_of_counting() {
    let distance = |fields| described(fields).description.distance;
    assert_eq!(distance(vec![translation(&[0.0, 0.0, 0.15])]), Some(0.15));
    assert_eq!(distance(vec![translation(&[-0.02, 0.01, -0.1525])]), Some(0.1525));
    assert_eq!(distance(vec![translation(&[0.0, 0.0, 0.0])]), None);
    assert_eq!(distance(vec![translation(&[0.0, 0.0])]), None);
    assert_eq!(distance(vec![translation(&[0.0, 0.0, f64::NAN])]), None);
    assert_eq!(distance(vec![float("detector_distance", -0.2)]), Some(0.2));
    let both = vec![float("detector_distance", 0.2), translation(&[0.0, 0.0, -0.15])];
    assert_eq!(distance(both), Some(0.2));
    let unset = vec![float("detector_distance", 0.0), translation(&[0.0, 0.0, -0.15])];
    assert_eq!(distance(unset), Some(0.15));
    let whole = MetadataValue::List([0, 0, -1].map(MetadataValue::Integer).into());
    assert_eq!(distance(vec![MetadataField::new("detector_translation", whole)]), Some(1.0));
}

#[test]
fn the_wavelength_follows_from_the_energy_of_the_photons() {
    let wavelength = |fields| described(fields).description.wavelength;
    let energy = || float("incident_energy", 12_398.419_84);
    assert_eq!(wavelength(vec![energy()]), Some(1.0));
    assert_eq!(wavelength(vec![float("wavelength", 0.0), float("photon_energy", 6_199.209_92)]), Some(2.0));
    assert_eq!(wavelength(vec![float("incident_wavelength", 0.97), energy()]), Some(0.97));
    assert_eq!(wavelength(vec![float("incident_energy", 0.0)]), None);
}

#[test]
fn numbers_in_texts_are_read_and_other_values_stay_and_are_counted() {
    let field = MetadataField::new;
    let text = |text: &str| MetadataValue::Text(text.into());
    let fields = vec![
        field("frame_time", text("0.01")),
        field("beam_center_x", text("40.5")),
        float("beam_center_y", 30.5),
        float("bit_depth_readout", 16.0),
        float("saturation_value", 2.5),
        field("detector_serial_number", MetadataValue::Integer(1234)),
        field("sensor_thickness", text("thick")),
        field("count_time", MetadataValue::Null),
        field("sensor_material", MetadataValue::Integer(14)),
    ];
    let unread: Vec<_> = unread_values(&fields).iter().map(ToString::to_string).collect();
    assert_eq!(unread, ["sensor_thickness: must be a number", "sensor_material: must be a text"]);
    let read = described(fields);
    assert_eq!(read.description.frame_time, Some(0.01));
    assert_eq!(read.description.beam_center, Some(BeamCenter { x: 40.5, y: 30.5 }));
    assert_eq!((read.description.bit_depth, read.description.saturation), (Some(16), None));
    assert_eq!(read.description.serial_number.as_deref(), Some("1234"));
    let kept: Vec<_> = read.description.metadata.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["saturation_value", "sensor_thickness", "sensor_material"] {
        assert!(kept.contains(&name), "{name}: {kept:?}");
    }
}

#[test]
fn serial_number_and_threshold_come_from_both_versions() {
    let text = |name: &str| MetadataField::new(name, MetadataValue::Text("E-32-0123".into()));
    let newer = |energies: &[f64]| {
        let channels = energies.iter().enumerate();
        let channels = channels.map(|(number, energy)| float(&format!("threshold_{number}"), *energy));
        let energies = MetadataValue::Map(channels.collect());
        let description =
            described(vec![text("detector_serial_number"), MetadataField::new("threshold_energy", energies)]);
        (description.description.serial_number, description.description.threshold_energy)
    };
    let serial = Some("E-32-0123".to_owned());
    assert_eq!(newer(&[6350.0]), (serial.clone(), Some(6350.0)));
    assert_eq!(
        newer(&[6350.0, 12_000.0]),
        (serial.clone(), None),
        "several thresholds have no single energy"
    );
    let older = described(vec![text("detector_number"), float("threshold_energy", 4020.5)]).description;
    assert_eq!((older.serial_number, older.threshold_energy), (serial, Some(4020.5)));
    let kept: Vec<_> = older.metadata.iter().map(|(name, _)| name.as_str()).collect();
    assert!(kept.contains(&"detector_number") && kept.contains(&"threshold_energy"), "{kept:?}");
}

#[test]
fn corrections_come_from_both_versions() {
    let said = |fields: &[(&str, MetadataValue)]| {
        let fields = fields.iter().map(|(name, value)| MetadataField::new(name, value.clone()));
        described(fields.collect()).description.corrections
    };
    let newer = said(&[
        ("flatfield_enabled", MetadataValue::Bool(true)),
        ("virtual_pixel_interpolation_enabled", MetadataValue::Bool(false)),
    ]);
    assert_eq!(newer, [(FrameCorrection::Flatfield, true), (FrameCorrection::VirtualPixels, false)]);
    let older = said(&[
        ("countrate_correction_applied", MetadataValue::Integer(1)),
        ("pixel_mask_applied", MetadataValue::Bool(true)),
        ("flatfield_correction_applied", MetadataValue::Text("yes".into())),
    ]);
    assert_eq!(older, [(FrameCorrection::CountRate, true), (FrameCorrection::PixelMask, true)]);
}

#[test]
fn axes_come_from_the_map_of_version_2() {
    let axis = |name: &str, fields| MetadataField::new(name, MetadataValue::Map(fields));
    let stated = vec![
        axis("omega", vec![float("start", 90.0), float("increment", 0.1)]),
        axis("chi", vec![MetadataField::new("start", MetadataValue::Integer(30))]),
        axis("two_theta", vec![float("increment", 0.1)]),
        axis("unknown", vec![float("start", 1.0), float("increment", 0.1)]),
    ];
    let description = described(vec![axis("goniometer", stated)]).description;
    let turned = |axis, start, increment| AxisRotation { axis, start, increment };
    let expected = [turned(GoniometerAxis::Chi, 30.0, 0.0), turned(GoniometerAxis::Omega, 90.0, 0.1)];
    assert_eq!(description.rotations, expected);
    let kept: Vec<_> = description.metadata.iter().map(|(name, _)| name.as_str()).collect();
    assert!(kept.contains(&"goniometer/omega/increment"), "{kept:?}");
}

#[test]
fn axes_come_from_the_fields_of_version_1() {
    let fields = vec![
        float("omega_start", -10.0),
        float("omega_increment", 0.25),
        float("phi_start", 0.0),
        float("kappa_start", f64::INFINITY),
    ];
    let turned = |axis, start, increment| AxisRotation { axis, start, increment };
    let expected = [turned(GoniometerAxis::Phi, 0.0, 0.0), turned(GoniometerAxis::Omega, -10.0, 0.25)];
    assert_eq!(described(fields).description.rotations, expected);
}
