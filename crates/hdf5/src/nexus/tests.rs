//! The values in the trees, whether stated or not.

use super::*;
use crate::tree::{
    DatasetContent, MovedPart, NumberArray, NumberType, TreeGroup, TreeNode, TreeValue, WriteTime,
};

const START: &str = "2026-06-30T23:59:59Z";

fn least() -> DetectorDescription {
    DetectorDescription::new("eiger2-16m", START, NumberType::Uint32, &[4362, 4148])
}

fn text<'a>(tree: &'a TreeGroup, path: &str) -> Option<&'a str> {
    match tree.find(path)? {
        TreeNode::Dataset(dataset) => match &dataset.content {
            DatasetContent::Value(TreeValue::Text(text), _) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn texts(tree: &TreeGroup, path: &str) -> Vec<String> {
    match tree.find(path) {
        Some(TreeNode::Dataset(dataset)) => match &dataset.content {
            DatasetContent::Value(TreeValue::Texts(texts), _) => texts.clone(),
            other => panic!("{path}: {other:?}"),
        },
        _ => Vec::new(),
    }
}

fn number(tree: &TreeGroup, path: &str) -> f64 {
    match tree.find(path) {
        Some(TreeNode::Dataset(dataset)) => match &dataset.content {
            DatasetContent::Value(TreeValue::Numbers(array), _) => {
                f64::from_le_bytes(array.bytes[..].try_into().expect("one number"))
            }
            other => panic!("{path}: {other:?}"),
        },
        other => panic!("{path}: {other:?}"),
    }
}

/// The attribute of a dataset that names the link below it.
fn below(tree: &TreeGroup, path: &str) -> String {
    let Some(TreeNode::Dataset(dataset)) = tree.find(path) else { panic!("no {path}") };
    let attribute =
        dataset.attributes.iter().find(|attribute| attribute.name == "depends_on").expect("a link");
    let TreeValue::Text(text) = &attribute.value else { panic!("{attribute:?}") };
    text.clone()
}

/// A detector of two modules of 2 x 4 pixels, each of two chips, one row apart.
fn of_modules() -> DetectorDescription {
    let part = |module: u64, column: u64| {
        MovedPart::upright(
            vec![module..module + 1, 0..2, column..column + 2],
            vec![module * 3..module * 3 + 2, column / 2 * 3..column / 2 * 3 + 2],
        )
    };
    let parts = vec![part(0, 0), part(0, 2), part(1, 0), part(1, 2)];
    let image = ModuleImage { size: [5, 5], origins: vec![[0, 0], [3, 0]], module: [2, 5], parts };
    DetectorDescription { shape: vec![2, 2, 4], image: Some(image), ..least() }
}

fn array<'a>(tree: &'a TreeGroup, path: &str) -> &'a NumberArray {
    let Some(TreeNode::Dataset(dataset)) = tree.find(path) else { panic!("no {path}") };
    let DatasetContent::Value(TreeValue::Numbers(array), _) = &dataset.content else { panic!("{path}") };
    array
}

#[test]
fn modules_are_shown_as_an_image_with_a_mask_of_its_gaps() {
    let tree = nxmx(&of_modules());
    let frames = tree.frames();
    assert_eq!(frames.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [MODULES_PATH]);
    assert_eq!(tree.shown_frames(MODULES_PATH), Some((FRAMES_PATH.into(), vec![5, 5])));
    let mask = array(&tree, "/entry/instrument/detector/pixel_mask");
    assert_eq!(mask.shape, [5, 5]);
    let gaps: Vec<u32> = mask.bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let row = [0, 0, 1, 0, 0];
    assert_eq!(gaps, [row, row, [1; 5], row, row].concat());
    let module = "/entry/instrument/detector/modules/module_1";
    assert_eq!(array(&tree, &format!("{module}/data_origin")), &NumberArray::ints(&[3, 0]));
    assert_eq!(array(&tree, &format!("{module}/data_size")), &NumberArray::ints(&[2, 5]));
    let whole = array(&tree, "/entry/instrument/detector/module/data_size");
    assert_eq!(whole, &NumberArray::ints(&[5, 5]));
}

#[test]
fn corrections_are_said_only_if_the_detector_says_them() {
    let corrections = vec![(FrameCorrection::Flatfield, true), (FrameCorrection::PixelMask, false)];
    let tree = nxmx(&DetectorDescription { corrections, flatfield: Some(vec![1.0; 3]), ..least() });
    let said = |name: &str| match tree.find(&format!("/entry/instrument/detector/{name}")) {
        Some(TreeNode::Dataset(dataset)) => Some(dataset.content.clone()),
        _ => None,
    };
    let truth = |truth| Some(DatasetContent::Value(TreeValue::Truth(truth), WriteTime::Opening));
    assert_eq!(said("flatfield_applied"), truth(true));
    assert_eq!(said("pixel_mask_applied"), truth(false));
    assert_eq!(said("countrate_correction_applied"), None);
    assert_eq!(said("flatfield"), None, "it has another size than a frame");
}

#[test]
fn what_is_demanded_and_was_not_stated_is_said_to_be_so() {
    let tree = nxmx(&least());
    let listed = texts(&tree, "/entry/instrument/nilometer/not_stated");
    assert_eq!(listed.len(), 9, "{listed:?}");
    for path in &listed {
        assert!(tree.find(path).is_some(), "{path} is demanded");
    }
    assert_eq!(text(&tree, "/entry/sample/name"), Some("not stated"));
    assert!(number(&tree, "/entry/instrument/beam/incident_wavelength").is_nan());
    assert!(tree.find("/entry/instrument/detector/distance").is_none(), "not demanded, not stated");
    assert_eq!(text(&tree, "/entry/end_time_estimated"), Some(START));
    let stated = DetectorDescription {
        sample: Some("lysozyme".into()),
        wavelength: Some(0.979),
        pixel_size: Some(PixelSize { fast: 75e-6, slow: 75e-6 }),
        ..least()
    };
    let tree = nxmx(&stated);
    assert_eq!(texts(&tree, "/entry/instrument/nilometer/not_stated").len(), 5);
    assert_eq!(text(&tree, "/entry/sample/name"), Some("lysozyme"));
    assert!(texts(&nexus_plain(&least()), "/entry/instrument/nilometer/not_stated").is_empty());
}

#[test]
fn the_chain_of_translations_leaves_out_what_was_not_stated() {
    const FAST: &str = "/entry/instrument/detector/module/fast_pixel_direction";
    const CORNER: &str = "/entry/instrument/detector/transformations/corner";
    const DISTANCE: &str = "/entry/instrument/detector/transformations/distance";
    let mut detector = least();
    assert_eq!(below(&nxmx(&detector), FAST), ".");
    detector.distance = Some(0.2);
    assert_eq!(below(&nxmx(&detector), FAST), DISTANCE);
    detector.pixel_size = Some(PixelSize { fast: 75e-6, slow: 75e-6 });
    detector.beam_center = Some(BeamCenter { x: 30.0, y: 40.0 });
    let tree = nxmx(&detector);
    assert_eq!([below(&tree, FAST), below(&tree, CORNER), below(&tree, DISTANCE)], [CORNER, DISTANCE, "."]);
    assert!((number(&tree, CORNER) - 50.0 * 75e-6).abs() < 1e-12);
    detector.distance = None;
    assert_eq!(below(&nxmx(&detector), CORNER), ".");
}

#[test]
fn a_mask_that_is_not_one_of_these_frames_is_left_out() {
    let mut detector = DetectorDescription::new("small", START, NumberType::Uint8, &[2, 3]);
    detector.pixel_mask = Some(vec![0; 6]);
    assert!(nxmx(&detector).find("/entry/instrument/detector/pixel_mask").is_some());
    detector.pixel_mask = Some(vec![0; 5]);
    assert!(nxmx(&detector).find("/entry/instrument/detector/pixel_mask").is_none());
}

#[test]
fn images_and_mask_stand_where_files_of_the_maker_have_them() {
    const SPECIFIC: &str = "/entry/instrument/detector/detectorSpecific";
    let whole = |tree: &TreeGroup, name: &str| match tree.find(&format!("{SPECIFIC}/{name}")) {
        Some(TreeNode::Dataset(dataset)) => dataset.content.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let number = |number| DatasetContent::Value(NumberArray::uint(number).into(), WriteTime::Opening);
    let mut detector = DetectorDescription::new("small", START, NumberType::Uint8, &[2, 3]);
    assert!(nxmx(&detector).find(SPECIFIC).is_none(), "nobody knows how many images come");
    detector.frames = Some(12);
    detector.channels = 2;
    let tree = nxmx(&detector);
    assert_eq!([whole(&tree, "nimages"), whole(&tree, "ntrigger")], [number(6), number(1)]);
    assert!(tree.find(&format!("{SPECIFIC}/pixel_mask")).is_none(), "nobody stated one");
    detector.pixel_mask = Some(vec![0; 6]);
    let link = TreeNode::HardLink("/entry/instrument/detector/pixel_mask".into());
    assert_eq!(nxmx(&detector).find(&format!("{SPECIFIC}/pixel_mask")), Some(&link));
    let scan =
        DetectorDescription { frames: None, channels: 1, scan: vec![3], first_max: Some(4), ..detector };
    assert_eq!(whole(&nxmx(&scan), "nimages"), number(12));
}

#[test]
fn the_users_own_values_make_groups_and_the_later_stays() {
    let mut detector = least();
    detector.metadata = vec![
        ("proposal".into(), "mx1".into()),
        ("beam/../size".into(), "10".into()),
        ("proposal".into(), "mx2".into()),
        ("size/x".into(), "1".into()),
        ("beam".into(), "on".into()),
        (String::new(), "nowhere".into()),
    ];
    for tree in [nxmx(&detector), nexus_plain(&detector)] {
        assert_eq!(text(&tree, "/entry/metadata/proposal"), Some("mx2"));
        assert_eq!(text(&tree, "/entry/metadata/size/x"), Some("1"));
        assert_eq!(text(&tree, "/entry/metadata/beam"), Some("on"));
    }
}

#[test]
fn each_column_has_a_fill_of_its_type_and_says_what_it_is() {
    for column in RecorderColumn::ALL {
        let described = column.column();
        assert_eq!(described.fill.len(), described.element.bytes(), "{column:?}");
        let dataset = column.dataset();
        assert!(dataset.attributes.iter().any(|attribute| attribute.name == "description"), "{column:?}");
        let path = format!("{RECORDER_PATH}/{}", column.key());
        assert_eq!(nxmx(&least()).find(&path), Some(&TreeNode::Dataset(dataset)));
    }
}

#[test]
fn what_is_added_at_the_end_stands_in_groups_that_are_there() {
    let totals = RecordingTotals { end_time: Some(START.into()), whole: 7, ..RecordingTotals::default() };
    let added = closing(&totals);
    for path in ["/entry/end_time", "/entry/instrument/nilometer/frames_whole"] {
        let Some(TreeNode::Dataset(dataset)) = added.find(path) else { panic!("no {path}") };
        assert!(matches!(dataset.content, DatasetContent::Value(_, WriteTime::Closing)), "{path}");
        let (group, _) = path.rsplit_once('/').expect("a group");
        for tree in [nxmx(&least()), nexus_plain(&least())] {
            assert!(matches!(tree.find(group), Some(TreeNode::Group(_))), "{group}");
            assert!(tree.find(path).is_none(), "{path} is there already");
        }
    }
    assert!(closing(&RecordingTotals::default()).find("/entry/end_time").is_none());
}
