//! Names and directories: the answers engines must give, and that no name leads out of the run's directory.

use nilometer_model::Capability::{Append, Directories, Keep, List, Remove, Rename, StrictNames, Write};

use super::checked::{Check, Checked, NAMES};
use crate::{Buffer, Errno, OpKind, Open, Operation, ROOT, SOURCE, Slot, listing};

/// The checks, each for an engine with two slots besides the directory's, with the capabilities it needs.
pub(super) const ALL: [Check; 7] = [
    (files_have_names, &[Keep, Write, Append, Remove, Directories, List]),
    (directories_hold_names, &[Keep, Write, Append, Remove, Directories, List]),
    (directories_are_made_and_removed_once, &[Keep, Write, Remove, Directories, StrictNames]),
    (directories_are_listed, &[Keep, Write, Append, Directories, List]),
    (renames_move_and_replace, &[Keep, Write, Rename, Remove, Directories, List]),
    (names_are_checked, &[Keep, Write, Rename, Remove, Directories, List]),
    (directories_nest, &[Keep, Write, Directories, List]),
];

const FILE: Slot = Slot(1);
const DIR: Slot = Slot(2);
const CREATE: OpKind = OpKind::Open(Open::CREATE);
const READ: OpKind = OpKind::Open(Open::READ);
const WRITE: OpKind = OpKind::Open(Open::WRITE);

fn files_have_names(engine: &mut Checked) {
    for kind in [READ, WRITE, OpKind::OpenDir] {
        engine.expect_named(kind, FILE, b"f", Err(Errno::ENOENT));
    }
    assert_eq!(engine.stat(b"f"), Err(Errno::ENOENT), "a name that is not there");
    engine.expect_named(OpKind::Unlink, ROOT, b"f", Err(Errno::ENOENT));
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    assert_eq!(engine.stat(b"f"), Ok(listing::Stat { size: 0, directory: false }));
    engine.expect_named(CREATE, FILE, b"f", Err(Errno::EEXIST));
    engine.expect_named(OpKind::MakeDir, ROOT, b"f", Err(Errno::EEXIST));
    engine.expect_named(OpKind::OpenDir, DIR, b"f", Err(Errno::ENOTDIR));
    engine.expect_named(OpKind::RemoveDir, ROOT, b"f", Err(Errno::ENOTDIR));
    let below = Operation::named(OpKind::Stat, FILE, ROOT, b"g", Buffer::alone(16));
    engine.expect("looking up a name in a file", below, Err(Errno::ENOTDIR));
    engine.expect_named(OpKind::Unlink, ROOT, b"f", Ok(0));
    engine.expect_named(OpKind::Unlink, ROOT, b"f", Err(Errno::ENOENT));
}

fn directories_hold_names(engine: &mut Checked) {
    engine.expect_named(OpKind::MakeDir, ROOT, b"d", Ok(0));
    assert!(engine.stat(b"d").expect("it exists").directory, "a directory says that it is one");
    engine.expect_named(CREATE, FILE, b"d", Err(Errno::EEXIST));
    engine.expect_named(WRITE, FILE, b"d", Err(Errno::EISDIR));
    engine.expect_named(OpKind::OpenDir, DIR, b"d", Ok(0));
    let in_it = |kind, name| Operation::named(kind, DIR, FILE, name, Buffer::alone(16));
    engine.expect("a file in a directory", in_it(CREATE, b"f"), Ok(0));
    assert_eq!(engine.stat(b"f"), Err(Errno::ENOENT), "a name is in its own directory only");
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Err(Errno::ENOTEMPTY));
    engine.expect("a file in a directory", in_it(OpKind::Unlink, b"f"), Ok(0));
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Ok(0));
}

fn directories_are_made_and_removed_once(engine: &mut Checked) {
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Err(Errno::ENOENT));
    engine.expect_named(OpKind::MakeDir, ROOT, b"d", Ok(0));
    engine.expect_named(OpKind::MakeDir, ROOT, b"d", Err(Errno::EEXIST));
    engine.expect_named(OpKind::Unlink, ROOT, b"d", Err(Errno::EISDIR));
    engine.expect_named(OpKind::OpenDir, DIR, b"d", Ok(0));
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Ok(0));
    engine.expect_named(OpKind::RemoveDir, ROOT, b"d", Err(Errno::ENOENT));
    let in_it = Operation::named(CREATE, DIR, FILE, b"f", Buffer::alone(16));
    engine.expect("a file in a directory that is gone", in_it, Err(Errno::ENOENT));
}

fn directories_are_listed(engine: &mut Checked) {
    assert_eq!(engine.list(ROOT, 4096), [], "an empty directory lists nothing");
    let mut names: Vec<_> =
        (0..100).map(|number| format!("{number:0$}", number % 7 + 3).into_bytes()).collect();
    names.sort();
    for name in &names {
        engine.expect_named(CREATE, FILE, name, Ok(0));
    }
    engine.expect_named(OpKind::MakeDir, ROOT, b"directory", Ok(0));
    for room in [64, 1000, 1 << 20] {
        engine.expect_named(OpKind::OpenDir, DIR, b".", Ok(0));
        let mut listed = engine.list(DIR, room);
        let (last, kind) = listed.pop().expect("101 names");
        assert_eq!(last, b"directory", "a name is missing in a listing in parts of {room} bytes");
        assert!(matches!(kind, listing::DIRECTORY | listing::UNKNOWN), "a directory of type {kind}");
        assert!(
            listed.iter().all(|(_, kind)| matches!(*kind, listing::FILE | listing::UNKNOWN)),
            "types of files"
        );
        assert!(listed.iter().map(|(name, _)| name).eq(&names), "another listing in parts of {room} bytes");
        assert_eq!(engine.list(DIR, room), [], "at the end a listing stays empty");
    }
    engine.expect_named(OpKind::OpenDir, DIR, b".", Ok(0));
    let tiny = Operation::on(OpKind::List, DIR, Buffer::alone(8));
    engine.expect("a listing without room for one name", tiny, Err(Errno::EINVAL));
    let of_file = Operation::on(OpKind::List, FILE, Buffer::alone(64));
    engine.expect("a listing of a file", of_file, Err(Errno::ENOTDIR));
}

fn rename(from: &[u8], to: &[u8], to_dir: Slot) -> Operation {
    let mut operation = Operation::named(OpKind::Rename, ROOT, to_dir, from, Buffer::alone(NAMES));
    let start = from.len() + 1;
    operation.buffer[start..start + to.len()].copy_from_slice(to);
    operation
}

fn renames_move_and_replace(engine: &mut Checked) {
    for (name, data) in [(b"a", b"1"), (b"b", b"2")] {
        engine.expect_named(CREATE, FILE, name, Ok(0));
        assert_eq!(engine.write(FILE, 0, data), Ok(1));
    }
    for name in [b"d", b"e"] {
        engine.expect_named(OpKind::MakeDir, ROOT, name, Ok(0));
    }
    engine.expect_named(OpKind::OpenDir, DIR, b"d", Ok(0));
    engine.expect("a name that is not there", rename(b"none", b"a", ROOT), Err(Errno::ENOENT));
    engine.expect("a file onto a directory", rename(b"a", b"d", ROOT), Err(Errno::EISDIR));
    engine.expect("a directory onto a file", rename(b"d", b"a", ROOT), Err(Errno::ENOTDIR));
    engine.expect("a directory into itself", rename(b"d", b"x", DIR), Err(Errno::EINVAL));
    engine.expect("onto itself", rename(b"a", b"a", ROOT), Ok(0));
    engine.expect("onto another file", rename(b"a", b"b", ROOT), Ok(0));
    assert_eq!(engine.stat(b"a"), Err(Errno::ENOENT), "the old name stays after a rename");
    engine.expect_named(READ, FILE, b"b", Ok(0));
    assert_eq!(engine.read(FILE, 0, 2), Ok(b"1".to_vec()), "the new name leads to another file");
    engine.expect("into another directory", rename(b"b", b"c", DIR), Ok(0));
    assert_eq!(engine.read(FILE, 0, 2), Ok(b"1".to_vec()), "a renamed file stays open");
    engine.expect("onto a directory that is not empty", rename(b"e", b"d", ROOT), Err(Errno::ENOTEMPTY));
    engine.expect("to an empty slot", rename(b"e", b"f", Slot(9)), Err(Errno::EBADF));
    assert_eq!(
        engine.list(DIR, 4096),
        [(b"c".to_vec(), listing::FILE)],
        "a file moved into a directory is not in it"
    );
}

const NAMED: [OpKind; 8] =
    [CREATE, READ, WRITE, OpKind::OpenDir, OpKind::Stat, OpKind::Unlink, OpKind::RemoveDir, OpKind::MakeDir];

fn names_are_checked(engine: &mut Checked) {
    engine.expect_named(OpKind::MakeDir, ROOT, b"d", Ok(0));
    engine.expect_named(CREATE, FILE, b"f", Ok(0));
    for name in [&b".."[..], b"../f", b"/f", b"/", b"d/", b"d/f", b"./f", b"", b"a\0b"] {
        for kind in NAMED {
            engine.expect_named(kind, FILE, name, Err(Errno::EINVAL));
        }
        engine.expect("from such a name", rename(name, b"x", ROOT), Err(Errno::EINVAL));
        if !name.contains(&0) {
            engine.expect("to such a name", rename(b"f", name, ROOT), Err(Errno::EINVAL));
        }
    }
    let mut endless = Operation::named(OpKind::Stat, ROOT, ROOT, b"f", Buffer::alone(16));
    (endless.length, endless.buffer[1]) = (16, b'f');
    engine.expect("a name that fills its buffer", endless, Err(Errno::EINVAL));
    engine.expect_named(CREATE, FILE, &[b'n'; 255], Ok(0));
    engine.expect_named(CREATE, FILE, &[b'n'; 256], Err(Errno(libc::ENAMETOOLONG)));
    assert!(engine.stat(b".").expect("the directory itself").directory, "`.` is the directory itself");
}

fn directories_nest(engine: &mut Checked) {
    engine.expect_named(OpKind::OpenDir, FILE, b".", Ok(0));
    for depth in 0..20 {
        let (above, below) = if depth % 2 == 0 { (FILE, DIR) } else { (DIR, FILE) };
        for kind in [OpKind::MakeDir, OpKind::OpenDir] {
            let operation = Operation::named(kind, above, below, b"d", Buffer::alone(16));
            engine.expect("directories below each other", operation, Ok(0));
        }
    }
    assert_eq!(engine.list(FILE, 4096), [], "the last directory is empty");
}

/// Checks symlinks to a directory and to a file outside: the engine may follow neither.
pub(super) fn containment(directory: &std::path::Path, engine: &mut Checked) {
    let own_name = directory.file_name().expect("a directory with a name").to_string_lossy();
    let outside = directory.with_file_name(format!("outside-of-{own_name}"));
    std::fs::write(&outside, b"outside").expect("a file can be made beside the directory");
    let above = directory.parent().expect("a directory below another");
    std::os::unix::fs::symlink(above, directory.join("above")).expect("a symlink can be made");
    std::os::unix::fs::symlink(&outside, directory.join("out")).expect("a symlink can be made");
    for kind in [READ, WRITE] {
        engine.expect_named(kind, FILE, b"out", Err(Errno::ELOOP));
    }
    engine.expect_named(CREATE, FILE, b"out", Err(Errno::EEXIST));
    engine.expect_named(OpKind::Open(Open::SHARED), FILE, b"out", Err(Errno::ELOOP));
    engine.expect_named(OpKind::OpenDir, FILE, b"above", Err(Errno::ENOTDIR));
    assert!(
        !engine.stat(b"above").expect("the symlink itself").directory,
        "a stat does not follow a symlink"
    );
    engine.expect_named(OpKind::RemoveDir, ROOT, b"above", Err(Errno::ENOTDIR));
    engine.expect_named(OpKind::Unlink, ROOT, b"out", Ok(0));
    let kept = std::fs::read(&outside).expect("it is still there");
    std::fs::remove_file(&outside).expect("it can be removed");
    assert_eq!(kept, b"outside", "a file outside was changed");
}

/// Checks the directory that copies come from, which holds the file `n_f`: only reading it is allowed.
pub(super) fn source(engine: &mut Checked) {
    let there = |kind, name: &[u8]| Operation::named(kind, SOURCE, FILE, name, Buffer::alone(NAMES));
    engine.expect("a file of the source", there(READ, b"n_f"), Ok(0));
    assert_eq!(engine.read(FILE, 0, 9), Ok(b"source".to_vec()), "a file of the source has other contents");
    assert_eq!(engine.write(FILE, 0, b"x"), Err(Errno::EBADF), "a file of the source can't be written");
    engine.expect("no such file in the source", there(READ, b"none"), Err(Errno::ENOENT));
    for name in [&b".."[..], b"../n_f", b"/n_f", b"", b"./n_f"] {
        engine.expect("a name that leads out of the source", there(READ, name), Err(Errno::EINVAL));
    }
    let opens = [Open::WRITE, Open::READ_WRITE, Open::CREATE, Open::SHARED].map(OpKind::Open);
    let names =
        [OpKind::OpenDir, OpKind::Stat, OpKind::Unlink, OpKind::RemoveDir, OpKind::MakeDir, OpKind::Rename];
    for kind in opens.into_iter().chain(names) {
        for name in [b"n_f", b"n_g"] {
            engine.expect("a change of the source", there(kind, name), Err(Errno::EROFS));
        }
    }
    for kind in [OpKind::List, OpKind::Sync, OpKind::Close] {
        assert_eq!(engine.on(kind, SOURCE, 0), Err(Errno::EBADF), "{kind:?} of the source");
    }
    engine.expect_named(CREATE, FILE, b"n_g", Ok(0));
    engine.expect("a rename into the source", rename(b"n_g", b"n_g", SOURCE), Err(Errno::EBADF));
    engine.expect_named(READ, SOURCE, b"n_g", Err(Errno::EBADF));
}
