//! `datastream`: recordings of their own for the packets of some senders. All connections share the definitions, as in
//! jive5ab, and they hold until `clear`.
//!
//! Source in the repository of jive5ab at 971c3d6: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst),
//! `datastream`; "Match specifications" (doc/source/flexbuff.rst); `src/mk5command/datastream.cc` for order and codes.
//!
//! jive5ab also matches by the sender's port, and by station and thread of VDIF. Here these specifications get code 2:
//! serial numbers run over all threads of a sender, so a part of them would show losses.

use nilometer_intake::transport::SenderNetwork;

use super::syntax::ReturnCode;
use crate::recording::addresses::{HiddenSender, LabelledSender, is_stream_label};

/// The most data streams, and specifications of one.
const MOST: usize = 16;

/// The data streams that stations defined, in their order.
#[derive(Debug, Default)]
pub(super) struct StationStreams {
    all: Vec<StationStream>,
    /// True if a station changed them. Before that, the service's own options decide.
    is_changed: bool,
}

/// A data stream, by the specifications in a station's words.
#[derive(Debug)]
struct StationStream {
    name: String,
    specifications: Vec<String>,
    senders: Vec<SenderNetwork>,
}

/// The code of a refusal, and its reason.
pub(super) type Refusal = (ReturnCode, String);

impl StationStreams {
    /// The data streams of a configuration.
    pub(super) fn of(configured: &[LabelledSender]) -> Self {
        let mut streams = StationStreams::default();
        for LabelledSender { label, senders } in configured {
            let specification = format!("{senders}/*");
            match streams.all.iter_mut().find(|stream| stream.name == *label) {
                Some(known) => {
                    known.specifications.push(specification);
                    known.senders.push(*senders);
                }
                None => streams.all.push(StationStream {
                    name: label.clone(),
                    specifications: vec![specification],
                    senders: vec![*senders],
                }),
            }
        }
        streams
    }

    /// The senders of all data streams, for a recording.
    pub(super) fn senders(&self) -> Vec<LabelledSender> {
        let of = |stream: &StationStream| {
            let label = stream.name.clone();
            let senders = stream.senders.clone().into_iter();
            senders.map(move |senders| LabelledSender { label: label.clone(), senders })
        };
        self.all.iter().flat_map(of).collect()
    }

    /// The senders for a recording, or `None` if no station changed the data streams.
    pub(super) fn chosen(&self) -> Option<Vec<LabelledSender>> {
        self.is_changed.then(|| self.senders())
    }

    /// `add : <name> : <specification> ..`, `remove : <name>`, `reset`, `clear`.
    pub(super) fn change(&mut self, fields: &[String]) -> Result<(), Refusal> {
        let wrong = |why: &str| Err((ReturnCode::Parameter, why.to_owned()));
        let field = |at: usize| fields.get(at).map_or("", String::as_str);
        let specifications: Vec<String> =
            fields.iter().skip(2).filter(|one| !one.is_empty()).cloned().collect();
        match (field(0), field(1)) {
            // Names are fixed, so there are no expanded ones to forget.
            ("reset", _) => Ok(()),
            ("clear", _) => {
                self.all.clear();
                self.is_changed = true;
                Ok(())
            }
            ("", _) => wrong("write add, remove, reset or clear"),
            ("add" | "remove", "") => wrong("write the name of a data stream"),
            ("add", _) if specifications.is_empty() => wrong("write which packets belong to it, <address>/*"),
            ("add", name) => self.add(name, specifications),
            ("remove", name) => self.remove(name),
            (other, _) => Err((ReturnCode::Irrelevant, format!("{other} does not apply to datastream"))),
        }
    }

    /// The names of the data streams.
    pub(super) fn names(&self) -> Vec<&str> {
        self.all.iter().map(|stream| stream.name.as_str()).collect()
    }

    /// The specifications of a data stream, or `None` if it is not defined.
    pub(super) fn specifications(&self, name: &str) -> Option<&[String]> {
        self.all.iter().find(|stream| stream.name == name).map(|stream| stream.specifications.as_slice())
    }

    fn add(&mut self, name: &str, specifications: Vec<String>) -> Result<(), Refusal> {
        if self.all.iter().any(|stream| stream.name == name) {
            return Err((ReturnCode::Failed, format!("the data stream {name} already has a definition")));
        }
        if name.contains('{') {
            let why = "names are fixed, write one data stream for each sender";
            return Err((ReturnCode::Irrelevant, why.into()));
        }
        if !is_stream_label(name) {
            return Err((ReturnCode::Parameter, "write a name of letters, digits, - and +".into()));
        }
        if self.all.len() >= MOST || specifications.len() > MOST {
            return Err((ReturnCode::Parameter, format!("{MOST} is the most")));
        }
        let senders = specifications.iter().map(|one| sender_of(one)).collect::<Result<_, _>>()?;
        self.all.push(StationStream { name: name.to_owned(), specifications, senders });
        let all = self.senders();
        if let Some(hidden) = HiddenSender::find(&all) {
            self.all.pop();
            return Err((ReturnCode::Parameter, hidden.to_string()));
        }
        self.is_changed = true;
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        let before = self.all.len();
        self.all.retain(|stream| stream.name != name);
        if self.all.len() < before {
            self.is_changed = true;
            return Ok(());
        }
        Err((ReturnCode::Failed, format!("the data stream {name} is not defined")))
    }
}

/// The senders of a specification, `[[host]@port/][station.]threads`.
fn sender_of(specification: &str) -> Result<SenderNetwork, Refusal> {
    let irrelevant = |why: &str| (ReturnCode::Irrelevant, format!("{specification}, {why}"));
    let Some((host, frames)) = specification.rsplit_once('/') else {
        return Err(irrelevant("only senders tell streams apart, write <address>/*"));
    };
    if !["*", "*.*"].contains(&frames) {
        return Err(irrelevant("all threads of a sender go into one recording, write <address>/*"));
    }
    if host.contains('@') {
        return Err(irrelevant("all ports of a sender go into one recording, write <address>/*"));
    }
    host.parse().map_err(|_| (ReturnCode::Parameter, format!("{specification}, write <address>/*")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(streams: &mut StationStreams, text: &str) -> u8 {
        let fields: Vec<_> = text.split(':').map(str::to_owned).collect();
        streams.change(&fields).map_or_else(|(code, _)| code as u8, |()| 0)
    }

    #[test]
    fn the_options_decide_until_a_station_changes_the_data_streams() {
        let configured = ["A=10.0.2.20".parse().expect("a data stream")];
        let mut streams = StationStreams::of(&configured);
        assert_eq!(code(&mut streams, "reset"), 0);
        assert_eq!(code(&mut streams, "remove:C"), 4);
        assert_eq!(streams.chosen(), None);
        assert_eq!(code(&mut streams, "add:B:10.0.2.21/*"), 0);
        assert_eq!(streams.chosen().map(|senders| senders.len()), Some(2));
        let mut streams = StationStreams::of(&configured);
        assert_eq!(code(&mut streams, "clear"), 0);
        assert_eq!(streams.chosen(), Some(Vec::new()), "a station wants one recording");
    }

    #[test]
    fn data_streams_are_defined_by_their_senders() {
        let mut streams = StationStreams::default();
        for (text, expected) in [
            ("add:A:10.0.2.20/*", 0),
            ("add:B:10.0.2.21/*.*:10.0.3.0/24/*", 0),
            ("add:A:10.0.2.22/*", 4),
            ("add:ds{thread}:*", 2),
            ("add:C:*", 2),
            ("add:C:10.0.2.20/0-3", 2),
            ("add:C:Hh.*", 2),
            ("add:C:10.0.2.20@4000/*", 2),
            ("add:C:10.0.3.7/*", 8),
            ("add:C:10.0.2.21/*", 8),
            ("add:C:host/*", 8),
            ("add:c_d:10.0.2.20/*", 8),
            ("add:C", 8),
            ("add", 8),
            ("remove", 8),
            ("remove:C", 4),
            ("", 8),
            ("list", 2),
            ("reset", 0),
        ] {
            assert_eq!(code(&mut streams, text), expected, "{text}");
        }
        let senders = streams.senders();
        let told: Vec<_> = senders.iter().map(|one| format!("{}={}", one.label, one.senders)).collect();
        assert_eq!(told, ["A=10.0.2.20", "B=10.0.2.21", "B=10.0.3.0/24"]);
        let again = StationStreams::of(&senders);
        assert_eq!(again.senders(), senders);
        assert_eq!(again.all[1].specifications, ["10.0.2.21/*", "10.0.3.0/24/*"]);
        assert_eq!(code(&mut streams, "remove:A"), 0);
        assert_eq!(streams.senders().len(), 2);
        assert_eq!((code(&mut streams, "clear"), streams.senders().len()), (0, 0));
    }
}
