//! Fixtures that the tests of several crates share. It depends on nothing, so that models of loom
//! and shuttle can use it as well.

mod alone;
#[allow(unsafe_code)] // an allocator
pub mod counting;
pub mod etcd;
#[allow(unsafe_code)] // wakers with a table of functions
pub mod fuse;
pub mod linearizable;
mod loopback;
mod random;
mod scratch;
pub mod wakers;

use std::env;
use std::path::{Path, PathBuf};

pub use alone::alone;
pub use loopback::{own_host, refusing};
pub use random::Random;
pub use scratch::Scratch;

/// Returns how many cases a property runs that has a number of its own: as many times that number
/// as `PROPTEST_CASES` is times proptest's 256, which it has without that variable. proptest heeds
/// the variable only in properties without a number, so tidy refuses a number that is not passed
/// through here.
#[must_use]
pub fn cases(own: u32) -> u32 {
    scaled(own, env::var("PROPTEST_CASES").ok().as_deref())
}

fn scaled(own: u32, cases: Option<&str>) -> u32 {
    let cases = cases
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(256);
    let scaled = (u64::from(own) * u64::from(cases)).div_ceil(256);
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

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

#[test]
fn a_number_of_cases_grows_as_that_of_other_properties_does() {
    assert_eq!(scaled(20, None), 20);
    assert_eq!(scaled(20, Some("2560")), 200);
    assert_eq!(scaled(20, Some("1")), 1);
    assert_eq!(scaled(20, Some("some")), 20);
    assert_eq!(scaled(u32::MAX, Some("2560")), u32::MAX);
}
