//! A test of the READMEs: each says how many crates its crate brings, and `cargo tree` knows.

use std::collections::BTreeSet;
use std::fs;

use crate::package::published;
use crate::workspace::Workspace;

/// The system that the numbers are for.
const SYSTEM: &str = "x86_64-unknown-linux-gnu";

/// Checks the numbers in the READMEs of all published crates; returns how many there are.
///
/// # Errors
/// A README has no number, or a wrong one.
pub(crate) fn check(workspace: &Workspace) -> Result<usize, String> {
    let mut checked = 0;
    for (name, folder) in published(&workspace.root)? {
        let path = folder.join("README.md");
        let readme = fs::read_to_string(workspace.root.join(&path));
        let readme = readme.map_err(|error| format!("{}: {error}", path.display()))?;
        let claims = claims(&readme);
        if claims.is_empty() {
            return Err(format!("{name}: its README does not say `brings N crates`"));
        }
        for (features, claimed) in claims {
            let line = format!(
                "tree --locked --package {name} --edges normal --prefix none --target {SYSTEM} \
                 {features}"
            );
            let brought = count(&workspace.output("cargo", &line)?);
            if brought != claimed {
                return Err(format!(
                    "{name} {features}: brings {brought} crates, its README says {claimed}"
                ));
            }
            checked += 1;
        }
    }
    Ok(checked)
}

/// Counts the crates that `cargo tree` lists, but the first.
fn count(tree: &str) -> usize {
    let crates = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    crates.collect::<BTreeSet<_>>().len().saturating_sub(1)
}

/// Returns the options of cargo and the number of crates for each claim of a README: `brings N
/// crates` for the default features, and rows of a table whose first cell is what a manifest has,
/// such as `default-features = false`, and whose second the number.
fn claims(readme: &str) -> Vec<(String, usize)> {
    let mut claims = Vec::new();
    let words: Vec<&str> = readme.split_whitespace().collect();
    for three in words.windows(3) {
        let is_crates = three[2].trim_end_matches(['.', ',', ';', ':']) == "crates";
        if three[0].eq_ignore_ascii_case("brings") && is_crates {
            claims.extend(three[1].parse().ok().map(|number| (String::new(), number)));
        }
    }
    for line in readme.lines().filter_map(|line| line.strip_prefix("| `")) {
        if let Some((manifest, rest)) = line.split_once("` | ")
            && let Some(number) = rest.split(' ').next().and_then(|cell| cell.parse().ok())
            && manifest.contains("features = ")
        {
            claims.push((options(manifest), number));
        }
    }
    claims
}

/// Returns cargo's options for the features that a manifest names.
fn options(manifest: &str) -> String {
    let without = manifest.contains("default-features = false");
    let named = manifest
        .split_once(", features = ")
        .or(manifest.split_once("features = ["));
    let named = named.filter(|_| !manifest.ends_with("= false"));
    let mut options = String::from(if without { "--no-default-features" } else { "" });
    if let Some((_, list)) = named {
        let list = list.replace(['[', ']', '"', ' '], "");
        options = format!("{options} --features {list}")
            .trim_start()
            .to_owned();
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_readme_has_the_number_of_crates_that_its_crate_brings() {
        let workspace = Workspace::around(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let checked = check(&workspace).unwrap();
        assert!(checked >= published(&workspace.root).unwrap().len());
    }

    #[test]
    fn claims_and_crates_are_counted() {
        let readme = "It brings 9 crates. Who brings a cake?\n\
                      | `default-features = false` | 0 | rings |\n\
                      | `default-features = false, features = [\"std\", \"a\"]` | 6 | all |\n\
                      | `features = [\"b\"]` | 11 | b |\n| `spsc` | 7 | |\n";
        let expected = [
            ("", 9),
            ("--no-default-features", 0),
            ("--no-default-features --features std,a", 6),
            ("--features b", 11),
        ];
        let claims = claims(readme);
        let claims: Vec<(&str, usize)> = claims.iter().map(|(a, b)| (a.as_str(), *b)).collect();
        assert_eq!(claims, expected);
        assert_eq!(count("a v1 (/x)\nb v1\nc v1\nb v1 (*)\n"), 2);
    }
}
