//! What a server of NFS no longer knows.

use std::fs;

use nilometer_plan::Measured;
use nilometer_storage::Errno;
use nilometer_tests::{Testbed, nilometer};

/// In the guest: files of a campaign are removed on the server while it writes them, and a directory while a shell is in it.
const STALE: &str = r#"
set -u
mkdir /mnt/nfs-v3/measured /mnt/nfs-v3/gone
cd /exchange
PROGRAM evaluate /mnt/nfs-v3/measured --plan /exchange/plan.toml --record /tmp/stale.sqlite >/exchange/said 2>&1 &
# The trials before the measurement write less.
until [ -n "$(find /mnt/md-raid5/measured -size +8M -print -quit)" ]; do
    kill -0 $! || exit 9
    sleep 0.1
done
rm -r /mnt/md-raid5/measured/nilometer-*
wait $!
echo $? >>/exchange/said
cp /tmp/stale.sqlite /exchange/r.sqlite
cd /mnt/nfs-v3/gone
rm -r /mnt/md-raid5/gone
PROGRAM describe .
echo $?
"#;

/// NFS by a kernel, as sites mount it: what the server no longer knows is a fault of the storage (ESTALE), and no end of the program.
pub(crate) fn a_stale_handle_of_nfs_is_a_fault_in_the_record(testbed: &Testbed) {
    let exchange = testbed.folder().join("uml/exchange");
    let program = nilometer().to_str().expect("plain letters");
    let plan = "title = \"t\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\n[stage.workload.stream]\n\
                file_size = \"64 MiB\"\nblock_size = \"4 KiB\"\naccess = \"buffered\"\nsync = { every = 1 }\n";
    fs::write(exchange.join("plan.toml"), plan).expect("space");
    fs::write(exchange.join("stale.sh"), STALE.replace("PROGRAM", program)).expect("space");
    let ended = testbed.verb("guest", &["bash", "/exchange/stale.sh"]);
    let said = fs::read_to_string(exchange.join("said")).expect("it was run");
    assert_eq!(said.lines().last(), Some("1"), "a fault: {said} {ended:?}");
    assert!(said.contains("left out") && said.contains("Stale file handle"), "{said}");
    let results = nilometer_record::read(&exchange.join("r.sqlite")).expect("a record");
    let is_stale = |measured: &Measured| measured.sample.errors.contains_key(&Errno::ESTALE.0);
    assert!(results.samples.iter().any(is_stale), "{:?}", results.samples);
    assert!(
        ended.stdout.lines().last() == Some("2") && ended.stderr.contains("where it is mounted"),
        "{ended:?}"
    );
}
