//! Reads the whole command line, and explains options that were renamed.

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;

use super::{Arguments, doctor};

/// Returns the command line of the program. An option accepts a negative number as its value, so
/// that the error for `--limit -1` explains what is wrong with -1.
pub(crate) fn command() -> clap::Command {
    fn with_negative_numbers(command: clap::Command) -> clap::Command {
        let command = command.mut_args(|arg| {
            let is_option = !arg.is_positional() && arg.get_action().takes_values();
            arg.allow_negative_numbers(is_option)
        });
        command.mut_subcommands(with_negative_numbers)
    }
    with_negative_numbers(Arguments::command())
}

/// Reads a command line, whose first word is the name of the program.
///
/// # Errors
/// Returns an error if the line is not a valid command line of this program, or if it asks for
/// help.
pub(crate) fn parse(line: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = command().try_get_matches_from(with_format(line));
    let parsed = matches.and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches));
    parsed.map_err(|mut error| {
        doctor::hint(&mut error, line);
        renamed(&error, line).unwrap_or(error)
    })
}

/// Replaces `--json` by `--format=json` in the line, because `doctor` and `machine` have always
/// accepted `--json`.
fn with_format(line: &[OsString]) -> impl Iterator<Item = OsString> {
    let end = line.iter().position(|word| word == "--");
    let takes_json = line
        .get(1)
        .is_some_and(|word| word == "doctor" || word == "machine");
    let line = line.iter().cloned().enumerate();
    line.map(move |(at, word)| match word == "--json" && takes_json {
        true if end.is_none_or(|end| at < end) => "--format=json".into(),
        _ => word,
    })
}

/// A table of options that were renamed: the former name, and the name that every command uses now.
const RENAMED: [(&str, &str); 5] = [
    ("--json", "--format json"),
    ("--out", "--output"),
    ("--report", "--html"),
    ("--save", "--output"),
    ("--users", "--user"),
];

/// Returns an error that names the new option if the line uses the former name of an option and its
/// command has the new one.
fn renamed(error: &clap::Error, line: &[OsString]) -> Option<clap::Error> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let ContextValue::String(wrong) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let (old, new) = RENAMED.iter().find(|(old, _)| wrong == old)?;
    let mut program = command();
    program.build();
    let mut found = &mut program;
    for word in &line[1..] {
        let word = word.to_str().unwrap_or_default();
        if found.find_subcommand(word).is_some() {
            found = found.find_subcommand_mut(word)?;
        }
    }
    let name = new.split(' ').next()?.trim_start_matches('-');
    let is_there = found
        .get_arguments()
        .any(|arg| arg.get_long() == Some(name));
    let text = format!("the option '{old}' is called '{new}'");
    is_there.then(|| found.error(ErrorKind::UnknownArgument, text))
}

/// Splits a line into words.
#[cfg(test)]
pub(super) fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::{ContextKind, ErrorKind};

    /// Calls `look` with every command of the program, and with the words that lead to it.
    fn every_command(look: &mut impl FnMut(&str, &clap::Command)) {
        fn visit(path: &str, at: &clap::Command, look: &mut impl FnMut(&str, &clap::Command)) {
            look(path, at);
            for below in at.get_subcommands().filter(|c| c.get_name() != "help") {
                visit(&format!("{path} {}", below.get_name()), below, look);
            }
        }
        let mut program = command();
        program.build();
        visit("thalweg", &program, look);
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_former_name_is_refused_and_names_its_successor() {
        for (line, new) in [
            ("exchange run --report a.html", "--html"),
            ("exchange run --out=a.csv", "--output"),
            ("exchange run a.csv --json", "--format json"),
            ("hash --json a", "--format json"),
            ("machine --save a.json", "--output"),
            ("exchange load --users 7", "--user"),
        ] {
            let error = parse(&words(&format!("thalweg {line}"))).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(&format!("is called '{new}'")),
                "{line}: {text}"
            );
            let usage = format!("Usage: thalweg {}", line.split(" -").next().unwrap());
            assert!(text.contains(usage.trim_end_matches(" a.csv")), "{text}");
        }
        let other = parse(&words("thalweg exchange conform --report a")).unwrap_err();
        assert!(!other.to_string().contains("is called"), "{other}");
    }

    #[test]
    fn names_that_are_still_taken() {
        for line in [
            "doctor --json -- ls",
            "doctor attach --json 4711",
            "doctor compare --json --a x --b y",
            "doctor caps --json",
            "machine --json",
            "exchange serve d --trade 127.0.0.1:0 --admin 127.0.0.1:0 --http 127.0.0.1:0 --keys k",
            "exchange key new --user 7 --keys k",
            "exchange send --admin 1",
        ] {
            parse(&words(&format!("thalweg {line}"))).unwrap();
        }
    }

    /// Expands a usage line: one line with the first of its alternatives, one with the second, and
    /// so on. Optional parts are left out.
    fn instances(usage: &str) -> Vec<String> {
        let mut plain = String::new();
        let mut depth = 0;
        for c in usage.chars() {
            depth += i32::from(c == '[') - i32::from(c == ']');
            if depth == 0 && c != ']' {
                plain.push(c);
            }
        }
        let value = |text: &str| {
            let with = [
                ("<N>", "1"),
                ("<PID>", "1"),
                ("<SHELL>", "bash"),
                ("<ADDRESS>", "[::1]:1"),
            ];
            let text = with
                .iter()
                .fold(text.to_owned(), |text, (a, b)| text.replace(a, b));
            text.replace("...", "").replace(['<', '>'], "")
        };
        let Some(begin) = plain.find("<-") else {
            return vec![value(&plain)];
        };
        let mut depth = 0;
        let end = plain[begin..].find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        let end = begin + end.expect("it is closed");
        let choices = plain[begin + 1..end].split('|');
        let made = choices.map(|one| format!("{}{one}{}", &plain[..begin], &plain[end + 1..]));
        made.map(|line| value(&line)).collect()
    }

    /// Every usage line that an error prints must itself be accepted.
    #[test]
    fn printed_usage_lines_are_not_refused() {
        let mut program = command();
        let mut given = |line: &str| program.try_get_matches_from_mut(words(line)).map(|_| ());
        let (mut seen, mut refused) = (0, Vec::new());
        every_command(&mut |path, at| {
            let longs = at.get_arguments().filter_map(|arg| {
                let has_value = arg.get_action().takes_values();
                Some(format!(
                    "--{}{}",
                    arg.get_long()?,
                    if has_value { "=1" } else { "" }
                ))
            });
            for option in longs.chain([String::new()]) {
                let Err(error) = given(&format!("{path} {option}")) else {
                    continue;
                };
                if error.kind() != ErrorKind::MissingRequiredArgument {
                    continue;
                }
                seen += 1;
                let text = error.to_string();
                let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
                for line in instances(usage.expect("the error has a usage line")) {
                    if let Err(error) = given(&line) {
                        refused.push(format!("{text} as {line}: {error}"));
                    }
                }
            }
        });
        assert!(seen > 20, "{seen} usage lines");
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }

    /// Every option must refuse a number below or above its range with an error that names the
    /// option and the limit.
    #[test]
    fn numbers_out_of_range_are_refused_by_every_option() {
        use clap::builder::ValueParser;
        let text = [
            ValueParser::os_string(),
            ValueParser::path_buf(),
            ValueParser::string(),
        ];
        let mut program = command();
        let mut seen = 0;
        every_command(&mut |path, at| {
            for arg in at.get_opts() {
                let parser = arg.get_value_parser();
                if text.iter().any(|text| text.type_id() == parser.type_id()) {
                    continue;
                }
                let long = arg.get_long().expect("every option has a long name");
                for number in ["-3", "-9223372036854775809", "36893488147419103232"] {
                    let line = format!("{path} --{long} {number}");
                    let error = program.try_get_matches_from_mut(words(&line)).unwrap_err();
                    let wanted = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
                    assert!(wanted.contains(&error.kind()), "{line}: {error}");
                    let named = error.get(ContextKind::InvalidArg).map(ToString::to_string);
                    assert!(named.unwrap_or_default().contains(long), "{line}: {error}");
                    seen += 1;
                }
            }
        });
        assert!(seen > 100, "{seen} numbers");
    }
}
