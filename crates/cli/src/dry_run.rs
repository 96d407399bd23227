//! `evaluate --dry-run`: the targets, their room, the commands and the cells of a campaign that does not start.

use std::path::Path;

use nilometer_model::{StorageRoom, TargetDescription};
use nilometer_plan::{AppliedSetting, PlannedCampaign};

use crate::{plan, tell};

/// Lists the actions of a campaign, and its targets.
pub(crate) fn dry_run(resolved: &PlannedCampaign, record: &Path) -> String {
    let mut lines = vec!["nothing is started (--dry-run)".to_owned()];
    lines.extend(resolved.targets.iter().map(on));
    lines.extend(rooms(resolved));
    lines.push(format!("record    {}", record.display()));
    // Escapes each command, so that the terminal only shows its control characters.
    lines.extend(commands(resolved).iter().map(|command| format!("runs      {}", command.escape_debug())));
    let shown = lines.join("\n");
    tell::visible(&format!("{shown}\n\n{}\n", plan::shown(&resolved.plan)))
}

/// The line of a target with its free space. A target that keeps nothing has none.
fn on(target: &TargetDescription) -> String {
    let TargetDescription { address, file_system, space, .. } = target;
    if target.keeps() {
        return format!("on        {address} ({file_system}), {} free", space.free);
    }
    format!("on        {address} discards all data, and shows the limit of the program itself")
}

/// The commands of conditions and settings, each once.
fn commands(resolved: &PlannedCampaign) -> Vec<&String> {
    let conditions = resolved.plan.recordings().filter_map(|(_, run)| run.condition.as_ref());
    let of_settings = resolved.plan.settings().flat_map(AppliedSetting::commands);
    let mut commands: Vec<&String> = Vec::new();
    for command in conditions.flat_map(|of| [&of.enter, &of.leave]).chain(of_settings) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// For how long each target has room for each instrument that is recorded.
fn rooms(resolved: &PlannedCampaign) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, run) in resolved.plan.recordings() {
        let instrument = run.recorded();
        for target in &resolved.targets {
            let room = StorageRoom::for_instrument(&instrument, 1, [target], resolved.plan.reserve);
            let line = format!("room      {}, {}: {room}", target.address, instrument.name);
            if room.seconds().is_some() && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}
