//! The colours of pages, for readers with weak sight and for those who see no difference of red and green.

use std::collections::BTreeMap;

use crate::render::STYLE;

/// Linear red, green and blue, 0 to 1.
type Light = [f64; 3];
/// The colours of a scheme, by the names of their variables.
type Scheme = BTreeMap<String, Light>;

/// The colours of the light and the dark scheme: the first two rules that set variables.
fn schemes() -> [Scheme; 2] {
    let rule = |number: usize| {
        let text = STYLE.split(":root{").nth(number).expect("a rule").split('}').next().expect("its end");
        let pairs = text.split(';').filter_map(|pair| pair.trim_start_matches("--").split_once(":#"));
        pairs.map(|(name, digits)| (name.to_owned(), light(digits))).collect::<Scheme>()
    };
    let schemes = [rule(1), rule(2)];
    assert!(schemes.iter().all(|scheme| scheme.len() > 16), "{schemes:?}");
    schemes
}

fn light(digits: &str) -> Light {
    let long: String = match digits.len() {
        3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        _ => digits.to_owned(),
    };
    let part = |at: usize| {
        let value = u8::from_str_radix(&long[at..at + 2], 16).expect("hexadecimal digits");
        let share = f64::from(value) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    [part(0), part(2), part(4)]
}

fn sum(weights: [f64; 3], light: Light) -> f64 {
    weights.iter().zip(light).map(|(weight, part)| weight * part).sum()
}

/// The contrast of WCAG 2, from 1 to 21.
fn contrast(one: Light, other: Light) -> f64 {
    let [one, other] = [one, other].map(|light| sum([0.2126, 0.7152, 0.0722], light) + 0.05);
    (one / other).max(other / one)
}

/// The light that gives others the impression of a deuteranope (Machado et al. 2009, severity 1).
fn deuteranope(light: Light) -> Light {
    let rows = [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ];
    rows.map(|row| sum(row, light).clamp(0.0, 1.0))
}

/// CIE L*a*b*, under D65.
fn lab(light: Light) -> [f64; 3] {
    let rows = [
        ([0.4124, 0.3576, 0.1805], 0.9505),
        ([0.2126, 0.7152, 0.0722], 1.0),
        ([0.0193, 0.1192, 0.9505], 1.089),
    ];
    let [x, y, z] = rows.map(|(row, white)| {
        let share = sum(row, light) / white;
        if share > 0.008_856 { share.cbrt() } else { 7.787 * share + 16.0 / 116.0 }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The distance of two colours in L*a*b*: about 2 is just visible.
fn distance(one: Light, other: Light) -> f64 {
    let squares = lab(one).into_iter().zip(lab(other)).map(|(one, other)| (one - other).powi(2));
    squares.sum::<f64>().sqrt()
}

fn series(scheme: &Scheme) -> Vec<Light> {
    (0..8).map(|number| scheme[&format!("s{number}")]).collect()
}

#[test]
fn black_on_white_has_the_greatest_contrast() {
    assert!((contrast(light("000"), light("ffffff")) - 21.0).abs() < 1e-9);
    assert!((contrast(light("777777"), light("fff")) - 4.48).abs() < 0.01, "the example of WCAG");
    assert!(distance(light("d55e00"), light("d55e00")) < 1e-9);
}

#[test]
fn text_has_enough_contrast_in_light_and_dark() {
    for scheme in schemes() {
        let text = ["ink", "soft", "accent", "yes", "no", "maybe"].map(str::to_owned);
        let letters = (0..8).map(|number| format!("s{number}"));
        for name in text.into_iter().chain(letters) {
            for back in ["page", "card"] {
                let found = contrast(scheme[&name], scheme[back]);
                assert!(found >= 4.5, "{name} on {back}: {found:.2}");
            }
        }
        for name in ["yes", "no", "maybe"] {
            let found = contrast(scheme[name], scheme[&format!("{name}-back")]);
            assert!(found >= 4.5, "{name} on its own background: {found:.2}");
        }
    }
}

#[test]
fn series_differ_for_everybody() {
    for scheme in schemes() {
        let all = series(&scheme);
        for (number, one) in all.iter().enumerate() {
            for (other, two) in all.iter().enumerate().skip(number + 1) {
                let usual = distance(*one, *two);
                let seen = distance(deuteranope(*one), deuteranope(*two));
                assert!(usual >= 20.0 && seen >= 19.0, "s{number}, s{other}: {usual:.1}, {seen:.1}");
            }
        }
    }
}
