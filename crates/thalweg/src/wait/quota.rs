//! How many cores the quota of this process pays for, without allocating at each look.
//!
//! Where the quota stands is found once; then each look opens, reads and closes the few files. The
//! quota of a group and of each group around it counts, in the second version of cgroups
//! (`cpu.max`) and the first (`cpu.cfs_quota_us` over `cpu.cfs_period_us`).
//! A process that is moved to another group later is not followed.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the system shows its groups.
const ROOT: &str = "/sys/fs/cgroup";
/// Where the first version may show the groups of processors, below the root.
const FIRST_VERSION: [&str; 2] = ["cpu", "cpu,cpuacct"];
/// Bytes of the longest content: two numbers of 64 bits.
const CONTENT_MAX: usize = 64;

/// One quota.
#[derive(Debug, PartialEq, Eq)]
enum Quota {
    /// `cpu.max`: quota (or `max`) and period in one.
    Joint(PathBuf),
    /// Quota (or -1) and period.
    Split(PathBuf, PathBuf),
}

static QUOTAS: OnceLock<Vec<Quota>> = OnceLock::new();

fn quotas() -> &'static [Quota] {
    QUOTAS.get_or_init(|| {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        found(Path::new(ROOT), &groups)
    })
}

/// Finds the files, so that no later call of [`cores`] allocates. Takes some 50 µs the first time.
pub(super) fn prepare() {
    quotas();
}

/// The cores that the tightest quota pays for, rounded down, at least 1; `usize::MAX` where there
/// is none. Takes some 5 µs for each group that has a file.
pub(super) fn cores() -> usize {
    let tightest = quotas().iter().filter_map(Quota::cores).min();
    tightest.map_or(usize::MAX, |cores| cores.max(1))
}

impl Quota {
    fn cores(&self) -> Option<usize> {
        match self {
            Self::Joint(path) => {
                let [quota, period] = numbers(path);
                divided(quota?, period?)
            }
            Self::Split(quota, period) => {
                let ([quota, _], [period, _]) = (numbers(quota), numbers(period));
                divided(quota?, period?)
            }
        }
    }

    fn exists(&self) -> bool {
        match self {
            Self::Joint(path) | Self::Split(path, _) => path.exists(),
        }
    }
}

fn divided(quota: u64, period: u64) -> Option<usize> {
    quota.checked_div(period).map(|cores| cores as usize)
}

/// The first two words of a file, where they are numbers: `max` and -1 are not.
fn numbers(path: &Path) -> [Option<u64>; 2] {
    let mut content = [0; CONTENT_MAX];
    let read = File::open(path).and_then(|mut file| file.read(&mut content));
    let text = str::from_utf8(&content[..read.unwrap_or(0)]).unwrap_or("");
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    [words.next().flatten(), words.next().flatten()]
}

/// The quotas that there are for a process in these groups (lines of `/proc/self/cgroup`).
fn found(root: &Path, groups: &str) -> Vec<Quota> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let group = Path::new(group.trim_start_matches('/'));
        if controllers.is_empty() {
            let joint = |folder: PathBuf| Quota::Joint(folder.join("cpu.max"));
            found.extend(group.ancestors().map(|group| joint(root.join(group))));
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            let split = |folder: PathBuf| {
                let period = folder.join("cpu.cfs_period_us");
                Quota::Split(folder.join("cpu.cfs_quota_us"), period)
            };
            for mount in FIRST_VERSION.map(|mount| root.join(mount)) {
                found.extend(group.ancestors().map(|group| split(mount.join(group))));
            }
        }
    }
    // In a container, the groups around its own are not to be seen.
    found.retain(Quota::exists);
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A folder that goes when the test is over.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("thalweg-{name}-{}", std::process::id()));
            for (file, content) in files {
                let file = path.join(file);
                let folder = file.parent().expect("a file is in a folder");
                fs::create_dir_all(folder).expect("the temporary folder can be written");
                fs::write(file, content).expect("the temporary folder can be written");
            }
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn cores_of(quotas: &[Quota]) -> Vec<Option<usize>> {
        quotas.iter().map(Quota::cores).collect()
    }

    #[test]
    fn the_second_version_counts_every_group_around() {
        let folder = Folder::new(
            "quota-second",
            &[
                ("a/cpu.max", "350000 100000\n"),
                ("a/b/c/cpu.max", "max 100000\n"),
                ("other/cpu.max", "100000 100000\n"),
            ],
        );
        let quotas = found(&folder.0, "0::/a/b/c\n");
        assert_eq!(cores_of(&quotas), [None, Some(3)]);
    }

    #[test]
    fn the_first_version_has_two_files() {
        let folder = Folder::new(
            "quota-first",
            &[
                ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
                ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
                ("cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n"),
                ("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ],
        );
        let groups = "12:memory:/a\n4:cpu,cpuacct:/a\nnonsense\n";
        let quotas = found(&folder.0, groups);
        assert_eq!(cores_of(&quotas), [Some(0), None]);
    }

    #[test]
    fn a_quota_is_read_anew_each_time_and_nonsense_is_none() {
        let folder = Folder::new("quota-again", &[("cpu.max", "200000 100000")]);
        let quotas = found(&folder.0, "0::/\n");
        for (content, cores) in [
            ("100000 100000\n", Some(1)),
            ("max 100000\n", None),
            ("100000 0\n", None),
            ("100000\n", None),
            ("", None),
        ] {
            fs::write(folder.0.join("cpu.max"), content).unwrap();
            assert_eq!(cores_of(&quotas), [cores], "{content}");
        }
        fs::remove_file(folder.0.join("cpu.max")).unwrap();
        assert_eq!(cores_of(&quotas), [None]);
    }

    #[test]
    fn it_agrees_with_the_standard_library() {
        let usable = crate::wait::cores::usable();
        let ours = cores().min(usable.cpus().len().max(1));
        assert_eq!(ours, usable.count());
    }
}
