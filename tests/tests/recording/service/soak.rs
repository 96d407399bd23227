//! A service that records one series of packets after the other: it holds no more afterwards.

use nilometer_tests::{Footprint, assert_flat, soak_seconds};

use crate::service::{commanded::Service, instrument, sender::Sender};

/// Looks at the service, and recordings between two of them.
const LOOKS: u64 = 8;
const RECORDINGS: u64 = 3;
const PACKETS: u64 = 50;
/// Growth of memory that counts as none. The allocator keeps pages for each of its arenas, until after some 80
/// recordings all are in use.
const GROWTH: u64 = 32 << 20;

/// Recordings between two looks: three, or one for every 24 seconds of `NILOMETER_SOAK_SECONDS`.
fn recordings_of_a_part() -> u64 {
    soak_seconds().map_or(RECORDINGS, |seconds| (seconds / 24 / LOOKS).max(RECORDINGS))
}

#[test]
fn a_service_that_records_again_and_again_holds_no_more_than_at_first() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = format!("instrument = \"{}\"\n", instrument(below, sender.port()));
    let service = Service::start(below, &raw);
    let mut found = vec![];
    for look in 0..LOOKS {
        for recording in 0..recordings_of_a_part() {
            let name = format!("{{\"name\": \"scan-{look}-{recording}\"}}");
            assert_eq!(service.json(200, "POST", "/arm", &name)["state"], "armed");
            assert_eq!(service.json(200, "POST", "/start", "")["state"], "recording");
            sender.send(0..PACKETS);
            service.await_packets(PACKETS);
            let stopped = service.json(200, "POST", "/stop", "");
            assert_eq!(stopped["last"]["packets"], PACKETS, "{stopped}");
        }
        found.push(Footprint::of(service.running()));
    }
    assert_flat("a service", service.running(), &found, GROWTH);
    assert_eq!(service.end(), Some(0));
}
