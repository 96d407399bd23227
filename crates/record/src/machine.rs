//! Writes and reads the machines of a campaign: their links, and the facts about each.

use nilometer_model::{ByteRate, Bytes, CampaignMachine, NetworkLink};
use rusqlite::{Connection, Row, Transaction};

use super::row::{Column, from_json, insert_row, json, rows};

/// Stores a machine by its number, with its links and the facts that differ from other machines.
pub(super) fn insert_machine(
    transaction: &Transaction<'_>,
    id: usize,
    machine: &CampaignMachine,
) -> rusqlite::Result<()> {
    let CampaignMachine { name, facts, links } = machine;
    insert_row(transaction, "machine", &[("id", &id), ("name", name)])?;
    for (key, value) in facts {
        insert_row(transaction, "environment", &[("node", &id), ("key", key), ("value", value)])?;
    }
    links.iter().try_for_each(|link| insert_link(transaction, id, link))
}

fn insert_link(transaction: &Transaction<'_>, machine: usize, link: &NetworkLink) -> rusqlite::Result<()> {
    let bond = link.bond.as_ref().map(json).transpose()?;
    let offloads = link.offloads.as_ref().map(json).transpose()?;
    let columns: [Column<'_>; 7] = [
        ("machine", &machine),
        ("name", &link.name),
        ("is_card", &link.is_card),
        ("speed", &link.speed.map(|speed| speed.0)),
        ("mtu", &link.mtu.map(|mtu| mtu.0)),
        ("bond", &bond),
        ("offloads", &offloads),
    ];
    insert_row(transaction, "link", &columns)
}

/// Returns the machines in order. The facts about the first are in the record's environment.
pub(super) fn machines(connection: &Connection) -> rusqlite::Result<Vec<CampaignMachine>> {
    let all: Vec<(i64, String)> = rows(connection, "SELECT id, name FROM machine ORDER BY id", |row| {
        Ok((row.get("id")?, row.get("name")?))
    })?;
    all.into_iter().map(|(id, name)| machine(connection, id, name)).collect()
}

fn machine(connection: &Connection, id: i64, name: String) -> rusqlite::Result<CampaignMachine> {
    let facts = "SELECT key, value FROM environment WHERE node = ?1 AND node > 0 ORDER BY rowid";
    let facts = connection
        .prepare(facts)?
        .query_map([id], |row| Ok((row.get("key")?, row.get("value")?)))?
        .collect::<rusqlite::Result<_>>()?;
    let links = "SELECT * FROM link WHERE machine = ?1 ORDER BY name";
    let links = connection.prepare(links)?.query_map([id], link)?.collect::<rusqlite::Result<_>>()?;
    Ok(CampaignMachine { name, facts, links })
}

fn link(row: &Row<'_>) -> rusqlite::Result<NetworkLink> {
    let bond = row.get_ref("bond")?.as_str_or_null()?;
    let offloads = row.get_ref("offloads")?.as_str_or_null()?;
    Ok(NetworkLink {
        name: row.get("name")?,
        is_card: row.get("is_card")?,
        speed: row.get::<_, Option<f64>>("speed")?.map(ByteRate),
        mtu: row.get::<_, Option<u64>>("mtu")?.map(Bytes),
        bond: bond.map(|text| from_json("a bond", text)).transpose()?,
        offloads: offloads.map(|text| from_json("offloads of a link", text)).transpose()?,
    })
}
