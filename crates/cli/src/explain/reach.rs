//! The check of the files, directories and devices that a line itself works on. `explain` runs a line only if
//! none of them exists yet. The line then overwrites, extends and removes only its own files.

use std::{fs, io::ErrorKind, os::unix::fs::FileTypeExt, path::Path};

use anyhow::bail;
use nilometer_command_lines::{LinePath, LineReach, parent_of};

/// Advice that ends every refusal.
const OURS_ONLY: &str = "or --ours-only, which measures our cells and does not run the line";

/// File systems of the kernel and of devices.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Plain memory below one of them.
const SHARED_MEMORY: &str = "/dev/shm";

/// Refuses a line that would touch something it did not make itself.
pub(super) fn check(reach: &LineReach) -> anyhow::Result<()> {
    if let Some(unbounded) = reach.unbounded.first() {
        bail!(
            "{unbounded}, and explain runs a line only on files that it makes itself: leave it out, {OURS_ONLY}"
        );
    }
    for path in &reach.paths {
        if let Some(option) = reach.moved_by.as_ref().filter(|_| path.path().is_relative()) {
            let path = path.path().display();
            bail!(
                "`{option}` starts the line in another directory than this: write {path} from the root on, {OURS_ONLY}"
            );
        }
        if let Some(obstacle) = obstacle(path) {
            bail!(
                "{obstacle}, and explain runs a line only on files that it makes itself: write a path that does not exist \
                 yet, {OURS_ONLY}"
            );
        }
    }
    Ok(())
}

/// The reason not to run the line on this path; `None` if nothing is there yet.
fn obstacle(line_path: &LinePath) -> Option<String> {
    let path = line_path.path();
    let is_of_system = SYSTEM_DIRECTORIES.iter().any(|system| path.starts_with(system));
    if is_of_system && !path.starts_with(SHARED_MEMORY) {
        return Some(format!("{} is a device or of the kernel", path.display()));
    }
    match line_path {
        LinePath::File(path) => existing(path),
        LinePath::FilesFrom(path) => existing_from(path),
        LinePath::Directory(path) => existing_in(path),
    }
}

/// Refuses a path at which anything exists, even a link that leads nowhere.
fn existing(path: &Path) -> Option<String> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_block_device() || found.file_type().is_char_device() => {
            Some(format!("{shown} is a device"))
        }
        Ok(_) => Some(format!("{shown} exists")),
        Err(error) => unknown(path, &error),
    }
}

/// Refuses a file whose name begins with the last part of a path.
fn existing_from(path: &Path) -> Option<String> {
    let begin = path.file_name().unwrap_or_default().as_encoded_bytes();
    let parent = parent_of(path);
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) => return unknown(&parent, &error),
    };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let found = names.into_iter().find(|name| name.as_encoded_bytes().starts_with(begin));
    found.and_then(|name| existing(&parent.join(name)))
}

/// Refuses a directory with something in it, or something else in its place.
fn existing_in(path: &Path) -> Option<String> {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().map(|_| format!("{} is not empty", path.display())),
        Err(error) if error.kind() == ErrorKind::NotADirectory => existing(path),
        Err(error) => unknown(path, &error),
    }
}

/// Refuses a path that this program may not see: something may be there.
fn unknown(path: &Path, error: &std::io::Error) -> Option<String> {
    let is_absent = [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind());
    (!is_absent).then(|| format!("can't look at {} ({error})", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nilometer_command_lines::parse;

    use super::*;

    fn refusal(path: LinePath) -> Option<String> {
        let mut reach = LineReach::default();
        reach.add(path);
        check(&reach).err().map(|error| error.to_string())
    }

    #[test]
    fn only_paths_at_which_nothing_is_are_free() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| home.path().join(name);
        fs::write(at("job.0.0"), "precious").expect("space");
        symlink(at("gone"), at("link")).expect("space");
        fs::create_dir(at("empty")).expect("space");
        for free in [
            LinePath::File(at("job")),
            LinePath::FilesFrom(at("other")),
            LinePath::FilesFrom(at("gone/job")),
            LinePath::Directory(at("empty")),
            LinePath::Directory(at("gone")),
            LinePath::File("/dev/shm/nilometer-never-made".into()),
        ] {
            assert_eq!(refusal(free.clone()), None, "{free:?}");
        }
        for (taken, part) in [
            (LinePath::File(at("job.0.0")), "job.0.0 exists"),
            (LinePath::File(at("link")), "link exists"),
            (LinePath::File(at("empty")), "empty exists"),
            (LinePath::FilesFrom(at("job")), "job.0.0 exists"),
            (LinePath::FilesFrom(at("job.0.0")), "job.0.0 exists"),
            (LinePath::Directory(home.path().into()), "is not empty"),
            (LinePath::Directory(at("job.0.0")), "exists"),
            (LinePath::File("/dev/null".into()), "/dev/null is a device"),
            (LinePath::File("/dev/no-such-disk".into()), "is a device"),
            (LinePath::File("/proc/sysrq-trigger".into()), "of the kernel"),
        ] {
            let refusal = refusal(taken.clone()).expect("it is taken");
            assert!(refusal.contains(part) && refusal.contains("--ours-only"), "{taken:?}: {refusal}");
        }
    }

    #[test]
    fn relative_paths_of_a_line_that_starts_elsewhere_are_not_known() {
        let mut reach = LineReach { moved_by: Some("--wdir /data".to_owned()), ..LineReach::default() };
        reach.add(LinePath::File("/tmp/nilometer-never-made".into()));
        check(&reach).expect("it does not depend on the directory");
        reach.add(LinePath::File("file".into()));
        let error = check(&reach).expect_err("it may be any file").to_string();
        assert!(error.contains("`--wdir /data` starts the line in another directory"), "{error}");
    }

    /// The refusal of a line; `None` if it may run.
    fn refusal_of(line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        check(&parse(&words).expect(line).reach()).err().map(|error| error.to_string())
    }

    #[test]
    fn every_way_in_which_fio_names_a_file_is_looked_at() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = home.path().display();
        for name in ["file", "a.0.0", "log_bw.1.log"] {
            fs::write(home.path().join(name), "precious").expect("space");
        }
        std::os::unix::fs::symlink("/dev/full", home.path().join("device")).expect("space");
        let jobs = home.path().join("jobs.fio");
        let text = format!(
            "[x]\nrw=read\nsize=1m\ndirectory={at}\n[y]\nstonewall\nrw=write\nsize=1m\nfilename={at}/new:{at}/file\n"
        );
        fs::write(&jobs, text).expect("space");
        for (line, part) in [
            (format!("fio --name=x --size=1m --filename={at}/file"), "file exists"),
            (format!("fio --name=x --size=1m --filename={at}/new:{at}/file"), "file exists"),
            (format!("fio --name=x --size=1m --directory={at} --filename=file"), "file exists"),
            (format!("fio --name=x --size=1m --directory=/none:{at} --filename=file"), "file exists"),
            (format!("fio --size=1m --directory={at} --name=x --name=a"), "a.0.0 exists"),
            (format!("fio --size=1m --directory={at} --name={at}/device"), "device exists"),
            (
                format!("fio --name=x --size=1m --directory={at} --write_bw_log={at}/log"),
                "log_bw.1.log exists",
            ),
            (format!("fio --name=x --size=1m --directory={at} --exec_prerun=reboot"), "runs another program"),
            (format!("fio --name=x --size=1m --read_iolog={at}/new"), "does not say which files"),
            ("fio --name=x --size=1m --ioengine=rbd --pool=p".to_owned(), "no path names"),
            (format!("fio {}", jobs.display()), "file exists"),
            ("env -C /data fio --name=x --size=1m --filename=new".to_owned(), "in another directory"),
        ] {
            let refusal = refusal_of(&line).unwrap_or_else(|| panic!("{line} would be run"));
            assert!(refusal.contains(part), "{line}: {part} in {refusal}");
        }
        for line in [
            format!("fio --name=x --size=1m --directory={at}"),
            format!("fio --name=x --size=1m --filename={at}/new --rw=write --ioengine=libaio"),
            format!("fio --section=x {}", jobs.display()),
        ] {
            assert_eq!(refusal_of(&line), None, "{line}");
        }
    }

    #[test]
    fn files_of_other_programs_are_looked_at_too() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = home.path().display();
        fs::write(home.path().join("file"), "precious").expect("space");
        fs::write(home.path().join("file2"), "precious").expect("space");
        fs::create_dir(home.path().join("empty")).expect("space");
        let tests = home.path().join("tests.ior");
        fs::write(&tests, format!("IOR START\ntestFile={at}/new\nRUN\ntestFile={at}/file\nRUN\nIOR STOP\n"))
            .expect("space");
        for line in [
            format!("dd if=/dev/zero of={at}/file count=1"),
            format!("dd if=/dev/sda of={at}/new count=1"),
            format!("ior -w -o {at}/file"),
            format!("ior -w -o {at}/new@{at}/file"),
            format!("ior -w -F -o {at}/fil"),
            format!("ior -w -a DFS -o {at}/new"),
            format!("ior -f {}", tests.display()),
            format!("mdtest -n 10 -d {at}"),
            format!("elbencho -w -s 1m {at}/file"),
            format!("elbencho -w -s 1m {at}/new {at}/file"),
            format!("elbencho -w -s 1m {at}/file[1-2]"),
            format!("elbencho -w -s 1m -n 1 -N 1 {at}"),
            format!("elbencho -w -s 1m --configfile {at}/x {at}/new"),
            format!("iozone -s 1m -r 4k -f {at}/file"),
            format!("iozone -s 1m -r 4k -t 2 -F {at}/new {at}/file"),
            format!("iozone -s 1m -r 4k -U {at} -f {at}/new"),
            format!("srun -o {at}/file ior -w -o {at}/new"),
        ] {
            assert!(refusal_of(&line).is_some(), "{line} would be run");
        }
        for line in [
            format!("dd if=/dev/zero of={at}/new count=1"),
            format!("dd if={at}/file of=/dev/null bs=1 count=8"),
            format!("dd if={at}/file of={at}/new bs=1 count=8"),
            format!("ior -w -o {at}/new"),
            format!("mdtest -n 10 -d {at}/new"),
            format!("mdtest -n 10 -d {at}/empty"),
            format!("elbencho -w -s 1m -n 1 -N 1 {at}/empty"),
            format!("iozone -s 1m -r 4k -f {at}/new"),
        ] {
            assert_eq!(refusal_of(&line), None, "{line}");
        }
    }
}
