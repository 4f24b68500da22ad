//! Fixtures that the tests of several crates share. It depends on nothing, so that models of loom
//! and shuttle can use it as well.

mod alone;
pub mod counting;
pub mod etcd;
pub mod linearizable;
mod loopback;
mod random;
mod scratch;

use std::env;
use std::path::{Path, PathBuf};

pub use alone::alone;
pub use loopback::{own_host, refusing};
pub use random::Random;
pub use scratch::Scratch;

/// Returns the path of recorded streams or data in the folder `shared` beside the repository.
/// Prints that they are skipped, and returns `None`, where they are not there, as in a user's
/// clone. `THALWEG_SHARED` names another folder: the gate names one that does not exist.
#[must_use]
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = env::var_os("THALWEG_SHARED").map_or_else(beside, PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {}", path.display());
    None
}
