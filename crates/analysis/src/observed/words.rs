//! The words about observed machines, for every report.

use nilometer_model::{
    Nanos,
    observed::{ObservedLog, ObservedRange},
};

use super::{ObservedCell, ObservedMachine, ObservedRun, UseKind, UseSeries};

/// The explanation of the figures of observed machines.
pub const LEGEND: &str = "over the looks within a repeat: the mean (median over repeats) and, after a \
                          slash, the highest";

/// The limitation of a busy time of 100 % for disks.
pub const BUSY_DISKS: &str = "A disk is busy while it has a request. One that turns can do no more then; one that \
                                     serves many requests at once may: see how many it had.";

impl ObservedMachine {
    /// `8 processors; eth0 10 Gbit/s; disks sda, sdb`.
    pub fn words(&self) -> String {
        let header = &self.header;
        let processors = if header.processors == 1 { "processor" } else { "processors" };
        let mut parts = vec![format!("{} {processors}", header.processors)];
        parts.extend(header.links.iter().filter(|link| link.is_card).map(|link| {
            let speed = link.speed_bytes_per_second.map(|speed| nilometer_model::ByteRate(speed).bits());
            format!("link {} {}", link.name, speed.unwrap_or_else(|| "of unknown speed".into()))
        }));
        let disks: Vec<&str> = self.series.all(UseKind::DiskBusy).map(|of| of.key.name.as_str()).collect();
        match disks.len() {
            0 => {}
            1..=DISKS_NAMED => parts.push(format!("disks {}", disks.join(", "))),
            count => parts.push(format!("{count} disks")),
        }
        parts.push(format!("a look every {}", Nanos::from_seconds(header.interval_s)));
        parts.join("; ")
    }
}

/// More disks than this are only counted.
const DISKS_NAMED: usize = 8;

impl ObservedRun {
    /// The limit of a figure, or that none was found.
    pub fn verdict(&self, cell: &ObservedCell) -> String {
        let full: Vec<&str> =
            cell.resources.iter().filter(|one| one.is_full()).map(|one| one.words.as_str()).collect();
        match (&full[..], cell.resources.first()) {
            ([], _) if cell.seen.is_empty() => self.unseen(cell),
            ([], None) => "nothing that has a known limit was observed".into(),
            ([], Some(nearest)) => {
                format!("nothing observed was at its limit; nearest was {}", nearest.words)
            }
            ([one], _) => format!("at its limit: {one}"),
            (several, _) => format!("at their limits: {}", several.join("; ")),
        }
    }

    /// The reason why no look lies within a repeat.
    fn unseen(&self, cell: &ObservedCell) -> String {
        let longest = cell.repeats.iter().map(|repeat| repeat.length()).max().unwrap_or_default();
        let observed = self.machines.iter().flat_map(|machine| &machine.series.spans).copied();
        let observed = observed.reduce(ObservedRange::and);
        if !cell.repeats.iter().any(|repeat| observed.is_some_and(|observed| observed.meets(*repeat))) {
            return "no machine was observed at that time".into();
        }
        format!(
            "no two looks lie within a repeat: the longest took {longest}, and looks are {} apart (--interval)",
            self.interval()
        )
    }

    /// The limit of a figure, then uneven use.
    pub fn sentences(&self, cell: &ObservedCell) -> Vec<String> {
        let uneven = cell.uneven.iter().map(|uneven| uneven.words.clone());
        std::iter::once(self.verdict(cell)).chain(uneven).collect()
    }

    /// Returns true if some disk counts as full, so that the report must explain its meaning.
    pub fn has_busy_disks(&self) -> bool {
        let all = self.cells.iter().flat_map(|cell| &cell.resources);
        all.into_iter().any(|one| one.kind == UseKind::DiskBusy && one.is_full())
    }
}

/// Notes for readers of a file, beside its figures.
pub(super) fn notes(log: &ObservedLog, series: &UseSeries, run: ObservedRange) -> Vec<String> {
    let mut notes = Vec::new();
    if log.is_torn {
        notes.push("the last line of its file is not whole, and was left out: the observer was killed, or still observes".into());
    }
    notes.extend(missing_looks(log));
    notes.extend(not_all_of(series, run));
    for (at, step) in &series.steps {
        let at = nilometer_model::Moment(Nanos(at.0 / 1_000_000_000 * 1_000_000_000));
        notes.push(format!(
            "its clock was set by {step:+.2} s at {at}: the report omits intervals across that moment"
        ));
    }
    let unknown =
        log.header.links.iter().filter(|link| link.is_card && link.speed_bytes_per_second.is_none());
    notes.extend(
        unknown.map(|link| {
            format!("link {} does not report its speed: it may have been at its limit", link.name)
        }),
    );
    for of in series.all(UseKind::LinkLost) {
        let lost = series.total(of);
        if lost >= 1.0 {
            notes.push(format!("link {}: {lost:.0} packets were broken or dropped", of.key.name));
        }
    }
    notes
}

/// A look is missing between two looks if they are this many intervals apart.
const MISSING_FROM: f64 = 1.5;

fn missing_looks(log: &ObservedLog) -> Option<String> {
    let interval = log.header.interval_s.max(1e-3);
    let apart = log.looks.windows(2).map(|pair| pair[1].running().since(pair[0].running()).seconds());
    let gaps: Vec<f64> = apart.filter(|apart| *apart > MISSING_FROM * interval).collect();
    let longest = gaps.iter().copied().reduce(f64::max)?;
    let missing: f64 = gaps.iter().map(|gap| (gap / interval).round() - 1.0).sum();
    let longest = Nanos::from_seconds(longest);
    Some(format!("looks are missing: {missing:.0}; the longest time between two was {longest}"))
}

fn not_all_of(series: &UseSeries, run: ObservedRange) -> Option<String> {
    let seen = series.spans.iter().copied().reduce(ObservedRange::and)?;
    let before = seen.from.since(run.from);
    let behind = run.to.since(seen.to);
    let unseen = |time: Nanos| time > Nanos::from_millis(2000);
    let parts: Vec<String> = [(before, "first"), (behind, "last")]
        .into_iter()
        .filter(|(time, _)| unseen(*time))
        .map(|(time, which)| format!("the {which} {time}"))
        .collect();
    (!parts.is_empty()).then(|| format!("it was not observed for {} of the run", parts.join(" and for ")))
}
