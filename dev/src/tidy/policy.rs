//! Facts about this project that tidy checks: limits, places, words and the order of the crates.

/// Lines of a Rust file outside its tests.
pub(crate) const FILE_LINES_MAX: usize = 700;
/// A function has fewer lines than this, its signature and closing brace included.
pub(crate) const FUNCTION_LINES_LIMIT: usize = 70;
/// Characters of a line.
pub(crate) const LINE_COLUMNS_MAX: usize = 100;
/// How far above an atomic access its ORDERING comment may end.
pub(crate) const ORDERING_LINES_ABOVE_MAX: usize = 3;

/// Where `unsafe` may stand: a file, or a folder if it ends in a slash. Tests may use it too (a
/// counting allocator needs it), with a SAFETY comment.
pub(crate) const UNSAFE_MODULES: &[&str] = &[
    "crates/thalweg/src/ring/",
    "crates/thalweg-hash/src/kernel/",
    "crates/thalweg-doctor/src/sys.rs",
    "crates/thalweg-measure/src/clock/hardware.rs",
    "crates/thalweg-doctor/src/sys/",
    "crates/thalweg-task/src/node/",
    "crates/thalweg-task/src/fiber/switch.rs",
    "crates/thalweg-testkit/src/counting.rs",
    "compare/src/channels/gil.rs",
];

/// The crate whose orderings are named, and where they may stand by their own names: where they
/// are given others, and around a system call that a model replaces.
pub(crate) const ORDERINGS_NAMED_IN: &str = "crates/thalweg/src/";
pub(crate) const ORDERINGS_ALLOWED: &[&str] = &[
    "crates/thalweg/src/ring/sync.rs",
    "crates/thalweg/src/wait/barrier.rs",
    "crates/thalweg/src/wait/barrier/",
];

/// Where a thread may sleep, and why a condition cannot be awaited there instead.
pub(crate) const SLEEP_ALLOWED: &[(&str, &str)] = &[
    (
        "crates/thalweg-cli/src/top/mod.rs",
        "a look into the directory each second, and signals are looked at in between",
    ),
    (
        "crates/thalweg-measure/src/clock/calibration.rs",
        "time itself is what the calibration waits for, and it reads the clock again afterwards",
    ),
    (
        "compare/src/experiment/serve/fairness.rs",
        "the polite user rests 5 ms, and an attacker does not spin on a full socket",
    ),
    (
        "compare/src/experiment/channels/waiting.rs",
        "the gap between two messages and an idle second are what is measured",
    ),
    (
        "crates/thalweg-exchange/src/durable/table_copy.rs",
        "the owner of a lock that is taken again and again gets it meanwhile, if it waits at all",
    ),
    (
        "crates/thalweg-server/tests/serving/stalled.rs",
        "a client that takes its time is what is tested",
    ),
    (
        "crates/thalweg-doctor/src/probe/perf.rs",
        "sleeps that an interrupt ends are what is tested",
    ),
    (
        "crates/thalweg-doctor/cases/held-out/ordered_commit.rs",
        "how long it runs is what is given",
    ),
    (
        "crates/thalweg-doctor/cases/held-out/sync_standby.rs",
        "a peer that is being started is tried again",
    ),
    (
        "crates/thalweg-doctor/cases/known/worker_pool.rs",
        "the gap between two reports is what is given",
    ),
];

/// The crate whose fixtures the tests of every other may use.
pub(crate) const FOR_TESTS: &str = "thalweg-testkit";

/// Each crate, and the crates of this workspace that it may depend on.
pub(crate) const ARROWS: &[(&str, &str)] = &[
    (FOR_TESTS, ""),
    ("thalweg-measure", ""),
    ("thalweg-hash", ""),
    ("thalweg", "thalweg-measure"),
    ("thalweg-journal", "thalweg-hash"),
    ("thalweg-task", "thalweg thalweg-measure"),
    (
        "thalweg-exchange",
        "thalweg thalweg-measure thalweg-hash thalweg-journal",
    ),
    ("thalweg-doctor", "thalweg-measure"),
    ("thalweg-client", "thalweg-exchange"),
    ("thalweg-etcd", "thalweg-exchange"),
    (
        "thalweg-server",
        "thalweg thalweg-exchange thalweg-journal thalweg-measure",
    ),
    (
        "thalweg-gateway",
        "thalweg-exchange thalweg-journal thalweg-client thalweg-server",
    ),
    ("thalweg-cli", EVERY_LIBRARY),
    ("thalweg-compare", MEASURED),
    ("counts", EVERY_LIBRARY),
    ("fuzz", EVERY_LIBRARY),
    ("guide", EVERY_LIBRARY),
    (WITHOUT_DEPENDENCIES, ""),
];

/// The crates that `compare` measures, and `counts`, with which it shares workloads.
const MEASURED: &str = "thalweg thalweg-measure thalweg-hash thalweg-journal thalweg-task \
    thalweg-exchange thalweg-client thalweg-etcd thalweg-server thalweg-gateway counts";

const EVERY_LIBRARY: &str = "thalweg thalweg-measure thalweg-hash thalweg-journal thalweg-task \
    thalweg-exchange thalweg-client thalweg-etcd thalweg-server thalweg-gateway thalweg-doctor";

/// The crate that has no dependency at all, so that it builds in a moment.
pub(crate) const WITHOUT_DEPENDENCIES: &str = "dev";

/// The crates that show peers beside this project, and the peers that only they may depend on.
pub(crate) const COMPARING: &[&str] = &["thalweg-compare", "guide"];
pub(crate) const PEERS: &str = "\
    async-channel bus commitlog crossbeam crossbeam-channel crossbeam-queue crossfire \
    disruptor fjall flume futures-channel gil heapless kanal nexus-queue okaywal omango \
    oneshot redb ringbuf rtrb thingbuf tokio twox-hash xxhash-c xxhash-rust";

/// Peers that others depend on as well, for a job of their own: sockets.
pub(crate) const PEERS_AT_WORK: &[(&str, &[&str])] = &[(
    "tokio",
    &[
        "thalweg-client",
        "thalweg-etcd",
        "thalweg-server",
        "thalweg-gateway",
        "thalweg-cli",
    ],
)];

/// Names of files and folders that say nothing about what is inside.
pub(crate) const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "stuff",
];

/// Words that names and comments do not use, since the field has others.
pub(crate) const HOUSE_WORDS: &[&str] = &[
    "told", "untold", "whoever", "whomever", "calm", "calmly", "usual", "swift",
];
/// Phrases that comments do not use, in lower case.
pub(crate) const HOUSE_PHRASES: &[&str] = &["so many", "at hand"];
/// How a comment does not begin.
pub(crate) const HOUSE_OPENINGS: &[&str] =
    &["Of", "So many", "The same", "Who", "Those of", "What"];

/// Words that have no place in the repository: tools and paths of the machine that it was written
/// on. Split, so that this list does not find itself.
pub(crate) const FOREIGN_WORDS: &[&str] = &[
    concat!("issues", " show"),
    concat!("issues", " list"),
    concat!("issues", " close"),
    concat!("farm", "-bench"),
    concat!(".lib", "rary/"),
    concat!("find", "_string"),
    concat!("find", "_repos"),
    concat!("before", "-stop"),
    concat!("/wo", "rk/"),
    concat!("/tmp", "/target-"),
    concat!("/tmp", "/brief"),
];

/// Where the files of this repository are on the web.
pub(crate) const REPOSITORY: &[&str] = &[
    "https://github.com/thalweg-rs/thalweg/blob/main/",
    "https://github.com/thalweg-rs/thalweg/tree/main/",
];

/// The licence of every crate.
pub(crate) const LICENCE: &str = "MIT OR Apache-2.0";
/// The files that each package for crates.io holds beside its code.
pub(crate) const PACKED_FILES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE", "README.md"];

/// Is `path` one of `places`, or inside one that ends in a slash?
pub(crate) fn within(path: &str, place: &str) -> bool {
    path == place || (place.ends_with('/') && path.starts_with(place))
}
