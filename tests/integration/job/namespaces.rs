//! Two nodes on one machine: network namespaces with own file systems for sessions and with clocks apart.

use super::{Job, OWN, end, has_line, visits_a_rank, wait_for};
use crate::kit::rig::rig;
use crate::kit::terminal::Terminal;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// Milliseconds that a program serves requests.
const SERVED_MS: &str = "20000";

/// Two network namespaces with a link between them.
struct Network {
    names: [String; 2],
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip")
        .args(words)
        .output()
        .is_ok_and(|output| output.status.success())
}

impl Network {
    /// `None` where they are refused.
    fn new() -> Option<Self> {
        let id = std::process::id();
        let network = Self {
            names: ["a", "b"].map(|letter| format!("roctop-{id}-{letter}")),
        };
        let [a, b] = &network.names;
        let link = [
            "link", "add", "node", "netns", a, "type", "veth", "peer", "name", "node", "netns", b,
        ];
        let are_made = ip(&["netns", "add", a]) && ip(&["netns", "add", b]) && ip(&link);
        let are_up = || {
            (0..2).all(|node| {
                let name = &network.names[node];
                let address = format!("{}/24", Self::address(node));
                ip(&["-n", name, "addr", "add", &address, "dev", "node"])
                    && ip(&["-n", name, "link", "set", "node", "up"])
                    && ip(&["-n", name, "link", "set", "lo", "up"])
            })
        };
        (are_made && are_up()).then_some(network)
    }

    fn address(node: usize) -> String {
        format!("10.199.7.{}", node + 1)
    }

    /// The words before a command that runs on a node whose CLOCK_BOOTTIME is `ahead` seconds ahead. It sees no session of
    /// another one.
    fn words(&self, node: usize, ahead: u32, shell: &str) -> Vec<String> {
        let words = [
            "netns",
            "exec",
            &self.names[node],
            "unshare",
            "--mount",
            "--time",
            "--boottime",
            &ahead.to_string(),
            "sh",
            "-c",
        ];
        let shell = format!("mount -t tmpfs none /dev/shm && {shell}");
        words.into_iter().map(str::to_owned).chain([shell]).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

/// Starts two of four ranks on a node.
fn start(job: &Job, network: &Network, node: usize, app: &Command) -> Child {
    let shown = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
    let of_app = app
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let state = job.state();
    let own = [
        ("XDG_STATE_HOME", state.to_str().unwrap()),
        ("ROCTOP_CONFIG", "/dev/null"),
        ("PMIX_NAMESPACE", &job.name),
        ("SLURMD_NODENAME", ["node-a", "node-b"][node]),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ];
    let variables: Vec<String> = of_app
        .chain(own)
        .map(|(name, value)| format!("{name}='{value}'"))
        .collect();
    let variables = variables.join(" ");
    let program: Vec<String> = std::iter::once(app.get_program())
        .chain(app.get_args())
        .map(shown)
        .collect();
    let mut shell = String::new();
    for local in 0..2 {
        let rank = 2 * node + local;
        let program = program.join(" ");
        let own = format!("OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_LOCAL_RANK={local}");
        shell = format!("{shell}env {variables} {own} {program} & ");
    }
    // The second node booted a day before the first.
    let words = network.words(node, 86_400 * node as u32, &format!("{shell} wait"));
    let mut command = Command::new("ip");
    command.args(words).current_dir(&job.place);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Real HIP programs on two nodes: all ranks on one screen, questions, and the events of a rank of the other node.
#[test]
fn ranks_of_two_nodes_are_on_one_screen() {
    let Some(rig) = rig() else { return };
    let Some(network) = Network::new() else {
        println!("skipped: no network namespaces for this user (ip netns)");
        return;
    };
    let job = Job::new("nodes");
    let nodes: Vec<Child> = (0..2)
        .map(|node| {
            let recording = job.place.join("rank-%rank%");
            let address = Network::address(node);
            let options = [
                "record",
                "--job",
                "--job-host",
                &address,
                "-o",
                recording.to_str().unwrap(),
            ];
            start(
                &job,
                &network,
                node,
                &rig.command(&job.place, &options, &["serve", "calm", SERVED_MS, "0"]),
            )
        })
        .collect();
    wait_for("the root's address", || job.has_root());
    // The screen is on the second node, and sees no session of the first.
    let state = job.state();
    let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let words = network.words(1, 86_400, &format!("exec {OWN} job {}", job.name));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut screen = Terminal::start_program(&job.place, 120, 36, "ip", &words, &variables);
    let shown = screen.wait("four ranks", |text| has_line(text, "4 ranks live"));
    assert!(shown.contains("2 nodes"), "{shown}");
    let ask = |question: &str| {
        let place = format!("job:{}", job.name);
        let shell = format!("exec {OWN} ask {place} '{question}' --format json");
        let mut command = Command::new("ip");
        command
            .args(network.words(1, 0, &shell))
            .env("XDG_STATE_HOME", job.state());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{question}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let answer = ask("top kernels limit 1");
    assert_eq!(answer["rows"][0]["values"]["Ranks"], 4, "{answer:#}");
    let status = ask("status");
    let ranks: Vec<u64> = status["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["values"]["Rank"].as_u64().unwrap())
        .collect();
    assert_eq!(ranks, [0, 1, 2, 3], "{status:#}");
    visits_a_rank(&mut screen, "4 ranks live", "work");
    screen.keys("q");
    assert!(screen.end().success());
    for node in nodes {
        end(node);
    }
    assert!(!job.keys().exists(), "keys remain");
}
