//! Parses a command that is written in one string: as the words of a program and its arguments, or
//! as a line for a shell.

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A program and its arguments, which are run without a shell.
    Words(Vec<String>),
    /// A line that needs a shell: it is run as `sh -c LINE`.
    Shell(String),
}

/// The reason why a line is not a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandLineError {
    /// The line contains no word.
    #[error("the command is empty")]
    Empty,
    /// A quote is not closed.
    #[error("a quote is not closed")]
    OpenQuote,
    /// The line ends in a backslash.
    #[error("a backslash is the last character")]
    LastBackslash,
}

/// The characters that have a meaning for a shell where they are not quoted, and those that have
/// one between double quotes.
const SPECIAL: &str = "|&;<>()$`*?[]{}#~!\n";
const SPECIAL_QUOTED: &str = "$`";

impl CommandLine {
    /// Splits a line as a shell would, with quotes and backslashes. A line that needs more than
    /// that is left to a shell: pipes, redirections, variables, patterns, several commands, and
    /// variables set before the command.
    ///
    /// # Errors
    /// Returns an error if the line is empty, if a quote is not closed, or if the line ends in a
    /// backslash.
    pub fn parse(line: &str) -> Result<CommandLine, CommandLineError> {
        let (mut words, mut word) = (Vec::new(), None::<String>);
        let mut needs_shell = false;
        let mut rest = line.trim().chars();
        while let Some(c) = rest.next() {
            match c {
                ' ' | '\t' => words.extend(word.take()),
                '\'' => {
                    let word = word.get_or_insert_default();
                    quoted(&mut rest, word)?;
                }
                '"' => {
                    let word = word.get_or_insert_default();
                    needs_shell |= double_quoted(&mut rest, word)?;
                }
                '\\' => {
                    let escaped = rest.next().ok_or(CommandLineError::LastBackslash)?;
                    word.get_or_insert_default().push(escaped);
                }
                _ => {
                    // `a=b` sets a variable only before the command.
                    needs_shell |= SPECIAL.contains(c) || c == '=' && words.is_empty();
                    word.get_or_insert_default().push(c);
                }
            }
        }
        words.extend(word);
        match words.first() {
            None => Err(CommandLineError::Empty),
            Some(_) if needs_shell => Ok(CommandLine::Shell(line.trim().to_owned())),
            Some(program) if program.is_empty() => Err(CommandLineError::Empty),
            Some(_) => Ok(CommandLine::Words(words)),
        }
    }
}

fn quoted(
    rest: &mut impl Iterator<Item = char>,
    word: &mut String,
) -> Result<(), CommandLineError> {
    loop {
        match rest.next().ok_or(CommandLineError::OpenQuote)? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

/// Reads up to the closing double quote. Returns whether the line needs a shell.
fn double_quoted(
    rest: &mut impl Iterator<Item = char>,
    word: &mut String,
) -> Result<bool, CommandLineError> {
    let mut needs_shell = false;
    loop {
        match rest.next().ok_or(CommandLineError::OpenQuote)? {
            '"' => return Ok(needs_shell),
            '\\' => match rest.next().ok_or(CommandLineError::OpenQuote)? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => {
                needs_shell |= SPECIAL_QUOTED.contains(c);
                word.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        match CommandLine::parse(line) {
            Ok(CommandLine::Words(words)) => words,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words("  ls\t-l  "), ["ls", "-l"]);
        assert_eq!(
            words(r#"a "b c" 'd "e' f\ g"#),
            ["a", "b c", "d \"e", "f g"]
        );
        assert_eq!(words(r#"a b"c"'d' "" "#), ["a", "bcd", ""]);
        assert_eq!(words(r#"a "\"\n\\" '\n'"#), ["a", "\"\\n\\", "\\n"]);
        assert_eq!(
            words(r"a \$HOME '$HOME' '*' \;"),
            ["a", "$HOME", "$HOME", "*", ";"]
        );
        assert_eq!(words("cp --to=x a=b"), ["cp", "--to=x", "a=b"]);
        assert_eq!(words("./größe µ"), ["./größe", "µ"]);
    }

    #[test]
    fn the_words_are_what_a_shell_would_pass() {
        for line in [
            r#"printf %s\\n a "b  c" 'd"e' f\ g """#,
            r#"printf '%s|' "a\"b\nc" x=y"#,
        ] {
            let ours = words(line);
            let run = |command: &mut std::process::Command| {
                String::from_utf8(command.output().expect("there is a printf").stdout)
            };
            let direct = run(std::process::Command::new(&ours[0]).args(&ours[1..]));
            let shell = run(std::process::Command::new("sh").args(["-c", line]));
            assert_eq!(direct, shell, "{line}");
        }
    }

    #[test]
    fn more_than_words_takes_a_shell() {
        for line in [
            "a | b", "a > b", "a && b", "a; b", "a $B", "a \"$B\"", "a `b`", "ls *.rs", "a ~/b",
            "A=b c", "(a)", "a {b,c}", "a # b", "a\nb",
        ] {
            assert_eq!(
                CommandLine::parse(line),
                Ok(CommandLine::Shell(line.to_owned())),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for (line, text) in [
            ("", "the command is empty"),
            (" \n ", "the command is empty"),
            ("'' a", "the command is empty"),
            ("a 'b", "a quote is not closed"),
            ("a \"b\\", "a quote is not closed"),
            ("a \\", "a backslash is the last character"),
        ] {
            let error = CommandLine::parse(line).expect_err(line);
            assert_eq!(error.to_string(), text, "{line}");
        }
    }
}
