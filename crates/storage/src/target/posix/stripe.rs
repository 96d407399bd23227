//! How files are spread over storage devices. It is set on the run's directory, for files made from then on, and
//! read back, because systems give fewer than asked without saying so (Lustre and `BeeGFS` do).

use std::{
    path::Path,
    process::{Command, Output},
};

use super::super::TargetError;
use nilometer_model::{Bytes, StripeControl, StripeLayout};
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// What a file system has of this, if its tool is installed here.
pub(super) fn stripe_control(file_system: &str) -> Option<StripeControl> {
    match file_system {
        "lustre" => installed("lfs").then_some(StripeControl::Lustre),
        "beegfs" | "fhgfs" => installed("beegfs-ctl").then_some(StripeControl::BeeGfs),
        "ceph" | "fuse.ceph-fuse" | "fuse.ceph" => Some(StripeControl::CephFs),
        _ => None,
    }
}

/// How files are spread that are made in the directory from now on.
pub(super) fn layout(control: StripeControl, directory: &Path) -> Result<StripeLayout, TargetError> {
    let text = match control {
        StripeControl::Lustre => said(Command::new("lfs").args(["getstripe", "-d"]).arg(directory))?,
        StripeControl::BeeGfs => said(Command::new("beegfs-ctl").arg("--getentryinfo").arg(directory))?,
        StripeControl::CephFs => ceph_layout(directory)?,
    };
    let found = read_layout(control, &text);
    if found.stripe_count.is_none() {
        let message = format!("no stripe count in what the layout command said: {}", text.trim());
        return Err(TargetError::Probe { path: directory.into(), message });
    }
    Ok(found)
}

/// Sets what is asked for, and leaves the rest.
pub(super) fn set_layout(
    control: StripeControl,
    directory: &Path,
    asked: &StripeLayout,
) -> Result<(), TargetError> {
    let options = options(control, asked);
    match control {
        StripeControl::Lustre => {
            said(Command::new("lfs").arg("setstripe").args(options).arg(directory)).map(drop)
        }
        StripeControl::BeeGfs => {
            said(Command::new("beegfs-ctl").arg("--setpattern").args(options).arg(directory)).map(drop)
        }
        StripeControl::CephFs => options.chunks(2).try_for_each(|pair| {
            setxattr(directory, &pair[0], pair[1].as_bytes(), XattrFlags::empty())
                .map_err(TargetError::io(directory, "set the layout of"))
        }),
    }
}

/// What is said to the layout command; of `CephFS` attributes, each behind its name.
fn options(control: StripeControl, asked: &StripeLayout) -> Vec<String> {
    let StripeLayout { stripe_count, stripe_size, pool } = asked;
    let [count, size, pool] = [
        stripe_count.map(|count| count.to_string()),
        stripe_size.map(|size| size.0.to_string()),
        pool.clone(),
    ];
    let pairs = |names: [&str; 3]| {
        let given = names.into_iter().zip([count.clone(), size.clone(), pool.clone()]);
        given.filter_map(|(name, value)| Some([name.to_owned(), value?])).collect::<Vec<_>>()
    };
    match control {
        StripeControl::Lustre => pairs(["-c", "-S", "-p"]).concat(),
        StripeControl::BeeGfs => {
            let pairs = pairs(["--numtargets", "--chunksize", "--storagepoolid"]);
            pairs.into_iter().map(|[name, value]| format!("{name}={value}")).collect()
        }
        StripeControl::CephFs => {
            let names =
                ["ceph.dir.layout.stripe_count", "ceph.dir.layout.stripe_unit", "ceph.dir.layout.pool"];
            pairs(names).concat()
        }
    }
}

/// The layout in what the command said.
fn read_layout(control: StripeControl, text: &str) -> StripeLayout {
    let [count, size, pool] = match control {
        StripeControl::Lustre => ["stripe_count:", "stripe_size:", "pool:"],
        StripeControl::BeeGfs => ["desired:", "Chunksize:", "Storage Pool:"],
        StripeControl::CephFs => ["stripe_count=", "stripe_unit=", "pool="],
    };
    let word = |key| word_behind(text, key);
    StripeLayout {
        stripe_count: word(count).and_then(|word| word.parse().ok()),
        stripe_size: word(size).and_then(bytes),
        pool: word(pool).map(str::to_owned),
    }
}

/// The word behind the first `key` in a text.
fn word_behind<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split(|c: char| c.is_whitespace() || c == ';').find(|word| !word.is_empty())
}

/// A number of bytes, or one of KiB or MiB with `k` or `M` behind it, as `BeeGFS` writes it.
fn bytes(word: &str) -> Option<Bytes> {
    let digits = word.trim_end_matches(['k', 'K', 'm', 'M']);
    let unit = match &word[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        _ => 1 << 20,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}

const LAYOUT: &str = "ceph.dir.layout";

/// A directory without a layout of its own has no such attribute; the default of `CephFS` is one object after the other.
fn ceph_layout(directory: &Path) -> Result<String, TargetError> {
    let mut value = [0; 512];
    match getxattr(directory, LAYOUT, &mut value) {
        Ok(length) => Ok(String::from_utf8_lossy(&value[..length]).into_owned()),
        Err(rustix::io::Errno::NODATA) => Ok("stripe_count=1".into()),
        Err(errno) => Err(TargetError::io(directory, "read the layout of")(errno)),
    }
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// What a layout command says; its complaint is the error.
fn said(command: &mut Command) -> Result<String, TargetError> {
    let name = command.get_program().to_owned();
    let failed = |source| TargetError::Io { path: name.clone().into(), action: "run", source };
    let Output { status, stdout, stderr } = command.output().map_err(failed)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let message = format!("{command:?} failed ({status}): {}", String::from_utf8_lossy(&stderr).trim());
    Err(TargetError::Probe { path: name.into(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Recorded output and the manuals' words: none of these systems runs in a test.
    const LUSTRE: &str =
        "stripe_count:  2 stripe_size:   4194304 pattern:       0 stripe_offset: -1 pool: flash\n";
    const BEEGFS: &str = "Entry type: directory\nStripe pattern details:\n+ Type: RAID0\n+ Chunksize: 512k\n\
                          + Number of storage targets: desired: 4; actual: 2\n+ Storage Pool: 1 (Default)\n";
    const CEPH: &str = "stripe_unit=1048576 stripe_count=3 object_size=4194304 pool=cephfs_data";

    fn spread(stripe_count: u32, stripe_size: u64, pool: &str) -> StripeLayout {
        StripeLayout {
            stripe_count: Some(stripe_count),
            stripe_size: Some(Bytes(stripe_size)),
            pool: Some(pool.into()),
        }
    }

    #[test]
    fn recorded_layouts_are_read() {
        assert_eq!(read_layout(StripeControl::Lustre, LUSTRE), spread(2, 4 << 20, "flash"));
        assert_eq!(read_layout(StripeControl::BeeGfs, BEEGFS), spread(4, 512 << 10, "1"));
        assert_eq!(read_layout(StripeControl::CephFs, CEPH), spread(3, 1 << 20, "cephfs_data"));
        for control in [StripeControl::Lustre, StripeControl::BeeGfs, StripeControl::CephFs] {
            assert_eq!(read_layout(control, "no layout: none"), StripeLayout::default());
        }
    }

    #[test]
    fn what_is_asked_for_is_said_as_the_manuals_have_it() {
        let said = |control, asked: &StripeLayout| options(control, asked).join(" ");
        let asked = spread(4, 1 << 20, "2");
        assert_eq!(said(StripeControl::Lustre, &asked), "-c 4 -S 1048576 -p 2");
        assert_eq!(
            said(StripeControl::BeeGfs, &asked),
            "--numtargets=4 --chunksize=1048576 --storagepoolid=2"
        );
        let count = StripeLayout { stripe_count: Some(4), ..StripeLayout::default() };
        assert_eq!(said(StripeControl::CephFs, &count), "ceph.dir.layout.stripe_count 4");
        assert_eq!(said(StripeControl::Lustre, &StripeLayout::default()), "");
    }

    #[test]
    fn local_file_systems_have_no_stripes() {
        for name in ["ext4", "xfs", "btrfs", "tmpfs", "nfs4", "fuse.sshfs"] {
            assert_eq!(stripe_control(name), None, "{name}");
        }
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let error = said(Command::new("sh").args(["-c", "echo no such pool >&2; exit 4"]));
        let error = error.expect_err("it failed").to_string();
        assert!(error.contains("no such pool") && error.contains("exit status: 4"), "{error}");
        assert!(said(&mut Command::new("/nonexistent/lfs")).is_err());
    }
}
