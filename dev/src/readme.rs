//! The commands that the README gives, and the program.

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

/// The program that a reader pastes into [`PASTED`]: the page's only block of Rust.
///
/// # Errors
/// There is none, or several; it is no whole program.
pub(crate) fn program(readme: &str) -> Result<String, String> {
    let mut programs = programs(readme)?;
    match programs.pop() {
        Some(program) if programs.is_empty() => Ok(program),
        _ => Err("README.md does not have one program in Rust".to_owned()),
    }
}

/// The programs of a page's blocks that begin with ```` ```rust ````.
///
/// # Errors
/// One is no whole program, or has lines that only rustdoc hides: pasted, it would not compile.
pub(crate) fn programs(page: &str) -> Result<Vec<String>, String> {
    let blocks = page.split("```rust").skip(1);
    let blocks = blocks.filter_map(|block| block.split_once('\n')?.1.split("\n```").next());
    let is_whole = |block: &str| {
        let has_main = block.lines().any(|line| line.contains("fn main()"));
        has_main
            && !block
                .lines()
                .any(|line| line == "#" || line.starts_with("# "))
    };
    let programs = blocks.map(|block| match is_whole(block) {
        true => Ok(block.to_owned() + "\n"),
        false => Err(format!("this cannot be pasted and compiled:\n{block}")),
    });
    programs.collect()
}

/// Where the README says that its program goes, seen from the clone. The command that makes the
/// crate comes before, and the one that runs it after.
pub(crate) const PASTED: &str = "../hello/src/main.rs";

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
    fn every_readme_has_whole_programs_and_no_others() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = |page: &std::path::Path| std::fs::read_to_string(page).unwrap();
        let readme = text(&root.join("README.md"));
        assert!(program(&readme).unwrap().contains("fn main()"));
        assert!(readme.contains(&format!("`{PASTED}`")));
        let crates = std::fs::read_dir(root.join("crates")).unwrap();
        for page in crates.map(|entry| entry.unwrap().path().join("README.md")) {
            let found = programs(&text(&page));
            assert!(found.is_ok(), "{}: {found:?}", page.display());
        }
        for part in ["let a = b?;\n# Ok(())", "fn main() {\n# x();\n}", "x();"] {
            let refused = program(&format!("a\n```rust,no_run\n{part}\n```\nb\n")).unwrap_err();
            assert!(refused.ends_with(part), "{refused}");
        }
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
