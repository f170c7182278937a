//! Input files: text with `pmc:` lines, YAML and JSON with several jobs.

use super::settings::Settings;
use super::table;
use crate::settings::yaml::documents;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use yaml_rust2::Yaml;

/// What an input file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// The settings of its jobs.
    pub(super) jobs: Vec<Settings>,
    /// What the directory of each is called before its number: as upstream, and in the manual of ROCm 6.2, lists of
    /// counters are `pmc_N`.
    pub(super) word: &'static str,
    /// What is passed over, as upstream does it.
    pub(super) unread: Vec<String>,
}

/// Reads an input file.
pub(super) fn read(path: &Path) -> Result<Input> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the input file {shown}"))?;
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    parse(&text, &ending).with_context(|| format!("the input file {shown}"))
}

/// Reads the text of an input file by the ending of its name.
pub(super) fn parse(text: &str, ending: &str) -> Result<Input> {
    match ending.to_ascii_lowercase().as_str() {
        "json" => jobs(&serde_json::from_str(text).context("it is no JSON")?),
        "yaml" | "yml" => yaml(text),
        "txt" | "text" => text_lines(text),
        _ => bail!("its name has to end in .txt, .text, .yaml, .yml or .json"),
    }
}

/// A text holds counters alone: each line is a job. Those of rocprof's first version have more in them.
fn text_lines(text: &str) -> Result<Input> {
    let row = table::find("pmc").context("no such option")?;
    let mut jobs = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(counters) = line.strip_prefix("pmc:") {
            let mut counters: Vec<String> = counters.split_whitespace().map(str::to_owned).collect();
            if counters.is_empty() {
                // A line without counters is a job, too, as upstream.
                counters.push(String::new());
            }
            let mut settings = Settings::default();
            settings.set(row, counters).with_context(|| format!("line {number}"))?;
            jobs.push(settings);
        } else if !line.is_empty() {
            others.push(format!("{number} ('{line}')"));
        }
    }
    if jobs.is_empty() {
        bail!("there is no line that begins with 'pmc:'");
    }
    let lines = others.join(", ");
    let unread = (!others.is_empty()).then(|| format!("passed over what does not begin with 'pmc:': line {lines}"));
    Ok(Input {
        jobs,
        word: "pmc",
        unread: unread.into_iter().collect(),
    })
}

fn yaml(text: &str) -> Result<Input> {
    let documents = documents(text)?;
    let first = documents.first().context("it is empty")?;
    jobs(&value(first))
}

fn value(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Boolean(yes) => (*yes).into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Real(text) | Yaml::String(text) => text.clone().into(),
        Yaml::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Yaml::Hash(pairs) => {
            let pairs = pairs.iter().map(|(key, inner)| {
                let key = value(key);
                (
                    key.as_str().map_or_else(|| key.to_string(), str::to_owned),
                    value(inner),
                )
            });
            Value::Object(pairs.collect())
        }
        Yaml::Alias(_) | Yaml::Null | Yaml::BadValue => Value::Null,
    }
}

/// The jobs of a document; `metrics` is what the first releases called them.
fn jobs(document: &Value) -> Result<Input> {
    let (listed, word) = match (document.get("jobs"), document.get("metrics")) {
        (Some(jobs), _) => (jobs, "pass"),
        (None, Some(metrics)) => (metrics, "pmc"),
        (None, None) => bail!("it has no list 'jobs'"),
    };
    let listed = listed.as_array().context("'jobs' is no list")?;
    if listed.is_empty() {
        bail!("'jobs' is empty");
    }
    let (mut jobs, mut unread) = (Vec::new(), Vec::new());
    for (number, one) in (1..).zip(listed) {
        let (settings, unknown) = job(one).with_context(|| format!("job {number}"))?;
        jobs.push(settings);
        unread.extend(
            unknown
                .iter()
                .map(|name| format!("job {number}: passed over '{name}', which is no option of an input file")),
        );
    }
    Ok(Input { jobs, word, unread })
}

/// The settings of a job, and its keys that are no option's.
fn job(job: &Value) -> Result<(Settings, Vec<&str>)> {
    let options = job.as_object().context("expected options and their values")?;
    let mut settings = Settings::default();
    let mut unknown = Vec::new();
    for (name, found) in options {
        let row = table::find(name).filter(|row| !matches!(row.name, "input" | "help" | "version"));
        let Some(row) = row else {
            unknown.push(name.as_str());
            continue;
        };
        let values = match found {
            // As upstream, an empty list sets nothing.
            Value::Array(items) if items.is_empty() => continue,
            Value::Array(items) => items.iter().map(word).collect::<Result<Vec<String>>>(),
            Value::Null => continue,
            one => word(one).map(|word| vec![word]),
        };
        settings.set(row, values.with_context(|| format!("option '{name}'"))?)?;
    }
    Ok((settings, unknown))
}

fn word(value: &Value) -> Result<String> {
    match value {
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(items) => Ok(items.iter().map(word).collect::<Result<Vec<String>>>()?.join(" ")),
        other => bail!("{other} is no value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml_text =
            "jobs:\n  - kernel_trace: true\n    output_format: [csv, json]\n    output_file: out\n  - hip_trace: yes\n";
        let json_text = r#"{"jobs":[{"kernel_trace":true,"output_format":["csv","json"],"output_file":"out"},{"hip_trace":"yes"}]}"#;
        let from_yaml = yaml(yaml_text).unwrap();
        assert_eq!(from_yaml, jobs(&serde_json::from_str(json_text).unwrap()).unwrap());
        assert_eq!((from_yaml.jobs.len(), from_yaml.word), (2, "pass"));
        assert_eq!(from_yaml.jobs[0].values("output_format"), ["csv", "json"]);
        assert!(from_yaml.jobs[1].on("hip_trace"));
    }

    #[test]
    fn each_line_of_counters_is_a_job() {
        let Input { jobs, word, unread } =
            text_lines("# two\npmc: SQ_WAVES TCC_HIT[1]\n\npmc: GRBM_COUNT # clocks\n").unwrap();
        assert_eq!(jobs[0].values("pmc"), ["SQ_WAVES", "TCC_HIT[1]"]);
        assert_eq!(jobs[1].values("pmc"), ["GRBM_COUNT"]);
        assert_eq!((jobs.len(), word, unread.len()), (2, "pmc", 0));
        let seed = yaml("metrics:\n  - pmc: [SQ_WAVES, GRBM_COUNT]\n").unwrap();
        assert_eq!(seed.word, "pmc");
        assert_eq!(seed.jobs[0].values("pmc"), ["SQ_WAVES", "GRBM_COUNT"]);
    }

    #[test]
    fn empty_lists_set_nothing() {
        let empty = yaml("jobs:\n  - pmc: []\n    output_format: []\n    kernel_trace: true\n").unwrap();
        assert!(empty.jobs[0].on("kernel_trace") && !empty.jobs[0].counts());
        assert!(empty.jobs[0].values("output_format").is_empty());
        let old = text_lines("# only times\npmc:\n").unwrap();
        assert_eq!((old.jobs.len(), old.jobs[0].values("pmc").concat()), (1, String::new()));
    }

    #[test]
    fn what_no_option_is_called_is_passed_over_and_named() {
        let old = text_lines("gpu: 0\npmc: A\nrange: 0:1 # one\nkernel: scale\n").unwrap();
        assert_eq!(old.jobs.len(), 1);
        let message =
            "passed over what does not begin with 'pmc:': line 1 ('gpu: 0'), 3 ('range: 0:1'), 4 ('kernel: scale')";
        assert_eq!(old.unread, [message]);
        let new = yaml("jobs:\n - hip_trace: true\n - nonsense: 1\n   version: true\n   kernel_trace: true").unwrap();
        assert!(new.jobs[1].on("kernel_trace"));
        let words: Vec<&str> = new.unread.iter().filter_map(|line| line.split('\'').nth(1)).collect();
        assert_eq!(words, ["nonsense", "version"]);
        assert!(new.unread[0].starts_with("job 2: "));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let shown = |result: Result<Input>| format!("{:#}", result.unwrap_err());
        assert!(shown(text_lines("range: 0")).contains("pmc:"));
        assert!(shown(text_lines("")).contains("pmc:"));
        assert!(shown(yaml("jobs: [")).contains("YAML"));
        assert!(shown(yaml("jobs: 3")).contains("no list"));
        assert!(shown(yaml("other: 3")).contains("jobs"));
        assert!(shown(yaml("jobs:\n - kfd_trace: 1")).contains("job 1: --kfd-trace is not available"));
        assert!(shown(yaml("jobs:\n - hip_trace: maybe")).contains("maybe"));
    }
}
