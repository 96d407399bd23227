//! Writes and reads the measurements of the network between the machines of a campaign.

use nilometer_model::{
    CampaignMachine, DatagramCounts, FlowEnd, FlowSample, FlowSettings, NetworkCell, NetworkProtocol,
    NetworkResults, NetworkSample, NetworkStage, TcpFindings, TrafficPattern,
};
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::{
    Record, RecordError,
    machine::insert_machine,
    network_interval::{insert_intervals, intervals},
    row::{Column, from_json, insert_row, json, nanos, number, rows, unreadable},
    schema::{INTERVALS_SINCE, version},
};

impl Record {
    /// Stores the machines of a campaign except the first, which is in the record's head. It replaces earlier
    /// entries, because a machine may have a new kernel when a campaign resumes.
    ///
    /// # Errors
    /// If the record can't be written.
    pub fn note_machines(&mut self, others: &[CampaignMachine]) -> Result<(), RecordError> {
        if others.is_empty() {
            return Ok(());
        }
        self.within("add machines to", |transaction| {
            for machines in ["link WHERE machine > 0", "machine WHERE id > 0", "environment WHERE node > 0"] {
                transaction.execute(&format!("DELETE FROM {machines}"), [])?;
            }
            (1..).zip(others).try_for_each(|(id, machine)| insert_machine(transaction, id, machine))
        })
    }

    /// Stores the machines and the cells of a network stage, unless the record has them. `id` is the stage's
    /// number among network stages.
    ///
    /// # Errors
    /// If the record can't be written.
    pub fn note_network_stage(&mut self, id: usize, stage: &NetworkStage) -> Result<(), RecordError> {
        let is_there = |transaction: &Transaction<'_>| {
            let query = "SELECT count(*) > 0 FROM network_stage WHERE id = ?1";
            transaction.query_row(query, [id], |row| row.get(0))
        };
        self.within("add a stage of the network to", |transaction| {
            if is_there(transaction)? { Ok(()) } else { insert_stage(transaction, id, stage) }
        })
    }

    /// Adds a sample of a network stage. The sample is on disk when this returns.
    ///
    /// # Errors
    /// If the record can't be written.
    pub fn add_network_sample(&mut self, stage: usize, sample: &NetworkSample) -> Result<(), RecordError> {
        self.within("add a sample of the network to", |transaction| insert_sample(transaction, stage, sample))
    }
}

fn insert_stage(transaction: &Transaction<'_>, id: usize, stage: &NetworkStage) -> rusqlite::Result<()> {
    let NetworkStage { stage, results } = stage;
    let machines = json(&results.machines)?;
    insert_row(transaction, "network_stage", &[("id", &id), ("name", stage), ("machines", &machines)])?;
    let names = results.names();
    for (number, cell) in results.cells.iter().enumerate() {
        let pattern = json(&StoredTraffic::of(cell))?;
        let columns: [Column<'_>; 6] = [
            ("stage", &id),
            ("cell", &number),
            ("name", &cell.words(&names)),
            ("pattern", &pattern),
            ("protocol", &cell.protocol.name()),
            ("flows", &cell.flows),
        ];
        insert_row(transaction, "network_cell", &columns)?;
    }
    Ok(())
}

fn insert_sample(
    transaction: &Transaction<'_>,
    stage: usize,
    sample: &NetworkSample,
) -> rusqlite::Result<()> {
    let NetworkSample { cell, repeat, asked, flows, intervals } = sample;
    let columns: [Column<'_>; 4] = [("stage", &stage), ("cell", cell), ("repeat", repeat), ("asked", asked)];
    insert_row(transaction, "network_sample", &columns)?;
    let id = transaction.last_insert_rowid();
    flows.iter().enumerate().try_for_each(|(number, flow)| insert_flow(transaction, id, number, flow))?;
    insert_intervals(transaction, id, intervals)
}

fn insert_flow(
    transaction: &Transaction<'_>,
    sample: i64,
    number: usize,
    flow: &FlowSample,
) -> rusqlite::Result<()> {
    let FlowSample { from, to, sent, received } = flow;
    let found = sent.connection.as_ref();
    let left = sent.packets.map(|counts| counts.packets);
    insert_row(
        transaction,
        "flow",
        &[
            ("sample", &sample),
            ("flow", &number),
            ("sender", from),
            ("receiver", to),
            ("bytes", &received.bytes),
            ("last", &received.last.0),
            ("sent", &sent.bytes),
            ("sent_last", &sent.last.0),
            ("sending", &sent.processor.0),
            ("receiving", &received.processor.0),
            ("retransmitted", &found.map(|found| found.retransmitted)),
            ("round_trip", &found.map(|found| found.round_trip.0)),
            ("least_round_trip", &found.map(|found| found.least_round_trip.0)),
            ("segment", &found.map(|found| found.segment)),
            ("congestion", &found.map(|found| found.congestion.as_str())),
            ("send_buffer", &found.map(|found| found.send_buffer)),
            ("packets_sent", &left),
            ("packets", &received.packets.map(|counts| counts.packets)),
            ("reordered", &received.packets.map(|counts| counts.reordered)),
            ("send_failed", &sent.failed),
            ("receive_failed", &received.failed),
        ],
    )
}

/// Returns the network measurements without the rounds before `warm_up`. Searches have no rounds.
pub(super) fn stages(connection: &Connection, warm_up: u32) -> rusqlite::Result<Vec<NetworkStage>> {
    let mut stages: Vec<NetworkStage> =
        rows(connection, "SELECT name, machines FROM network_stage ORDER BY id", |row| {
            let mut stage = NetworkStage { stage: row.get("name")?, ..NetworkStage::default() };
            let text = row.get_ref("machines")?.as_str()?;
            stage.results.machines = from_json("the machines of a network", text)?;
            Ok(stage)
        })?;
    for (number, stage) in stages.iter_mut().enumerate() {
        let cells = "SELECT pattern, protocol, flows FROM network_cell WHERE stage = ?1 ORDER BY cell";
        let cells = connection.prepare(cells)?.query_map([number], cell)?.collect::<rusqlite::Result<_>>()?;
        stage.results.cells = cells;
        stage.results.samples = samples(connection, number, warm_up)?;
        check_numbers(&stage.results)?;
    }
    Ok(stages)
}

/// Checks that patterns use machines of their stage, and samples use its cells, because another program may
/// have written the file.
fn check_numbers(results: &NetworkResults) -> rusqlite::Result<()> {
    let machines = results.machines.len();
    let is_known = |cell: &NetworkCell| cell.pattern.is_among(machines);
    let cells = results.cells.len();
    if results.cells.iter().all(is_known) && results.samples.iter().all(|sample| sample.cell < cells) {
        return Ok(());
    }
    Err(unreadable("the network: a machine or a cell that is not there".into()))
}

fn cell(row: &Row<'_>) -> rusqlite::Result<NetworkCell> {
    let protocol = match row.get_ref("protocol")?.as_str()? {
        "tcp" => NetworkProtocol::Tcp,
        "udp" => NetworkProtocol::Udp,
        other => return Err(unreadable(format!("unknown protocol `{other}`").into())),
    };
    let stored: StoredTraffic = from_json("a pattern of the network", row.get_ref("pattern")?.as_str()?)?;
    let (pattern, settings) = match stored {
        StoredTraffic::Pattern(pattern) => (pattern, FlowSettings::default()),
        StoredTraffic::WithSettings { pattern, settings } => (pattern, settings),
    };
    Ok(NetworkCell { pattern, protocol, flows: row.get("flows")?, settings })
}

/// The JSON of the column `pattern`: the pattern alone, as in records without settings, or with settings of the
/// flows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredTraffic {
    WithSettings { pattern: TrafficPattern, settings: FlowSettings },
    Pattern(TrafficPattern),
}

impl StoredTraffic {
    fn of(cell: &NetworkCell) -> Self {
        let NetworkCell { pattern, settings, .. } = *cell;
        if settings.is_default() {
            StoredTraffic::Pattern(pattern)
        } else {
            StoredTraffic::WithSettings { pattern, settings }
        }
    }
}

fn samples(connection: &Connection, stage: usize, warm_up: u32) -> rusqlite::Result<Vec<NetworkSample>> {
    let query = "SELECT id, cell, repeat, asked FROM network_sample
                 WHERE stage = ?1 AND (repeat >= ?2 OR asked IS NOT NULL) ORDER BY id";
    let mut samples = connection.prepare(query)?;
    let mut flows = connection.prepare("SELECT * FROM flow WHERE sample = ?1 ORDER BY flow")?;
    let has_intervals = version(connection)? >= INTERVALS_SINCE;
    let mut found = samples.query(params![stage, warm_up])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let id: i64 = row.get("id")?;
        let flows = flows.query_map([id], flow)?.collect::<rusqlite::Result<_>>()?;
        let intervals = if has_intervals { intervals(connection, id)? } else { Vec::new() };
        let cell = row.get("cell")?;
        let repeat = row.get("repeat")?;
        all.push(NetworkSample { cell, repeat, asked: row.get("asked")?, flows, intervals });
    }
    Ok(all)
}

fn flow(row: &Row<'_>) -> rusqlite::Result<FlowSample> {
    let number_of = row.get("flow")?;
    let sent = FlowEnd {
        flow: number_of,
        bytes: number(row, "sent")?,
        last: nanos(row, "sent_last")?,
        processor: nanos(row, "sending")?,
        connection: connection_of(row)?,
        packets: row
            .get::<_, Option<u64>>("packets_sent")?
            .map(|packets| DatagramCounts { packets, reordered: 0 }),
        failed: row.get("send_failed")?,
    };
    let packets = row.get::<_, Option<u64>>("packets")?.zip(row.get("reordered")?);
    let received = FlowEnd {
        flow: number_of,
        bytes: number(row, "bytes")?,
        last: nanos(row, "last")?,
        processor: nanos(row, "receiving")?,
        connection: None,
        packets: packets.map(|(packets, reordered)| DatagramCounts { packets, reordered }),
        failed: row.get("receive_failed")?,
    };
    Ok(FlowSample { from: row.get("sender")?, to: row.get("receiver")?, sent, received })
}

fn connection_of(row: &Row<'_>) -> rusqlite::Result<Option<TcpFindings>> {
    let Some(retransmitted) = row.get("retransmitted")? else { return Ok(None) };
    Ok(Some(TcpFindings {
        retransmitted,
        round_trip: nanos(row, "round_trip")?,
        least_round_trip: nanos(row, "least_round_trip")?,
        segment: row.get("segment")?,
        congestion: row.get("congestion")?,
        send_buffer: number(row, "send_buffer")?,
    }))
}

#[cfg(test)]
mod tests {
    use nilometer_model::{
        BondMember, ByteRate, Bytes, LinkBond, LinkTraffic, MachineGroups, Nanos, NetworkLink,
        NetworkMachine, PatternKind, TrafficInterval,
    };
    use nilometer_plan::Results;

    use super::*;
    use crate::{read, read::tests::campaign};

    fn link(name: &str) -> NetworkLink {
        let member = BondMember { name: "eth0".into(), is_up: true, speed: Some(ByteRate(1.25e8)) };
        NetworkLink {
            name: name.into(),
            is_card: true,
            speed: Some(ByteRate(1.25e9)),
            mtu: Some(Bytes(9000)),
            bond: Some(LinkBond { mode: "802.3ad".into(), members: vec![member] }),
            offloads: Some(vec!["tso".into()]),
        }
    }

    fn machine(name: &str, facts: &[(&str, &str)]) -> CampaignMachine {
        let facts = facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let unknown = NetworkLink { name: "eth7".into(), ..NetworkLink::default() };
        CampaignMachine { name: name.into(), facts, links: vec![link("bond0"), unknown] }
    }

    /// Makes a sample in which no two numbers are equal.
    fn flow(is_stream: bool) -> FlowSample {
        let found = TcpFindings {
            retransmitted: 1,
            round_trip: Nanos(2),
            least_round_trip: Nanos(3),
            segment: 4,
            congestion: "cubic".into(),
            send_buffer: 5,
        };
        let counts = |packets, reordered| (!is_stream).then_some(DatagramCounts { packets, reordered });
        let end = |from: u64, packets, failed: Option<&str>| FlowEnd {
            flow: 0,
            bytes: from,
            last: Nanos(from + 1),
            processor: Nanos(from + 2),
            connection: None,
            packets,
            failed: failed.map(Into::into),
        };
        let sent = FlowEnd { connection: is_stream.then_some(found), ..end(10, counts(20, 0), None) };
        FlowSample { from: 6, to: 7, sent, received: end(30, counts(21, 22), Some("gone")) }
    }

    /// Makes intervals of two machines in which no two numbers are equal; the second has a kernel without counts.
    fn intervals_of(repeat: u32) -> Vec<TrafficInterval> {
        let link = |name: &str, received_bytes| LinkTraffic {
            name: name.into(),
            received_bytes,
            sent_bytes: received_bytes + 1,
        };
        let interval = |machine, retransmitted| TrafficInterval {
            machine,
            from: Nanos(31 + u64::from(repeat)),
            until: Nanos(51 + u64::from(repeat)),
            retransmitted,
            links: vec![link("eth0", 60), link("eth1", 70)],
        };
        vec![interval(0, Some(80)), interval(1, None)]
    }

    fn stage() -> NetworkStage {
        let machine = |name: &str, rank| NetworkMachine {
            name: name.into(),
            ranks: vec![rank],
            addresses: vec!["10.1.0.1".into()],
            congestion: vec!["bic".parse().expect("a name")],
            link_speed: None,
        };
        let patterns = TrafficPattern::all_of(&PatternKind::USUAL, 2, MachineGroups::one_client(2));
        let settings = |protocol| match protocol {
            NetworkProtocol::Tcp => FlowSettings {
                processes: Some(2),
                congestion: Some("bic".parse().expect("a name")),
                buffer: Some(Bytes(1 << 20)),
            },
            NetworkProtocol::Udp => FlowSettings::default(),
        };
        let cell =
            |protocol| NetworkCell { pattern: patterns[0], protocol, flows: 4, settings: settings(protocol) };
        let sample = |cell, repeat, asked: Option<u64>| NetworkSample {
            cell,
            repeat,
            asked,
            flows: vec![flow(asked.is_none())],
            intervals: intervals_of(repeat),
        };
        NetworkStage {
            stage: "the network".into(),
            results: NetworkResults {
                machines: vec![machine("a", 0), machine("b", 1)],
                cells: vec![cell(NetworkProtocol::Tcp), cell(NetworkProtocol::Udp)],
                samples: vec![sample(0, 0, None), sample(0, 1, None), sample(1, 0, Some(1000))],
            },
        }
    }

    #[test]
    fn machines_and_what_the_network_carried_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        let environment = vec![("host".to_owned(), "a".to_owned())];
        let machines = vec![machine("a", &[])];
        let head = Results { campaign: Some(campaign()), environment, machines, ..Results::default() };
        let mut record = Record::create(&path, &head, 1).expect("a new record");
        let other = machine("b", &[("host", "b"), ("kernel", "6.1")]);
        for others in [[machine("c", &[("host", "c")])], [other.clone()]] {
            record.note_machines(&others).expect("space");
        }
        let stage = stage();
        for _ in 0..2 {
            record.note_network_stage(0, &stage).expect("space");
        }
        for sample in &stage.results.samples {
            record.add_network_sample(0, sample).expect("space");
        }
        assert!(record.add_network_sample(0, &stage.results.samples[1]).is_err(), "it is written once");
        let results = read(&path).expect("readable");
        assert_eq!(results.machines, [machine("a", &[]), other]);
        assert_eq!(results.environment, [("host".to_owned(), "a".to_owned())], "that of the first");
        let mut expected = stage.clone();
        expected.results.samples.remove(0);
        assert_eq!(results.network, [expected], "the first round is for warming up");
        drop(record);
        let (_, begun) = Record::resume(&path).expect("nobody writes");
        assert_eq!(begun.network, [stage], "a campaign goes on from all");
        for other in ["network_sample SET cell = 9 WHERE id = 2", "network_stage SET machines = '[]'"] {
            let copy = directory.path().join("copy.sqlite");
            std::fs::copy(&path, &copy).expect("space");
            let connection = Connection::open(&copy).expect("a database");
            connection.execute(&format!("UPDATE {other}"), []).expect("writable");
            let refused = read(&copy).expect_err(other).to_string();
            assert!(refused.contains("a machine or a cell that is not there"), "{refused}");
        }
    }
}
