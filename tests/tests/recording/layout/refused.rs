//! Layouts that can't be recorded with: one message with its place, and nothing is made.

use crate::layout::lab::{LIMIT, LayoutLab};

/// Nobody sends there: it must not be waited for.
const NOBODY: &str = "tcp://127.0.0.1:9";

/// A name, what stands in the file, where the mistake is, and what is said of it.
const MISTAKES: [(&str, &str, &str, &str); 17] = [
    (
        "a.xml",
        "<group name='g'><dataset name='d' source='camera'/></group>",
        "1:17",
        "valid are `detector`, `ndattribute` and `constant`",
    ),
    ("a.xml", "<hdf5_layout>\n<group name='g'>\n</hdf5_layout>", "3:1", "this is no XML"),
    ("a.xml", "<!DOCTYPE x>\n<group name='g'/>", "1:1", "DOCTYPE"),
    ("a.xml", "<group name='g'/>", "1:1", "no dataset is there for frames"),
    ("a.xml", "<group><dataset name='d' source='detector'/></group>", "1:1", "this group has no `name`"),
    (
        "a.xml",
        "<group name='g'><dataset name='d' source='detector'/>\n<group name='d'/></group>",
        "2:1",
        "the name `d` is taken",
    ),
    (
        "a.xml",
        "<hdf5_layout><dataset name='d' source='detector'/></hdf5_layout>",
        "1:14",
        "has to stand in a group",
    ),
    (
        "a.xml",
        "<group name='g'><dataset name='d' source='detector'/>\n <hardlink name='l' target='/g/e'/></group>",
        "2:2",
        "there is no `e` in `/g`",
    ),
    (
        "a.xml",
        "<group name='g'><dataset name='d' source='detector'/><dataset name='c' source='constant' type='int' value='x'/></group>",
        "1:108",
        "`x` is no value here",
    ),
    (
        "a.xml",
        "<hdf5_layout>\n<global name='detector_data_destination' ndattribute='flag'/><group name='g'><dataset name='d' \
         source='detector'/><dataset name='e' source='detector'/></group></hdf5_layout>",
        "2:1",
        "name an attribute of your own",
    ),
    (
        "a.xml",
        "<hdf5_layout><global name='detector_data_destination' ndattribute='Kind'/><group name='g'>\n<dataset name='k' \
         source='ndattribute' ndattribute='Kind' type='int'/><dataset name='d' source='detector'/><dataset name='e' \
         source='detector'/></group></hdf5_layout>",
        "2:1",
        "write `string`, or leave `type` out",
    ),
    ("a.toml", "[datasets]\n\"/d\" = { detector = yes }\n", "2:21", ""),
    ("a.toml", "[datasets]\n\"/d\" = { detector = true, color = 1 }\n", "2:27", "unknown field `color`"),
    (
        "a.toml",
        "[datasets]\n\"/d\" = { detector = true, constant = 1 }\n",
        "2:1",
        "one of `detector = true`, `ndattribute` and `constant`",
    ),
    ("a.toml", "[datasets]\n\"d\" = { detector = true }\n", "2:1", "begins with a slash"),
    (
        "a.toml",
        "[datasets]\n\"/d\" = { detector = true }\n[links]\n\"/l\" = \"/g/e\"\n",
        "4:1",
        "the link leads to `/g/e`",
    ),
    (
        "a.toml",
        "[datasets]\n\"/d\" = { detector = true }\n\"/e\" = { ndattribute = \"x\", when = \"Always\" }\n",
        "3:",
        "OnFileOpen",
    ),
];

#[test]
fn each_mistake_in_a_layout_is_refused_with_its_place_before_anything_is_made() {
    for (name, text, place, why) in MISTAKES {
        let lab = LayoutLab::new("");
        lab.write(name, text);
        let simulated = lab.simulate(&["--format", "hdf5", "--frames", "2", "--layout", name]).end(LIMIT);
        let recorded = lab.record_from(NOBODY, &["--layout", name]).end(LIMIT);
        for ended in [simulated, recorded] {
            let wanted = format!("nilometer: {name}:{place}");
            assert!(ended.code == Some(2), "{text}: {ended:?}");
            assert!(ended.stderr.starts_with(&wanted) && ended.stderr.contains(why), "{text}: {ended:?}");
            lab.assert_nothing_made(text);
        }
    }
}

#[test]
fn what_has_no_layout_or_can_not_be_read_is_refused() {
    let lab = LayoutLab::new("");
    lab.write("a.toml", "[datasets]\n\"/d\" = { detector = true }\n");
    lab.write("own.toml", "");
    for (options, why) in [
        (&["--format", "raw", "--layout", "a.toml"][..], "layout: only files of HDF5 have one"),
        (&["--format", "hdf5", "--layout", "none.xml"], "can't read the layout none.xml"),
        (&["--format", "hdf5", "--layout", "to"], "can't read the layout to"),
        (&["--format", "hdf5", "--layout", "own.toml"], "no dataset is there for frames"),
    ] {
        let ended = lab.simulate(&[options, &["--frames", "2"]].concat()).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{options:?}: {ended:?}");
        lab.assert_nothing_made(why);
    }
    for (options, why) in [
        (["--metadata", "none.jsonl"], "--metadata none.jsonl: "),
        (["--metadata", "to"], "neither a file nor a pipe"),
        (["--metadata", "udp://127.0.0.1:5"], "write tcp://HOST:PORT"),
        (["--metadata", "tcp://127.0.0.1"], "--metadata tcp://127.0.0.1: "),
    ] {
        let ended = lab.record_from(NOBODY, &options).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{options:?}: {ended:?}");
        lab.assert_nothing_made(why);
    }
}
