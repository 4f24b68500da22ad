//! The commands that the README gives.

/// The command lines of the page's blocks that begin with ```` ```sh ````, without comments.
///
/// # Errors
/// The first two are not a command of cargo and `cargo dev test`: what a fresh machine needs.
pub(crate) fn commands(readme: &str) -> Result<Vec<String>, String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in readme.lines().map(str::trim) {
        let fence = line.starts_with("```");
        inside = if fence { line == "```sh" } else { inside };
        let command = line.split(" #").next().unwrap_or(line).trim_end();
        if inside && !fence && !command.is_empty() && !command.starts_with('#') {
            commands.push(command.to_owned());
        }
    }
    match &commands[..] {
        [first, second, ..] if first.starts_with("cargo ") && second == TEST => Ok(commands),
        _ => Err(format!(
            "README.md does not begin with a command of cargo and `{TEST}`, but with {:?}",
            &commands[..commands.len().min(2)]
        )),
    }
}

/// The newcomer's second command.
pub(crate) const TEST: &str = "cargo dev test";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_without_comments_and_from_blocks_of_the_shell_only() {
        let text = "# A\n```sh\ncargo a  # first\n\n# x\ncargo dev test\n```\ncargo no\n\
                    ```rust\nno();\n```\n```sh\necho 'a,b' >> c\n```\n";
        assert_eq!(
            commands(text).unwrap(),
            ["cargo a", "cargo dev test", "echo 'a,b' >> c"]
        );
    }

    #[test]
    fn a_readme_that_begins_with_something_else_is_refused() {
        for text in [
            "",
            "```sh\ncargo a\n```\n",
            "```sh\nmake\ncargo dev test\n```\n",
        ] {
            let error = commands(text).unwrap_err();
            assert!(
                error.starts_with("README.md does not begin with a command of cargo"),
                "{error}"
            );
        }
    }
}
