//! Several plans as one campaign.

use super::ResolvedPlan;

impl ResolvedPlan {
    /// Joins several plans into one campaign. Each stage name begins with its plan's name. If heads differ,
    /// the larger demand holds. `None` without plans.
    pub fn joined(plans: Vec<(String, ResolvedPlan)>) -> Option<ResolvedPlan> {
        let several = plans.len() > 1;
        plans
            .into_iter()
            .map(|(name, plan)| if several { plan.named(&name) } else { plan })
            .reduce(ResolvedPlan::and)
    }

    fn named(mut self, name: &str) -> Self {
        for cell in &mut self.cells {
            cell.stage = format!("{name}: {}", cell.stage);
        }
        for run in &mut self.network {
            run.stage = format!("{name}: {}", run.stage);
        }
        for words in &mut self.merged {
            *words = format!("{name}: {words}");
        }
        self.accept.named(name);
        self
    }

    fn and(mut self, other: ResolvedPlan) -> Self {
        self.repeats = self.repeats.max(other.repeats);
        self.warm_up = self.warm_up.max(other.warm_up);
        self.margin = self.margin.max(other.margin);
        let both = [self.precision, other.precision].into_iter().flatten();
        self.precision = both.min_by(f64::total_cmp);
        self.repeats_most = self.repeats_most.max(other.repeats_most);
        self.time_limit = self.time_limit.max(other.time_limit);
        self.space_limit = [self.space_limit, other.space_limit].into_iter().flatten().min();
        self.source = self.source.or(other.source);
        if self.expect.is_empty() {
            self.expect = other.expect;
        }
        self.copy_to = self.copy_to.or(other.copy_to);
        self.reserve = self.reserve.max(other.reserve);
        self.hang_after = self.hang_after.max(other.hang_after);
        self.accept = self.accept.and(other.accept);
        self.merged.extend(other.merged);
        self.cells.extend(other.cells);
        self.network.extend(other.network);
        self
    }
}
