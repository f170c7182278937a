//! Ranks under MPI, Slurm and their relatives, from the environment of this process.

use roctop_job::launcher;
use std::path::{Path, PathBuf};

/// This process's rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Its number, if it is known.
    pub number: Option<u32>,
    /// How many there are, if it is known.
    pub size: Option<u32>,
    /// Whether it is wanted.
    pub is_wanted: bool,
}

/// Which variables hold the rank of a process, and which ranks are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Variable of the rank; the usual ones when there is none.
    pub rank: Option<String>,
    /// Variable of the number of ranks; the usual ones when there is none.
    pub size: Option<String>,
    /// First and last of each stretch of ranks; all when there is none.
    pub wanted: Vec<(u32, u32)>,
}

impl Ranks {
    /// Reads ranks as `0-3,8`; the error is what cannot be read.
    pub fn stretches(text: &str) -> Result<Vec<(u32, u32)>, String> {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        let stretches = parts.map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            match (from.trim().parse(), to.trim().parse()) {
                (Ok(from), Ok(to)) if from <= to => Ok((from, to)),
                _ => Err(part.to_owned()),
            }
        });
        stretches.collect()
    }

    /// This process's rank. A variable that was named is the only one asked: where it is not set, the number is 0. One that
    /// has no rank is wanted.
    pub fn of(&self, variable: &dyn Fn(&str) -> Option<String>) -> Rank {
        let usual = launcher::rank(variable);
        let ask = |name: &str| variable(name)?.trim().parse().ok();
        let number = self.rank.as_deref().map_or(usual.map(|rank| rank.0), ask);
        let size = self.size.as_deref();
        let is_in = |rank: u32| self.wanted.iter().any(|&(from, to)| (from..=to).contains(&rank));
        Rank {
            number: number.or(self.rank.as_ref().map(|_| 0)),
            size: size.map_or(usual.and_then(|rank| rank.1), ask),
            is_wanted: self.wanted.is_empty() || number.is_none_or(is_in),
        }
    }
}

/// Where a rank's recording goes, so that no two meet: inside of `output` when there is more than one rank.
///
/// `%rank%`, `%pid%`, `%hostname%` and `%job%` are replaced; who writes one of the first two has seen to it.
pub fn place(output: &Path, variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let rank = launcher::rank(variable);
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
    fn some_ranks_are_wanted() {
        let is_wanted = |text: &str, rank: Option<u32>| {
            let ranks = Ranks {
                wanted: Ranks::stretches(text).unwrap(),
                ..Ranks::default()
            };
            let variable = |name: &str| rank.filter(|_| name == "PMI_RANK").map(|rank| rank.to_string());
            ranks.of(&variable).is_wanted
        };
        let wanted = |text: &str| {
            (0..20)
                .filter(|rank| is_wanted(text, Some(*rank)))
                .collect::<Vec<u32>>()
        };
        assert_eq!(wanted("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(wanted("10-12, 15"), [10, 11, 12, 15]);
        assert_eq!(wanted("").len(), 20);
        assert!(is_wanted("7", None), "without ranks there is one process");
        for wrong in ["3-1", "x", "-1", "0-", "1.5"] {
            assert_eq!(Ranks::stretches(wrong), Err(wrong.to_owned()));
        }
    }

    #[test]
    fn a_variable_that_was_named_is_the_only_one_asked() {
        let variable = |name: &str| match name {
            "OMPI_COMM_WORLD_RANK" => Some("3".to_owned()),
            "OMPI_COMM_WORLD_SIZE" => Some("8".to_owned()),
            "MY_RANK" => Some("2".to_owned()),
            _ => None,
        };
        let of = |rank: Option<&str>, size: Option<&str>| {
            let ranks = Ranks {
                rank: rank.map(str::to_owned),
                size: size.map(str::to_owned),
                wanted: Vec::new(),
            };
            let rank = ranks.of(&variable);
            (rank.number, rank.size)
        };
        assert_eq!(of(None, None), (Some(3), Some(8)));
        assert_eq!(of(Some("MY_RANK"), None), (Some(2), Some(8)));
        assert_eq!(of(Some("MY_RANK"), Some("MY_SIZE")), (Some(2), None));
        assert_eq!(of(Some("NONE"), None), (Some(0), Some(8)));
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
