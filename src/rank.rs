//! Ranks under MPI, Slurm and their relatives, from the environment of this process.

use std::path::{Path, PathBuf};

/// Variables that tell a process its rank, and the number of ranks. The first that is set counts.
const RANKS: [(&str, &str); 12] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("MPI_RANKID", "MPI_NRANKS"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MPI_RANK", "MPI_SIZE"),
    ("RANK", "WORLD_SIZE"),
];

/// This process's rank, and the number of ranks when it is told.
pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<(u32, Option<u32>)> {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    RANKS
        .iter()
        .find_map(|(rank, size)| Some((number(rank)?, number(size))))
}

/// Where a rank's recording goes, so that no two meet: inside of `output` when there is more than one rank.
///
/// `%rank%`, `%pid%`, `%hostname%` and `%job%` are replaced; who writes one of the first two has seen to it.
pub fn place(output: &Path, variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let rank = of(variable);
    let text = output.to_string_lossy();
    let own = |key: &str| match key {
        "%rank%" => rank.map_or(0, |rank| rank.0).to_string(),
        "%pid%" => std::process::id().to_string(),
        "%hostname%" => crate::recording::hostname(),
        _ => variable("SLURM_JOB_ID").unwrap_or_else(|| "0".to_owned()),
    };
    let mut named = text.to_string();
    for key in ["%rank%", "%pid%", "%hostname%", "%job%"] {
        named = named.replace(key, &own(key));
    }
    let tells_apart = text.contains("%rank%") || text.contains("%pid%");
    let named = if named == text {
        output.to_owned()
    } else {
        PathBuf::from(named)
    };
    match rank {
        Some((rank, size)) if !tells_apart && size.is_none_or(|size| size > 1) => named.join(format!("rank-{rank:04}")),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(output: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|known| known.0 == name);
            found.map(|known| known.1.to_owned())
        };
        place(Path::new(output), &variable).display().to_string()
    }

    #[test]
    fn ranks_do_not_meet() {
        assert_eq!(placed("run", &[]), "run");
        assert_eq!(
            placed("run", &[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")]),
            "run/rank-0003"
        );
        assert_eq!(placed("run", &[("PMI_RANK", "12")]), "run/rank-0012");
        assert_eq!(placed("run", &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]), "run");
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
            ("OMPI_COMM_WORLD_RANK", "2"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
        ];
        assert_eq!(placed("r-%rank%", &both), "r-2");
        assert_eq!(placed("j%job%", &[("SLURM_JOB_ID", "77")]), "j77");
        assert_eq!(
            placed("j%job%", &[("SLURM_JOB_ID", "77"), ("RANK", "1"), ("WORLD_SIZE", "2")]),
            "j77/rank-0001"
        );
    }
}
