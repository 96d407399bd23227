//! Tests of layouts in both forms, and of the trees made from them.

use std::{fs, path::Path};

use super::*;
use crate::{
    nexus::RecorderColumn,
    tree::{
        ColumnElement, DatasetContent, FrameChoice, FrameColumn, FrameValue, FramesShape, NumberArray,
        NumberType, TreeDataset, TreeGroup, TreeNode,
    },
};

mod mistakes;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/hdf5-layout").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn xml(text: &str) -> Hdf5Layout {
    Hdf5Layout::from_xml("a.xml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn toml(text: &str) -> Hdf5Layout {
    Hdf5Layout::from_toml("a.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn contents() -> LayoutContents {
    let frames = FramesShape {
        element: NumberType::Uint16,
        frame: vec![3, 4],
        scan: Vec::new(),
        first_max: None,
        chunk: Vec::new(),
        stack: 1,
        packed_12: false,
        filter: None,
        fill: None,
    };
    let mut attributes = FrameAttribute::of_every_frame();
    attributes.extend(FrameAttribute::of_the_recorder());
    attributes.push(FrameAttribute::joined("SampleAngle", ColumnElement::FLOAT));
    attributes.push(FrameAttribute::joined("ImageKey", ColumnElement::INT));
    attributes.extend(FrameAttribute::of_the_end());
    attributes.push(FrameAttribute::stated("Energy", NumberArray::float(12.5).into()));
    attributes.push(FrameAttribute::stated("ColorMode", NumberArray::int(0).into()));
    LayoutContents { frames, attributes }
}

fn dataset<'a>(tree: &'a TreeGroup, path: &str) -> &'a TreeDataset {
    match tree.find(path) {
        Some(TreeNode::Dataset(dataset)) => dataset,
        other => panic!("{path}: {other:?}"),
    }
}

fn said<'a>(dataset: &'a TreeDataset, name: &str) -> Option<&'a TreeValue> {
    dataset.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
}

/// Sorts members: XML keeps the order of the file, TOML the order of names.
fn sorted(group: &TreeGroup) -> TreeGroup {
    let mut group = group.clone();
    group.attributes.sort_by(|a, b| a.name.cmp(&b.name));
    group.members.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, node) in &mut group.members {
        if let TreeNode::Group(below) = node {
            *below = sorted(below);
        }
    }
    group
}

#[test]
fn the_default_of_areadetector_is_the_same_in_both_forms() {
    let [from_xml, from_toml] = [xml(&example("default.xml")), toml(&example("default.toml"))];
    assert_eq!(from_xml.warnings, []);
    let [planned, other] = [from_xml.tree(&contents()), from_toml.tree(&contents())];
    assert_eq!(sorted(&planned.tree), sorted(&other.tree));
    assert_eq!(planned.left_out, Vec::<String>::new());
    assert_eq!(planned.frames.paths, ["/entry/instrument/detector/data"]);
    let TreeNode::HardLink(target) = planned.tree.find("/entry/data/data").expect("a link") else {
        panic!("no link")
    };
    assert_eq!(target, "/entry/instrument/detector/data");
    let data = dataset(&planned.tree, target);
    assert!(matches!(data.content, DatasetContent::Frames(_)));
    assert_eq!(said(data, "signal"), Some(&constant::alone(constant::int_row(&[1]))));
}

#[test]
fn attributes_without_a_place_go_where_the_layout_wants_them() {
    let planned = xml(&example("default.xml")).tree(&contents());
    let free = "/entry/instrument/NDAttributes";
    for name in
        ["NDArrayUniqueId", "NDArrayTimeStamp", "NDArrayEpicsTSSec", "NDArrayEpicsTSnSec", "SampleAngle"]
    {
        let made = dataset(&planned.tree, &format!("{free}/{name}"));
        assert!(matches!(&made.content, DatasetContent::Column(column) if column.key == name), "{name}");
        assert_eq!(said(made, "NDAttrName"), Some(&TreeValue::Text(name.into())));
    }
    for column in RecorderColumn::ALL {
        let made = dataset(&planned.tree, &format!("{free}/{}", column.key()));
        assert_eq!(made.content, DatasetContent::Column(column.column()));
    }
    let id = dataset(&planned.tree, &format!("{free}/NDArrayUniqueId"));
    for name in ["NDAttrDescription", "NDAttrSourceType", "NDAttrSource"] {
        assert!(said(id, name).is_some(), "{name}");
    }
    assert!(planned.tree.find(&format!("{free}/ColorMode")).is_none(), "it has a place of its own");
    let root =
        "<hdf5_layout AUTO><group name='a'><dataset name='d' source='detector'/></group></hdf5_layout>";
    let at_root = xml(&root.replace("AUTO", "")).tree(&contents());
    assert!(matches!(dataset(&at_root.tree, "/NDArrayUniqueId").content, DatasetContent::Column(_)));
    let nowhere = xml(&root.replace("AUTO", "auto_ndattr_default='false'")).tree(&contents());
    assert_eq!(nowhere.tree.members.len(), 1);
}

#[test]
fn frames_go_to_the_dataset_that_they_name() {
    let text = "<hdf5_layout><global name='detector_data_destination' ndattribute='FrameKind'/><group name='exchange'>
        <dataset name='data' source='detector' det_default='true'/>
        <dataset name='data_white' source='detector'/>
        <dataset name='data_dark' source='detector'/></group></hdf5_layout>";
    let layout = xml(text);
    assert!(layout.has_several() && layout.warnings.is_empty(), "{layout:?}");
    let frames = layout.tree(&contents()).frames;
    assert_eq!(frames.destination.as_deref(), Some("FrameKind"));
    assert_eq!(frames.paths, ["/exchange/data", "/exchange/data_white", "/exchange/data_dark"]);
    assert_eq!(frames.default, 0);
    assert_eq!(frames.named("exchange/data_dark"), Some(2));
    assert_eq!(frames.named("/exchange/data_grey"), None);
    let second = "<group name='a'><dataset name='b' source='detector'/><dataset name='c' source='detector' det_default='true'/></group>";
    assert_eq!(xml(second).tree(&contents()).frames.default, 1);
    // If no dataset is marked as the default, it is the first by its path, as in areaDetector, and not the first
    // in the file.
    let unsaid = text.replace(" det_default='true'", "").replace("'data'", "'last'");
    let layout = xml(&unsaid);
    assert_eq!(layout.tree(&contents()).frames.default, 2);
    let [warning] = &layout.warnings[..] else { panic!("{:?}", layout.warnings) };
    assert!(warning.what.contains("go to /exchange/data_dark") && warning.place.line == 3, "{warning:?}");
    let nothing_says =
        xml(&text.replace("<global name='detector_data_destination' ndattribute='FrameKind'/>", ""));
    assert!(nothing_says.warnings[0].what.contains("no `detector_data_destination`"), "{nothing_says:?}");
}

#[test]
fn texts_of_frames_are_asked_for_by_their_type() {
    let xml = xml("<group name='g' ndattr_default='true'><dataset name='d' source='detector'/>\
         <dataset name='s' source='ndattribute' ndattribute='Sample' type='string'/></group>");
    let toml = "[groups]\n\"/g\" = { ndattr_default = true }\n[datasets]\n\"/g/d\" = { detector = true }\n\
                \"/g/s\" = { ndattribute = \"Sample\", type = \"string\" }\n";
    let toml = Hdf5Layout::from_toml("t", toml).expect("it is one");
    for layout in [xml, toml] {
        assert_eq!(layout.attribute_names(), [("Sample".to_owned(), Some(ColumnElement::TEXT))]);
        let attributes = vec![FrameAttribute::joined("Sample", ColumnElement::TEXT)];
        let planned = layout.tree(&LayoutContents { frames: contents().frames, attributes });
        let made = dataset(&planned.tree, "/g/s");
        let is_text = |column: &FrameColumn| column.element.is_text() && column.fill.is_empty();
        assert!(matches!(&made.content, DatasetContent::Column(column) if is_text(column)), "{made:?}");
    }
}

#[test]
fn the_exchange_of_a_tomography_scan_has_a_dataset_for_each_kind_of_frames() {
    let layout = xml(&example("exchange.xml"));
    assert!(layout.has_several() && layout.warnings.is_empty(), "{layout:?}");
    let frames = layout.tree(&contents()).frames;
    assert_eq!(frames.paths, ["/exchange/data", "/exchange/data_white", "/exchange/data_dark"]);
    assert_eq!((frames.default, frames.destination.as_deref()), (0, Some("FrameType")));
}

#[test]
fn a_tomography_scan_is_a_dataset_of_frames_with_a_key_for_each() {
    let layout = xml(&example("tomography.xml"));
    assert_eq!((layout.warnings.as_slice(), layout.has_several()), (&[][..], false));
    let names = layout.attribute_names();
    assert!(names.contains(&("SampleAngle".into(), None)), "{names:?}");
    assert!(names.contains(&("ImageKey".into(), Some(ColumnElement::INT))), "{names:?}");
    let planned = layout.tree(&contents());
    assert_eq!(planned.frames.paths, ["/entry/instrument/detector/data"]);
    let angle = dataset(&planned.tree, "/entry/sample/rotation_angle");
    assert!(matches!(&angle.content, DatasetContent::Column(column) if column.key == "SampleAngle"));
    assert_eq!(said(angle, "units"), Some(&"deg".into()));
    let energy = dataset(&planned.tree, "/entry/instrument/beam/incident_energy");
    assert_eq!(energy.content, DatasetContent::Value(NumberArray::float(12.5).into(), WriteTime::Opening));
    let size = dataset(&planned.tree, "/entry/instrument/detector/x_pixel_size");
    assert_eq!(size.content, DatasetContent::Value(NumberArray::float(0.65e-6).into(), WriteTime::Opening));
}

#[test]
fn what_nothing_is_known_of_is_left_out_with_a_word() {
    let text = "<hdf5_layout auto_ndattr_default='false'><group name='a'>
        <attribute name='close' source='ndattribute' ndattribute='Energy' when='OnFileClose'/>
        <attribute name='nobody' source='ndattribute' ndattribute='Nobody'/>
        <dataset name='d' source='detector'/>
        <dataset name='nobody' source='ndattribute' ndattribute='Nobody'/>
        <dataset name='first' source='ndattribute' ndattribute='SampleAngle' when='OnFileOpen'/>
        <dataset name='last' source='ndattribute' ndattribute='Energy' when='OnFileClose'/>
        <hardlink name='link' target='/a/nobody'/>
        </group></hdf5_layout>";
    let planned = xml(text).tree(&contents());
    let words: Vec<_> =
        planned.left_out.iter().map(|word| word.split(':').next().unwrap_or_default()).collect();
    assert_eq!(words, ["/a@nobody", "/a/nobody", "/a/link"]);
    let wanted = FrameValue { key: "SampleAngle".into(), of: FrameChoice::First };
    let first = dataset(&planned.tree, "/a/first");
    assert_eq!(first.content, DatasetContent::Value(TreeValue::AtEnd(wanted), WriteTime::Closing));
    let last = dataset(&planned.tree, "/a/last");
    assert_eq!(last.content, DatasetContent::Value(NumberArray::float(12.5).into(), WriteTime::Closing));
    let Some(TreeNode::Group(group)) = planned.tree.find("/a") else { panic!("no group") };
    assert_eq!(group.attributes[0].when, WriteTime::Closing);
}

#[test]
fn links_lead_to_objects_whatever_the_order_and_through_each_other() {
    let text = "<group name='a'><hardlink name='first' target='/a/second/x'/><hardlink name='second' target='/b'/></group>";
    let b = "<group name='b'><dataset name='x' source='detector'/><group name='at' ndattr_default='true'/></group>";
    let more = "<group name='c'><hardlink name='id' target='b/at/NDArrayUniqueId'/></group>";
    let planned = xml(&format!("<hdf5_layout>{text}{b}{more}</hdf5_layout>")).tree(&contents());
    for (path, end) in [("/a/first", "/b/x"), ("/a/second", "/b"), ("/c/id", "/b/at/NDArrayUniqueId")] {
        assert_eq!(planned.tree.find(path), Some(&TreeNode::HardLink(end.into())), "{path}");
    }
}

#[test]
fn constants_are_of_the_type_that_is_said() {
    let row = |ints: &[i32]| constant::alone(constant::int_row(ints));
    for (kind, text, expected) in [
        ("int", "5", row(&[5])),
        ("int", "1,2, 3", row(&[1, 2, 3])),
        ("int", "1 2,", row(&[1, 2])),
        ("float", "1.5", NumberArray::float(1.5).into()),
        ("float", "1,2e3", NumberArray::floats(&[1.0, 2000.0]).into()),
        ("string", "1,2", "1,2".into()),
        ("string", "", "".into()),
        ("string", "&lt;&#181;m&gt;", "<µm>".into()),
    ] {
        let text = format!(
            "<group name='g'><dataset name='d' source='detector'/><dataset name='c' source='constant' type='{kind}' value='{text}'/></group>"
        );
        let planned = xml(&text).tree(&contents());
        assert_eq!(
            dataset(&planned.tree, "/g/c").content,
            DatasetContent::Value(expected, WriteTime::Opening),
            "{text}"
        );
    }
}

#[test]
fn toml_says_constants_by_their_own_types() {
    let text = r#"
        [datasets]
        "/d" = { detector = true, attributes = { first = { ndattribute = "Energy" }, big = 5000000000, list = ["a", "b"] } }
        "/g/mixed" = { constant = [1, 2.5] }
        "/g/row" = { constant = [1] }
        "/g/angle" = { ndattribute = "SampleAngle" }
    "#;
    let planned = toml(text).tree(&contents());
    assert_eq!(planned.frames.paths, ["/d"]);
    let frames = dataset(&planned.tree, "/d");
    assert_eq!(said(frames, "first"), Some(&NumberArray::float(12.5).into()));
    assert_eq!(said(frames, "big"), Some(&NumberArray::int(5_000_000_000).into()));
    assert_eq!(said(frames, "list"), Some(&TreeValue::Texts(vec!["a".into(), "b".into()])));
    let value = |path| dataset(&planned.tree, path).content.clone();
    assert_eq!(
        value("/g/mixed"),
        DatasetContent::Value(NumberArray::floats(&[1.0, 2.5]).into(), WriteTime::Opening)
    );
    assert_eq!(value("/g/row"), DatasetContent::Value(constant::int_row(&[1]).into(), WriteTime::Opening));
    assert!(matches!(value("/g/angle"), DatasetContent::Column(_)));
}

#[test]
fn files_come_in_the_encodings_that_libxml2_reads() {
    let text = |encoding: &str| {
        format!(
            "<?xml version='1.0' encoding='{encoding}'?><group name='g'><dataset name='d' source='detector'/><attribute name='µ' source='constant' value='Ångström'/></group>"
        )
    };
    let latin1 = text("ISO-8859-1").chars().map(|letter| letter as u8).collect();
    let utf16 =
        [0xfeff].into_iter().chain(text("UTF-16").encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let mut marked = vec![0xef, 0xbb, 0xbf];
    marked.extend(text("UTF-8").bytes());
    for bytes in [text("UTF-8").into_bytes(), marked, latin1, utf16] {
        let layout = Hdf5Layout::from_xml("a.xml", &bytes).unwrap_or_else(|error| panic!("{error}"));
        let LayoutMember::Group(group) = &layout.root.members[0] else { panic!("no group") };
        assert_eq!(group.attributes[0].name, "µ");
        assert_eq!(group.attributes[0].value, AttributeValue::Constant("Ångström".into()));
    }
}

#[test]
fn the_examples_of_the_documentation_are_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hdf5-layout.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let block = |language: &str| {
        let (_, rest) = text.split_once(&format!("```{language}\n")).expect("an example");
        rest.split("```").next().unwrap_or_default().to_owned()
    };
    let [from_xml, from_toml] = [xml(&block("xml")), toml(&block("toml"))];
    assert_eq!(from_xml.warnings, []);
    let [planned, other] = [from_xml.tree(&contents()), from_toml.tree(&contents())];
    assert_eq!(planned.frames, other.frames);
    for planned in [planned, other] {
        assert_eq!(planned.left_out, Vec::<String>::new());
        assert_eq!(planned.tree.find("/exchange/images"), Some(&TreeNode::HardLink("/exchange/data".into())));
        assert!(planned.tree.find("/frames/NDArrayUniqueId").is_some());
    }
}
