//! The permissions of clients. Unless the service requires tokens, any user of this machine can reach its port.
//! The service may read and write files that such users may not. Clients therefore name instruments, and no
//! files except those below the directories that the service was given for that.

use std::path::{Path, PathBuf};

use nilometer_model::{DECTRIS_LAYOUT, FileNames, catalogue};
use nilometer_storage::user_file;

use crate::{
    error::{OperatorLog, ServiceError},
    recording::{addresses::PacketPlace, options::RecordOptions, settings::RecordingSettings},
    state::RefusedOrder,
};

/// The permissions of clients that command the service.
#[derive(Debug, Clone)]
pub struct CommandPermission {
    /// True if commands may have it receive packets, and frames over TCP, from other machines.
    pub beyond: bool,
    /// The directories that may contain files of instruments.
    pub instruments: Vec<PathBuf>,
    /// The options in the service's configuration; commands may use all of them.
    pub file: RecordOptions,
    /// True if viewers may see the frames of recordings.
    pub has_preview: bool,
    /// The log for events, and for errors that clients must not see.
    pub log: OperatorLog,
}

impl CommandPermission {
    /// The checked settings for the options of a command, over those already set. It reads files, which may take
    /// a while.
    pub(crate) fn settings(
        &self,
        asked: RecordOptions,
        below: RecordOptions,
    ) -> Result<RecordingSettings, RefusedOrder> {
        let listens = asked.listen.clone();
        // Check earlier options again: a file may have changed.
        let (merged, names_layout) = self.layout(asked.over(below)).map_err(refused)?;
        // The limit in the configuration holds for the service: a command may ask for less.
        let memory = merged.memory.into_iter().chain(self.file.memory).min();
        let merged = RecordOptions { memory, ..merged };
        let (merged, is_file) = self.instrument(merged).map_err(refused)?;
        let is_file = is_file || names_layout;
        let settings = RecordingSettings::of(merged).map_err(|error| {
            if !is_file {
                return refused(error);
            }
            // Clients that may not read a file must not learn its content.
            (self.log)(&error.to_string());
            RefusedOrder::AskedWrongly(
                "instrument or layout: the file is not valid: see the log of the service".into(),
            )
        })?;
        let settings = settings.with_preview(self.has_preview);
        if !self.beyond {
            settings.check_within(&self.file).map_err(refused)?;
        }
        self.check_metadata(&settings.wishes().metadata)?;
        if !listens.is_empty() && listens != self.file.listen {
            self.listens(&settings).map_err(refused)?;
        }
        Ok(settings)
    }

    /// Checks the sources of values that are joined to frames. They must be those in the service's
    /// configuration, and send messages. A file keeps its values, which would be joined to the frames of the
    /// next recording too.
    fn check_metadata(&self, asked: &[String]) -> Result<(), RefusedOrder> {
        if !asked.is_empty() && asked != self.file.metadata {
            let why = "metadata: the service joins only values from the sources in its configuration, under [record]";
            return Err(RefusedOrder::AskedWrongly(why.into()));
        }
        match asked.iter().find(|source| !source.starts_with("tcp://")) {
            Some(file) => Err(RefusedOrder::AskedWrongly(format!(
                "metadata: {file} has values of one recording, and a service makes several: write tcp://HOST:PORT, or use \
                 `nilometer record --metadata`"
            ))),
            None => Ok(()),
        }
    }

    /// Replaces the path of an instrument's file by its real path. The second value is true if a command names
    /// such a file.
    fn instrument(&self, asked: RecordOptions) -> Result<(RecordOptions, bool), ServiceError> {
        let named = asked.instrument.as_ref().filter(|_| asked.instrument != self.file.instrument);
        let Some(name) = named.filter(|name| !catalogue::has_instrument(name)) else {
            return Ok((asked, false));
        };
        if !name.contains('/') {
            // The message lists the known names.
            user_file::find(name, &catalogue::INSTRUMENTS, "instrument")
                .map_err(ServiceError::asked_wrongly)?;
        }
        let outside = || ServiceError::AskedWrongly(OUTSIDE.into());
        let real = self.permitted(Path::new(name)).ok_or_else(outside)?;
        let real = real.to_str().ok_or_else(outside)?;
        // A file that is no instrument gets its own message later.
        let recording = user_file::instrument(real).ok().map(|instrument| instrument.recording);
        let recording = recording.filter(|recording| recording.names() == FileNames::Recorder);
        let layout = recording.and_then(|recording| recording.layout);
        if asked.layout.is_none() && layout.is_some_and(|layout| self.permitted(&layout).is_none()) {
            return Err(ServiceError::AskedWrongly(LAYOUT_OUTSIDE.into()));
        }
        Ok((RecordOptions { instrument: Some(real.to_owned()), ..asked }, true))
    }

    /// Replaces the path of a layout by its real path. The second value is true if a command names a layout.
    fn layout(&self, asked: RecordOptions) -> Result<(RecordOptions, bool), ServiceError> {
        let is_file =
            |path: &&PathBuf| asked.layout != self.file.layout && path.as_path() != Path::new(DECTRIS_LAYOUT);
        let Some(path) = asked.layout.as_ref().filter(is_file) else {
            return Ok((asked, false));
        };
        let real = self.permitted(path).ok_or_else(|| ServiceError::AskedWrongly(LAYOUT_OUTSIDE.into()))?;
        Ok((RecordOptions { layout: Some(real), ..asked }, true))
    }

    /// The real path of a file, or `None` if commands may not have it read.
    fn permitted(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let below =
            |directory: &PathBuf| directory.canonicalize().is_ok_and(|directory| real.starts_with(directory));
        self.instruments.iter().any(below).then_some(real)
    }

    fn listens(&self, settings: &RecordingSettings) -> Result<(), ServiceError> {
        let mut places = settings.addresses()?.into_iter();
        let reached = places.find(|place| !self.beyond && !place.at.ip().is_loopback());
        reached.map_or(Ok(()), |PacketPlace { at, .. }| {
            Err(ServiceError::AskedWrongly(format!(
                "listen: other machines could reach udp://{at}; start the service with --listen-beyond-loopback to \
                 allow that"
            )))
        })
    }
}

/// One message for missing and forbidden files, so that it reveals neither.
const OUTSIDE: &str = "instrument: write a name of the catalogue, or the path of a file below a directory that \
                       `instruments` of the service's configuration names";

/// The same message for layouts.
const LAYOUT_OUTSIDE: &str = "layout: write the path of a file below a directory that `instruments` of the service's configuration names";

/// The refusal that clients get for an error.
pub(crate) fn refused(error: ServiceError) -> RefusedOrder {
    match error {
        ServiceError::AskedWrongly(why) => RefusedOrder::AskedWrongly(why),
        ServiceError::Failed(why) => RefusedOrder::Failed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing_permitted() -> CommandPermission {
        CommandPermission {
            beyond: false,
            instruments: Vec::new(),
            file: RecordOptions::default(),
            has_preview: false,
            log: |_| {},
        }
    }

    fn wished(instrument: &str) -> RecordOptions {
        RecordOptions {
            instrument: Some(instrument.into()),
            to: vec!["/data".into()],
            ..RecordOptions::default()
        }
    }

    fn why(permission: &CommandPermission, asked: RecordOptions) -> String {
        match permission.settings(asked, RecordOptions::default()) {
            Err(RefusedOrder::AskedWrongly(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn only_instruments_are_read_and_nothing_of_a_file_is_told() {
        let allowed = tempfile::tempdir().expect("a temporary directory");
        let good =
            user_file::find("fila10g-1g", &catalogue::INSTRUMENTS, "instrument").expect("built in").text;
        let path = |name: &str| allowed.path().join(name).to_str().expect("a plain name").to_owned();
        std::fs::write(path("fila10g-1g.toml"), &good).expect("space");
        std::fs::write(path("bad.toml"), "TOKEN = hunter2\n").expect("space");
        std::os::unix::fs::symlink("/etc/passwd", path("link.toml")).expect("a link");
        let nothing = nothing_permitted();
        let permission =
            CommandPermission { instruments: vec![allowed.path().into()], ..nothing_permitted() };
        assert!(permission.settings(wished("fila10g-1g"), RecordOptions::default()).is_ok());
        assert!(permission.settings(wished(&path("fila10g-1g.toml")), RecordOptions::default()).is_ok());
        let dots = path("../../../../../../../../etc/passwd");
        for outside in
            ["/etc/passwd", "/proc/self/environ", "/dev/zero", &dots, &path("link.toml"), &path("none")]
        {
            assert!(why(&permission, wished(outside)).contains("a name of the catalogue"), "{outside}");
        }
        assert!(why(&nothing, wished(&path("fila10g-1g.toml"))).contains("a name of the catalogue"));
        let told = why(&permission, wished(&path("bad.toml")));
        assert!(!told.contains("hunter2") && !told.contains("TOKEN"), "{told}");
        let of_the_file = CommandPermission { file: wished(&path("fila10g-1g.toml")), ..nothing };
        assert!(
            of_the_file.settings(of_the_file.file.clone(), RecordOptions::default()).is_ok(),
            "its own file names it"
        );
    }

    #[test]
    fn layouts_are_read_where_instruments_are() {
        let allowed = tempfile::tempdir().expect("a temporary directory");
        let outside = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| allowed.path().join(name);
        let text = "[datasets]\n\"/d\" = { detector = true }\n";
        std::fs::write(path("good.toml"), text).expect("space");
        std::fs::write(path("bad.toml"), "TOKEN = \"hunter2\"\n").expect("space");
        std::fs::write(outside.path().join("other.toml"), text).expect("space");
        let permission =
            CommandPermission { instruments: vec![allowed.path().into()], ..nothing_permitted() };
        let asked = |layout: PathBuf| RecordOptions {
            layout: Some(layout),
            format: Some(nilometer_model::Format::Hdf5),
            ..wished("jungfrau-4m")
        };
        let settings = permission.settings(asked(path("good.toml")), RecordOptions::default());
        assert!(settings.is_ok_and(|settings| settings.layout.is_some()));
        for layout in [outside.path().join("other.toml"), "/etc/passwd".into(), path("none")] {
            assert_eq!(why(&permission, asked(layout.clone())), LAYOUT_OUTSIDE, "{layout:?}");
        }
        let told = why(&permission, asked(path("bad.toml")));
        assert!(told.contains("layout") && !told.contains("hunter2") && !told.contains("TOKEN"), "{told}");
        // An instrument's file leads to no other file.
        let known = user_file::find("jungfrau-4m", &catalogue::INSTRUMENTS, "instrument").expect("built in");
        let layout = outside.path().join("other.toml");
        let format = "[recording]\nformat = \"hdf5\"";
        assert!(!known.text.contains("[recording]"), "{}", known.text);
        let text = format!("{}\n{format}\nlayout = {layout:?}\n", known.text);
        std::fs::write(path("own.toml"), text).expect("space");
        let own = path("own.toml");
        let own = own.to_str().expect("a plain name");
        assert_eq!(why(&permission, wished(own)), LAYOUT_OUTSIDE);
        // Nor does a path that was another file when the command named it.
        let later = permission.settings(RecordOptions::default(), wished(own));
        assert!(matches!(later, Err(RefusedOrder::AskedWrongly(why)) if why == LAYOUT_OUTSIDE));
    }

    #[test]
    fn packets_from_beyond_need_the_flag() {
        let listening =
            |at: &str| RecordOptions { listen: at.parse().into_iter().collect(), ..wished("fila10g-1g") };
        let [closed, open] = [false, true].map(|beyond| CommandPermission { beyond, ..nothing_permitted() });
        for beyond in
            ["udp://0.0.0.0:5000", "udp://192.0.2.1:5000", "udp://239.1.1.1:5000", "udp://[::]:5000"]
        {
            assert!(why(&closed, listening(beyond)).contains("--listen-beyond-loopback"), "{beyond}");
            assert!(open.settings(listening(beyond), RecordOptions::default()).is_ok(), "{beyond}");
        }
        assert!(closed.settings(listening("udp://127.0.0.1:5000"), RecordOptions::default()).is_ok());
        let file = listening("udp://0.0.0.0:5000");
        let configured = CommandPermission { file: file.clone(), ..closed };
        assert!(
            configured.settings(RecordOptions::default(), file.clone()).is_ok(),
            "its configuration says so"
        );
        assert!(configured.settings(file, RecordOptions::default()).is_ok(), "and so may be asked for");
    }

    #[test]
    fn frames_from_beyond_need_the_flag_too() {
        let [closed, open] = [false, true].map(|beyond| CommandPermission { beyond, ..nothing_permitted() });
        let of = |from: &str, listen: Option<&str>| RecordOptions {
            from: vec![from.parse().expect("an address")],
            listen: listen.into_iter().flat_map(str::parse).collect(),
            to: vec!["/data".into()],
            ..RecordOptions::default()
        };
        let near = of("tcp://127.0.0.1:31001", Some("tcp://[::1]:9999"));
        assert!(closed.settings(near, RecordOptions::default()).is_ok());
        for (from, listen, option) in [
            ("tcp://192.0.2.1:31001", None, "from: tcp://192.0.2.1:31001 is beyond"),
            ("tcp://127.0.0.1:1", Some("tcp://*:31001"), "listen: tcp://*:31001 is beyond"),
        ] {
            let told = why(&closed, of(from, listen));
            assert!(told.starts_with(option) && told.contains("--listen-beyond-loopback"), "{told}");
            assert!(open.settings(of(from, listen), RecordOptions::default()).is_ok());
            // Earlier options give no permission; the configuration file does.
            let below = of(from, listen);
            assert!(closed.settings(RecordOptions::default(), below.clone()).is_err(), "{option}");
            let configured = CommandPermission { file: below.clone(), ..closed.clone() };
            assert!(
                configured.settings(RecordOptions::default(), below).is_ok(),
                "its configuration says so"
            );
        }
    }
}
