//! Metrics in Prometheus' text format 0.0.4. The recorder's page and the file of an evaluation are written with it.

/// A text of metrics in progress. Each name gets the prefix `nilometer_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsText {
    text: String,
}

impl MetricsText {
    /// Begins a metric: `kind` is `gauge` or `counter`, and `help` one sentence on one line.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let lines = format!("# HELP nilometer_{name} {help}\n# TYPE nilometer_{name} {kind}\n");
        self.text.push_str(&lines);
    }

    /// Adds a value to the metric that [`MetricsText::head`] began last. The texts of labels may have any
    /// characters.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> =
            labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let line = format!("nilometer_{name}{labels} {value}\n");
        self.text.push_str(&line);
    }

    /// Returns the text, with a line end behind each line.
    pub fn into_text(self) -> String {
        self.text
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = MetricsText::default();
        page.head("failed", "gauge", "1 if it failed.");
        page.value("failed", &[("directory", "/a\"b\\c\nd"), ("kind", "ünï")], 1.0);
        page.value("failed", &[], 0.25);
        let expected = "# HELP nilometer_failed 1 if it failed.\n# TYPE nilometer_failed gauge\n\
                        nilometer_failed{directory=\"/a\\\"b\\\\c\\nd\",kind=\"ünï\"} 1\nnilometer_failed 0.25\n";
        assert_eq!(page.into_text(), expected);
    }
}
