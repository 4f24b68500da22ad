//! The one list of what is compiled where: for `cargo dev targets`, packages and public
//! items.

use std::iter;

/// All that is compiled, and where: a crate, its features in place of those by default, and columns
/// of the table. `here` is this system, and `whole` is that, too, but not in the gate, since its
/// dependencies take long; `oldest` crates are also packed and compiled without the rest.
/// `thalweg-gateway`, and with it the program, is not there: its crate `ring` has C code.
pub(crate) const BUILDS: &str = "\
thalweg                aarch64-linux aarch64-apple x86_64-windows oldest
thalweg[]              here thumbv7em aarch64-none
thalweg[std]           here
thalweg[stream]        here
thalweg-hash           aarch64-linux aarch64-apple x86_64-windows wasm32 oldest
thalweg-hash[]         here thumbv7em aarch64-none
thalweg-measure        aarch64-linux aarch64-apple x86_64-windows oldest
thalweg-measure[]      here
thalweg-measure[json]  whole
thalweg-journal        aarch64-linux aarch64-apple x86_64-windows oldest
thalweg-task           aarch64-linux aarch64-apple x86_64-windows oldest
thalweg-exchange       aarch64-linux aarch64-apple x86_64-windows wasm32
thalweg-client         aarch64-linux aarch64-apple x86_64-windows
thalweg-server         aarch64-linux aarch64-apple
thalweg-doctor         aarch64-linux aarch64-apple";

/// A crate, with features in brackets unless it has those by default: a row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Build(pub(crate) &'static str);

/// The rings, as they are without an operating system.
pub(crate) const RINGS: Build = Build("thalweg[]");

impl Build {
    pub(crate) fn package(self) -> &'static str {
        self.0.split('[').next().unwrap_or(self.0)
    }

    pub(crate) fn features(self) -> Option<&'static str> {
        let (_, features) = self.0.split_once('[')?;
        features.strip_suffix(']')
    }

    pub(crate) fn on(column: &str) -> impl Iterator<Item = Self> {
        let mut rows = BUILDS.lines().map(str::split_whitespace);
        iter::from_fn(move || {
            rows.find_map(|mut row| {
                let build = Self(row.next()?);
                row.any(|word| word == column).then_some(build)
            })
        })
    }
}

/// Returns the crates that people add: they are packed, and compiled without the rest.
pub(crate) fn libraries() -> impl Iterator<Item = &'static str> {
    Build::on("oldest").map(Build::package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_in_brackets() {
        let parts = |build: Build| (build.package(), build.features());
        assert_eq!(parts(Build("a-b")), ("a-b", None));
        assert_eq!(parts(Build("a-b[]")), ("a-b", Some("")));
        assert_eq!(parts(Build("a-b[c,d]")), ("a-b", Some("c,d")));
    }
}
