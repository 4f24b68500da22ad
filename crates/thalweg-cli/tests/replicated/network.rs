//! Networks of their own for the machines: each has a link to clients, and one to etcd, which can
//! be cut.
//!
//! The test runs itself again in new namespaces of the kernel, which end with it, whatever happens.
//! That takes root on Linux, `unshare` and `ip`, and a kernel and a container that allow it: all
//! commands are tried before, and where one is refused, the test says so. Where they are not what
//! these programs understand, it fails.

use std::env;
use std::process::Command;

use super::machines::MACHINES;

/// Set where the test is in namespaces of its own, to the process outside: processes inside are
/// numbered anew.
const INSIDE: &str = "THALWEG_IN_NAMESPACES";
/// Where etcd is, for all machines.
pub(crate) const ETCD: &str = "10.9.9.9";

/// The links of all machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network;

/// Runs a command, and returns what it says where it fails.
fn run(line: &str) -> Result<(), String> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command.args(words).output();
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{line}: {}", text.trim()))
        }
    }
}

/// Starts a program in namespaces of its own, which end with it.
const UNSHARE: &str = "unshare --net --pid --fork --kill-child --mount-proc";

/// Makes a network of the least kind, in namespaces that end with it. Returns what a command says
/// that fails.
fn tried() -> Result<(), String> {
    let least = "mount -t tmpfs tmpfs /run\nip netns add try\n\
                 ip link add try type veth peer name etcd netns try\n\
                 ip address add 10.99.0.1/24 dev try\nip link set try up\n\
                 ip netns exec try true";
    let output = Command::new("sh")
        .args(["-c", &format!("{UNSHARE} sh -ec '{least}'")])
        .env("LC_ALL", "C")
        .output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    let is_made = output.status.success();
    is_made.then_some(()).ok_or_else(|| text.trim().to_owned())
}

/// Runs `test` with a network in new namespaces, or without one where that cannot be.
pub(crate) fn with_network(name: &str, test: impl FnOnce(Option<Network>)) {
    if env::var_os(INSIDE).is_some() {
        return test(Some(Network::laid().expect("there are networks here")));
    }
    if let Err(why) = tried() {
        println!("skipped: no partition of the primary from etcd: {why}");
        return test(None);
    }
    let mut again = Command::new("unshare");
    again.args(UNSHARE.split(' ').skip(1));
    again.arg(env::current_exe().expect("this is a program"));
    again
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, std::process::id().to_string());
    let output = again.output().expect("it was tried");
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        !output.status.success() || said.contains("test result: ok. 1 passed"),
        "{name} did not run: {said}"
    );
    // The runner's lines would be counted as those of another test.
    let said = said
        .lines()
        .filter(|line| !line.starts_with("test result:"));
    said.for_each(|line| println!("{line}"));
    assert!(output.status.success(), "{failed}");
}

/// Returns a name for a folder that no other run of the test uses.
pub(crate) fn folder_name() -> String {
    let outside = env::var(INSIDE).unwrap_or_default();
    format!("replicated{outside}")
}

impl Network {
    fn laid() -> Result<Self, String> {
        Self::commands().iter().try_for_each(|line| run(line))?;
        Ok(Self)
    }

    /// Returns the commands that lay it.
    fn commands() -> Vec<String> {
        let mut lines = vec![
            "mount -t tmpfs tmpfs /run".to_owned(),
            "ip link set lo up".to_owned(),
            format!("ip address add {ETCD}/32 dev lo"),
        ];
        for at in 0..MACHINES {
            let name = format!("machine-{at}");
            lines.push(format!("ip netns add {name}"));
            lines.push(format!("ip -n {name} link set lo up"));
            for (link, subnet) in [("clients", 1), ("etcd", 2)] {
                let here = format!("{link}-{at}");
                let net = format!("10.{subnet}.{at}");
                lines.extend([
                    format!("ip link add {here} type veth peer name {link} netns {name}"),
                    format!("ip address add {net}.1/30 dev {here}"),
                    format!("ip link set {here} up"),
                    format!("ip -n {name} address add {net}.2/30 dev {link}"),
                    format!("ip -n {name} link set {link} up"),
                ]);
            }
            lines.push(format!("ip -n {name} route add {ETCD}/32 via 10.2.{at}.1"));
        }
        lines
    }

    /// Returns where clients find a machine.
    pub(crate) fn host(at: usize) -> String {
        format!("10.1.{at}.2")
    }

    /// Returns a command that runs a program on a machine.
    pub(crate) fn on(at: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("machine-{at}"), program]);
        command
    }

    /// Cuts a machine's link to etcd, or mends it. What is sent meanwhile is lost.
    pub(crate) fn set_link(self, at: usize, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        run(&format!("ip link set etcd-{at} {state}")).expect("there is such a link");
    }
}
