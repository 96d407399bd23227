//! The targets' properties, with a row for each property. Targets with the same answer share it, so there is
//! room for any number of targets.

use nilometer_analysis::{MatrixAnswer, MatrixRow, StorageMatrix};
use nilometer_plan::Results;

use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table, Tone},
    words,
};

/// Letters of a row's name.
const NAME: usize = 28;

pub(crate) fn storage(results: &Results, detail: Detail) -> Vec<Section> {
    let matrix = StorageMatrix::of(results);
    if matrix.rows.is_empty() {
        return Vec::new();
    }
    let table = if detail == Detail::Page { by_target(&matrix) } else { by_answer(&matrix) };
    let blocks = vec![Block::Table(table), Block::soft(words::MATRIX)];
    vec![Section::new(Heading::of("The storage"), blocks).from(Detail::Full).at("storage", "").on_screen()]
}

fn by_answer(matrix: &StorageMatrix) -> Table {
    let letters: Vec<&str> = matrix.targets.iter().map(|(letter, _)| letter.as_str()).collect();
    let columns = vec![Column::new(Role::Name, "").at_least(NAME), Column::new(Role::Sentence, "")];
    let row = |row: &MatrixRow| Row::of([row.name.clone(), answers(row, &letters)].map(Cell::new));
    Table { columns, rows: matrix.rows.iter().map(row).collect() }
}

/// A page is wide enough for a column for each target.
fn by_target(matrix: &StorageMatrix) -> Table {
    let targets = matrix.targets.iter();
    let targets = targets.map(|(letter, path)| Column::new(Role::Sentence, format!("{letter}: {path}")));
    let row = |row: &MatrixRow| {
        Row::of(std::iter::once(Cell::new(&row.name)).chain(row.answers.iter().map(answer)))
    };
    Table {
        columns: std::iter::once(Column::new(Role::Name, "")).chain(targets).collect(),
        rows: matrix.rows.iter().map(row).collect(),
    }
}

fn answer(answer: &MatrixAnswer) -> Cell {
    let tone = if answer.basis.is_some() { Tone::Soft } else { Tone::Plain };
    Cell::toned(tone, words::answer(answer))
}

/// `A, C: yes; B: no`, each answer once, in order of appearance. If all targets agree, it is only the answer.
fn answers(row: &MatrixRow, letters: &[&str]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (answer, letter) in row.answers.iter().zip(letters) {
        let answer = words::answer(answer);
        match groups.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, of)) => of.push(letter),
            None => groups.push((answer, vec![letter])),
        }
    }
    if let [(answer, _)] = &groups[..] {
        return answer.clone();
    }
    let texts = groups.iter().map(|(answer, of)| format!("{}: {answer}", of.join(", ")));
    texts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use nilometer_model::FeatureBasis;

    use super::*;

    fn row(words: &[&str]) -> MatrixRow {
        let answer = |words: &&str| MatrixAnswer {
            words: (*words).into(),
            basis: (*words == "raid0").then_some(FeatureBasis::Published),
            source: None,
        };
        MatrixRow { name: "striping".into(), answers: words.iter().map(answer).collect() }
    }

    #[test]
    fn targets_of_one_answer_share_it() {
        let letters = ["A", "B", "C"];
        assert_eq!(answers(&row(&["yes", "yes", "yes"]), &letters), "yes");
        assert_eq!(answers(&row(&["yes", "raid0", "yes"]), &letters), "A, C: yes; B: raid0 (published)");
        assert_eq!(answers(&row(&["yes", "", ""]), &letters), format!("A: yes; B, C: {}", words::NONE));
    }
}
