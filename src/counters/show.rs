//! Lists of counters as text: rocprofv3's own layout, a table, CSV, JSON.

use super::list::{Listed, OnAgent};
use crate::item::CounterInfo;
use crate::model::derived;
use crate::pc_sampling::Configuration;
use roctop_ring::record::counter_flag;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Keys of the layout are padded to this.
const KEY: usize = 20;

fn pair(out: &mut dyn Write, key: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{key:KEY$}:\t{value}")
}

/// Ways of sampling, as `rocprofv3-avail info --pc-sampling` prints them.
pub fn sampling(listed: &Listed, out: &mut dyn Write) -> io::Result<()> {
    for (number, one) in listed
        .agents
        .iter()
        .enumerate()
        .filter(|one| !one.1.sampling.is_empty())
    {
        writeln!(out, "GPU     :\t{number}\nName    :\t{}\nconfigs :", one.agent.name)?;
        for offer in &one.sampling {
            let (minimum, maximum) = (offer.minimum.to_string(), offer.maximum.to_string());
            for (key, value) in [
                ("Method", offer.method()),
                ("Unit", offer.unit()),
                ("Min_Interval", &minimum),
                ("Max_Interval", &maximum),
                ("Flags", offer.flags()),
            ] {
                writeln!(out, "   {key:KEY$}:\t{value}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// As `rocprofv3 -L` of rocprofiler-sdk 1.0 prints them.
pub fn info(listed: &Listed, out: &mut dyn Write) -> io::Result<()> {
    sampling(listed, out)?;
    counters(listed, out)
}

/// Counters, as `rocprofv3-avail info --pmc` prints them.
pub fn counters(listed: &Listed, out: &mut dyn Write) -> io::Result<()> {
    for (number, one) in listed.agents.iter().enumerate() {
        writeln!(out, "GPU:{number}\nName:{}", one.agent.name)?;
        for counter in &one.counters {
            pair(out, "Counter_Name", &counter.name)?;
            pair(out, "Description", &counter.description)?;
            if counter.flags & counter_flag::CONSTANT == 0 {
                if counter.flags & counter_flag::DERIVED != 0 {
                    pair(out, "Expression", &counter.expression)?;
                } else {
                    pair(out, "Block", &counter.block)?;
                }
                pair(out, "Dimensions", &counter.dimensions)?;
            }
            writeln!(out, "\n")?;
        }
    }
    Ok(())
}

/// One line a counter.
pub fn table(listed: &Listed, out: &mut dyn Write) -> io::Result<()> {
    for one in &listed.agents {
        writeln!(out, "GPU{} {} {}", one.agent.number, one.agent.name, one.agent.product)?;
        let widest = |text: fn(&CounterInfo) -> &str, least: usize, most: usize| {
            let longest = one.counters.iter().map(|counter| text(counter).chars().count()).max();
            longest.unwrap_or(0).clamp(least, most)
        };
        let name = widest(|counter| &counter.name, 7, 40);
        let dimensions = widest(|counter| &counter.dimensions, 10, 60);
        writeln!(
            out,
            "  {:name$}  {:6}  {:dimensions$}  DESCRIPTION",
            "COUNTER", "BLOCK", "DIMENSIONS"
        )?;
        for counter in &one.counters {
            let block = match counter.flags {
                flags if flags & counter_flag::CONSTANT != 0 => "const",
                flags if flags & counter_flag::DERIVED != 0 => "=",
                _ => &counter.block,
            };
            let about = if counter.expression.is_empty() {
                counter.description.to_string()
            } else {
                format!("{} = {}", counter.description, counter.expression)
            };
            writeln!(
                out,
                "  {:name$}  {block:6}  {:dimensions$}  {about}",
                counter.name, counter.dimensions
            )?;
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Which counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of the hardware's blocks.
    Basic,
    /// Those that are computed from others.
    Derived,
}

/// The columns of the seed's `basic_metrics.csv`, and of its `derived_metrics.csv`.
pub fn csv(listed: &Listed, which: Which, out: &mut dyn Write) -> io::Result<()> {
    let derived = which == Which::Derived;
    let what = if derived { "Expression" } else { "Block" };
    writeln!(out, "\"Agent_Id\",\"Name\",\"Description\",\"{what}\",\"Dimensions\"")?;
    for one in &listed.agents {
        let wanted = |counter: &&CounterInfo| {
            counter.flags & counter_flag::CONSTANT == 0 && (counter.flags & counter_flag::DERIVED != 0) == derived
        };
        for counter in one.counters.iter().filter(wanted) {
            let third = if derived { &counter.expression } else { &counter.block };
            let texts = [&counter.name, &counter.description, third, &counter.dimensions];
            let cells: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            writeln!(out, "{},{}", one.agent.node, cells.join(","))?;
        }
    }
    Ok(())
}

/// All of it as JSON.
pub fn json(listed: &Listed, asked: &[String]) -> Value {
    let counter = |counter: &CounterInfo| {
        json!({
            "name": &*counter.name,
            "description": &*counter.description,
            "block": &*counter.block,
            "expression": &*counter.expression,
            "dimensions": counter.dimensions.split_whitespace().collect::<Vec<_>>(),
            "is_derived": counter.flags & counter_flag::DERIVED != 0,
            "is_constant": counter.flags & counter_flag::CONSTANT != 0,
            "pass": (counter.pass > 0).then_some(counter.pass),
        })
    };
    let offer = |offer: &Configuration| {
        json!({
            "method": offer.method(),
            "unit": offer.unit(),
            "min_interval": offer.minimum,
            "max_interval": offer.maximum,
            "flags": offer.flags(),
        })
    };
    let agent = |one: &OnAgent| {
        json!({
            "node": one.agent.node,
            "name": &*one.agent.name,
            "product": &*one.agent.product,
            "counters": one.counters.iter().map(counter).collect::<Vec<_>>(),
            "pc_sampling": one.sampling.iter().map(offer).collect::<Vec<_>>(),
        })
    };
    json!({
        "agents": listed.agents.iter().map(agent).collect::<Vec<_>>(),
        "plan": listed.plan(asked),
        "problems": listed.problems,
        "no_pc_sampling": listed.no_sampling,
    })
}

/// The passes, one line each.
pub fn plan(passes: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    for (number, counters) in (1..).zip(passes) {
        writeln!(out, "pass {number} of {}: {}", passes.len(), counters.join(" "))?;
    }
    Ok(())
}

/// Metrics that roctop computes, with formula and source.
pub fn metrics(out: &mut dyn Write) -> io::Result<()> {
    for metric in derived::METRICS {
        writeln!(out, "{}  {}", metric.key, metric.title)?;
        writeln!(out, "    = {}", metric.formula)?;
        writeln!(out, "    counters: {}", metric.counters.join(" "))?;
        writeln!(out, "    {}", metric.source)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Agent;

    fn listed() -> Listed {
        let counter = |name: &str, block: &str, expression: &str, flags, pass| CounterInfo {
            name: name.into(),
            description: format!("About {name}").into(),
            block: block.into(),
            expression: expression.into(),
            dimensions: "DIMENSION_INSTANCE[0:0] DIMENSION_SHADER_ENGINE[0:7]".into(),
            flags,
            pass,
            ..CounterInfo::default()
        };
        Listed {
            gpus: 1,
            agents: vec![OnAgent {
                agent: Agent {
                    name: "gfx90a".into(),
                    node: 1,
                    ..Agent::default()
                },
                counters: vec![
                    counter("simd_count", "", "", counter_flag::CONSTANT, 0),
                    counter("SQ_WAVES", "SQ", "", 0, 1),
                    counter("GPUBusy", "", "100*A/\"B\"", counter_flag::DERIVED, 2),
                ],
                sampling: Vec::new(),
            }],
            problems: vec!["one".into()],
            no_sampling: Vec::new(),
        }
    }

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_list_is_laid_out_as_documented() {
        // rocprofiler-sdk 1.0.0, `rocprofv3 -L`.
        let expected = "GPU:0\nName:gfx90a\nCounter_Name        :\tsimd_count\nDescription         :\tAbout simd_count\n\n\n\
            Counter_Name        :\tSQ_WAVES\nDescription         :\tAbout SQ_WAVES\nBlock               :\tSQ\n\
            Dimensions          :\tDIMENSION_INSTANCE[0:0] DIMENSION_SHADER_ENGINE[0:7]\n\n\n\
            Counter_Name        :\tGPUBusy\nDescription         :\tAbout GPUBusy\nExpression          :\t100*A/\"B\"\n\
            Dimensions          :\tDIMENSION_INSTANCE[0:0] DIMENSION_SHADER_ENGINE[0:7]\n\n\n";
        assert_eq!(text(|out| info(&listed(), out).expect("memory")), expected);
    }

    #[test]
    fn csv_has_the_seeds_columns_and_json_everything() {
        let basic = text(|out| csv(&listed(), Which::Basic, out).expect("memory"));
        assert!(basic.starts_with("\"Agent_Id\",\"Name\",\"Description\",\"Block\",\"Dimensions\"\n1,\"SQ_WAVES\","));
        assert_eq!(basic.lines().count(), 2);
        let derived = text(|out| csv(&listed(), Which::Derived, out).expect("memory"));
        assert!(derived.contains("\"100*A/\"\"B\"\"\""));
        let json = json(&listed(), &["GPUBusy".to_owned(), "SQ_WAVES".to_owned()]);
        assert_eq!(json["plan"], json!([["SQ_WAVES"], ["GPUBusy"]]));
        assert_eq!(json["agents"][0]["counters"][0]["is_constant"], true);
        assert!(text(|out| table(&listed(), out).expect("memory")).contains("SQ_WAVES"));
    }
}
