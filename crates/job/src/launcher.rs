//! The job and this process's place in it, from the variables that launchers and schedulers set.

use crate::Name;
use roctop_ring::session::rank_variables;
use std::time::Duration;

/// Who sets a rank's variable, and the variable of the rank among those of the node, if there is one.
const LAUNCHERS: [(&str, &str, Option<&str>); 12] = [
    ("OMPI_COMM_WORLD_RANK", "Open MPI", Some("OMPI_COMM_WORLD_LOCAL_RANK")),
    ("PMIX_RANK", "PMIx", Some("PMIX_LOCAL_RANK")),
    ("PMI_RANK", "MPICH", Some("MPI_LOCALRANKID")),
    ("MV2_COMM_WORLD_RANK", "MVAPICH", Some("MV2_COMM_WORLD_LOCAL_RANK")),
    ("FLUX_TASK_RANK", "Flux", Some("FLUX_TASK_LOCAL_ID")),
    ("PALS_RANKID", "PALS", Some("PALS_LOCAL_RANKID")),
    ("SLURM_PROCID", "Slurm", Some("SLURM_LOCALID")),
    ("JSM_NAMESPACE_RANK", "JSM", Some("JSM_NAMESPACE_LOCAL_RANK")),
    ("MPI_RANKID", "MPI", Some("MPI_LOCALRANKID")),
    ("MPI_LOCALRANKID", "MPI", Some("MPI_LOCALRANKID")),
    ("MPI_RANK", "MPI", None),
    ("RANK", "torchrun", Some("LOCAL_RANK")),
];

/// Variables that name the job, the schedulers' first: their numbers are what users know.
const JOBS: [&str; 8] = [
    "FLUX_JOB_ID",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "PBS_JOBID",
    "LSB_JOBID",
    "PALS_APID",
    "TORCHELASTIC_RUN_ID",
    "PMIX_NAMESPACE",
];

/// torchrun says so when the job has no name.
const NO_NAME: &str = "none";

/// A process's place in its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Who started it, if it was started as one of several.
    pub launcher: Option<&'static str>,
    /// The job, if something names it.
    pub job: Option<Name>,
    /// The node.
    pub node: Name,
    /// Its number in the job; 0 if it is alone.
    pub rank: u32,
    /// How many there are, if known.
    pub size: Option<u32>,
    /// Its number among those of its node, if known.
    pub local_rank: Option<u32>,
}

/// This process's rank, and the number of ranks if known.
pub fn rank(variable: &dyn Fn(&str) -> Option<String>) -> Option<(u32, Option<u32>)> {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    let (rank, size) = rank_variables(variable)?;
    Some((number(rank)?, number(size)))
}

/// This process's place in its job. `host` is the machine's name, where the scheduler does not name the node.
pub fn placement(variable: &dyn Fn(&str) -> Option<String>, host: &str) -> Placement {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    let set = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
    let ranked = rank(variable);
    let launcher = rank_variables(variable).and_then(|(rank, _)| LAUNCHERS.iter().find(|(known, ..)| *known == rank));
    let named = JOBS.iter().find_map(|name| set(name).filter(|job| job != NO_NAME));
    let node = set("SLURMD_NODENAME").unwrap_or_else(|| host.to_owned());
    Placement {
        launcher: launcher.map(|(_, launcher, _)| *launcher),
        job: named.map(|job| Name::of_text(job.trim())),
        node: Name::of_text(node.trim()),
        rank: ranked.map_or(0, |(rank, _)| rank),
        size: ranked.and_then(|(_, size)| size),
        local_rank: launcher.and_then(|(.., local)| number((*local)?)),
    }
}

/// How much longer than the job's limit keys are valid: schedulers give programs time to end.
const GRACE: Duration = Duration::from_mins(10);

/// How long the job may go on, if its scheduler says so. `now` is CLOCK_REALTIME, seconds.
pub fn limit(variable: &dyn Fn(&str) -> Option<String>, now: u64) -> Option<Duration> {
    let seconds = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    let rest = match seconds("SLURM_JOB_END_TIME") {
        Some(end) => end.saturating_sub(now),
        // Of the whole job: its begin is not known.
        None => seconds("PBS_WALLTIME")?,
    };
    Some(Duration::from_secs(rest).saturating_add(GRACE))
}

/// Variables of the number of ranks of a node, and of all, innermost launcher first.
const SIZES: [(&str, &str); 5] = [
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
    ("PALS_LOCAL_SIZE", "PALS_SIZE"),
];
/// Variables of the number of nodes.
const NODES: [&str; 3] = ["SLURM_STEP_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES"];

/// Whether the job is known to have one node only. A process that no launcher started is alone.
pub fn is_one_node(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let sizes = SIZES
        .iter()
        .find_map(|(local, all)| Some((number(local)?, number(all)?)));
    let nodes = || NODES.iter().find_map(|name| number(name));
    match sizes {
        Some((local, all)) => local == all,
        None => nodes().map_or_else(|| rank(variable).is_none(), |nodes| nodes == 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::session::RANKS;

    fn of(variables: &str) -> Placement {
        let variable = |name: &str| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.to_owned())
        };
        placement(&variable, "n01.cluster")
    }

    fn expected(launcher: &'static str, job: Option<&str>, rank: u32, size: u32, local: Option<u32>) -> Placement {
        Placement {
            launcher: Some(launcher),
            job: job.map(|job| Name::new(job).unwrap()),
            node: Name::new("n01.cluster").unwrap(),
            rank,
            size: Some(size),
            local_rank: local,
        }
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let slurm = "SLURM_JOB_ID=77 SLURM_PROCID=3 SLURM_NTASKS=16 SLURM_LOCALID=1";
        assert_eq!(of(slurm), expected("Slurm", Some("77"), 3, 16, Some(1)));
        let named = of(&format!("{slurm} SLURMD_NODENAME=gpu7"));
        assert_eq!(&*named.node, "gpu7");
        assert_eq!(
            of(
                "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=3 PMIX_NAMESPACE=prterun-n01-5@1"
            ),
            expected("Open MPI", Some("prterun-n01-5_1"), 3, 8, Some(3))
        );
        assert_eq!(
            of("PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0"),
            expected("MPICH", None, 2, 4, Some(0))
        );
        assert_eq!(
            of("FLUX_JOB_ID=ƒ2Xv FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2 FLUX_TASK_LOCAL_ID=0 SLURM_JOB_ID=5"),
            expected("Flux", Some("f2Xv"), 1, 2, Some(0))
        );
        assert_eq!(
            of("PBS_JOBID=12.server PALS_RANKID=9 PALS_SIZE=12 PALS_LOCAL_RANKID=1"),
            expected("PALS", Some("12.server"), 9, 12, Some(1))
        );
        assert_eq!(
            of("RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 TORCHELASTIC_RUN_ID=none"),
            expected("torchrun", None, 5, 8, Some(1))
        );
    }

    #[test]
    fn the_innermost_launcher_counts() {
        // mpirun and torchrun within a job of Slurm: the number is Slurm's, the rank is theirs.
        let slurm = "SLURM_JOB_ID=77 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0";
        assert_eq!(
            of(&format!("{slurm} OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=8")),
            expected("Open MPI", Some("77"), 7, 8, None)
        );
        let torchrun = "RANK=9 WORLD_SIZE=16 LOCAL_RANK=1 LOCAL_WORLD_SIZE=8 TORCHELASTIC_RUN_ID=x";
        assert_eq!(
            of(&format!("{slurm} {torchrun}")),
            expected("torchrun", Some("77"), 9, 16, Some(1))
        );
    }

    #[test]
    fn one_process_alone_has_a_place() {
        let alone = of("SLURM_PROCID=x RANK=");
        assert_eq!(
            (alone.launcher, alone.job, alone.rank, alone.size),
            (None, None, 0, None)
        );
        assert_eq!(&*of("PBS_JOBID=12.server").job.unwrap(), "12.server");
    }

    #[test]
    fn the_limit_is_that_of_the_scheduler() {
        let of = |set: &'static [(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            limit(&variable, 1_000_000)
        };
        let minutes = |minutes| Some(Duration::from_mins(minutes));
        assert_eq!(of(&[("SLURM_JOB_END_TIME", "1003600")]), minutes(70));
        assert_eq!(of(&[("SLURM_JOB_END_TIME", "9"), ("PBS_WALLTIME", "60")]), minutes(10));
        assert_eq!(of(&[("PBS_WALLTIME", "60")]), minutes(11));
        assert_eq!(of(&[("PBS_WALLTIME", "1:00")]), None);
    }

    #[test]
    fn each_rank_variable_has_a_launcher() {
        for (rank, _) in RANKS {
            assert!(LAUNCHERS.iter().any(|(known, ..)| *known == rank), "{rank}");
        }
    }

    #[test]
    fn a_job_of_one_node_is_known_by_its_sizes() {
        let is_one = |variables: &str| {
            let set = |name: &str| {
                let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                pairs
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.to_owned())
            };
            is_one_node(&set)
        };
        assert!(is_one(""));
        assert!(is_one(
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4"
        ));
        assert!(!is_one(
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=4"
        ));
        assert!(is_one("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NNODES=1"));
        assert!(!is_one("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NNODES=2"));
        // Nothing says how many.
        assert!(!is_one("PMI_RANK=0 PMI_SIZE=4"));
    }
}
