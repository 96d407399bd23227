//! Layouts of `CephFS`, which are attributes (Ceph documentation, "File layouts").

use std::path::Path;

use nilometer_model::StripeLayout;
use rustix::{
    fs::{XattrFlags, getxattr, removexattr, setxattr},
    io::Errno,
};

use super::{TargetError, bytes, options, word_behind};

/// Reads the layout of a directory or a file. A directory without a layout of its own has no such attribute;
/// its files get the layout of the nearest directory above that has one. The result is then empty.
pub(super) fn layout(path: &Path) -> Result<StripeLayout, TargetError> {
    let name = if path.is_dir() { "ceph.dir.layout" } else { "ceph.file.layout" };
    let mut value = [0; 512];
    match getxattr(path, name, &mut value) {
        Ok(length) => Ok(read(&String::from_utf8_lossy(&value[..length]))),
        Err(Errno::NODATA) => Ok(StripeLayout::default()),
        Err(errno) => Err(TargetError::io(path, "read the layout of")(errno)),
    }
}

pub(super) fn set(asked: &StripeLayout, directory: &Path) -> Result<(), TargetError> {
    let names = ["ceph.dir.layout.stripe_count", "ceph.dir.layout.stripe_unit", "ceph.dir.layout.pool"];
    options(names, asked).iter().try_for_each(|[name, value]| {
        setxattr(directory, name.as_str(), value.as_bytes(), XattrFlags::empty())
            .map_err(|errno| refused(directory, name, value, errno))
    })
}

/// Builds an error with the rules of "File layouts": the system reports only an invalid value or a missing
/// object.
fn refused(directory: &Path, name: &str, value: &str, errno: Errno) -> TargetError {
    let valid = match name.rsplit('.').next() {
        Some("stripe_unit") => {
            "a stripe is a multiple of 64 KiB, and objects (4 MiB, if nobody chose otherwise) a multiple of it"
        }
        Some("pool") => {
            "a pool is one of the file system's data pools: `ceph fs ls` names them, `ceph fs add_data_pool` adds one"
        }
        _ => "a stripe count is 1 or more",
    };
    if matches!(errno, Errno::INVAL | Errno::NOENT) {
        let message = format!("{name} = {value} was refused ({errno}): {valid}");
        return TargetError::Probe { path: directory.into(), message };
    }
    TargetError::io(directory, "set the layout of")(errno)
}

/// Removes the directory's layout, so that files get the layout of the directories above again.
pub(super) fn unset(directory: &Path) -> Result<(), TargetError> {
    match removexattr(directory, "ceph.dir.layout") {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(errno) => Err(TargetError::io(directory, "remove the layout of")(errno)),
    }
}

fn read(text: &str) -> StripeLayout {
    StripeLayout {
        stripe_count: word_behind(text, "stripe_count=").and_then(|word| word.parse().ok()),
        stripe_size: word_behind(text, "stripe_unit=").and_then(bytes),
        pool: word_behind(text, "pool=").map(str::to_owned),
        replicas: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::spread, *};

    #[test]
    fn what_is_refused_is_told_with_what_would_do() {
        let said = |name: &str, errno| {
            let name = format!("ceph.dir.layout.{name}");
            refused(Path::new("/d"), &name, "1000", errno).to_string()
        };
        for (name, valid) in
            [("stripe_unit", "64 KiB"), ("pool", "`ceph fs ls`"), ("stripe_count", "1 or more")]
        {
            let said = said(name, Errno::INVAL);
            assert!(said.contains(valid) && said.contains("1000 was refused"), "{said}");
        }
        assert!(!said("pool", Errno::ACCESS).contains("refused"));
    }

    #[test]
    fn replay_of_the_attribute() {
        let read = read("stripe_unit=1048576 stripe_count=3 object_size=4194304 pool=cephfs_data");
        assert_eq!(read, StripeLayout { pool: Some("cephfs_data".into()), ..spread(3, 1 << 20) });
    }
}
