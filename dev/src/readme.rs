//! The commands that the README tells a newcomer to type.

/// The command lines of the first fenced block after the heading `## Start`, without prompts and
/// comments.
///
/// # Errors
/// There is no such heading or block, or it holds no command.
pub(crate) fn start_commands(readme: &str) -> Result<Vec<String>, String> {
    let mut lines = readme.lines().skip_while(|line| line.trim() != "## Start");
    if lines.next().is_none() {
        return Err("README.md has no heading `## Start`".to_owned());
    }
    let section = lines.take_while(|line| !line.starts_with("## "));
    let block = section.skip_while(|line| !line.starts_with("```")).skip(1);
    let commands: Vec<String> = block
        .take_while(|line| !line.starts_with("```"))
        .map(|line| line.trim().trim_start_matches("$ "))
        .map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if commands.is_empty() {
        return Err("README.md has no commands in a fenced block after `## Start`".to_owned());
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_without_prompts_and_comments() {
        let text = [
            "# A",
            "```",
            "no",
            "```",
            "## Start",
            "",
            "Do:",
            "```sh",
            "$ cargo a  # first",
            "# then",
            "cargo b",
            "```",
            "```",
            "no",
            "```",
            "## More",
        ];
        let text = text.join("\n");
        assert_eq!(start_commands(&text).unwrap(), ["cargo a", "cargo b"]);
    }

    #[test]
    fn a_readme_without_a_start_says_so() {
        let error = start_commands("# A\n").unwrap_err();
        assert_eq!(error, "README.md has no heading `## Start`");
        let error = start_commands("## Start\n\n## More\n```\ncargo a\n```\n").unwrap_err();
        assert_eq!(
            error,
            "README.md has no commands in a fenced block after `## Start`"
        );
    }
}
