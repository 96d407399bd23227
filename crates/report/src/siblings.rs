//! The siblings that differ from others like them, in reports.

use serde::Serialize;

use nilometer_analysis::SiblingGroup;

/// The same for programs.
#[derive(Serialize)]
pub(super) struct SiblingsTold<'a> {
    stage: &'a str,
    phase: &'static str,
    workload: &'a str,
    /// `targets` or `workers`.
    siblings: &'static str,
    together: bool,
    /// Each with its mean rate, in bytes or operations a second.
    members: Vec<SiblingMember<'a>>,
    /// The names of the odd ones, each with its rate as a share of the median of the others.
    odd: Vec<OddSibling<'a>>,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct SiblingMember<'a> {
    name: &'a str,
    rate: Option<f64>,
}

#[derive(Serialize)]
struct OddSibling<'a> {
    name: &'a str,
    share: f64,
    low: f64,
    high: f64,
}

pub(super) fn siblings_told<'a>(
    stage: &'a str,
    groups: &'a [SiblingGroup],
    margin: f64,
) -> impl Iterator<Item = SiblingsTold<'a>> {
    groups.iter().map(move |of| told(stage, of, margin))
}

fn told<'a>(stage: &'a str, of: &'a SiblingGroup, margin: f64) -> SiblingsTold<'a> {
    let members = of
        .members
        .iter()
        .map(|member| SiblingMember { name: &member.name, rate: member.rate.map(|rate| rate.mean) });
    let odd = of.odd.iter().map(|odd| {
        let [share, low, high] = [odd.effect.log_ratio, odd.effect.low, odd.effect.high].map(f64::exp);
        OddSibling { name: &of.members[odd.target].name, share, low, high }
    });
    SiblingsTold {
        stage,
        phase: of.phase.name(),
        workload: &of.workload,
        siblings: of.siblings.name(),
        together: of.together,
        members: members.collect(),
        odd: odd.collect(),
        sentences: of.sentences(margin),
    }
}
