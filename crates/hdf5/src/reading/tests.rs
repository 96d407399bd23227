//! Reads files back as they were made, and rejects bytes that are no file.

use super::*;
use crate::{
    Hdf5File, Hdf5FileOptions,
    tree::{NumberArray, TreeGroup, TreeNode},
};

/// The bytes of a file with this tree.
fn bytes_of(tree: &TreeGroup) -> Vec<u8> {
    let file = Hdf5File::create("bytes", tree, Hdf5FileOptions::default()).expect("it can be");
    let mut closed = file.close(0, &TreeGroup::default()).expect("it can be");
    let mut bytes = vec![0; closed.size() as usize];
    while let Some(write) = closed.next_write() {
        let begin = write.offset as usize;
        bytes[begin..begin + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    bytes
}

fn with_links(count: usize) -> TreeGroup {
    let link =
        |number| TreeNode::ExternalLink { file: format!("scan.{number:08}.h5"), path: "/entry".into() };
    let links = (0..count)
        .fold(TreeGroup::default(), |group, number| group.with(&format!("data_{number:06}"), link(number)));
    TreeGroup::default().group("files", links)
}

/// Bytes that the library reads to find one name in a group of `count` members.
fn bytes_read_for_a_name(count: usize) -> u64 {
    let image = SharedImage::default();
    driver::lock(&image).load(&bytes_of(&with_links(count)));
    let access = frame_file::access().expect("it can be");
    // SAFETY: an open identifier, and a zero-terminated text.
    let open = || unsafe { ffi::H5Fopen(c"bytes".as_ptr(), ffi::H5F_ACC_RDONLY, access.id()) };
    let file = Handle::of(while_opening(&image, open), || "open".into()).expect("it is a file");
    let read = ReadFile { file, _image: None };
    assert!(read.is_own("/files/data_999999").is_err(), "it is not there");
    let bytes = driver::lock(&image).bytes_read.get();
    let last = format!("/files/data_{:06}", count - 1);
    assert!(!read.is_own(&last).expect("it is there"), "a link leads elsewhere");
    bytes
}

#[test]
fn to_look_up_a_name_among_many_few_of_them_are_read() {
    let [few, many, more] = [400, 5000, 40_000].map(bytes_read_for_a_name);
    assert!(few > 400 * 30, "all of a small group is read: {few} B");
    // At most one block of the heap (64 KiB), and one index node per level.
    assert!(many < 80 << 10 && more < 80 << 10, "of 5000 {many} B are read, of 40,000 {more} B");
}

#[test]
fn a_group_with_an_index_has_the_same_members() {
    let bytes = bytes_of(&with_links(2000));
    let names = ReadFile::of_bytes(&bytes).expect("it is a file").members("/files");
    let expected: Vec<_> = (0..2000).map(|number| format!("data_{number:06}")).collect();
    assert_eq!(names.expect("it is there"), expected);
}

#[test]
fn the_members_of_a_group_are_named_in_order_and_of_too_many_the_first() {
    let many = (0..300).fold(TreeGroup::default(), |group, number| {
        group.value(&format!("d{number:06}"), NumberArray::int(number))
    });
    let tree = TreeGroup::default().group("many", many).group("none", TreeGroup::default());
    let read = ReadFile::of_bytes(&bytes_of(&tree)).expect("it is a file");
    let expected: Vec<_> = (0..300).map(|number| format!("d{number:06}")).collect();
    assert_eq!(read.members("/many").expect("it is there"), expected);
    for most in [1, 299, 300, 301] {
        let first = read.first_members("/many", most).expect("it is there").into_iter();
        let names: Vec<_> = first.map(|member| member.name).collect();
        assert_eq!(names, expected[..most.min(300)], "{most}");
    }
    assert_eq!(read.members("/none").expect("it is there"), Vec::<String>::new());
    assert_eq!(read.members("/").expect("every file has one"), ["many", "none"]);
    assert!(read.members("/nowhere").is_err());
}
