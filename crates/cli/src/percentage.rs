//! Numbers of percent that users write in options, such as `5` or `5 %`.

/// Reads a number of percent from 0 to `most`. `example` shows how to write one.
///
/// # Errors
///
/// The text is no such number, or it is below 1 without a sign: it may be a share.
pub(crate) fn percent(text: &str, most: f64, example: &str) -> Result<f64, String> {
    let written = text.trim();
    let number = written.trim_end_matches('%').trim().parse::<f64>().ok();
    let number = number.filter(|percent| (0.0..=most).contains(percent));
    let number =
        number.ok_or_else(|| format!("write a number of percent from 0 to {most}, such as \"{example}\""))?;
    if number > 0.0 && number < 1.0 && !written.ends_with('%') {
        let share = rounded(number * 100.0);
        return Err(format!(
            "{written} may be a share or a number of percent: write \"{share} %\" or \"{written} %\""
        ));
    }
    Ok(number)
}

/// Without the digits that binary fractions add.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_percent_is_no_share() {
        let read = |text: &str| percent(text, 1000.0, "5 %");
        assert_eq!(
            ["5", "5 %", " 2.5% ", "0.05 %", "0"].map(read),
            [Ok(5.0), Ok(5.0), Ok(2.5), Ok(0.05), Ok(0.0)]
        );
        for bad in ["", "-1", "NaN", "inf", "five", "5 GB", "1001"] {
            assert_eq!(
                read(bad),
                Err("write a number of percent from 0 to 1000, such as \"5 %\"".into()),
                "{bad}"
            );
        }
        let share = read("0.05").expect_err("which of them?");
        assert_eq!(share, "0.05 may be a share or a number of percent: write \"5 %\" or \"0.05 %\"");
        assert!(read("0.07").expect_err("which of them?").contains("\"7 %\""));
    }
}
