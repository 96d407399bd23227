//! A page of metrics in progress: its methods write a head and values, in the unit of the recording.

use nilometer_model::MetricsText;

/// A page in progress. Its names and texts say packets, or frames for a series.
pub(super) struct MetricsPage {
    text: MetricsText,
    counted_in: &'static str,
}

const PACKETS: &str = "packets";
pub(super) const FRAMES: &str = "frames";

impl MetricsPage {
    /// An empty page. `counted_in` is the unit of the recording: packets or frames.
    pub(super) fn new(counted_in: &'static str) -> Self {
        MetricsPage { text: MetricsText::default(), counted_in }
    }

    pub(super) fn into_text(self) -> String {
        self.text.into_text()
    }

    /// A name or a text, with frames in place of packets if the recording counts those.
    fn counting(&self, text: &str) -> String {
        if self.counted_in == FRAMES {
            text.replace(PACKETS, FRAMES).replace("Packets", "Frames").replace("packet", "frame")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.text.head(&self.counting(name), kind, &self.counting(help));
    }

    pub(super) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.value(&self.counting(name), labels, value);
    }

    pub(super) fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.value(name, &[], value);
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.one(&format!("{name}_total"), "counter", help, value as f64);
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.one(name, "gauge", help, value);
    }

    /// One counter with a value for each label.
    pub(super) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let name = format!("{name}_total");
        self.head(&name, "counter", help);
        for (text, value) in values {
            self.value(&name, &[(label, text)], value as f64);
        }
    }
}
