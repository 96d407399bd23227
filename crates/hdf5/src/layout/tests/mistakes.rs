//! Tests that every kind of mistake is reported with its place and the valid choices, and that no input crashes
//! the reader.

use super::*;

/// Puts a text into a group that has a dataset for frames; the mistake is in the second line.
fn in_a_group(text: &str) -> String {
    format!(
        "<hdf5_layout><group name='g'><dataset name='d' source='detector'/>\n  {text}</group></hdf5_layout>"
    )
}

#[test]
fn a_mistake_in_xml_is_an_error_at_its_place() {
    for (text, expected) in [
        ("<group/>", "2:3: this group has no `name`"),
        ("<dataset source='detector'/>", "2:3: this dataset has no `name`"),
        (
            "<dataset name='x' source='camera'/>",
            "2:3: the source `camera` is none; valid are `detector`, `ndattribute`",
        ),
        (
            "<dataset name='x' source='constant' type='int' value='1,two'/>",
            "2:57: `two` is no value here; valid are whole",
        ),
        (
            "<dataset name='x' source='constant' type='int' value='3000000000'/>",
            "2:57: `3000000000` is no value here",
        ),
        (
            "<dataset name='x' source='constant' type='float' value=''/>",
            "2:59: `` is no value here; valid are numbers as",
        ),
        ("<dataset name='d' source='detector'/>", "2:3: the name `d` is taken in this group, at 1:30"),
        ("<group name='d'/>", "2:3: the name `d` is taken in this group, at 1:30"),
        ("<group name='a/b'/>", "2:3: `a/b` is no name"),
        ("<group name=''/>", "2:3: `` is no name"),
        ("<attribute source='constant'/>", "2:3: this attribute has no `name`"),
        (
            "<attribute name='x'/>",
            "2:3: this attribute has no source; valid are `constant` and `ndattribute`",
        ),
        (
            "<attribute name='x' source='detector'/>",
            "2:3: this attribute has the source `detector`; valid are",
        ),
        ("<attribute name='' source='constant'/>", "2:3: an attribute has an empty name"),
        (
            "<attribute name='x' source='constant'/><attribute name='x' source='constant'/>",
            "2:42: the attribute `x` is there already, at 2:3",
        ),
        ("<hardlink name='x'/>", "2:3: this hardlink has no `target`"),
        ("<hardlink target='/g/d'/>", "2:3: this hardlink has no `name`"),
        (
            "<hardlink name='x' target='/g/e'/>",
            "2:3: the link leads to `/g/e`, but there is no `e` in `/g`; it has `d`, `x`",
        ),
        (
            "<hardlink name='x' target='/g/x'/>",
            "2:3: the link `x` leads to `/g/x`, from link to link without an end",
        ),
        ("<global name='detector_data_destination'/>", "2:3: this global has no `ndattribute`"),
        (
            "<dataset name='x' source='detector'><group name='y'/></dataset>",
            "2:39: a group can't stand in a dataset",
        ),
        ("<dataset name='x' source='detector'>", "2:39: this is no XML: expected 'dataset' tag, not 'group'"),
        ("<dataset name='x' name='y'/>", "2:21: this is no XML: attribute 'name' is already defined"),
        ("<!DOCTYPE x>", "2:3: a document type (DOCTYPE) is not taken here"),
        ("&auml;", "2:3: this is no XML: unknown entity reference 'auml'"),
    ] {
        let error = Hdf5Layout::from_xml("a.xml", in_a_group(text).as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("a.xml:{expected}")), "{text}\nexpected {expected}\ngot {error}");
    }
}

#[test]
fn a_file_that_is_no_layout_says_where_it_stops_to_be_one() {
    let deep = format!("{}{}", "<group name='g'>".repeat(100), "</group>".repeat(100));
    let many = format!("<a {}/>", (0..200).fold(String::new(), |all, n| format!("{all} a{n}='1'")));
    for (text, expected) in [
        ("", "1:1: this is no XML: the document does not have a root node"),
        ("layout", "1:1: this is no XML: "),
        ("<hdf5_layout/>", "1:1: no dataset is there for frames"),
        (
            "<hdf5_layout>\n<group name='g'>",
            "2:17: this is no XML: the root node was opened but never closed",
        ),
        (
            "<hdf5_layout><dataset name='d' source='detector'/></hdf5_layout>",
            "1:14: a dataset has to stand in a group",
        ),
        (
            "<hdf5_layout auto_ndattr_default='no'/>",
            "1:1: auto_ndattr_default is `no`; valid are `true` and `false`",
        ),
        ("<dataset name='d' source='detector'/>", "1:1: a dataset has to stand in a group"),
        (&deep, "1:1025: more than 64 elements stand in each other"),
        (&many, "1:2: more than 100 attributes stand in an element"),
    ] {
        let error = Hdf5Layout::from_xml("a.xml", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("a.xml:{expected}")), "{text}\nexpected {expected}\ngot {error}");
    }
    let error = Hdf5Layout::from_xml("a.xml", b"<group\n name='\xe4'/>").expect_err("Latin-1").to_string();
    assert!(error.starts_with("a.xml:2:8: these bytes are no UTF-8"), "{error}");
    let error =
        Hdf5Layout::from_xml("a.xml", &vec![b' '; text::SIZE_MAX + 1]).expect_err("too long").to_string();
    assert!(error.contains("at most 262144 are taken"), "{error}");
}

#[test]
fn what_the_schema_refuses_and_the_program_takes_is_a_warning() {
    for (text, expected) in [
        ("<dataset name='x'/>", "this dataset has no `source`: it is not made; valid are"),
        ("<dataset name='x' source='ndattribute'/>", "this dataset names no `ndattribute`: it is not made"),
        (
            "<dataset name='x' source='detector' det_defualt='true'/>",
            "`det_defualt` has no effect at a dataset; valid",
        ),
        (
            "<dataset name='x' source='detector' det_default='1'/>",
            "det_default is `1`, which areaDetector takes as `false`",
        ),
        ("<group name='x' ndattr_default='yes'/>", "ndattr_default is `yes`"),
        ("<datset name='x'/>", "the element `datset` has no effect, its content does; valid are `attribute`"),
        (
            "<dataset name='x' source='constant' type='double'/>",
            "the type `double` is taken as `string`; valid are `int`",
        ),
        (
            "<dataset name='x' source='ndattribute' ndattribute='A' when='Always'/>",
            "`Always` is no time to write, and has no effect; valid are `OnFileOpen`, `OnFileClose`, `OnFileWrite`",
        ),
        (
            "<attribute name='x' source='ndattribute' ndattribute='A' when='OnFileWrite'/>",
            "`OnFileWrite` is no time to write, and has no effect; valid are `OnFileOpen`, `OnFileClose`",
        ),
        ("<global name='detector_data_destination' ndattribute='A'/>", "a `global` stands at the top"),
    ] {
        let layout = xml(&in_a_group(text));
        let Some(warning) = layout.warnings.first() else { panic!("{text}: {layout:?}") };
        assert!(warning.what.starts_with(expected), "{text}\nexpected {expected}\ngot {}", warning.what);
        assert_eq!(warning.place, TextPlace { line: 2, column: 3 }, "{text}");
    }
    let defaults = "<dataset name='x' source='detector' det_default='true'/><dataset name='y' source='detector' det_default='true'/>";
    assert!(xml(&in_a_group(defaults)).warnings[0].what.starts_with("det_default is set already at /g/x"));
    let rootless = xml("<group name='g'><dataset name='d' source='detector'/></group>");
    assert!(rootless.warnings[0].what.starts_with("the root is `group`, not `hdf5_layout`"));
    let global = xml(
        "<hdf5_layout><global name='x' ndattribute='y'/><group name='g'><dataset name='d' source='detector'/></group></hdf5_layout>",
    );
    assert!(global.warnings[0].what.contains("valid is `detector_data_destination`"));
    let many = in_a_group(&"<x/>".repeat(1000));
    assert_eq!(xml(&many).warnings.len(), WARNINGS_MAX);
}

#[test]
fn a_mistake_in_toml_is_an_error_at_its_place() {
    for (text, expected) in [
        (
            "[datasets]\n\"/d\" = { detektor = true }",
            "2:10: unknown field `detektor`, expected one of `detector`",
        ),
        ("[dataset]\n", "1:2: unknown field `dataset`, expected one of `detector_data_destination`"),
        (
            "[groups]\n\"/g\" = { default = true }",
            "2:10: unknown field `default`, expected `ndattr_default` or `attributes`",
        ),
        (
            "[datasets]\n\"/d\" = {}",
            "2:1: `/d`: a dataset has one of `detector = true`, `ndattribute` and `constant`",
        ),
        ("[datasets]\n\"/d\" = { detector = true, constant = 1 }", "2:1: `/d`: a dataset has one of"),
        (
            "[datasets]\n\"/d\" = { constant = 1, when = \"OnFileOpen\" }",
            "2:1: `/d`: `when` goes with `ndattribute`",
        ),
        (
            "[datasets]\n\"/d\" = { constant = 1, det_default = true }",
            "2:1: `/d`: `det_default` goes with `detector = true`",
        ),
        (
            "[datasets]\n\"/d\" = { ndattribute = \"A\", when = \"now\" }",
            "2:36: unknown variant `now`, expected one of `OnFileOpen`",
        ),
        (
            "[datasets]\n\"/d\" = { constant = true }",
            "2:21: this is no value of a file; valid are a text, a number",
        ),
        ("[datasets]\n\"/d\" = { constant = [1, \"a\"] }", "2:21: this is no value of a file; valid are"),
        (
            "[datasets]\n\"d\" = { detector = true }",
            "2:1: `d` is no path of an object: it begins with a slash",
        ),
        ("[datasets]\n\"/\" = { detector = true }", "2:1: `/` is no path of an object"),
        ("[datasets]\n\"/a//d\" = { detector = true }", "2:1: `` is no name"),
        (
            "[datasets]\n\"/a\" = { detector = true }\n\"/a/d\" = { constant = 1 }",
            "3:1: `/a/d` is in `a`, which is no group, at 2:1",
        ),
        (
            "[groups]\n\"/a\" = {}\n[datasets]\n\"/a\" = { detector = true }",
            "4:1: the name `a` is taken in this group, at 2:1",
        ),
        (
            "[links]\n\"/a\" = \"/b/c\"\n[datasets]\n\"/b/d\" = { detector = true }",
            "2:1: the link leads to `/b/c`, but there is no `c` in `/b`; it has `d`",
        ),
        (
            "[groups]\n\"/a\" = { attributes = { x = { ndatribute = \"A\" } } }",
            "2:29: `ndatribute` has no effect in an attribute; valid are",
        ),
        (
            "[groups]\n\"/a\" = { attributes = { x = { when = \"OnFileOpen\" } } }",
            "2:29: this attribute names no `ndattribute`",
        ),
        (
            "[groups]\n\"/a\" = { attributes = { x = { ndattribute = \"A\", when = \"OnFileWrite\" } } }",
            "2:29: `OnFileWrite` is no time",
        ),
        ("[groups]\n\"/a\" = {}", "1:1: no dataset is there for frames"),
        ("[groups\n", "1:8: "),
    ] {
        let error = Hdf5Layout::from_toml("a.toml", text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("a.toml:{expected}")), "{text}\nexpected {expected}\ngot {error}");
    }
}

#[test]
fn whatever_is_written_gives_a_layout_or_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/hdf5-layout");
    let mut corpus = nilometer_fuzz::corpus(&folder);
    corpus.push(in_a_group("<hardlink name='x' target='/g/d'/>").into_bytes());
    corpus.push(
        b"[datasets]\n\"/d\" = { detector = true }\n[links]\n\"/a\" = \"/b\"\n\"/b\" = \"/d\"".to_vec(),
    );
    nilometer_fuzz::fuzz("layouts", corpus, |bytes| {
        if let Ok(layout) = Hdf5Layout::from_xml("a.xml", bytes) {
            layout.tree(&contents());
        }
        if let Ok(layout) = Hdf5Layout::from_toml("a.toml", &String::from_utf8_lossy(bytes)) {
            layout.tree(&contents());
        }
    });
}

/// Layouts of the maximum size, full of constructs that slow XML readers down: without bounds they would take
/// minutes.
#[test]
fn the_longest_layouts_are_over_at_once() {
    let fill = |part: &str| part.repeat(text::SIZE_MAX / part.len());
    let attributes = |n: usize| (0..n).fold(String::from("<a"), |all, n| format!("{all} a{n}='1'"));
    let numbered = |n: usize| {
        (0..n).fold(String::new(), |all, n| format!("{all}<hardlink name='{n}' target='/g/{}'/>", n + 1))
    };
    for text in [
        fill("<a>"),
        fill("<a/>"),
        fill("<a xmlns:b='c'>"),
        fill("<"),
        fill("x='"),
        in_a_group(&fill("<x y='1'/>")[..200_000 / 10 * 10]),
        in_a_group(&format!("<attribute name='a' source='constant' value='{}'/>", "=".repeat(200_000))),
        attributes(20_000),
        in_a_group(&numbered(5000)),
        fill("[a]\n"),
        fill("a=[["),
        fill("a={{}"),
        fill("[a.b"),
    ] {
        drop(Hdf5Layout::from_xml("a.xml", text.as_bytes()));
        drop(Hdf5Layout::from_toml("a.toml", &text));
    }
}

#[test]
fn what_names_the_datasets_of_frames_is_a_text_of_the_users() {
    let several = |attribute: &str, dataset: &str| {
        format!(
            "<hdf5_layout>\n<global name='detector_data_destination' ndattribute='{attribute}'/><group name='g'>\n\
             <dataset name='d' source='detector' det_default='true'/><dataset name='e' source='detector'/>\n{dataset}</group></hdf5_layout>"
        )
    };
    let number = "<dataset name='k' source='ndattribute' ndattribute='Kind' type='int'/>";
    for (text, expected) in [
        (several("flag", ""), "2:1: `flag` is a value of the recorder or the detector"),
        (several("NDArrayUniqueId", ""), "2:1: `NDArrayUniqueId` is a value"),
        (several("frame_dataset", ""), "2:1: `frame_dataset` is what"),
        (
            several("Kind", number),
            "4:1: `Kind` is the path of each frame's dataset, a text, but here a number",
        ),
    ] {
        let error = Hdf5Layout::from_xml("a.xml", text.as_bytes()).expect_err(&text).to_string();
        assert!(error.starts_with(&format!("a.xml:{expected}")), "{error}");
    }
    let toml = "detector_data_destination = \"missing_total\"\n[datasets]\n\"/d\" = { detector = true }\n\"/e\" = { detector = true }\n";
    let error = Hdf5Layout::from_toml("a.toml", toml).expect_err("no text").to_string();
    assert!(error.starts_with("a.toml:1:29: `missing_total` is what"), "{error}");
    let text = several("Kind", &number.replace("int", "string"));
    assert!(xml(&text).warnings.is_empty(), "{:?}", xml(&text).warnings);
}
