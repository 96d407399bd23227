//! What is in a group of a file, in order, and no more than anybody waits for.

use nilometer_hdf5::{
    Hdf5File, Hdf5FileOptions, ReadFile,
    tree::{NumberArray, TreeGroup},
};

/// A file whose group `many` has so many datasets.
fn file_of(members: u32) -> Vec<u8> {
    let many = (0..members).fold(TreeGroup::default(), |group, number| {
        group.value(&format!("d{number:06}"), NumberArray::int(number.into()))
    });
    let tree = TreeGroup::default().group("many", many);
    let options = Hdf5FileOptions { watched: false, ..Hdf5FileOptions::default() };
    let file = Hdf5File::create("many", &tree, options).expect("it can be");
    let mut closed = file.close(0, &TreeGroup::default()).expect("it can be");
    let mut bytes = vec![0; closed.size() as usize];
    while let Some(write) = closed.next_write() {
        let begin = write.offset as usize;
        bytes[begin..begin + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    bytes
}

#[test]
fn the_members_of_a_group_are_named_in_order_and_of_too_many_the_first_ten_thousand() {
    for (made, named) in [(0, 0), (1, 1), (3000, 3000), (10_007, 10_000)] {
        let bytes = file_of(made);
        let read = ReadFile::of_bytes(&bytes).expect("it is a file");
        let members = read.members("/many").expect("the group is there");
        let expected: Vec<_> = (0..named).map(|number| format!("d{number:06}")).collect();
        assert_eq!(members, expected, "{made}");
    }
    let read = ReadFile::of_bytes(&file_of(1)).expect("it is a file");
    assert_eq!(read.members("/").expect("every file has one"), ["many"]);
    assert!(read.members("/none").is_err());
}
