//! Uneven use among equals: machines that are alike, and like disks of one machine.

use nilometer_model::{
    ByteRate,
    observed::{ObservedDisk, ObservedHeader},
};
use nilometer_plan::Results;

use super::{MachineUse, ObservedMachine, UseKey, UseKind, percent};

/// One of several equals that differs from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct UnevenUse {
    /// The kind of use.
    pub what: &'static str,
    /// Its name.
    pub who: String,
    /// Its figure.
    pub figure: f64,
    /// The mean of the others.
    pub others: f64,
    /// Number of others.
    pub count: usize,
    /// The finding in words.
    pub words: String,
}

/// A smaller ratio is no imbalance.
const RATIO_LEAST: f64 = 1.5;

/// A kind of use that is compared between equals.
#[derive(Debug, Clone, Copy)]
struct ComparedUse {
    what: &'static str,
    kind: UseKind,
    /// If the larger figure is below this, the comparison is skipped.
    least: f64,
    is_share: bool,
}

const OF_MACHINES: [ComparedUse; 5] = [
    ComparedUse { what: "received", kind: UseKind::LinkReceived, least: 1e6, is_share: false },
    ComparedUse { what: "sent", kind: UseKind::LinkSent, least: 1e6, is_share: false },
    ComparedUse { what: "read from disks", kind: UseKind::DiskRead, least: 1e6, is_share: false },
    ComparedUse { what: "written to disks", kind: UseKind::DiskWritten, least: 1e6, is_share: false },
    ComparedUse { what: "processors busy", kind: UseKind::ProcessorsBusy, least: 0.1, is_share: true },
];

const OF_DISKS: ComparedUse =
    ComparedUse { what: "busy", kind: UseKind::DiskBusy, least: 0.2, is_share: true };

/// A figure of one of several equals.
struct EqualsFigure {
    who: String,
    figure: f64,
}

pub(super) fn uneven(seen: &[MachineUse], machines: &[ObservedMachine], results: &Results) -> Vec<UnevenUse> {
    let mut found = Vec::new();
    for equals in equal_machines(seen, machines, results) {
        for of in OF_MACHINES {
            let figure = |one: &&MachineUse| figure_of(one, machines, of.kind);
            let figures: Vec<EqualsFigure> = equals.iter().filter_map(figure).collect();
            found.extend(odd_one(of, &figures));
        }
    }
    found.extend(seen.iter().flat_map(|one| uneven_disks(one, &machines[one.machine].header)));
    found
}

/// The features by which machines count as alike: whether they measured, processors, cards and disks.
#[derive(Debug, PartialEq)]
struct MachineRole {
    measures: bool,
    processors: usize,
    /// Speeds in bits per second.
    cards: Vec<u64>,
    /// Sizes in bytes.
    disks: Vec<u64>,
}

impl MachineRole {
    fn of(header: &ObservedHeader, results: &Results) -> Self {
        let of_record = results.environment.iter().find(|(key, _)| key == "host");
        let is_host = of_record.is_some_and(|(_, host)| *host == header.host);
        let mut cards: Vec<u64> = header.links.iter().filter(|link| link.is_card).map(speed_of).collect();
        let mut disks: Vec<u64> = own_disks(header).map(|disk| disk.size_bytes).collect();
        cards.sort_unstable();
        disks.sort_unstable();
        let measures = is_host || results.machines.iter().any(|machine| machine.name == header.host);
        MachineRole { measures, processors: header.processors, cards, disks }
    }
}

fn speed_of(link: &nilometer_model::observed::ObservedLink) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "max(0) stands before it")]
    let bits = (link.speed_bytes_per_second.unwrap_or(0.0).max(0.0) * 8.0) as u64;
    bits
}

/// Disks that are not made of others.
fn own_disks(header: &ObservedHeader) -> impl Iterator<Item = &ObservedDisk> {
    header.disks.iter().filter(|disk| disk.made_of.is_empty())
}

fn equal_machines<'a>(
    seen: &'a [MachineUse],
    machines: &[ObservedMachine],
    results: &Results,
) -> Vec<Vec<&'a MachineUse>> {
    let mut groups: Vec<(MachineRole, Vec<&MachineUse>)> = Vec::new();
    for one in seen {
        let role = MachineRole::of(&machines[one.machine].header, results);
        match groups.iter_mut().find(|(known, _)| *known == role) {
            Some((_, equals)) => equals.push(one),
            None => groups.push((role, vec![one])),
        }
    }
    groups.into_iter().map(|(_, equals)| equals).filter(|equals| equals.len() > 1).collect()
}

/// The sum over cards, or over disks that are not made of others.
fn figure_of(one: &MachineUse, machines: &[ObservedMachine], kind: UseKind) -> Option<EqualsFigure> {
    let header = &machines[one.machine].header;
    let figures: Vec<f64> = one.all(kind).filter(|of| counts(header, &of.key)).map(|of| of.mean).collect();
    let who = header.host.clone();
    (!figures.is_empty()).then(|| EqualsFigure { who, figure: figures.iter().sum() })
}

/// Excludes an array beside its disks, and a bridge beside its card.
fn counts(header: &ObservedHeader, key: &UseKey) -> bool {
    match key.kind {
        UseKind::LinkReceived | UseKind::LinkSent => header.link(&key.name).is_none_or(|link| link.is_card),
        UseKind::DiskRead | UseKind::DiskWritten => {
            header.disk(&key.name).is_none_or(|disk| disk.made_of.is_empty())
        }
        _ => true,
    }
}

/// Disks of one machine with the same kind and size.
fn uneven_disks(one: &MachineUse, header: &ObservedHeader) -> Vec<UnevenUse> {
    let mut groups: Vec<(&ObservedDisk, Vec<EqualsFigure>)> = Vec::new();
    for disk in own_disks(header) {
        let Some(busy) = one.of(UseKind::DiskBusy, &disk.name) else { continue };
        let who = format!("disk {} of {}", disk.name, header.host);
        let figure = EqualsFigure { who, figure: busy.mean };
        let is_alike = |known: &ObservedDisk| {
            let rotational = known.rotational == disk.rotational;
            rotational && known.size_bytes == disk.size_bytes && known.kind == disk.kind
        };
        match groups.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, equals)) => equals.push(figure),
            None => groups.push((disk, vec![figure])),
        }
    }
    groups.into_iter().filter_map(|(_, equals)| odd_one(OF_DISKS, &equals)).collect()
}

/// The figure that differs most from the mean of the others, if the ratio is large enough. If there are only two,
/// it is the larger one.
fn odd_one(of: ComparedUse, figures: &[EqualsFigure]) -> Option<UnevenUse> {
    if figures.len() < 2 {
        return None;
    }
    let count = figures.len() - 1;
    let sum: f64 = figures.iter().map(|one| one.figure).sum();
    let differing = figures.iter().filter_map(|one| {
        let others = ((sum - one.figure) / count as f64).max(0.0);
        let greater = one.figure.max(others);
        let ratio = greater / one.figure.min(others).max(1e-9);
        (greater >= of.least && ratio > RATIO_LEAST).then_some(DifferingFigure { one, others, ratio })
    });
    let odd = differing.max_by(|one, other| one.order().total_cmp(&other.order()))?;
    let DifferingFigure { one: EqualsFigure { who, figure }, others, .. } = odd;
    let show = |value: f64| if of.is_share { percent(value) } else { ByteRate(value).to_string() };
    let equals = if count == 1 { "its equal".into() } else { format!("its {count} equals, on average,") };
    let words = format!("uneven, {}: {who} {}, {equals} {}", of.what, show(*figure), show(others));
    Some(UnevenUse { what: of.what, who: who.clone(), figure: *figure, others, count, words })
}

/// A figure far from the mean of the others.
struct DifferingFigure<'a> {
    one: &'a EqualsFigure,
    others: f64,
    ratio: f64,
}

impl DifferingFigure<'_> {
    /// The sort key: the farthest comes last. Two equals are equally far from each other, so the larger comes
    /// last.
    fn order(&self) -> f64 {
        let is_greater = self.one.figure > self.others;
        self.ratio * if is_greater { 1.000_001 } else { 1.0 }
    }
}
