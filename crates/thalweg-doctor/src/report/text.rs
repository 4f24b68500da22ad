//! Formats lines of text for people.

use thalweg_measure::table::grouped;

/// The width of a page in columns.
pub(super) const COLUMNS: usize = 80;

/// Formats a number with at most four significant digits, and its thousands separated.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v == 0.0 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.01 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    format!("{sign}{}{fraction}", grouped(whole))
}

/// Formats a number with its unit.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    let number = number(value);
    match unit {
        "share" | "1" => number,
        "1/s" => format!("{number}/s"),
        _ => format!("{number} {unit}"),
    }
}

/// Formats a share of the time in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Converts shares of the time into whole per cent, so that their sum does not exceed `most`: all
/// are rounded down, and the largest remainders are rounded up while there is room.
pub(super) fn percents(shares: impl IntoIterator<Item = f64>, most: u32) -> Vec<u32> {
    let exact: Vec<f64> = shares.into_iter().map(|share| share * 100.0).collect();
    let mut whole: Vec<u32> = exact.iter().map(|exact| *exact as u32).collect();
    let sum = exact.iter().sum::<f64>().round() as u32;
    let mut left = sum.min(most).saturating_sub(whole.iter().sum());
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    for at in order {
        let one = left.min(1);
        whole[at] += one;
        left -= one;
    }
    whole
}

/// Shortens a text to `columns` columns, with an ellipsis where it is longer.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept = text.chars().take(columns.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// Removes control characters: the name of another program must not control our terminal.
pub(super) fn plain(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Wraps words into lines, the first behind `head`, the others indented to its end. There are at
/// most `most` lines; if the text is longer, the last one ends with an ellipsis.
pub(crate) fn wrapped(head: &str, text: &str, most: usize) -> Vec<String> {
    let indent = " ".repeat(head.chars().count());
    let mut lines = vec![head.to_owned()];
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        let space = usize::from(!is_empty);
        if !is_empty && line + space + word.chars().count() > COLUMNS {
            lines.push(indent.clone());
            is_empty = true;
        }
        let line = lines.last_mut().expect("it has one from the start");
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            // The ellipsis replaces a word if there is no room for it.
            let whole = last.chars().count() <= COLUMNS - 2;
            let end = last.rfind(' ').filter(|_| !whole).unwrap_or(last.len());
            last.truncate(end);
            last.push_str(" …");
        }
    }
    lines.into_iter().map(|line| cut(&line, COLUMNS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        let shown = [
            0.0,
            0.000_21,
            0.25,
            1.0,
            12.34,
            999.6,
            1_234_567.8,
            -1_000.0,
        ];
        let shown: Vec<String> = shown.into_iter().map(number).collect();
        let expected = [
            "0",
            "0.0002",
            "0.25",
            "1.00",
            "12.3",
            "1,000",
            "1,234,568",
            "-1,000",
        ];
        assert_eq!(shown, expected);
        assert_eq!(quantity(2.0, "cores"), "2.00 cores");
        assert_eq!(quantity(2_000.0, "1/s"), "2,000/s");
        assert_eq!(quantity(0.5, "share"), "0.50");
    }

    #[test]
    fn percents_of_a_whole_are_not_more_than_it() {
        assert_eq!(percent(0.255), "26 %");
        assert_eq!(percents([0.255], 100), [26]);
        // If each were rounded by itself, the sum would be 102.
        let parts = [0.255, 0.255, 0.245, 0.245];
        assert_eq!(percents(parts, 100).iter().sum::<u32>(), 100);
        assert_eq!(percents([0.356, 0.297, 0.296], 94), [35, 30, 29]);
        assert_eq!(percents([0.3, 0.1], 100), [30, 10]);
        assert!(percents([], 100).is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_wrapped() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(plain("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        let words = "word ".repeat(40);
        let lines = wrapped("head: ", &words, 9);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert!(lines[1].starts_with("      word"));
        let short = wrapped("head: ", &words, 2);
        assert_eq!(short.len(), 2);
        assert!(short[1].ends_with('…'));
        // A line of 80 columns has no room for the ellipsis.
        let full = wrapped("", &format!("{} {} b", "a".repeat(75), "a".repeat(4)), 1);
        assert_eq!(full, [format!("{} …", "a".repeat(75))]);
        let long = wrapped("", &"x".repeat(200), 5);
        assert!(long.iter().all(|line| line.chars().count() <= COLUMNS));
    }
}
