//! Over how many storage devices a file is spread. It is set on the run's directory, for files made from then on, and
//! read back, because systems give fewer than asked without saying so (Lustre and `BeeGFS` do).

use std::{
    path::Path,
    process::{Command, Output},
};

use super::super::TargetError;
use nilometer_model::StripeControl;
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

/// The stripe count of files that are made in the directory from now on.
pub(super) fn stripe_count(control: StripeControl, directory: &Path) -> Result<u32, TargetError> {
    let text = match control {
        StripeControl::Lustre => said(Command::new("lfs").args(["getstripe", "-d"]).arg(directory))?,
        StripeControl::BeeGfs => said(Command::new("beegfs-ctl").arg("--getentryinfo").arg(directory))?,
        StripeControl::CephFs => return ceph_count(directory),
    };
    let key = if control == StripeControl::Lustre { "stripe_count:" } else { "desired:" };
    count_behind(&text, key).ok_or_else(|| {
        let message = format!("no `{key}` in what the layout command said: {}", text.trim());
        TargetError::Probe { path: directory.into(), message }
    })
}

/// Sets it.
pub(super) fn set_stripe_count(
    control: StripeControl,
    directory: &Path,
    count: u32,
) -> Result<(), TargetError> {
    let number = count.to_string();
    match control {
        StripeControl::Lustre => {
            said(Command::new("lfs").args(["setstripe", "-c", &number]).arg(directory)).map(drop)
        }
        StripeControl::BeeGfs => {
            let option = format!("--numtargets={number}");
            said(Command::new("beegfs-ctl").args(["--setpattern", &option]).arg(directory)).map(drop)
        }
        StripeControl::CephFs => setxattr(directory, COUNT, number.as_bytes(), XattrFlags::empty())
            .map_err(TargetError::io(directory, "set the stripe count of")),
    }
}

const COUNT: &str = "ceph.dir.layout.stripe_count";

/// A directory without a layout of its own has none of these attributes; the default of `CephFS` is one.
fn ceph_count(directory: &Path) -> Result<u32, TargetError> {
    let mut value = [0; 64];
    match getxattr(directory, COUNT, &mut value) {
        Ok(length) => {
            let text = String::from_utf8_lossy(&value[..length]).into_owned();
            text.trim().parse().map_err(|_| {
                let message = format!("{COUNT} is `{text}`, which is no number");
                TargetError::Probe { path: directory.into(), message }
            })
        }
        Err(rustix::io::Errno::NODATA) => Ok(1),
        Err(errno) => Err(TargetError::io(directory, "read the stripe count of")(errno)),
    }
}

/// The number behind the first `key` in a text.
fn count_behind(text: &str, key: &str) -> Option<u32> {
    let behind = text.split_once(key)?.1.trim_start();
    let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    behind[..digits].parse().ok()
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

    // Recorded output: neither system runs in a test.
    const LUSTRE: &str = "stripe_count:  2 stripe_size:   4194304 pattern:       0 stripe_offset: -1\n";
    const BEEGFS: &str = "Entry type: directory\nStripe pattern details:\n+ Type: RAID0\n+ Chunksize: 512k\n\
                          + Number of storage targets: desired: 4\n";

    #[test]
    fn recorded_layouts_are_read() {
        assert_eq!(count_behind(LUSTRE, "stripe_count:"), Some(2));
        assert_eq!(count_behind(BEEGFS, "desired:"), Some(4));
        assert_eq!(count_behind("stripe_count: all", "stripe_count:"), None);
        assert_eq!(count_behind("", "desired:"), None);
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
