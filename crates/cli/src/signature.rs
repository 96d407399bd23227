//! Signatures of records, by SSH keys (`ssh-keygen -Y`, OpenSSH 8.2 or later). Unlike a seal, nobody without
//! the key can make one. The signature of `r.sqlite` is in `r.sqlite.sig` beside it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

/// The purpose of a signature, a namespace of sshsig: a signature for another purpose is not valid for a
/// record.
const NAMESPACE: &str = "nilometer";
/// The beginnings of a public key's line. A file of allowed signers has names before it.
const KEY_TYPES: [&str; 3] = ["ssh-", "ecdsa-", "sk-"];

/// The path of a record's signature.
pub(crate) fn beside(record: &Path) -> PathBuf {
    let mut path = record.as_os_str().to_owned();
    path.push(".sig");
    path.into()
}

/// A key that signs without a question to the user.
#[derive(Debug, Clone)]
pub(crate) struct SigningKey(PathBuf);

impl SigningKey {
    /// Signs a test text with the key, so that a campaign of a day does not end without a signature.
    ///
    /// # Errors
    /// If it can't sign: the file is no key, or has a passphrase and no agent holds it.
    pub(crate) fn tried(key: &Path) -> Result<Self> {
        let made =
            ssh_keygen().args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key).stdin(Stdio::null()).output();
        let made = made.context("--sign needs ssh-keygen (OpenSSH 8.2 or later)")?;
        let why = last_line(&made);
        ensure!(
            made.status.success(),
            "--sign {}: it can't sign: {why}: name a private key without a passphrase, or a public key whose private key \
             ssh-agent holds",
            key.display()
        );
        Ok(SigningKey(key.into()))
    }

    /// Signs a closed record.
    ///
    /// # Errors
    /// If there is a signature already, or it can't be written.
    pub(crate) fn sign(&self, record: &Path) -> Result<PathBuf> {
        let signature = beside(record);
        ensure!(
            signature.symlink_metadata().is_err(),
            "{} already exists: move it away first",
            signature.display()
        );
        let mut signer = ssh_keygen();
        let made = signer
            .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
            .arg(&self.0)
            .stdin(File::open(record)?)
            .output()?;
        ensure!(made.status.success(), "{} can't sign: {}", self.0.display(), last_line(&made));
        fs::write(&signature, &made.stdout)
            .with_context(|| format!("can't write {}", signature.display()))?;
        Ok(signature)
    }
}

/// The signer of a record: the name in the file of allowed signers, or the key.
///
/// # Errors
/// If the file names no signers, there is no signature, or it is by somebody else or of other bytes.
pub(crate) fn signer(record: &Path, signers: &Path) -> Result<String> {
    let text = fs::read_to_string(signers).with_context(|| format!("can't read {}", signers.display()))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { bail!("{}: it names no key", signers.display()) };
    if KEY_TYPES.iter().any(|key| first.starts_with(key)) {
        by_key(record, signers)
    } else {
        by_name(record, signers)
    }
}

/// The signer's name, from a file of allowed signers.
fn by_name(record: &Path, signers: &Path) -> Result<String> {
    let signature = beside(record);
    let found =
        ssh_keygen().args(["-Y", "find-principals", "-s"]).arg(&signature).arg("-f").arg(signers).output()?;
    ensure!(found.status.success(), "{} names nobody with the key of the signature", signers.display());
    let names = String::from_utf8_lossy(&found.stdout).into_owned();
    let name = names.lines().next().unwrap_or_default().trim().to_owned();
    let mut verify = ssh_keygen();
    verify.args(["-Y", "verify", "-n", NAMESPACE, "-I", &name, "-s"]).arg(&signature).arg("-f").arg(signers);
    good(&verify.stdin(File::open(record)?).output()?)?;
    Ok(name)
}

/// The signer's key, if it is the one in the file of a public key.
fn by_key(record: &Path, key: &Path) -> Result<String> {
    let known = ssh_keygen().args(["-l", "-f"]).arg(key).output()?;
    ensure!(known.status.success(), "{}: {}", key.display(), last_line(&known));
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    let known = known.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let key_of_signature = key_of(record)?;
    ensure!(key_of_signature.ends_with(&known), "it was signed with {key_of_signature}, not with {known}");
    Ok(key_of_signature)
}

/// `ED25519 key SHA256:...`: the key of a record's signature, whoever owns it.
fn key_of(record: &Path) -> Result<String> {
    let mut check = ssh_keygen();
    check.args(["-Y", "check-novalidate", "-n", NAMESPACE, "-s"]).arg(beside(record));
    let said = good(&check.stdin(File::open(record)?).output()?)?;
    let (_, key) = said.split_once(" with ").with_context(|| format!("ssh-keygen said: {said}"))?;
    Ok(key.trim().to_owned())
}

/// The output of `ssh-keygen` about a valid signature.
fn good(output: &Output) -> Result<String> {
    ensure!(output.status.success(), "the signature is not one of this record: {}", last_line(output));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs without questions: a passphrase without an agent is an error.
fn ssh_keygen() -> Command {
    let mut command = Command::new("ssh-keygen");
    command.env("SSH_ASKPASS_REQUIRE", "force").env("SSH_ASKPASS", "false").stdin(Stdio::null());
    command
}

fn last_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.map_or_else(|| output.status.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(directory: &Path, name: &str, passphrase: &str) -> PathBuf {
        let path = directory.join(name);
        let made = ssh_keygen()
            .args(["-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f"])
            .arg(&path)
            .status();
        assert!(made.expect("ssh-keygen (scripts/bootstrap)").success());
        path
    }

    #[test]
    fn only_its_key_signs_and_only_those_bytes() {
        let directory = tempfile::tempdir().expect("space");
        let path = directory.path();
        let (ours, other) = (key(path, "ours", ""), key(path, "other", ""));
        let record = path.join("r.sqlite");
        fs::write(&record, "measured").expect("space");
        let public = |key: &Path| key.with_extension("pub");
        let why = |signers: &Path| signer(&record, signers).expect_err("no signature").to_string();
        assert!(why(&public(&ours)).contains("not one of this record"), "{}", why(&public(&ours)));
        let signing = SigningKey::tried(&ours).expect("it can sign");
        assert_eq!(signing.sign(&record).expect("space"), path.join("r.sqlite.sig"));
        assert!(signing.sign(&record).is_err(), "a signature is not written over");
        assert!(signer(&record, &public(&ours)).expect("it is ours").starts_with("ED25519 key SHA256:"));
        assert!(why(&public(&other)).contains("not with SHA256:"), "{}", why(&public(&other)));
        let allowed = path.join("allowed");
        let list = |name: &str, key: &Path| {
            let line = format!("# who\n{name} {}", fs::read_to_string(public(key)).expect("a key"));
            fs::write(&allowed, line).expect("space");
        };
        list("ana@example.org", &ours);
        assert_eq!(signer(&record, &allowed).expect("it is ours"), "ana@example.org");
        list("ben@example.org", &other);
        assert!(why(&allowed).contains("names nobody"), "{}", why(&allowed));
        list("ana@example.org", &ours);
        fs::write(&record, "changed").expect("space");
        assert!(why(&allowed).contains("not one of this record"), "{}", why(&allowed));
        assert!(why(&public(&ours)).contains("not one of this record"), "{}", why(&public(&ours)));
    }

    #[test]
    fn a_key_that_would_ask_is_refused_before_anything_begins() {
        let directory = tempfile::tempdir().expect("space");
        let locked = key(directory.path(), "locked", "a passphrase");
        let why = SigningKey::tried(&locked).expect_err("it would ask").to_string();
        assert!(why.contains("without a passphrase"), "{why}");
        SigningKey::tried(&directory.path().join("none")).expect_err("there is no key");
    }
}
