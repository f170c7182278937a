//! Where runs were made: facts with short values.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Environment variables that change how fast a program runs. docs/security.md has the list.
const VARIABLES: [&str; 35] = [
    "AMD_DIRECT_DISPATCH",
    "AMD_SERIALIZE_COPY",
    "AMD_SERIALIZE_KERNEL",
    "DEBUG_CLR_GRAPH_PACKET_CAPTURE",
    "GPU_DEVICE_ORDINAL",
    "GPU_MAX_HW_QUEUES",
    "HIPBLASLT_TUNING_FILE",
    "HIP_FORCE_DEV_KERNARG",
    "HIP_LAUNCH_BLOCKING",
    "HIP_VISIBLE_DEVICES",
    "HSA_ENABLE_INTERRUPT",
    "HSA_ENABLE_SDMA",
    "HSA_MAX_QUEUES",
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_XNACK",
    "MIOPEN_DEBUG_CONV_GEMM",
    "MIOPEN_FIND_ENFORCE",
    "MIOPEN_FIND_MODE",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_P2P_DISABLE",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_TUNABLEOP_FILENAME",
    "PYTORCH_TUNABLEOP_TUNING",
    "RCCL_MSCCL_ENABLE",
    "ROCBLAS_USE_HIPBLASLT",
    "ROCR_VISIBLE_DEVICES",
    "TORCH_BLAS_PREFER_HIPBLASLT",
];

/// Words that are shown as values.
const WORDS: [&str; 21] = [
    "auto", "close", "collnet", "cores", "direct", "false", "hybrid", "ll", "ll128", "master", "no", "normal", "off",
    "on", "ring", "simple", "sockets", "spread", "threads", "tree", "true",
];

/// Maximum columns of a value that is shown.
const MAX_VALUE: usize = 64;

/// Facts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// Adds a fact, if it is known.
    pub fn put(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Adds the variables of the list that are set.
    pub fn put_variables(&mut self, get: &dyn Fn(&str) -> Option<String>) {
        for name in VARIABLES {
            self.put(name, get(name).map(|value| shown(&value)));
        }
    }

    /// Facts that differ, with both values. What only one side knows differs too, unless the other knows nothing at all.
    pub fn differences<'a>(&'a self, after: &'a Self) -> Vec<(&'a str, &'a str, &'a str)> {
        if self.0.is_empty() || after.0.is_empty() {
            return Vec::new();
        }
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let value = |side: &'a Self, name: &str| side.0.get(name).map_or("unset", String::as_str);
        let rows = names
            .into_iter()
            .map(|name| (name.as_str(), value(self, name), value(after, name)));
        rows.filter(|(_, old, new)| old != new).collect()
    }
}

/// A value of a variable: numbers, lists of numbers and words of a fixed list as they are; anything else as `set`.
fn shown(value: &str) -> String {
    let parts = || value.split([',', ':', '.', ';']).map(str::trim);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_word = |part: &str| WORDS.contains(&part.to_ascii_lowercase().as_str());
    if value.len() <= MAX_VALUE && (parts().all(is_number) || parts().all(is_word)) {
        value.to_owned()
    } else {
        "set".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_documented() {
        let text = include_str!("../../../../../docs/security.md");
        assert!(VARIABLES.is_sorted());
        for name in VARIABLES {
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn values_that_are_no_numbers_or_known_words_are_hidden() {
        for value in ["1", "0,1,2", "10.3.0", "-1", "Ring", "close,spread", "true"] {
            assert_eq!(shown(value), value);
        }
        for value in ["/home/me/tuned.csv", "token=1", "", "1,secret", &"1,".repeat(100)] {
            assert_eq!(shown(value), "set", "{value}");
        }
        let mut environment = Environment::default();
        let get = |name: &str| match name {
            "HSA_XNACK" | "SECRET" => Some("1".into()),
            "PYTORCH_TUNABLEOP_FILENAME" => Some("/home/me/x".into()),
            _ => None,
        };
        environment.put_variables(&get);
        let all: Vec<(&str, &str)> = environment
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(all, [("HSA_XNACK", "1"), ("PYTORCH_TUNABLEOP_FILENAME", "set")]);
        let mut other = environment.clone();
        other.put("HSA_XNACK", Some("0".into()));
        other.put("ROCm", Some("7.2.4".into()));
        assert_eq!(
            environment.differences(&other),
            [("HSA_XNACK", "1", "0"), ("ROCm", "unset", "7.2.4")]
        );
        assert_eq!(Environment::default().differences(&other), []);
    }
}
