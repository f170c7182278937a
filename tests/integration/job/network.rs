//! Two nodes on one machine: network namespaces with own names, clocks and file systems for sessions.

use super::Job;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Host names of the nodes.
pub(super) const NODES: [&str; 2] = ["node-a", "node-b"];
/// How much earlier than the first node the second one booted, seconds: a day.
const AHEAD: [u32; 2] = [0, 86_400];

/// Two network namespaces with a link between them.
pub(super) struct Network {
    /// `on NODE COMMAND...` runs a command on a node. It sees no session of another one.
    on: PathBuf,
    names: [String; 2],
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip")
        .args(words)
        .output()
        .is_ok_and(|output| output.status.success())
}

impl Network {
    /// `None` if this user may not make network namespaces.
    pub(super) fn new(job: &Job, number: u32) -> Option<Self> {
        let id = std::process::id();
        let network = Self {
            on: job.place.join("on"),
            names: ["a", "b"].map(|letter| format!("roctop-{id}-{number}-{letter}")),
        };
        let [a, b] = &network.names;
        let link = [
            "link", "add", "node", "netns", a, "type", "veth", "peer", "name", "node", "netns", b,
        ];
        let are_made = ip(&["netns", "add", a]) && ip(&["netns", "add", b]) && ip(&link);
        let is_up = |node: usize| {
            let name = &network.names[node];
            let address = format!("{}/24", Self::address(node));
            ip(&["-n", name, "addr", "add", &address, "dev", "node"])
                && ip(&["-n", name, "link", "set", "node", "up"])
                && ip(&["-n", name, "link", "set", "lo", "up"])
        };
        if !(are_made && is_up(0) && is_up(1)) {
            println!("skipped: no network namespaces for this user (ip netns)");
            return None;
        }
        network.write_script(job);
        Some(network)
    }

    fn write_script(&self, job: &Job) {
        let hosts = job.place.join("hosts");
        let lines: Vec<String> = (0..2)
            .map(|node| format!("{} {}\n", Self::address(node), NODES[node]))
            .collect();
        std::fs::write(&hosts, format!("127.0.0.1 localhost\n{}", lines.concat())).unwrap();
        let cases: Vec<String> = (0..2)
            .map(|node| format!("{}) space={} ahead={} ;;\n", NODES[node], self.names[node], AHEAD[node]))
            .collect();
        let inside = format!(
            "hostname \"$0\" && mount -t tmpfs none /dev/shm && mount --bind {} /etc/hosts && exec \"$@\"",
            hosts.display()
        );
        let script = format!(
            "#!/bin/sh\nnode=$1; shift\ncase $node in\n{}esac\n\
             exec ip netns exec $space unshare --mount --uts --time --boottime $ahead sh -c '{inside}' $node \"$@\"\n",
            cases.concat()
        );
        std::fs::write(&self.on, script).unwrap();
        std::fs::set_permissions(&self.on, Permissions::from_mode(0o755)).unwrap();
    }

    fn address(node: usize) -> String {
        format!("10.199.7.{}", node + 1)
    }

    /// The words that run a shell's command on a node.
    pub(super) fn words(&self, node: usize, shell: &str) -> Vec<String> {
        let on = self.on.to_str().unwrap();
        [on, NODES[node], "sh", "-c", shell].map(str::to_owned).into()
    }

    /// The same as a command, in the job's folder.
    pub(super) fn command(&self, job: &Job, node: usize, shell: &str) -> Command {
        let mut command = Command::new(&self.on);
        command
            .args(&self.words(node, shell)[1..])
            .current_dir(&job.place)
            .env("XDG_STATE_HOME", job.state())
            .env("ROCTOP_CONFIG", "/dev/null");
        command
    }

    /// Limits what the second node sends to `rate`, as tc reads it.
    pub(super) fn limit(&self, rate: &str) -> bool {
        let words = [
            "netns",
            "exec",
            &self.names[1],
            "tc",
            "qdisc",
            "add",
            "dev",
            "node",
            "root",
            "tbf",
        ];
        let limit = ["rate", rate, "burst", "4kb", "latency", "2s"];
        ip(&[&words[..], &limit[..]].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}
