//! Reads the machine under the program: time that the host took, time that others used, and quotas.

use crate::probe::procfs::Account;
use crate::probe::{procfs, tree};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

/// The maximum number of processes whose control groups are read in one round.
const PROCESSES_MAX: usize = 16;

/// The figures at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    /// The busy time of all cores together, since the machine started.
    pub(crate) busy_s: f64,
    pub(crate) steal_s: f64,
    pub(crate) total_s: f64,
    /// The time in which some thread waited for a core.
    pub(crate) pressure_s: Option<f64>,
    /// The time for which quotas stopped each control group.
    pub(crate) throttled_s: BTreeMap<PathBuf, f64>,
    /// The smallest quota, in cores.
    pub(crate) quota: Option<f64>,
}

impl Host {
    /// Reads the current figures, as the process sees them.
    pub(crate) fn read(pid: i32) -> Host {
        let mut host = Host::default();
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let line = stat.lines().next().unwrap_or_default();
        let times: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        // The columns are user, nice, system, idle, iowait, irq, softirq, steal; guest time is
        // already in user.
        if let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = times[..] {
            host.busy_s = (user + nice + system + irq + softirq) * ticks_s;
            host.steal_s = steal * ticks_s;
            host.total_s = host.busy_s + host.steal_s + (idle + iowait) * ticks_s;
        }
        let pressure = fs::read_to_string("/proc/pressure/cpu").ok();
        host.pressure_s = pressure.and_then(|text| total_us(&text)).map(|us| us / 1e6);
        host.add_groups(pid);
        host
    }

    /// Reads the current figures, as some of a program's processes see them, always including the
    /// first one. Control groups that they have left are kept.
    pub(crate) fn read_for<'a>(
        &mut self,
        first: i32,
        processes: impl IntoIterator<Item = &'a i32>,
    ) {
        let (quota, throttled_s) = (self.quota, std::mem::take(&mut self.throttled_s));
        *self = Host::read(first);
        self.quota = self.quota.into_iter().chain(quota).reduce(f64::min);
        for (group, seconds) in throttled_s {
            self.throttled_s.entry(group).or_insert(seconds);
        }
        for &pid in processes.into_iter().take(PROCESSES_MAX) {
            self.add_groups(pid);
        }
    }

    /// Control groups that were not known at the start count from when they were seen first.
    pub(crate) fn begin_with(&mut self, now: &Host) {
        for (group, &seconds) in &now.throttled_s {
            self.throttled_s.entry(group.clone()).or_insert(seconds);
        }
    }

    fn add_groups(&mut self, pid: i32) {
        for folder in groups(pid) {
            if let Some(quota) = quota(&folder) {
                self.quota = Some(self.quota.map_or(quota, |least: f64| least.min(quota)));
                if let Some(throttled_s) = throttled_s(&folder) {
                    self.throttled_s.insert(folder, throttled_s);
                }
            }
        }
    }

    /// Reads again how long quotas stopped the control groups.
    pub(crate) fn reread(&mut self) {
        for (folder, seconds) in &mut self.throttled_s {
            *seconds = throttled_s(folder).unwrap_or(*seconds);
        }
    }

    /// Returns the seconds for which a quota stopped the program since `before`: the maximum over
    /// its groups.
    pub(crate) fn throttled_since(&self, before: &Host) -> f64 {
        let since = |(group, now): (&PathBuf, &f64)| {
            now - before.throttled_s.get(group).copied().unwrap_or(0.0)
        };
        self.throttled_s.iter().map(since).fold(0.0, f64::max)
    }
}

/// A process of the machine.
#[derive(Debug)]
struct Process {
    name: String,
    used: Account,
}

/// Every process of the machine when the observation began.
#[derive(Debug, Default)]
pub(crate) struct Processes(HashMap<i32, Process>);

impl Processes {
    pub(crate) fn now() -> Processes {
        let all = tree::numbers("/proc").into_iter();
        Processes(all.filter_map(Process::of).collect())
    }

    /// Returns the other processes that used most since then, each with its mean number of cores.
    pub(crate) fn busiest(&self, own: &HashSet<i32>, wall_s: f64) -> Vec<String> {
        let doctor = std::process::id().cast_signed();
        let Processes(now) = Processes::now();
        // The time that a process had used before is not new where a parent has waited for it.
        let mut before: HashMap<i32, f64> = HashMap::new();
        for (&pid, process) in &self.0 {
            let (mut counts_in, mut left) = (pid, self.0.len());
            while let (false, Some(gone)) = (now.contains_key(&counts_in), self.0.get(&counts_in))
                && left > 0
            {
                (counts_in, left) = (gone.used.parent, left - 1);
            }
            *before.entry(counts_in).or_default() += process.all_s(pid);
        }
        let since = |(pid, process): (i32, Process)| {
            let used_s = process.all_s(pid) - before.get(&pid).unwrap_or(&0.0);
            (used_s / wall_s, pid, process.name)
        };
        let others = now.into_iter();
        let others = others.filter(|(pid, _)| !own.contains(pid) && *pid != doctor);
        let mut others: Vec<_> = others.map(since).filter(|it| it.0 >= CORES_MIN).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let text = |(cores, pid, name)| format!("{name} ({pid}) {cores:.2} cores");
        others.into_iter().map(text).collect()
    }
}

/// The minimum number of cores for which another program is named.
const CORES_MIN: f64 = 0.03;

impl Process {
    fn of(pid: i32) -> Option<(i32, Process)> {
        let stat = procfs::text(format!("/proc/{pid}/stat"))?;
        Some((pid, Process::parse(&stat)?))
    }

    fn parse(stat: &str) -> Option<Process> {
        let name = stat.rsplit_once(')')?.0.split_once('(')?.1.to_owned();
        let used = Account::parse(stat)?;
        Some(Process { name, used })
    }

    /// Returns its time with that of the children that it waited for. The first process waits for
    /// those whose parents are gone, whatever had started them.
    fn all_s(&self, pid: i32) -> f64 {
        let waited_s = self.used.waited.cpu_s();
        self.used.own.cpu_s() + if pid == 1 { 0.0 } else { waited_s }
    }
}

/// Returns the microseconds of the line `some`.
fn total_us(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find(|line| line.starts_with("some"))?;
    some.split_once("total=")?.1.trim().parse().ok()
}

/// Returns the folders of the control groups that can have a quota, from the process's own up to
/// the root.
fn groups(pid: i32) -> Vec<PathBuf> {
    let text = procfs::text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    folders_of(&text)
}

fn folders_of(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        // The group lies outside the doctor's namespace: such a path leads out of the tree of
        // groups.
        if path.split('/').any(|name| name == "..") {
            continue;
        }
        let places: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if controllers.split(',').any(|name| name == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => continue,
        };
        for place in places {
            let root = PathBuf::from(place);
            let own = root.join(path.trim_start_matches('/'));
            let up = own
                .ancestors()
                .take_while(|folder| folder.starts_with(&root));
            folders.extend(up.map(PathBuf::from));
        }
    }
    folders
}

/// Returns the number of cores that a group may use.
fn quota(folder: &std::path::Path) -> Option<f64> {
    let read = |name: &str| procfs::text(folder.join(name));
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        None => {
            let number = |name: &str| read(name)?.trim().parse::<f64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

fn throttled_s(folder: &std::path::Path) -> Option<f64> {
    let text = procfs::text(folder.join("cpu.stat"))?;
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", us) => Some(us.parse::<f64>().ok()? / 1e6),
        ("throttled_time", ns) => Some(ns.parse::<f64>().ok()? / 1e9),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_that_of_some() {
        let text = "some avg10=93.15 avg60=89.63 avg300=69.55 total=5713872538\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(total_us(text), Some(5_713_872_538.0));
        assert_eq!(total_us(""), None);
    }

    #[test]
    fn others_are_named_by_what_they_used_meanwhile() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 101 9 3 2 250 50 100 200 20 0 1 0 1 1 1";
        let process = Process::parse(stat).expect("a process");
        assert_eq!((process.used.parent, &*process.name), (1, "a) b"));
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let ticks = [process.all_s(7), process.all_s(1)].map(|used_s| used_s * ticks);
        assert!((ticks[0] - 600.0).abs() < 1e-6 && (ticks[1] - 300.0).abs() < 1e-6);
        // This process has used something, and nothing more than it has.
        let own = std::process::id().cast_signed();
        let all = Processes::now();
        assert!(all.0[&own].used.own.cpu_s() >= 0.0 && all.0.len() > 1);
        let busiest = all.busiest(&HashSet::new(), 1e-6);
        assert!(
            busiest
                .iter()
                .all(|text| !text.contains(&format!("({own})")))
        );
    }

    #[test]
    fn a_group_is_looked_for_in_the_tree_of_groups_only() {
        let found = folders_of("0::/a/b\n");
        assert_eq!(
            found[..2],
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a"].map(PathBuf::from)
        );
        assert!(folders_of("0::/../../../tmp/a\n4:cpu:/..\n").is_empty());
    }

    #[test]
    fn this_machine_has_been_on_for_a_while() {
        let host = Host::read(std::process::id().cast_signed());
        assert!(
            host.total_s > 0.0 && host.busy_s <= host.total_s,
            "{host:?}"
        );
    }
}
