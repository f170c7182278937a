//! What is written: the formats, and what the files say of the options.

use super::settings::{Note, Settings, usage_error};
use super::table::typed;
use crate::export::Format;
use anyhow::Result;
use serde_json::{Map, Value};

/// What is written where nothing asks for a format.
pub(super) const FORMAT_VARIABLE: &str = "ROCTOP_ROCPROFV3_FORMAT";

/// The formats of a job.
#[derive(Debug, Default)]
pub(super) struct Formats {
    pub(super) written: Vec<Format>,
    /// One that is not written.
    pub(super) missing: Option<Note>,
    /// Nothing asked for one.
    pub(super) are_usual: bool,
}

/// Formats by their words, also those of upstream's variable; without any those of roctop's own, and CSV if it has none.
pub(super) fn formats(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Result<Formats> {
    const OTF2: &str = "roctop does not write it; use pftrace, json or rocpd";
    let mut formats = Formats::default();
    let typed_formats = settings.values("output_format").iter().cloned();
    let mut words: Vec<String> = variable("ROCPROF_OUTPUT_FORMAT")
        .into_iter()
        .chain(typed_formats)
        .collect();
    if words.is_empty() {
        words.extend(variable(FORMAT_VARIABLE));
    }
    let words = words.iter().flat_map(|words| words.split([',', ' ']));
    for word in words.filter(|word| !word.is_empty()) {
        if word.eq_ignore_ascii_case("otf2") {
            formats.missing = Some(("--output-format otf2".to_owned(), OTF2));
            continue;
        }
        let format = format(word)?;
        if !formats.written.contains(&format) {
            formats.written.push(format);
        }
    }
    if formats.written.is_empty() {
        if formats.missing.is_some() {
            return Err(usage_error(format!("--output-format otf2 is not available: {OTF2}")));
        }
        formats.written.push(Format::Csv);
        formats.are_usual = true;
    }
    Ok(formats)
}

fn format(word: &str) -> Result<Format> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "csv" => Format::Csv,
        "json" => Format::Json,
        "pftrace" => Format::Pftrace,
        "rocpd" => Format::Rocpd,
        _ => {
            let message = format!("--output-format takes csv, json, pftrace or rocpd, not '{word}'");
            return Err(usage_error(message));
        }
    })
}

/// What is of no consequence here is to be right all the same: the command line goes to other machines.
pub(super) fn check_perfetto(settings: &Settings) -> Result<()> {
    let backend = settings.value("perfetto_backend");
    if backend.is_some_and(|backend| backend != "inprocess") {
        let message = "--perfetto-backend: only 'inprocess' is available, roctop talks to no tracing daemon";
        return Err(usage_error(message.to_owned()));
    }
    for name in ["perfetto_buffer_size", "perfetto_shmem_size_hint", "sdk_soversion"] {
        if let Some(word) = settings.value(name)
            && word.parse::<u64>().is_err()
        {
            return Err(usage_error(format!(
                "{} takes a whole number, not '{word}'",
                typed(name)
            )));
        }
    }
    match settings.value("perfetto_buffer_fill_policy") {
        None | Some("discard" | "ring_buffer") => Ok(()),
        Some(word) => Err(usage_error(format!(
            "--perfetto-buffer-fill-policy takes discard or ring_buffer, not '{word}'"
        ))),
    }
}

/// What `results.json` says of the options: upstream's keys first, then every option by its own name.
pub(super) fn config(settings: &Settings) -> Map<String, Value> {
    let mut config: Map<String, Value> = settings.all().collect();
    let text = |name: &str, usual: &str| Value::from(settings.value(name).unwrap_or(usual));
    let number = |name: &str, usual: u64| {
        let typed = settings.value(name).and_then(|text| text.parse::<u64>().ok());
        Value::from(typed.unwrap_or(usual))
    };
    let is_summed = ["summary", "summary_per_domain"].iter().any(|name| settings.on(name));
    for (key, value) in [
        ("summary", settings.on("summary").into()),
        ("summary_per_domain", settings.on("summary_per_domain").into()),
        ("summary_groups", settings.values("summary_groups").into()),
        ("summary_unit", text("summary_units", "nsec")),
        ("summary_file", text("summary_output_file", "stderr")),
        (
            "summary_output",
            (is_summed || !settings.values("summary_groups").is_empty()).into(),
        ),
        ("perfetto_shmem_size_hint", number("perfetto_shmem_size_hint", 64)),
        ("perfetto_buffer_size", number("perfetto_buffer_size", 1 << 20)),
        (
            "perfetto_buffer_fill_policy",
            text("perfetto_buffer_fill_policy", "discard"),
        ),
        ("perfetto_backend", text("perfetto_backend", "inprocess")),
        ("selected_regions", settings.on("selected_regions").into()),
        (
            "enable_signal_handlers",
            (!settings.on("disable_signal_handlers")).into(),
        ),
        (
            "minimum_output_bytes",
            number("minimum_output_data", 0)
                .as_u64()
                .map(|kilobytes| kilobytes.saturating_mul(1024))
                .into(),
        ),
        (
            "pc_sampling_host_trap",
            (settings.value("pc_sampling_method") == Some("host_trap")).into(),
        ),
        (
            "pc_sampling_stochastic",
            (settings.value("pc_sampling_method") == Some("stochastic")).into(),
        ),
        ("advanced_thread_trace", false.into()),
        ("att_serialize_all", false.into()),
    ] {
        config.insert(key.to_owned(), value);
    }
    config
}
