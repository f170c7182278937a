//! Jobs on two nodes: real HIP programs that launchers start, one screen for all of them.

use super::network::{NODES, Network};
use super::{Job, OWN, has_ranks, visits_a_rank, wait_for};
use crate::kit::rig::rig;
use crate::kit::terminal::Terminal;
use crate::launch::signals::{LAST, noted, sigs};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

/// A command as a shell reads it, with the variables that it was given.
fn quoted(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_str()?, value?.to_str()?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| format!("'{}'", word.to_str().unwrap()));
    let all: Vec<String> = std::iter::once("env".to_owned())
        .chain(variables)
        .chain(words)
        .collect();
    all.join(" ")
}

/// A program of the job as a shell starts it: it serves requests until the job's work is done, and its roctop records and reports.
fn recorded(job: &Job) -> Option<String> {
    let recording = job.place.join("rank-%rank%");
    let options = ["record", "--job", "-o", recording.to_str().unwrap()];
    let app = rig()?.command(&job.place, &options, &["serve", "calm", &job.work.until(), "0"]);
    Some(quoted(&app))
}

fn spawn(mut command: Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A process of the scheduler, whose output nobody reads.
fn serve(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Watches four ranks on two nodes from the second node, which sees no session of the first; asks, and visits rank 0.
fn watch(job: &Job, network: &Network) {
    let state = job.state();
    let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let words = network.words(1, &format!("exec {OWN} job {}", job.name));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut screen = Terminal::start_program(&job.place, 120, 36, words[0], &words[1..], &variables);
    let shown = screen.wait("four ranks", |text| has_ranks(text, 4));
    assert!(shown.contains("2 nodes"), "{shown}");
    let ask = |question: &str| {
        let shell = format!("exec {OWN} ask job:{} '{question}' --format json", job.name);
        let output = network.command(job, 1, &shell).output().unwrap();
        assert!(output.status.success(), "{question}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    // The first kernels may come after the screen.
    wait_for("the kernels of four ranks", || {
        ask("top kernels limit 1")["rows"][0]["values"]["Ranks"] == 4
    });
    // Four processes of one program launch from the same lines. A rank's first sums may have no call paths yet.
    wait_for("the sites of four ranks", || {
        ask("top sites limit 1")["rows"][0]["values"]["Ranks"] == 4
    });
    let status = ask("status");
    let rows = status["rows"].as_array().unwrap().iter();
    let ranks: Vec<u64> = rows.map(|row| row["values"]["Rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [0, 1, 2, 3], "{status:#}");
    visits_a_rank(&mut screen, 4, "work");
    assert!(screen.leave().success());
}

/// Waits until the job's root listens; a launcher may have named the job.
fn wait_for_root(job: &mut Job) {
    let jobs = job.state().join("roctop/jobs");
    wait_for("the root's address", || {
        let known = fs::read_dir(&jobs).into_iter().flatten().flatten();
        let ready = known.filter(|entry| entry.path().join("root").exists());
        let mut names = ready.filter_map(|entry| entry.file_name().into_string().ok());
        // A directory gets its name when it is whole.
        names
            .find(|name| !name.starts_with('.'))
            .inspect(|name| job.name.clone_from(name))
            .is_some()
    });
}

/// Starts two ranks on each node, with the variables that Open MPI sets.
fn start(job: &Job, network: &Network, app: &str) -> Vec<Child> {
    let of_node = |node| {
        let mut shell = format!(
            "export PMIX_NAMESPACE={} OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2\n",
            job.name
        );
        for local in 0..2 {
            let rank = 2 * node + local;
            let own = format!("OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_LOCAL_RANK={local}");
            shell = format!("{shell}{own} {app} &\n");
        }
        spawn(network.command(job, node, &format!("{shell}wait")))
    };
    (0..2).map(of_node).collect()
}

#[test]
fn ranks_of_two_nodes_are_on_one_screen() {
    let mut job = Job::new("nodes");
    let Some(app) = recorded(&job) else { return };
    let Some(network) = Network::new(&job, 0) else { return };
    let nodes = start(&job, &network, &app);
    wait_for_root(&mut job);
    watch(&job, &network);
    job.end(nodes);
    assert!(!job.keys().exists(), "keys remain");
}

/// The second node sends 16 KB a second, of which its ranks' sums need a part.
#[test]
fn a_slow_link_keeps_no_rank_off_the_screen() {
    let mut job = Job::new("slow");
    let Some(app) = recorded(&job) else { return };
    let Some(network) = Network::new(&job, 3) else { return };
    if !network.limit("128kbit") {
        println!("skipped: no token bucket filter in this kernel (tc tbf)");
        return;
    }
    let nodes = start(&job, &network, &app);
    wait_for_root(&mut job);
    let state = job.state();
    let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let words = network.words(0, &format!("exec {OWN} job {}", job.name));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut screen = Terminal::start_program(&job.place, 120, 36, words[0], &words[1..], &variables);
    screen.wait("four ranks", |text| has_ranks(text, 4));
    job.end(nodes);
    screen.wait("the end of all ranks", |text| text.contains("4 ended"));
    assert!(screen.leave().success());
}

/// Whether these commands are there; else the test is skipped.
fn are_installed(commands: &[&str]) -> bool {
    let missing = commands.iter().find(|name| {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("command -v {name}")])
            .stdout(Stdio::null());
        !command.status().unwrap().success()
    });
    if let Some(name) = missing {
        println!("skipped: {name} is not installed");
    }
    missing.is_none()
}

/// Open MPI starts the ranks, on the second node by a remote shell.
#[test]
fn ranks_that_open_mpi_starts_are_on_one_screen() {
    if !are_installed(&["mpirun.openmpi"]) {
        return;
    }
    let mut job = Job::new("mpirun");
    let Some(app) = recorded(&job) else { return };
    let Some(network) = Network::new(&job, 1) else { return };
    let remote_shell = job.place.join("remote-shell");
    let script = format!(
        "#!/bin/sh\nnode=$1; shift\nexec {} $node sh -c \"$*\"\n",
        job.place.join("on").display()
    );
    fs::write(&remote_shell, script).unwrap();
    fs::set_permissions(&remote_shell, Permissions::from_mode(0o755)).unwrap();
    let shell = format!(
        "exec mpirun.openmpi --allow-run-as-root --oversubscribe --host {}:2,{}:2 --mca plm_rsh_agent {} -np 4 {app}",
        NODES[0],
        NODES[1],
        remote_shell.display()
    );
    let launcher = spawn(network.command(&job, 0, &shell));
    wait_for_root(&mut job);
    watch(&job, &network);
    job.end([launcher]);
    assert!(!job.keys().exists(), "keys remain");
}

/// A Slurm of two nodes: its controller, a daemon on each node, and the credentials' daemon.
struct Slurm(Vec<Child>);

impl Slurm {
    /// `task` binds tasks to CPUs, or does not: `affinity`, `none`.
    fn start(job: &Job, network: &Network, task: &str) -> Self {
        let place = job.place.join("slurm");
        for folder in ["state", "node-a", "node-b"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        let here = place.display();
        // Debian's Slurm knows one daemon a host: each node has its name by its own UTS namespace.
        let settings = format!(
            "ClusterName=test\nSlurmctldHost=node-a\nSlurmUser=root\nAuthInfo=socket={here}/munge\n\
             StateSaveLocation={here}/state\nSlurmdSpoolDir={here}/%n\nSlurmctldPidFile={here}/controller.pid\n\
             SlurmdPidFile={here}/%n.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/{task}\n\
             MailProg=/bin/true\nNodeName=node-a,node-b CPUs=2\nPartitionName=all Nodes=ALL Default=YES\n"
        );
        fs::write(place.join("slurm.conf"), settings).unwrap();
        fs::write(place.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n").unwrap();
        let key = place.join("key");
        fs::write(&key, [0x5a; 128]).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let munge = format!(
            "exec munged --force --foreground --key-file={here}/key --socket={here}/munge --pid-file={here}/munge.pid \
             --seed-file={here}/seed"
        );
        let mut daemons = vec![serve(network.command(job, 0, &munge))];
        wait_for("munged", || place.join("munge").exists());
        let conf = place.join("slurm.conf");
        let conf = conf.display();
        daemons.push(serve(network.command(job, 0, &format!("exec slurmctld -D -f {conf}"))));
        for node in 0..2 {
            daemons.push(serve(network.command(job, node, &format!("exec slurmd -D -f {conf}"))));
        }
        let is_idle = || {
            let shell = format!("SLURM_CONF={conf} sinfo --noheader --states idle --format %D");
            let output = network.command(job, 0, &shell).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim() == "2"
        };
        wait_for("two idle nodes", is_idle);
        Self(daemons)
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Slurm signals each process of a step by itself: roctop and the program.
#[test]
fn a_signal_to_a_slurm_step_reaches_its_program_once() {
    if !are_installed(&["srun", "scancel", "slurmctld", "slurmd", "munged"]) {
        return;
    }
    let Some(sigs) = sigs() else { return };
    let job = Job::new("scancel");
    let Some(network) = Network::new(&job, 4) else { return };
    let _slurm = Slurm::start(&job, &network, "none");
    let conf = format!("SLURM_CONF={}", job.place.join("slurm/slurm.conf").display());
    let on_first_node = |shell: &str| network.command(&job, 0, &format!("{conf} exec {shell}"));
    let roctop = format!("{OWN} record -o {} --", job.place.join("recording").display());
    for (number, tool) in (1..).zip(["", &roctop]) {
        let report = job.place.join(format!("report-{number}"));
        let step = format!("srun --quiet --ntasks 1 {tool} {sigs} note {}", report.display());
        let mut srun = spawn(on_first_node(&step));
        wait_for("the program", || noted(&report).is_some());
        for signal in [10, 2, 15, LAST] {
            let scancel = format!("scancel --signal={signal} {number}.0");
            let output = on_first_node(&scancel).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            wait_for("the signal", || {
                noted(&report).is_some_and(|(_, all)| all.contains(&signal))
            });
        }
        let ended = srun.wait().unwrap();
        let (_, all) = noted(&report).unwrap();
        assert_eq!(all, [10, 2, 15, LAST], "{tool:?}: {ended:?}");
    }
}

#[test]
fn ranks_that_slurm_starts_are_on_one_screen() {
    if !are_installed(&["srun", "slurmctld", "slurmd", "munged"]) {
        return;
    }
    let mut job = Job::new("srun");
    let Some(app) = recorded(&job) else { return };
    let Some(network) = Network::new(&job, 2) else { return };
    let _slurm = Slurm::start(&job, &network, "none");
    let conf = job.place.join("slurm/slurm.conf");
    let shell = format!(
        "SLURM_CONF={} exec srun --nodes 2 --ntasks 4 --quiet {app}",
        conf.display()
    );
    let launcher = spawn(network.command(&job, 0, &shell));
    wait_for_root(&mut job);
    assert_eq!(job.name, "1", "Slurm's number of the job");
    watch(&job, &network);
    job.end([launcher]);
    assert!(!job.keys().exists(), "keys remain");
}

/// Two ranks on each node, whose GPUs are at the node's two NUMA nodes. The program of each is given the GPU of its local number.
fn bound_by_srun(job: &mut Job, network: &Network, conf: &str, srun: &str) -> Option<Child> {
    let rig = rig()?.on(&[("EMULATED_GPU_COUNT", "2"), ("EMULATED_GPU_NUMA", "0,1")]);
    let recording = job.place.join("rank-%rank%");
    let options = ["record", "--job", "-o", recording.to_str().unwrap()];
    let app = quoted(&rig.command(&job.place, &options, &["serve", "calm", &job.work.until(), "0"]));
    let script = job.place.join("task");
    fs::write(&script, format!("ROCR_VISIBLE_DEVICES=$SLURM_LOCALID exec {app}\n")).unwrap();
    let shell = format!(
        "SLURM_CONF={conf} exec {srun} --nodes 2 --ntasks 4 --ntasks-per-node 2 --quiet sh {}",
        script.display()
    );
    let launcher = spawn(network.command(job, 0, &shell));
    wait_for_root(job);
    Some(launcher)
}

/// What `doctor --job` says on the second node, once it says this of both nodes.
fn placed(job: &Job, network: &Network, wanted: &str) -> String {
    let mut text = String::new();
    wait_for(wanted, || {
        let shell = format!("exec {OWN} doctor --job {}", job.name);
        let output = network.command(job, 1, &shell).output().unwrap();
        text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.matches(wanted).count() == 2
    });
    text
}

/// Slurm binds the tasks, first wrongly, then by the line that `doctor --job` gives.
#[test]
fn the_line_for_srun_puts_ranks_where_they_are_well() {
    if !are_installed(&["srun", "slurmctld", "slurmd", "munged"]) {
        return;
    }
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    if cpus.trim() == "0" {
        println!("skipped: this machine has one CPU");
        return;
    }
    let [mut wrong, mut right] = ["srun-wrong", "srun-right"].map(Job::new);
    let Some(network) = Network::new(&wrong, 5) else { return };
    let _slurm = Slurm::start(&wrong, &network, "affinity");
    let conf = wrong.place.join("slurm/slurm.conf").display().to_string();
    let srun = "srun --cpu-bind=map_cpu:1,0";
    let Some(launcher) = bound_by_srun(&mut wrong, &network, &conf, srun) else {
        return;
    };
    let text = placed(&wrong, &network, " at NUMA node 1, and its GPU 0 is at node 0\n");
    wrong.end([launcher]);
    let (_, line) = text.split_once("      try: ").unwrap();
    let line = line.lines().next().unwrap();
    assert!(line.starts_with("srun --cpu-bind=mask_cpu:"), "{text}");
    let launcher = bound_by_srun(&mut right, &network, &conf, line).unwrap();
    placed(&right, &network, "ok    nothing that is known of this node is wrong\n");
    right.end([launcher]);
}
