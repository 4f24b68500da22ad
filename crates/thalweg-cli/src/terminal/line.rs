//! A line of a picture: pieces of text, each with a tone.

/// How a piece of text looks. No tone is the only sign of anything: words say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Buy,
    Sell,
    Warning,
}

impl Tone {
    const fn sequence(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Strong => "\x1b[1m",
            Tone::Faint => "\x1b[2m",
            Tone::Buy => "\x1b[32m",
            Tone::Sell => "\x1b[31m",
            Tone::Warning => "\x1b[7m",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Line {
        Line(vec![(tone, text.into())])
    }

    pub(crate) fn plain(text: impl Into<String>) -> Line {
        Line::new(Tone::Plain, text)
    }

    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Line {
        self.0.push((tone, text.into()));
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Returns the line cut to a width, and filled with blanks to it where another follows.
    fn cut(self, width: usize, fill: bool) -> Line {
        let mut left = width;
        let mut pieces = Vec::new();
        for (tone, text) in self.0 {
            let text: String = text.chars().take(left).collect();
            left -= text.chars().count();
            pieces.push((tone, text));
        }
        if fill {
            pieces.push((Tone::Plain, " ".repeat(left)));
        }
        Line(pieces)
    }

    /// Returns two columns as one: the left one has this width.
    pub(crate) fn beside(left: Vec<Line>, right: Vec<Line>, width: usize) -> Vec<Line> {
        let rows = left.len().max(right.len());
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        let both = (0..rows).map(|_| {
            let mut line = left.next().unwrap_or_default().cut(width, true);
            line.0.extend(right.next().unwrap_or_default().0);
            line
        });
        both.collect()
    }

    /// Returns the text, no wider than this. Without colours no sequence is in it.
    pub(crate) fn text(self, width: usize, colours: bool) -> String {
        let line = match self.width() > width {
            true => self.cut(width, false),
            false => self,
        };
        let mut out = String::new();
        for (tone, text) in line.0 {
            match tone.sequence() {
                sequence if colours && !sequence.is_empty() && !text.is_empty() => {
                    out += sequence;
                    out += &text;
                    out += "\x1b[0m";
                }
                _ => out += &text,
            }
        }
        match colours {
            true => out,
            false => out.trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_characters_and_columns_are_filled() {
        let line = || Line::plain("ab").and(Tone::Sell, "cde");
        assert_eq!(line().text(9, false), "abcde");
        assert_eq!(line().text(3, false), "abc");
        assert_eq!(line().text(3, true), "ab\x1b[31mc\x1b[0m");
        assert_eq!(line().text(0, true), "");
        let rows = Line::beside(vec![line()], vec![line(), line()], 7);
        let rows: Vec<String> = rows.into_iter().map(|row| row.text(80, false)).collect();
        assert_eq!(rows, ["abcde  abcde", "       abcde"]);
    }
}
