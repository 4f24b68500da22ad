//! The Rust of a page as modules of one crate: what rustdoc makes of each block, without a program
//! to link for each.

use std::fmt::Write;

/// Returns a module for each block of Rust on a page.
///
/// # Errors
/// The page has none.
pub(crate) fn modules(page: &str, text: &str) -> Result<String, String> {
    let name: String = page
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let mut modules = String::new();
    for (index, block) in blocks(text).iter().enumerate() {
        let _ = write!(
            modules,
            "/// {page}, block {number}.\npub mod {name}_{number} {{\n{block}}}\n",
            number = index + 1,
            block = function(block),
        );
    }
    match modules.is_empty() {
        false => Ok(modules),
        true => Err(format!("{page}: there is no Rust on it")),
    }
}

/// Returns the blocks of Rust, with the lines that rustdoc hides.
fn blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for line in text.lines() {
        match block.take() {
            None if line.starts_with("```rust") => block = Some(String::new()),
            None => {}
            Some(whole) if line == "```" => blocks.push(whole),
            Some(part) => block = Some(part + shown(line) + "\n"),
        }
    }
    blocks
}

/// Returns a line without the mark by which rustdoc hides it.
fn shown(line: &str) -> &str {
    let code = line.trim_start();
    match code.strip_prefix('#') {
        Some("") => "",
        Some(rest) if rest.starts_with([' ', '#']) => rest.strip_prefix(' ').unwrap_or(rest),
        _ => line,
    }
}

/// Returns a block inside a function, unless it has a `main` of its own.
fn function(block: &str) -> String {
    let last = block.lines().last().unwrap_or_default();
    if block.contains("fn main()") {
        block.to_owned()
    } else if last.ends_with("(())") {
        format!("pub fn block() -> Result<(), impl core::fmt::Debug> {{\n{block}}}\n")
    } else {
        format!("pub fn block() {{\n{block}}}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_becomes_what_rustdoc_makes_of_it() {
        let page = "# A\n```sh\nno\n```\n```rust\na()?;\n# Ok::<(), E>(())\n```\n\
                    ```rust,no_run\n# fn main() {\n#     b();\n#\n# }\n```\n\
                    ```rust\n#[c]\n##[d]\n```\n";
        let found = blocks(page);
        let whole = "fn main() {\n    b();\n\n}\n";
        assert_eq!(found, ["a()?;\nOk::<(), E>(())\n", whole, "#[c]\n#[d]\n"]);
        let functions: Vec<String> = found.iter().map(|block| function(block)).collect();
        assert!(functions[0].starts_with("pub fn block() -> Result<(), impl core::fmt::Debug> {"));
        assert_eq!(functions[1], whole);
        assert_eq!(functions[2], "pub fn block() {\n#[c]\n#[d]\n}\n");
        let modules = modules("src/a-b.md", page).expect("it has blocks");
        assert!(modules.contains("/// src/a-b.md, block 2.\npub mod src_a_b_md_2 {\nfn main() {"));
    }

    #[test]
    fn a_page_without_rust_is_refused() {
        let refused = modules("a.md", "```sh\nls\n```\n").unwrap_err();
        assert_eq!(refused, "a.md: there is no Rust on it");
    }
}
