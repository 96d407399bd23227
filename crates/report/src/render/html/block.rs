//! The blocks of a page.

use std::fmt::{self, Write};

use super::{Title, class, sign_of, table};
use crate::{
    chart::{Chart, Escaped, lone_sign, sign},
    document::{
        Answer, Arrangement, Aside, Block, Fold, Glance, GlanceRate, KeyEntry, Sentence, Table, Tone,
    },
};

/// Writes a block of the section with this heading.
pub(super) fn write(page: &mut String, block: &Block, heading: &str) -> fmt::Result {
    match block {
        Block::Paragraph(sentence) => write_paragraph(page, sentence),
        Block::List(sentences) => write_list(page, sentences),
        Block::Table(of) if of.rows.is_empty() => Ok(()),
        Block::Table(of) => table::write(page, of, heading),
        Block::Charts(all, arrangement) => charts(page, all, *arrangement),
        Block::Key(entries) => write_key(page, entries),
        Block::Glance(rows) => rows.iter().try_for_each(|row| write_glance(page, row)),
        Block::Fold(fold) => write_fold(page, fold, heading),
        Block::Code(text) => write!(page, "<pre>{}</pre>", Escaped(text)),
        Block::Facts(facts) if facts.is_empty() => Ok(()),
        Block::Facts(facts) => table::write(page, &Table::of_facts(facts), heading),
        Block::Answer(answer) => write_answer(page, answer),
        Block::Aside(aside) => write_aside(page, aside),
    }
}

/// An answer is a box in its colour.
fn write_paragraph(page: &mut String, sentence: &Sentence) -> fmt::Result {
    if sentence.text.is_empty() {
        return Ok(());
    }
    let name = class(sentence.tone);
    let is_answer = matches!(sentence.tone, Tone::Good | Tone::Doubtful | Tone::Bad);
    let title = Title(&sentence.origin);
    match (is_answer, name) {
        (true, name) => {
            let sign = sign_of(sentence.tone);
            write!(page, "<div class=\"verdict {name}\"{title}><strong>{sign}</strong>")?;
        }
        (false, "") => write!(page, "<p{title}>")?,
        (false, name) => write!(page, "<p class=\"{name}\"{title}>")?,
    }
    write_words(page, sentence)?;
    if is_answer {
        write_list(page, &sentence.more)?;
        page.push_str("</div>");
        return Ok(());
    }
    page.push_str("</p>");
    write_list(page, &sentence.more)
}

fn write_words(page: &mut String, Sentence { lead, text, .. }: &Sentence) -> fmt::Result {
    if !lead.is_empty() {
        write!(page, "<b>{}</b>: ", Escaped(lead))?;
    }
    write!(page, "{}", Escaped(text))
}

/// A list in which one stands out is a list of warnings.
fn write_list(page: &mut String, sentences: &[Sentence]) -> fmt::Result {
    if sentences.is_empty() {
        return Ok(());
    }
    let is_warning = |sentence: &Sentence| matches!(sentence.tone, Tone::Doubtful | Tone::Bad);
    let warns = sentences.iter().any(is_warning);
    page.push_str(if warns { "<ul class=\"warn\">" } else { "<ul>" });
    for sentence in sentences {
        let title = Title(&sentence.origin);
        match (warns, class(sentence.tone)) {
            (true, "" | "soft") => write!(page, "<li class=\"note\"{title}>")?,
            (false, "") => write!(page, "<li{title}>")?,
            (_, name) => write!(page, "<li class=\"{name}\"{title}>")?,
        }
        write_words(page, sentence)?;
        write_list(page, &sentence.more)?;
        page.push_str("</li>");
    }
    page.push_str("</ul>");
    Ok(())
}

/// Charts beside each other are large if they are few or in pairs.
fn charts(page: &mut String, charts: &[Chart], arrangement: Arrangement) -> fmt::Result {
    let class = match (arrangement, charts.len()) {
        (_, 0) => return Ok(()),
        (Arrangement::Under, _) => "charts under",
        (Arrangement::Beside, 1 | 2 | 4) => "charts two",
        (Arrangement::Beside, _) => "charts",
    };
    write!(page, "<div class=\"{class}\">")?;
    for chart in charts {
        write!(page, "<figure>{}</figure>", chart.svg())?;
    }
    page.push_str("</div>");
    Ok(())
}

fn write_key(page: &mut String, entries: &[KeyEntry]) -> fmt::Result {
    page.push_str("<p class=\"key\">");
    for KeyEntry { series, letter, text } in entries {
        if letter.is_empty() {
            write!(page, "<span>{}{}</span>", lone_sign(*series), Escaped(text))?;
        } else {
            let colour = series % 8;
            write!(
                page,
                "<span class=\"s{colour}\">{}<b>{letter}</b> {}</span>",
                sign(*series),
                Escaped(text)
            )?;
        }
    }
    page.push_str("</p>");
    Ok(())
}

fn write_fold(page: &mut String, fold: &Fold, heading: &str) -> fmt::Result {
    let Fold { summary, is_open, blocks } = fold;
    let open = if *is_open { " open=\"\"" } else { "" };
    write!(page, "<details{open}><summary>{}</summary>", Escaped(summary))?;
    let caption = format!("{heading}: {summary}");
    blocks.iter().try_for_each(|block| write(page, block, &caption))?;
    page.push_str("</details>");
    Ok(())
}

fn write_glance(page: &mut String, glance: &Glance) -> fmt::Result {
    let Glance { name, id, phase, rates, sentences } = glance;
    let class = if name.is_empty() { "q" } else { "q first" };
    write!(page, "<div class=\"{class}\"><div class=\"name\">")?;
    if id.is_empty() {
        write!(page, "{}", Escaped(name))?;
    } else {
        write!(page, "<a href=\"#{id}\">{}</a>", Escaped(name))?;
    }
    write!(page, "<span>{}</span></div>", Escaped(phase))?;
    if rates.is_empty() {
        page.push_str("<div class=\"wide\">");
    } else {
        page.push_str("<div>");
        rates.iter().try_for_each(|rate| write_rate(page, rate))?;
        page.push_str("</div><div>");
    }
    for sentence in sentences {
        let class = match sentence.tone {
            Tone::Plain => "order",
            Tone::Soft => "alike",
            Tone::Doubtful => "open",
            tone => super::class(tone),
        };
        write!(page, "<p class=\"says {class}\">{}</p>", Escaped(&sentence.text))?;
    }
    page.push_str("</div></div>");
    Ok(())
}

fn write_rate(page: &mut String, GlanceRate { target, share, cell }: &GlanceRate) -> fmt::Result {
    let class = match cell.tone {
        Tone::Bad => "bad",
        Tone::Doubtful => "few",
        _ => "",
    };
    let lines: Vec<String> = cell.lines.iter().map(|line| Escaped(line).to_string()).collect();
    write!(
        page,
        "<div class=\"rate s{}\" title=\"{}\"><b>{}</b><i style=\"width:{:.1}%\"></i><em class=\"{class}\">{}</em></div>",
        target % 8,
        Escaped(&cell.origin),
        nilometer_analysis::letter(*target),
        100.0 * share,
        lines.join("<br/>")
    )
}

fn write_answer(page: &mut String, Answer { tone, reply, sentence }: &Answer) -> fmt::Result {
    write!(
        page,
        "<div class=\"answer {}\"><h2 class=\"reply\">{}{}</h2><div><p class=\"claim\"{}><b>{}</b>{}</p>",
        class(*tone),
        sign_of(*tone),
        Escaped(reply),
        Title(&sentence.origin),
        Escaped(&sentence.lead),
        Escaped(&sentence.text)
    )?;
    write_list(page, &sentence.more)?;
    page.push_str("</div></div>");
    Ok(())
}

fn write_aside(page: &mut String, Aside { heading, sentences, more }: &Aside) -> fmt::Result {
    write!(page, "<div class=\"mind\"><h2>{}</h2><ul>", Escaped(heading))?;
    for sentence in sentences {
        write!(page, "<li>{}</li>", Escaped(sentence))?;
    }
    if let Some((text, id)) = more {
        write!(page, "<li><a href=\"#{id}\">{}</a></li>", Escaped(text))?;
    }
    page.push_str("</ul></div>");
    Ok(())
}
