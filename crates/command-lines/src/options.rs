//! Options of other programs, read by a table for each program. A row has an option's names, the number of
//! its values, and its effect here. The reader of a program takes some options over. Two lists in the report
//! have the others: those that change nothing here, and those that do but have no counterpart.

use crate::error::LineError;

/// The number of values of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionValues {
    /// None: a flag.
    None,
    /// A flag that may have a value behind `=` or, of one letter, attached.
    Attached,
    /// One: behind `=`, attached to a letter, or the next word.
    One,
    /// Two words.
    Two,
    /// All words up to the next option.
    Many,
}

/// The treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionEffect {
    /// The program's reader takes it over.
    Taken,
    /// It changes no figure.
    Nothing,
    /// It has no counterpart here, and this effect.
    Changes(&'static str),
    /// The line can't be measured with it. The text is the advice.
    Refused(&'static str),
}

/// A row of a program's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionRow {
    /// Names without dashes, with `|` between them.
    names: &'static str,
    values: OptionValues,
    effect: OptionEffect,
}

/// Options that the program's reader takes over.
pub(crate) const fn taken(names: &'static str, values: OptionValues) -> OptionRow {
    OptionRow { names, values, effect: OptionEffect::Taken }
}

/// Options that change no figure.
pub(crate) const fn nothing(names: &'static str, values: OptionValues) -> OptionRow {
    OptionRow { names, values, effect: OptionEffect::Nothing }
}

/// Options without a counterpart here, with their effect.
pub(crate) const fn changes(names: &'static str, values: OptionValues, what: &'static str) -> OptionRow {
    OptionRow { names, values, effect: OptionEffect::Changes(what) }
}

/// Options with which a line can't be measured here, with advice.
pub(crate) const fn refused(names: &'static str, values: OptionValues, what: &'static str) -> OptionRow {
    OptionRow { names, values, effect: OptionEffect::Refused(what) }
}

impl OptionRow {
    fn is_named(&self, name: &str) -> bool {
        self.names.split('|').any(|known| known == name)
    }
}

/// An option of a line, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadOption {
    /// The name in the line, without dashes and value.
    pub(crate) name: String,
    /// Empty for a flag.
    pub(crate) value: String,
    /// The words as they stand in the line.
    pub(crate) written: String,
    /// Its place, for messages: `word 3`, `jobs.fio, line 12`.
    pub(crate) place: String,
}

impl ReadOption {
    /// An error at its place.
    pub(crate) fn wrong(&self, what: impl std::fmt::Display) -> LineError {
        LineError::word(&self.written, &self.place, what.to_string())
    }

    /// True if a flag is set: alone, or by anything except 0, `false` and `no`.
    pub(crate) fn is_set(&self) -> bool {
        !["0", "false", "no"].contains(&self.value.as_str())
    }
}

/// Options of a line that its cell here lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOutOptions {
    /// Each with its effect: `--verify=md5: it reads back and compares what it wrote`.
    pub not_taken: Vec<String>,
    /// Options that change nothing here.
    pub without_effect: Vec<String>,
}

impl LeftOutOptions {
    /// Notes an option by its effect. An error refuses the line.
    pub(crate) fn file(&mut self, option: &ReadOption, effect: OptionEffect) -> Result<(), LineError> {
        match effect {
            OptionEffect::Taken => {}
            OptionEffect::Nothing => self.without_effect.push(option.written.clone()),
            OptionEffect::Changes(what) => self.leave(&option.written, what),
            OptionEffect::Refused(what) => return Err(option.wrong(what)),
        }
        Ok(())
    }

    /// Notes a property of the line that the cell lacks.
    pub fn leave(&mut self, what: &str, changes: &str) {
        self.not_taken.push(format!("{what}: {changes}"));
    }
}

/// A program's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionTable {
    /// The program, for messages.
    pub(crate) program: &'static str,
    /// Its options.
    pub(crate) rows: &'static [OptionRow],
    /// True if options end at the first word that is none, as those of launchers do.
    pub(crate) ends_at_word: bool,
}

/// The words of a line as its program reads them.
#[derive(Debug, Default)]
pub(crate) struct ReadWords {
    /// The options in the order of the line, each with its effect.
    pub(crate) options: Vec<(ReadOption, OptionEffect)>,
    /// Words that are no options.
    pub(crate) operands: Vec<String>,
    /// The number of words that were read.
    pub(crate) count: usize,
}

impl ReadWords {
    /// Options with one of these names, of any effect.
    pub(crate) fn named<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a ReadOption> {
        let options = self.options.iter().map(|(option, _)| option);
        options.filter(|option| names.contains(&option.name.as_str()))
    }

    /// Options that the program's reader takes over; the others go to `left_out`.
    pub(crate) fn taken(self, left_out: &mut LeftOutOptions) -> Result<Vec<ReadOption>, LineError> {
        let mut taken = Vec::new();
        for (option, effect) in self.options {
            left_out.file(&option, effect)?;
            if effect == OptionEffect::Taken {
                taken.push(option);
            }
        }
        Ok(taken)
    }
}

impl OptionTable {
    fn row(&self, name: &str) -> Option<&OptionRow> {
        self.rows.iter().find(|row| row.is_named(name))
    }

    /// The treatment of the option with this name; `None` if the program has none.
    pub(crate) fn effect(&self, name: &str) -> Option<OptionEffect> {
        self.row(name).map(|row| row.effect)
    }

    /// Reads words; the first of them has number `first` in the line.
    pub(crate) fn read(&self, words: &[String], first: usize) -> Result<ReadWords, LineError> {
        let mut read = ReadWords::default();
        while let Some(word) = words.get(read.count) {
            let at = WordPlace { words, index: read.count, first };
            if word == "--" {
                read.count += 1;
                read.operands.extend(words[read.count..].iter().cloned());
                read.count = if self.ends_at_word { read.count } else { words.len() };
                break;
            }
            if !word.starts_with('-') || word == "-" {
                if self.ends_at_word {
                    break;
                }
                read.operands.push(word.clone());
                read.count += 1;
                continue;
            }
            read.count += self.read_option(at, &mut read.options)?;
        }
        Ok(read)
    }

    /// Reads a line that a program repeats in its output. The program accepted it, so a word that this table
    /// lacks stands as an option without a name.
    pub(crate) fn read_repeated(&self, line: &str) -> Vec<ReadOption> {
        let unquoted = |word: &str| word.replace(['\'', '"'], "");
        let words: Vec<String> = line.split_whitespace().skip(1).map(unquoted).collect();
        let mut options = Vec::new();
        let mut index = 0;
        while index < words.len() {
            let at = WordPlace { words: &words, index, first: 2 };
            let mut found = Vec::new();
            let is_option = at.word().starts_with('-');
            let read = is_option.then(|| self.read_option(at, &mut found).ok()).flatten();
            if read.is_none() {
                found = vec![(at.option("", String::new(), 1), OptionEffect::Nothing)];
            }
            options.extend(found.into_iter().map(|(option, _)| option));
            index += read.unwrap_or(1);
        }
        options
    }

    /// Reads the option at a place, or several letters in one word. Returns the number of words that it took.
    fn read_option(
        &self,
        at: WordPlace<'_>,
        options: &mut Vec<(ReadOption, OptionEffect)>,
    ) -> Result<usize, LineError> {
        let word = at.word();
        let body = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or(word);
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        if let Some(row) = self.row(name) {
            let (value, words) = at.values(row.values, value)?;
            options.push((at.option(name, value, words), row.effect));
            return Ok(words);
        }
        if word.starts_with("--") {
            return Err(self.unknown(name, at));
        }
        self.read_letters(body, at, options)
    }

    /// `-vvv`, `-wrF`, `-b4g`: flags of one letter, the last of which may have a value.
    fn read_letters(
        &self,
        body: &str,
        at: WordPlace<'_>,
        options: &mut Vec<(ReadOption, OptionEffect)>,
    ) -> Result<usize, LineError> {
        for (start, letter) in body.char_indices() {
            let name = &body[start..start + letter.len_utf8()];
            let Some(row) = self.row(name) else {
                return Err(self.unknown(body, at));
            };
            let rest = &body[start + letter.len_utf8()..];
            if row.values == OptionValues::None {
                options.push((at.letter(name, ""), row.effect));
                continue;
            }
            let attached = rest.strip_prefix('=').unwrap_or(rest);
            if !attached.is_empty() {
                options.push((at.letter(name, attached), row.effect));
                return Ok(1);
            }
            let (value, words) = at.values(row.values, None)?;
            let mut option = at.letter(name, "");
            option.written = at.written_from(&option.written, words);
            option.value = value;
            options.push((option, row.effect));
            return Ok(words);
        }
        Ok(1)
    }

    /// The error for an option that the program lacks.
    fn unknown(&self, name: &str, at: WordPlace<'_>) -> LineError {
        let choice = self.nearest(name).map_or_else(|| self.choices(), dashed);
        LineError::word(
            at.word(),
            &at.place(),
            format!("{} has no such option: write {choice}", self.program),
        )
    }

    /// The most similar option, if one is similar enough to be the intended one.
    fn nearest(&self, name: &str) -> Option<&'static str> {
        let all = self.rows.iter().flat_map(|row| row.names.split('|'));
        let near = all.map(|known| (strsim::jaro_winkler(known, name), known));
        let near = near.filter(|(likeness, _)| *likeness > 0.8);
        near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
    }

    /// Names that the program's reader takes over: those of all others would fill a page.
    fn choices(&self) -> String {
        let taken = self.rows.iter().filter(|row| row.effect == OptionEffect::Taken);
        let names: Vec<String> = taken.flat_map(|row| row.names.split('|')).map(dashed).collect();
        format!("one of {}", names.join(", "))
    }

    /// Reads an option of a file, `name=value` at a place.
    pub(crate) fn of_file(&self, option: &ReadOption) -> Result<OptionEffect, LineError> {
        let effect = self.effect(&option.name);
        effect.ok_or_else(|| {
            let choice = self.nearest(&option.name).map_or_else(|| self.choices(), str::to_owned);
            option.wrong(format!("{} has no such option: write {choice}", self.program))
        })
    }
}

fn dashed(name: &str) -> String {
    if name.chars().count() == 1 { format!("-{name}") } else { format!("--{name}") }
}

/// A word of a line.
#[derive(Debug, Clone, Copy)]
struct WordPlace<'a> {
    words: &'a [String],
    index: usize,
    /// The number of the first of `words` in the line.
    first: usize,
}

impl WordPlace<'_> {
    fn word(&self) -> &str {
        &self.words[self.index]
    }

    fn place(&self) -> String {
        format!("word {}", self.first + self.index)
    }

    /// The values of the option at this place, and the number of words of both.
    fn values(&self, values: OptionValues, behind: Option<String>) -> Result<(String, usize), LineError> {
        let count = match (values, &behind) {
            (OptionValues::None | OptionValues::Attached, _) | (OptionValues::One, Some(_)) => 0,
            (OptionValues::One, None) => 1,
            (OptionValues::Two, _) => 2 - usize::from(behind.is_some()),
            (OptionValues::Many, _) => {
                self.words[self.index + 1..].iter().take_while(|word| !word.starts_with('-')).count()
            }
        };
        let Some(following) = self.words.get(self.index + 1..=self.index + count) else {
            return Err(LineError::word(self.word(), &self.place(), "its value is missing"));
        };
        let parts: Vec<String> = behind.into_iter().chain(following.iter().cloned()).collect();
        Ok((parts.join(" "), 1 + count))
    }

    fn option(&self, name: &str, value: String, words: usize) -> ReadOption {
        let written = self.words[self.index..self.index + words].join(" ");
        ReadOption { name: name.to_owned(), value, written, place: self.place() }
    }

    fn letter(&self, name: &str, value: &str) -> ReadOption {
        let written = format!("-{name} {value}").trim_end().to_owned();
        ReadOption { name: name.to_owned(), value: value.to_owned(), written, place: self.place() }
    }

    /// An option with the words behind this one.
    fn written_from(&self, option: &str, words: usize) -> String {
        let behind = self.words[self.index + 1..self.index + words].join(" ");
        format!("{option} {behind}").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: OptionTable = OptionTable {
        program: "a program",
        rows: &[
            taken("t|b|transfer", OptionValues::One),
            taken("w|r|np", OptionValues::None),
            nothing("v|+n", OptionValues::None),
            changes("mca", OptionValues::Two, "which network it takes"),
            refused("server", OptionValues::None, "write a line that runs by itself"),
            taken("seed", OptionValues::Attached),
            taken("F", OptionValues::Many),
        ],
        ends_at_word: false,
    };

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn read(line: &str) -> Vec<(String, String)> {
        let read = TABLE.read(&words(line), 1).expect(line);
        read.options.into_iter().map(|(option, _)| (option.name, option.value)).collect()
    }

    #[test]
    fn values_stand_behind_attached_or_after_an_equals_sign() {
        for line in ["-t 1m", "-t1m", "-t=1m", "--t=1m"] {
            assert_eq!(read(line), [("t".to_owned(), "1m".to_owned())], "{line}");
        }
        for line in ["--transfer 1m", "-transfer=1m", "-transfer 1m"] {
            assert_eq!(read(line), [("transfer".to_owned(), "1m".to_owned())], "{line}");
        }
        let named = |names: &[(&str, &str)]| -> Vec<(String, String)> {
            names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(read("-wrvb 4g"), named(&[("w", ""), ("r", ""), ("v", ""), ("b", "4g")]));
        assert_eq!(read("-F a b -+n"), named(&[("F", "a b"), ("+n", "")]));
        assert_eq!(
            read("--mca a b -np --seed --seed=3"),
            named(&[("mca", "a b"), ("np", ""), ("seed", ""), ("seed", "3")])
        );
    }

    #[test]
    fn repeated_lines_keep_words_that_the_table_lacks() {
        let read = TABLE.read_repeated("/bin/program '-wr' \"-t\" '1m' --new 3 -b=2m -t");
        let named: Vec<(&str, &str)> =
            read.iter().map(|option| (option.name.as_str(), option.written.as_str())).collect();
        let expected =
            [("w", "-w"), ("r", "-r"), ("t", "-t 1m"), ("", "--new"), ("", "3"), ("b", "-b=2m"), ("", "-t")];
        assert_eq!(named, expected);
    }

    #[test]
    fn nothing_is_dropped_without_a_word() {
        let read = TABLE.read(&words("-v --mca a b -t 1m file"), 1).expect("valid");
        assert_eq!(read.operands, ["file"]);
        let mut left_out = LeftOutOptions::default();
        assert_eq!(read.taken(&mut left_out).expect("valid").len(), 1);
        assert_eq!(left_out.not_taken, ["--mca a b: which network it takes"]);
        assert_eq!(left_out.without_effect, ["-v"]);
    }

    #[test]
    fn what_is_unknown_is_refused_at_its_place() {
        for (line, part) in [
            ("-w --tranfer=1m", "`--tranfer=1m` (word 2): a program has no such option: write --transfer"),
            ("-q", "write one of -t, -b, --transfer, -w"),
            ("-w -t", "`-t` (word 2): its value is missing"),
            ("--mca a", "its value is missing"),
        ] {
            let error = TABLE.read(&words(line), 1).expect_err(line).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
        let read = TABLE.read(&words("--server"), 1).expect("known");
        let error = read.taken(&mut LeftOutOptions::default()).expect_err("refused").to_string();
        assert_eq!(error, "`--server` (word 1): write a line that runs by itself");
    }
}
