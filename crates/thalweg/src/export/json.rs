//! JSON, written by hand.

use std::fmt::{Display, Write};

/// An object in the making, a line for each of its members.
#[derive(Debug)]
pub(crate) struct Json {
    text: String,
    depth: usize,
    is_empty: bool,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self {
            text: "{".to_owned(),
            depth: 1,
            is_empty: true,
        }
    }

    /// Returns the whole text.
    pub(crate) fn end(mut self) -> String {
        self.close('}');
        self.text.push('\n');
        self.text
    }

    /// A number, `true` or `false`.
    pub(crate) fn put(&mut self, key: &str, value: impl Display) {
        self.key(key);
        self.write(value);
    }

    /// A fraction, to three places; 0 for what is no number.
    pub(crate) fn put_fraction(&mut self, key: &str, value: f64) {
        let value = if value.is_finite() { value } else { 0.0 };
        self.put(key, format_args!("{value:.3}"));
    }

    pub(crate) fn put_text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text.push('"');
        for symbol in value.chars() {
            match symbol {
                '"' | '\\' => self.text.extend(['\\', symbol]),
                symbol if symbol < ' ' => self.write(format_args!("\\u{:04x}", symbol as u32)),
                symbol => self.text.push(symbol),
            }
        }
        self.text.push('"');
    }

    /// An object in this one.
    pub(crate) fn object(&mut self, key: &str, members: impl FnOnce(&mut Self)) {
        self.key(key);
        self.nested(('{', '}'), members);
    }

    /// An array of objects in this one.
    pub(crate) fn objects<I: IntoIterator>(
        &mut self,
        key: &str,
        items: I,
        mut members: impl FnMut(&mut Self, I::Item),
    ) {
        self.key(key);
        self.nested(('[', ']'), |json| {
            for item in items {
                json.next();
                json.nested(('{', '}'), |json| members(json, item));
            }
        });
    }

    fn nested(&mut self, (open, close): (char, char), members: impl FnOnce(&mut Self)) {
        self.text.push(open);
        self.depth += 1;
        self.is_empty = true;
        members(self);
        self.close(close);
    }

    fn close(&mut self, close: char) {
        self.depth -= 1;
        if !self.is_empty {
            self.line();
        }
        self.is_empty = false;
        self.text.push(close);
    }

    fn key(&mut self, key: &str) {
        self.next();
        self.write(format_args!("\"{key}\": "));
    }

    fn next(&mut self) {
        if !self.is_empty {
            self.text.push(',');
        }
        self.is_empty = false;
        self.line();
    }

    fn line(&mut self) {
        let indent = self.depth;
        self.write(format_args!("\n{:indent$}", ""));
    }

    fn write(&mut self, value: impl Display) {
        // Writing to a text does not fail.
        let _ = write!(self.text, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn members_are_on_lines_of_their_own_and_texts_are_escaped() {
        let mut json = Json::new();
        json.put("count", 7);
        json.put_fraction("share", f64::NAN);
        json.put_text("name", "a\"b\\c\n");
        json.object("none", |_| {});
        json.objects("stages", [1, 2], |json, number| json.put("number", number));
        let expected = [
            r#"{"#,
            r#" "count": 7,"#,
            r#" "share": 0.000,"#,
            r#" "name": "a\"b\\c\u000a","#,
            r#" "none": {},"#,
            r#" "stages": ["#,
            r#"  {"#,
            r#"   "number": 1"#,
            r#"  },"#,
            r#"  {"#,
            r#"   "number": 2"#,
            r#"  }"#,
            r#" ]"#,
            "}\n",
        ];
        assert_eq!(json.end(), expected.join("\n"));
    }
}
