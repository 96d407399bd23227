//! Signatures of records, by SSH keys (`ssh-keygen -Y`, OpenSSH 8.2 or later). Unlike a seal, nobody without
//! the key can make one. The signature of `r.sqlite` is in `r.sqlite.sig` beside it.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, OnceLock},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nilometer_model::{Nanos, shell_word};
use nilometer_storage::{DetachedTask, PATIENCE, in_time, user_file};
use rustix::process::{Pid, Signal, kill_process_group};

/// The purpose of a signature, a namespace of sshsig: a signature for another purpose is not valid for a
/// record.
const NAMESPACE: &str = "nilometer";
/// The first words of a public key's line, as `ssh -Q key` lists them. A file of allowed signers has names before them.
const KEY_TYPES: [&str; 8] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];
/// The most names of a file of signers that are tried.
const NAMES_MOST: usize = 100;
/// The first line of a signature that `ssh-keygen` made.
const ARMOR: &str = "-----BEGIN SSH SIGNATURE-----";
/// The rate, in bytes per second, at which `ssh-keygen` reads and hashes a record even from slow storage.
const SLOWEST: u64 = 10_000_000;

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
    /// If it can't sign: the file is no key, or has a passphrase and no agent holds it. Also if `ssh-keygen` is
    /// missing or does not answer.
    pub(crate) fn tried(key: &Path) -> Result<Self> {
        let shown = key.display();
        let made = signed_by(key, RecordInput { file: Stdio::null(), limit: PATIENCE })
            .with_context(|| format!("--sign {shown}"))?;
        let why = last_line(&made);
        ensure!(
            made.status.success(),
            "--sign {shown}: it can't sign: {why}: name a private key without a passphrase, or a public key whose private \
             key ssh-agent holds"
        );
        Ok(SigningKey(key.into()))
    }

    /// Signs a closed record.
    ///
    /// # Errors
    /// If there is a signature already, it can't be written, or `ssh-keygen` does not sign.
    pub(crate) fn sign(&self, record: &Path) -> Result<PathBuf> {
        let signature = beside(record);
        ensure!(
            signature.symlink_metadata().is_err(),
            "{} already exists: move it away first",
            signature.display()
        );
        let made = signed_by(&self.0, RecordInput::open(record)?)?;
        ensure!(made.status.success(), "{} can't sign: {}", self.0.display(), last_line(&made));
        fs::write(&signature, &made.stdout)
            .with_context(|| format!("can't write {}", signature.display()))?;
        Ok(signature)
    }

    /// The command by which a user signs this record later.
    pub(crate) fn command(&self, record: &Path) -> String {
        let [key, record] = [&self.0, record].map(|path| shell_word(&path.to_string_lossy()));
        format!("ssh-keygen -Y sign -n {NAMESPACE} -f {key} {record}")
    }
}

/// The result of signing the input with a key.
fn signed_by(key: &Path, input: RecordInput) -> Result<Output> {
    let mut signer = ssh_keygen();
    signer.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key).stdin(input.file);
    output_within(signer, input.limit)
}

/// The fault that leaves a record's signer unknown.
#[derive(Debug)]
pub(crate) enum SignatureFault {
    /// Nobody could check the signature: `ssh-keygen` is missing or hangs, or a file can't be read.
    NotChecked(anyhow::Error),
    /// The signature is by somebody else, or of other bytes.
    Invalid(anyhow::Error),
}

impl From<anyhow::Error> for SignatureFault {
    fn from(error: anyhow::Error) -> Self {
        SignatureFault::NotChecked(error)
    }
}

/// The signers that a user accepts: a public key, or a file of allowed signers.
#[derive(Debug)]
pub(crate) struct AllowedSigners {
    path: PathBuf,
    is_key: bool,
}

impl AllowedSigners {
    /// Reads the file.
    ///
    /// # Errors
    /// If it can't be read, or names no signers.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = user_file::read(path, "file of signers")?;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let Some(first) = lines.next() else { bail!("{}: it names no key", path.display()) };
        let is_key = first.split_whitespace().next().is_some_and(|word| KEY_TYPES.contains(&word));
        Ok(AllowedSigners { path: path.into(), is_key })
    }

    /// The signer of a record: the name in the file of allowed signers, or the key.
    ///
    /// # Errors
    /// If there is no signature, it is by somebody else or of other bytes, or it can't be checked.
    pub(crate) fn signer(&self, record: &Path) -> Result<String, SignatureFault> {
        check_signature(&beside(record))?;
        if self.is_key { by_key(record, &self.path) } else { by_name(record, &self.path) }
    }
}

/// Checks that a signature is there and is one.
fn check_signature(path: &Path) -> Result<(), SignatureFault> {
    let shown = path.display();
    let looked_at = path.to_owned();
    let found =
        in_time(PATIENCE, path.into(), move || looked_at.symlink_metadata()).map_err(anyhow::Error::from)?;
    if found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(SignatureFault::Invalid(anyhow!("there is no signature {shown}")));
    }
    let bytes = user_file::bytes(path, "signature").map_err(anyhow::Error::from)?;
    if bytes.trim_ascii_start().starts_with(ARMOR.as_bytes()) {
        return Ok(());
    }
    let why = anyhow!("the signature is not one of this record: {shown} does not begin with {ARMOR}");
    Err(SignatureFault::Invalid(why))
}

/// The signer's name, from a file of allowed signers.
fn by_name(record: &Path, signers: &Path) -> Result<String, SignatureFault> {
    // A record of other bytes is refused after one reading, whoever may have signed it.
    key_of(record)?;
    let signature = beside(record);
    let mut find = ssh_keygen();
    find.args(["-Y", "find-principals", "-s"]).arg(&signature).arg("-f").arg(signers);
    let found = output_within(find, PATIENCE)?;
    let names = String::from_utf8_lossy(&found.stdout).into_owned();
    let signers_shown = signers.display();
    let nobody =
        || SignatureFault::Invalid(anyhow!("{signers_shown} names nobody with the key of the signature"));
    if !found.status.success() {
        return Err(refused(&found, nobody));
    }
    // A key may stand in several lines, each with a name and with purposes of its own. Some versions of ssh-keygen
    // print the name of the first line only.
    let text = user_file::read(signers, "file of signers").map_err(anyhow::Error::from)?;
    let listed = text.lines().filter_map(|line| line.split_whitespace().next());
    let listed =
        listed.flat_map(|names| names.split(',')).filter(|name| !name.contains(['*', '?', '!', '#']));
    let mut tried = Vec::new();
    let mut refusal = nobody();
    for name in names.lines().map(str::trim).filter(|name| !name.is_empty()).chain(listed) {
        if tried.contains(&name) {
            continue;
        }
        if tried.len() == NAMES_MOST {
            let why = anyhow!("{signers_shown} has more than {NAMES_MOST} names: write only those to accept");
            return Err(SignatureFault::NotChecked(why));
        }
        tried.push(name);
        match verified(record, signers, name) {
            Err(SignatureFault::Invalid(why)) => refusal = SignatureFault::Invalid(why),
            decided => return decided,
        }
    }
    Err(refusal)
}

/// The name, if it signed the record.
fn verified(record: &Path, signers: &Path, name: &str) -> Result<String, SignatureFault> {
    let input = RecordInput::open(record)?;
    let mut verify = ssh_keygen();
    verify
        .args(["-Y", "verify", "-n", NAMESPACE, "-I", name, "-s"])
        .arg(beside(record))
        .arg("-f")
        .arg(signers);
    verify.stdin(input.file);
    good(&output_within(verify, input.limit)?)?;
    Ok(name.to_owned())
}

/// The fault that made `ssh-keygen` refuse: a version without signatures, or the one given.
fn refused(output: &Output, otherwise: impl FnOnce() -> SignatureFault) -> SignatureFault {
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unknown option")
        || said.contains("illegal option")
        || said.contains("usage: ssh-keygen")
    {
        let why = anyhow!("this ssh-keygen has no signatures: OpenSSH 8.2 or later has");
        return SignatureFault::NotChecked(why);
    }
    otherwise()
}

/// The signer's key, if it is the one in the file of a public key.
fn by_key(record: &Path, key: &Path) -> Result<String, SignatureFault> {
    let mut list = ssh_keygen();
    list.args(["-l", "-f"]).arg(key);
    let known = output_within(list, PATIENCE)?;
    if !known.status.success() {
        return Err(SignatureFault::NotChecked(anyhow!("{}: {}", key.display(), last_line(&known))));
    }
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    let hash = known.split_whitespace().nth(1).filter(|word| word.starts_with("SHA256:"));
    let known = hash.with_context(|| format!("ssh-keygen said: {}", known.trim()))?.to_owned();
    let key_of_signature = key_of(record)?;
    if !key_of_signature.ends_with(&known) {
        let why = anyhow!("it was signed with {key_of_signature}, not with {known}");
        return Err(SignatureFault::Invalid(why));
    }
    Ok(key_of_signature)
}

/// `ED25519 key SHA256:...`: the key of a record's signature, whoever owns it.
fn key_of(record: &Path) -> Result<String, SignatureFault> {
    let input = RecordInput::open(record)?;
    let mut check = ssh_keygen();
    check.args(["-Y", "check-novalidate", "-n", NAMESPACE, "-s"]).arg(beside(record));
    check.stdin(input.file);
    let said = good(&output_within(check, input.limit)?)?;
    let (_, key) = said.split_once(" with ").with_context(|| format!("ssh-keygen said: {said}"))?;
    Ok(key.trim().to_owned())
}

/// The output of `ssh-keygen` about a valid signature.
fn good(output: &Output) -> Result<String, SignatureFault> {
    if !output.status.success() {
        let why = || anyhow!("the signature is not one of this record: {}", last_line(output));
        return Err(refused(output, || SignatureFault::Invalid(why())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A record as the input of a command.
struct RecordInput {
    file: Stdio,
    /// The time for `ssh-keygen` to answer about the record, which it reads as a whole.
    limit: Nanos,
}

impl RecordInput {
    /// Opens a record. Gives up on storage that does not answer.
    fn open(record: &Path) -> Result<Self> {
        let path = record.to_owned();
        let open = move || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            io::Result::Ok((file, length))
        };
        let opened = in_time(PATIENCE, record.into(), open)?;
        let (file, length) = opened.with_context(|| format!("can't read {}", record.display()))?;
        Ok(RecordInput { file: file.into(), limit: PATIENCE + Nanos::from_millis(length / (SLOWEST / 1000)) })
    }
}

/// Runs without questions: a passphrase without an agent is an error.
fn ssh_keygen() -> Command {
    let mut command = Command::new("ssh-keygen");
    command.env("SSH_ASKPASS_REQUIRE", "force").env("SSH_ASKPASS", "false").stdin(Stdio::null());
    command
}

/// Runs a command to its end.
///
/// # Errors
/// It is missing, or has not ended within `limit`: an agent or storage does not answer. Then it is killed with
/// all processes that it started.
fn output_within(mut command: Command, limit: Nanos) -> Result<Output> {
    let program = command.get_program().display().to_string();
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let group = Arc::new(OnceLock::new());
    let started = group.clone();
    // Starting a program may hang too, if the program is on storage that does.
    let task = DetachedTask::begin("signature", move || {
        let child = command.spawn()?;
        started.get_or_init(|| Pid::from_child(&child));
        child.wait_with_output()
    })?;
    let Ok(output) = task.outcome_within(limit) else {
        let killed = group.get().map(|group| kill_process_group(*group, Signal::KILL));
        killed.unwrap_or(Ok(())).unwrap_or_default();
        bail!("{program} gave no answer within {limit}: does its agent or its storage hang?");
    };
    output.with_context(|| format!("can't run {program} (OpenSSH 8.2 or later)"))
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
        let signer = |signers: &Path| AllowedSigners::read(signers).expect("signers").signer(&record);
        let why = |signers: &Path| match signer(signers) {
            Err(SignatureFault::Invalid(why)) => why.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(why(&public(&ours)).contains("there is no signature"), "{}", why(&public(&ours)));
        let signing = SigningKey::tried(&ours).expect("it can sign");
        assert_eq!(signing.sign(&record).expect("space"), path.join("r.sqlite.sig"));
        assert!(signing.sign(&record).is_err(), "a signature is not written over");
        assert!(signer(&public(&ours)).expect("it is ours").starts_with("ED25519 key SHA256:"));
        assert!(why(&public(&other)).contains("not with SHA256:"), "{}", why(&public(&other)));
        let allowed = path.join("allowed");
        let list = |name: &str, key: &Path| {
            let line = format!("# who\n{name} {}", fs::read_to_string(public(key)).expect("a key"));
            fs::write(&allowed, line).expect("space");
        };
        list("ana@example.org", &ours);
        assert_eq!(signer(&allowed).expect("it is ours"), "ana@example.org");
        list("ben@example.org", &other);
        assert!(why(&allowed).contains("names nobody"), "{}", why(&allowed));
        list("ssh-ana@example.org", &ours);
        assert_eq!(signer(&allowed).expect("a name that looks like a key"), "ssh-ana@example.org");
        list("git namespaces=\"git\"", &ours);
        let for_git = fs::read_to_string(&allowed).expect("a list");
        list("ana@example.org namespaces=\"nilometer\"", &ours);
        let for_records = fs::read_to_string(&allowed).expect("a list");
        fs::write(&allowed, format!("{for_git}\n{for_records}")).expect("space");
        assert_eq!(signer(&allowed).expect("the second line is for records"), "ana@example.org");
        list("ana@example.org", &ours);
        fs::write(&record, "changed").expect("space");
        assert!(why(&allowed).contains("not one of this record"), "{}", why(&allowed));
        assert!(why(&public(&ours)).contains("not one of this record"), "{}", why(&public(&ours)));
    }

    #[test]
    fn a_signature_that_nobody_can_check_is_no_wrong_one() {
        let directory = tempfile::tempdir().expect("space");
        let ours = key(directory.path(), "ours", "");
        let record = directory.path().join("r.sqlite");
        fs::write(&record, "measured").expect("space");
        let signers = AllowedSigners::read(&ours.with_extension("pub")).expect("a key");
        let why = || match signers.signer(&record) {
            Err(SignatureFault::NotChecked(why)) => format!("{why:#}"),
            other => panic!("{other:?}"),
        };
        fs::create_dir(beside(&record)).expect("space");
        assert!(why().contains("can't read the signature"), "{}", why());
        let mut old = Command::new("sh");
        old.args(["-c", "echo 'unknown option -- Y' >&2; exit 1"]);
        let said = good(&output_within(old, PATIENCE).expect("a shell"));
        assert!(matches!(said, Err(SignatureFault::NotChecked(_))), "{said:?}");
    }

    #[test]
    fn a_command_to_sign_later_is_one_of_a_shell() {
        let key = SigningKey(PathBuf::from("my key"));
        let expected = "ssh-keygen -Y sign -n nilometer -f 'my key' 'a b/r.sqlite'";
        assert_eq!(key.command(Path::new("a b/r.sqlite")), expected);
    }

    #[test]
    fn a_key_that_would_ask_is_refused_before_anything_begins() {
        let directory = tempfile::tempdir().expect("space");
        let locked = key(directory.path(), "locked", "a passphrase");
        let why = SigningKey::tried(&locked).expect_err("it would ask").to_string();
        assert!(why.contains("without a passphrase"), "{why}");
        SigningKey::tried(&directory.path().join("none")).expect_err("there is no key");
    }

    #[test]
    fn a_file_without_signers_or_that_never_ends_is_refused() {
        let directory = tempfile::tempdir().expect("space");
        let path = directory.path().join("signers");
        fs::write(&path, "# nobody\n").expect("space");
        let why = AllowedSigners::read(&path).expect_err("nobody").to_string();
        assert!(why.ends_with("it names no key"), "{why}");
        let why = AllowedSigners::read(Path::new("/dev/zero")).expect_err("no plain file").to_string();
        assert!(why.contains("can't read the file of signers /dev/zero"), "{why}");
    }

    #[test]
    fn a_command_that_does_not_answer_is_killed_with_all_that_it_started() {
        let directory = tempfile::tempdir().expect("space");
        let noted = directory.path().join("noted");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $! > noted; wait"]).current_dir(&directory);
        let why = output_within(command, Nanos::from_millis(2000)).expect_err("it waits").to_string();
        assert!(why.starts_with("sh gave no answer within 2"), "{why}");
        let started = fs::read_to_string(&noted).expect("two seconds suffice");
        let started = Path::new("/proc").join(started.trim()).join("cmdline");
        let is_left = || fs::read_to_string(&started).is_ok_and(|line| line.contains("sleep"));
        for _ in 0..1000 {
            if !is_left() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} is left", started.display());
    }

    #[test]
    fn a_missing_command_is_named() {
        let why = output_within(Command::new("no-such-keygen"), PATIENCE).expect_err("there is none");
        assert!(why.to_string().starts_with("can't run no-such-keygen"), "{why}");
    }
}
