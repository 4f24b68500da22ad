//! A small Rust lexer: enough to tell code from comments, strings, characters and lifetimes.
//!
//! It never fails: text that is not Rust gives tokens that no rule is looking for. Lines count
//! from 1.

/// The kind of a token; punctuation comes one character at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword; raw identifiers come without their `r#`.
    Word,
    /// One character of punctuation.
    Mark,
    /// A string, byte string, C string, character or byte literal, with its quotes.
    Text,
    /// A number, with its suffix.
    Number,
    /// A lifetime or label, with its quote.
    Lifetime,
}

/// A token of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    /// Is this the word or the mark `text`? Never true for a literal.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }
}

/// A comment with its slashes; a block comment may span lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) line_end: usize,
}

impl Comment {
    /// Outer documentation: of the item that follows.
    pub(crate) fn is_outer_doc(&self) -> bool {
        let line = self.text.starts_with("///") && !self.text.starts_with("////");
        line || (self.text.starts_with("/**") && !self.text.starts_with("/***"))
    }

    /// Inner documentation: of the module that it stands in.
    pub(crate) fn is_inner_doc(&self) -> bool {
        self.text.starts_with("//!") || self.text.starts_with("/*!")
    }
}

/// Splits Rust source into code and comments, both in order of appearance.
pub(crate) fn lex(text: &str) -> (Vec<Token>, Vec<Comment>) {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        tokens: Vec::new(),
        comments: Vec::new(),
    };
    while lexer.step() {}
    (lexer.tokens, lexer.comments)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Takes one lexeme; false at the end of the text.
    fn step(&mut self) -> bool {
        if self.at >= self.chars.len() {
            return false;
        }
        let (start, line) = (self.at, self.line);
        match self.peek(0) {
            '/' if self.peek(1) == '/' => {
                self.skip_while(|c| c != '\n');
                self.comment(start, line);
            }
            '/' if self.peek(1) == '*' => {
                self.block_comment();
                self.comment(start, line);
            }
            '"' => {
                self.quoted('"');
                self.token(Kind::Text, start, line);
            }
            '\'' => self.character_or_lifetime(),
            c if c.is_alphabetic() || c == '_' => self.word_or_literal(),
            c if c.is_ascii_digit() => self.number(),
            c if c.is_whitespace() => self.advance(1),
            _ => {
                self.advance(1);
                self.token(Kind::Mark, start, line);
            }
        }
        true
    }

    fn advance(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        self.line += self.chars[self.at..end]
            .iter()
            .filter(|&&c| c == '\n')
            .count();
        self.at = end;
    }

    fn skip_while(&mut self, keep: impl Fn(char) -> bool) {
        while self.at < self.chars.len() && keep(self.peek(0)) {
            self.advance(1);
        }
    }

    fn slice(&self, start: usize) -> String {
        self.chars[start..self.at].iter().collect()
    }

    fn token(&mut self, kind: Kind, start: usize, line: usize) {
        let text = self.slice(start);
        self.tokens.push(Token { kind, text, line });
    }

    fn comment(&mut self, start: usize, line: usize) {
        let text = self.slice(start);
        self.comments.push(Comment {
            text,
            line,
            line_end: self.line,
        });
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.advance(1);
                    continue;
                }
            }
            self.advance(2);
            if depth == 0 {
                return;
            }
        }
    }

    /// From the opening quote past the closing one, over escapes.
    fn quoted(&mut self, quote: char) {
        self.advance(1);
        while self.at < self.chars.len() {
            match self.peek(0) {
                '\\' => self.advance(2),
                c => {
                    self.advance(1);
                    if c == quote {
                        return;
                    }
                }
            }
        }
    }

    /// From the hashes or the quote of a raw string past its end.
    fn raw_quoted(&mut self, hashes: usize) {
        self.advance(hashes + 1);
        while self.at < self.chars.len() {
            let closes = self.peek(0) == '"' && (1..=hashes).all(|n| self.peek(n) == '#');
            if closes {
                self.advance(hashes + 1);
                return;
            }
            self.advance(1);
        }
    }

    fn character_or_lifetime(&mut self) {
        let (start, line) = (self.at, self.line);
        // 'a' is a character, 'a a lifetime; '\'' and '(' are characters.
        let lifetime =
            (self.peek(1).is_alphabetic() || self.peek(1) == '_') && self.peek(2) != '\'';
        if lifetime {
            self.advance(1);
            self.skip_while(|c| c.is_alphanumeric() || c == '_');
            self.token(Kind::Lifetime, start, line);
        } else {
            self.quoted('\'');
            self.token(Kind::Text, start, line);
        }
    }

    fn word_or_literal(&mut self) {
        let (start, line) = (self.at, self.line);
        self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let word = self.slice(start);
        let hashes = (0..).take_while(|&n| self.peek(n) == '#').count();
        match (word.as_str(), self.peek(0)) {
            ("r" | "br" | "cr", '"' | '#') if self.peek(hashes) == '"' => {
                self.raw_quoted(hashes);
                self.token(Kind::Text, start, line);
            }
            ("b" | "c", '"') => {
                self.quoted('"');
                self.token(Kind::Text, start, line);
            }
            ("b", '\'') => {
                self.quoted('\'');
                self.token(Kind::Text, start, line);
            }
            ("r", '#') => self.advance(1),
            _ => self.token(Kind::Word, start, line),
        }
    }

    fn number(&mut self) {
        let (start, line) = (self.at, self.line);
        self.skip_while(|c| c.is_alphanumeric() || c == '_');
        // 1.5 is one number; 1..5 and 1.max(2) are not.
        if self.peek(0) == '.' && self.peek(1).is_ascii_digit() {
            self.advance(1);
            self.skip_while(|c| c.is_alphanumeric() || c == '_');
        }
        self.token(Kind::Number, start, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        lex(source).0.into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn strings_hide_their_braces_and_comments() {
        assert_eq!(
            texts(r#"f("{ // \" x")"#),
            ["f", "(", r#""{ // \" x""#, ")"]
        );
        assert_eq!(lex(r#""/* no */""#).1, []);
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        let source = "r##\"a \"# b\"## c";
        assert_eq!(texts(source), ["r##\"a \"# b\"##", "c"]);
        assert_eq!(texts("br\"\\\" x"), ["br\"\\\"", "x"]);
        assert_eq!(texts("r#type x"), ["type", "x"]);
    }

    #[test]
    fn characters_and_lifetimes_are_distinguished() {
        let kinds = |s| lex(s).0.into_iter().map(|t| t.kind).collect::<Vec<_>>();
        assert_eq!(kinds("'a' 'a '{' '\\'' b'x' '_"), {
            use Kind::{Lifetime, Text};
            [Text, Lifetime, Text, Text, Text, Lifetime]
        });
    }

    #[test]
    fn block_comments_nest_and_span_lines() {
        let (tokens, comments) = lex("a /* x /* y */\n z */ b\n// c");
        assert_eq!(tokens.len(), 2);
        assert_eq!((tokens[1].text.as_str(), tokens[1].line), ("b", 2));
        assert_eq!((comments[0].line, comments[0].line_end), (1, 2));
        assert_eq!((comments[1].line, comments[1].text.as_str()), (3, "// c"));
    }

    #[test]
    fn numbers_leave_ranges_and_methods_alone() {
        assert_eq!(texts("1.5 0..5 1.max(2) 0xff_u8"), {
            [
                "1.5", "0", ".", ".", "5", "1", ".", "max", "(", "2", ")", "0xff_u8",
            ]
        });
    }

    #[test]
    fn unfinished_text_ends_with_the_file() {
        assert_eq!(texts("\"abc"), ["\"abc"]);
        assert_eq!(lex("/* abc").1.len(), 1);
        assert_eq!(texts("r#\"abc\""), ["r#\"abc\""]);
        assert_eq!(texts("'"), ["'"]);
    }

    #[test]
    fn documentation_differs_from_plain_comments() {
        let comments = lex("//! a\n/// b\n// c\n//// d\n/** e */").1;
        let outer: Vec<bool> = comments.iter().map(Comment::is_outer_doc).collect();
        assert_eq!(outer, [false, true, false, false, true]);
        assert!(comments[0].is_inner_doc());
    }
}
