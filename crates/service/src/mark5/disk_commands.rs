//! Commands about a recording's directories, which stand for the disks of a `FlexBuff` or a Mark 6. They select
//! directories and report space. A client can select only directories of the service's configuration.
//!
//! Sources in the repository of jive5ab:
//!
//! - "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), sections `rtime` (G), `dir_info`,
//!   `set_disks` and `group_def`
//! - the Mark 6 command set 1.0 (doc/Mark6_command_set-Release-1.0.pdf), `rtime`, for the rate that schedules
//!   name
//! - `src/mk5command/{rtime_vbs,dirinfo_vbs,set_disks,group_def}.cc`, for order, units and codes

use nilometer_model::ByteRate;

use super::{
    commands::Mark5Session,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};
use crate::{
    recording::options::RecordOptions,
    state::{RecorderOrder, ServiceConfiguration, ServiceState},
    storage_space::FreeSpace,
};

impl Mark5Session {
    /// `rtime? [<Mbit/s>]`: `<seconds>s : <GB>GB : <percent>% : <format> : <tracks> : 0MHz : <Mbit/s>Mbps`.
    ///
    /// Recordings may still use this space; it does not include the reserve that stays free. The time is for the rate
    /// in the query (schedules give that of the next scan), or else for the configured mode, frame headers
    /// included. The rate of a track is always 0, as in jive5ab for recorders without such a clock.
    ///
    /// Unknown values are `?`. Without a mode, format and tracks are `<unknown>` and 0.
    pub(super) fn remaining(&self, command: &Mark5Command) -> Mark5Reply {
        let mut configuration = self.console.report().configuration;
        if let Some(text) = command.fields.first().filter(|text| !text.is_empty()) {
            let Some(rate) = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0) else {
                return Mark5Reply::to(command, ReturnCode::Parameter).field("write a rate in Mbit/s");
            };
            configuration.rate = Some(ByteRate(rate * 125_000.0));
        }
        let FreeSpace { size, recordable, .. } = match self.space_of(&configuration) {
            Ok(space) => space,
            Err((code, why)) => return Mark5Reply::to(command, code).field(why),
        };
        let (time, rate) = match configuration.rate.filter(|rate| rate.0 > 0.0) {
            Some(rate) => (format!("{:.1}s", recordable.0 as f64 / rate.0), megabits(rate.0)),
            None => ("?".into(), "?".into()),
        };
        let format = configuration.mode.map_or("<unknown>", |mode| mode.format());
        let percent = recordable.0 as f64 * 100.0 / size.0.max(1) as f64;
        Mark5Reply::to(command, ReturnCode::Done)
            .field(time)
            .field(format!("{:.3}GB", recordable.0 as f64 / 1e9))
            .field(format!("{percent:.2}%"))
            .field(format)
            .field(configuration.mode.map_or(0, |mode| mode.tracks()))
            .field("0MHz")
            .field(rate)
    }

    /// `? : <bytes used> : <bytes in total>`. The number of recordings is always `?`, as on a `FlexBuff`: other
    /// programs may have made some.
    pub(super) fn directories(&self, command: &Mark5Command) -> Mark5Reply {
        let configuration = self.console.report().configuration;
        match self.space_of(&configuration) {
            Ok(FreeSpace { size, free, .. }) => {
                let taken = size.0.saturating_sub(free.0);
                Mark5Reply::to(command, ReturnCode::Done).field('?').field(taken).field(size.0)
            }
            Err((code, why)) => Mark5Reply::to(command, code).field(why),
        }
    }

    /// The free space of the directories for recordings, or the reason why it is unknown.
    pub(super) fn space_of(
        &self,
        configuration: &ServiceConfiguration,
    ) -> Result<FreeSpace, (ReturnCode, String)> {
        let ServiceConfiguration { to, reserve, .. } = configuration;
        if to.is_empty() {
            return Err((ReturnCode::Conflict, "no directory is configured".into()));
        }
        self.shared.space().ask(to.clone(), *reserve).map_err(|why| (ReturnCode::Failed, why))
    }

    /// `<directories> : <directory> [: <directory>]`: the number of directories for recordings, and their paths.
    pub(super) fn disks(&self, command: &Mark5Command) -> Mark5Reply {
        let to = self.console.report().configuration.to;
        let reply = Mark5Reply::to(command, ReturnCode::Done).field(to.len());
        to.iter().fold(reply, |reply, directory| reply.field(directory.display()))
    }

    /// `set_disks = <pattern or group> [: <pattern or group>]`. The reply has the number of selected
    /// directories. Its code is 6 without a pattern, 8 with a 0 if nothing matches, and 4 for an unknown group.
    pub(super) fn set_disks(&mut self, command: &Mark5Command) -> Mark5Reply {
        if command.fields.iter().all(String::is_empty) {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("write a pattern or a group");
        }
        let selected = self.shared.groups().select(&command.fields, &self.shared.directories);
        let to = match selected {
            Ok(to) => to,
            Err(why) => return Mark5Reply::to(command, ReturnCode::Failed).field(why),
        };
        let count = to.len();
        if count == 0 {
            return Mark5Reply::to(command, ReturnCode::Parameter)
                .field(0)
                .field("no directory of the configuration fits");
        }
        let options = RecordOptions { to, ..RecordOptions::default() };
        let (reply, carried_out) = self.ordered(command, RecorderOrder::Change(options));
        if carried_out { reply.field(count) } else { reply }
    }

    /// `<group> [: <group>]`, or the patterns of the group in the query.
    pub(super) fn groups(&self, command: &Mark5Command) -> Mark5Reply {
        let groups = self.shared.groups();
        let told = match &command.fields[..] {
            [] => Ok(groups.names()),
            [name] if name.is_empty() => Ok(groups.names()),
            [name] => groups.patterns(name, &self.shared.directories),
            _ => Err("one group at a time"),
        };
        match told {
            Ok(names) => names.iter().fold(Mark5Reply::to(command, ReturnCode::Done), Mark5Reply::field),
            Err(why) => Mark5Reply::to(command, ReturnCode::Conflict).field(why),
        }
    }

    /// `group_def = define : <group> : <pattern> [: <pattern>]`, `group_def = delete : <group>`. All errors have
    /// code 6, as in jive5ab.
    pub(super) fn define_group(&mut self, command: &Mark5Command) -> Mark5Reply {
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        let name = command.fields.get(1).map_or("", String::as_str);
        let patterns = command.fields.get(2..).unwrap_or_default();
        let mut groups = self.shared.groups();
        let done = match command.fields.first().map(|word| word.to_ascii_lowercase()).as_deref() {
            Some("define") => groups.define(name, patterns),
            Some("delete") if patterns.is_empty() => groups.delete(name),
            Some("delete") => Err("one group at a time"),
            _ => Err("write define or delete"),
        };
        match done {
            Ok(()) => Mark5Reply::to(command, ReturnCode::Done),
            Err(why) => Mark5Reply::to(command, ReturnCode::Conflict).field(why),
        }
    }
}

/// Bytes a second in Mbit/s, with at most three decimals.
fn megabits(bytes: f64) -> String {
    format!("{}Mbps", (bytes * 8.0 / 1e3).round() / 1e3)
}
