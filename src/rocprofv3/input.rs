//! Input files: text with `pmc:` lines, YAML and JSON with several jobs.

use super::settings::Settings;
use super::table;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::path::Path;
use yaml_rust2::{Yaml, YamlLoader};

/// Reads an input file: the settings of its jobs, and what the directory of each is called before its number: as
/// upstream, and in the manual of ROCm 6.2, lists of counters are `pmc_N`.
pub(super) fn read(path: &Path) -> Result<(Vec<Settings>, &'static str)> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the input file {shown}"))?;
    let ending = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let jobs = match ending.as_str() {
        "json" => jobs(&serde_json::from_str(&text).with_context(|| format!("{shown} is no JSON"))?),
        "yaml" | "yml" => yaml(&text),
        "txt" => text_lines(&text).map(|jobs| (jobs, "pmc")),
        _ => bail!("{shown}: an input file ends in .txt, .yaml, .yml or .json"),
    };
    jobs.with_context(|| format!("the input file {shown}"))
}

/// A text holds counters alone: each line is a job.
fn text_lines(text: &str) -> Result<Vec<Settings>> {
    let row = table::find("pmc").context("no such option")?;
    let mut jobs = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(counters) = line.strip_prefix("pmc:") {
            let counters: Vec<String> = counters.split_whitespace().map(str::to_owned).collect();
            let mut settings = Settings::default();
            settings.set(row, counters).with_context(|| format!("line {number}"))?;
            jobs.push(settings);
        } else if !line.is_empty() {
            bail!("line {number}: expected 'pmc: COUNTER …', found '{line}'");
        }
    }
    if jobs.is_empty() {
        bail!("there is no line with 'pmc:' in it");
    }
    Ok(jobs)
}

fn yaml(text: &str) -> Result<(Vec<Settings>, &'static str)> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| anyhow!("it is no YAML: {error}"))?;
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
fn jobs(document: &Value) -> Result<(Vec<Settings>, &'static str)> {
    let (listed, word) = match (document.get("jobs"), document.get("metrics")) {
        (Some(jobs), _) => (jobs, "pass"),
        (None, Some(metrics)) => (metrics, "pmc"),
        (None, None) => bail!("it has no list 'jobs'"),
    };
    let listed = listed.as_array().context("'jobs' is no list")?;
    if listed.is_empty() {
        bail!("'jobs' is empty");
    }
    let jobs = listed.iter().enumerate();
    let jobs = jobs.map(|(number, one)| job(one).with_context(|| format!("job {}", number + 1)));
    Ok((jobs.collect::<Result<_>>()?, word))
}

fn job(job: &Value) -> Result<Settings> {
    let options = job.as_object().context("expected options and their values")?;
    let mut settings = Settings::default();
    for (name, found) in options {
        let row = table::find(name).with_context(|| format!("there is no option '{name}'"))?;
        if matches!(row.name, "input" | "help" | "version") {
            bail!("'{name}' has no place in an input file");
        }
        let values = match found {
            Value::Array(items) => items.iter().map(word).collect::<Result<Vec<String>>>(),
            Value::Null => continue,
            one => word(one).map(|word| vec![word]),
        };
        settings.set(row, values.with_context(|| format!("option '{name}'"))?)?;
    }
    Ok(settings)
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
        let (from_yaml, word) = from_yaml;
        assert_eq!((from_yaml.len(), word), (2, "pass"));
        assert_eq!(from_yaml[0].values("output_format"), ["csv", "json"]);
        assert!(from_yaml[1].on("hip_trace"));
    }

    #[test]
    fn each_line_of_counters_is_a_job() {
        let jobs = text_lines("# two\npmc: SQ_WAVES TCC_HIT[1]\n\npmc: GRBM_COUNT # clocks\n").unwrap();
        assert_eq!(jobs[0].values("pmc"), ["SQ_WAVES", "TCC_HIT[1]"]);
        assert_eq!(jobs[1].values("pmc"), ["GRBM_COUNT"]);
        let (seed, word) = yaml("metrics:\n  - pmc: [SQ_WAVES, GRBM_COUNT]\n").unwrap();
        assert_eq!(word, "pmc");
        assert_eq!(seed[0].values("pmc"), ["SQ_WAVES", "GRBM_COUNT"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |result: Result<(Vec<Settings>, &'static str)>| format!("{:#}", result.unwrap_err());
        let text_lines = |text: &str| text_lines(text).map(|jobs| (jobs, "pmc"));
        assert!(told(text_lines("# only\npmc:\n")).contains("line 2: --pmc needs a value"));
        assert!(told(text_lines("range: 0")).contains("line 1"));
        assert!(told(text_lines("")).contains("pmc:"));
        assert!(told(yaml("jobs: [")).contains("YAML"));
        assert!(told(yaml("jobs: 3")).contains("no list"));
        assert!(told(yaml("other: 3")).contains("jobs"));
        assert!(told(yaml("jobs:\n - nonsense: 1")).contains("job 1: there is no option 'nonsense'"));
        assert!(told(yaml("jobs:\n - hip_trace: maybe")).contains("maybe"));
    }
}
