//! How the ranks of a job that runs are placed: a table for each node, and what is wrong with it.

use crate::ask::client;
use crate::ask::protocol::{Form, Request, Response};
use crate::cli::usage_error::UsageError;
use crate::job::{AskedJob, job_names};
use crate::log;
use crate::model::analysis::placement::{Place, verdicts};
use crate::model::ask::{self, Answer, MAX_LIMIT, Question};
use crate::session::sessions;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// What all ranks are asked.
const QUESTION: &str = "placement small-buffers";

/// Writes how the ranks of a job are placed: of the named one, else of the only one, else of all sessions of the user on this
/// machine. The exit code is 1 if something is wrong.
///
/// Errors: there is no such job, or nobody answers.
pub fn examine(name: Option<&str>, out: &mut dyn Write) -> Result<u8> {
    let mut names = job_names();
    let job = match (name, names.len()) {
        (Some(name), _) => Some(name.to_owned()),
        (None, 1) => names.pop(),
        (None, 0) => None,
        (None, _) => {
            let listed = names.iter().map(|name| format!("\n  roctop doctor --job {name}"));
            let listed: String = listed.collect();
            return Err(UsageError(format!("{} jobs are known; name one of them:{listed}", names.len())).into());
        }
    };
    let question = Question::parse(QUESTION, &[]).map_err(|error| anyhow!(error.message))?;
    let answer = match job {
        Some(job) => AskedJob::find(&job)?.ask(&question, None)?,
        None => of_sessions()?,
    };
    write(&answer, out)
}

/// What all sessions of the user on this machine say.
fn of_sessions() -> Result<Answer> {
    let mut whole: Option<Answer> = None;
    let mut failure = None;
    for session in sessions() {
        match of_session(&session.path) {
            Ok(answer) => match &mut whole {
                // A rank for the second time is another job's.
                Some(whole) if answer.places.iter().any(|place| has_rank(whole, place)) => log::line(&format!(
                    "{} is of another job, and left out; --job ID names one",
                    session.name()
                )),
                Some(whole) => whole.places.extend(answer.places),
                None => whole = Some(answer),
            },
            Err(error) => {
                log::line(&format!("{error:#}"));
                failure = Some(error);
            }
        }
    }
    match (whole, failure) {
        (Some(whole), _) => Ok(whole),
        (None, Some(error)) => Err(error),
        (None, None) => {
            bail!("no job and no session is running; 'roctop record --job -- ./app' starts one in each rank")
        }
    }
}

fn has_rank(answer: &Answer, place: &Place) -> bool {
    let mut places = answer.places.iter();
    place.rank.is_some() && places.any(|known| known.rank == place.rank)
}

fn of_session(session: &Path) -> Result<Answer> {
    let request = Request {
        question: QUESTION.into(),
        form: Form::Whole,
        follow: false,
        rows: None,
    };
    let mut answer = None;
    client::ask(session, &request, &mut |response| {
        answer = Some(match response {
            Response::Answer { text, .. } => {
                serde_json::from_str(&text).context("the session's roctop answers in another language")?
            }
            Response::Wrong { message, .. } | Response::Failed { message } => bail!("{message}"),
        });
        Ok(false)
    })?;
    answer.context("the session's roctop gives no answer")
}

fn write(answer: &Answer, out: &mut dyn Write) -> Result<u8> {
    let mut nodes: BTreeMap<(String, u32), Vec<Place>> = BTreeMap::new();
    for place in &answer.places {
        let node = (place.host.clone(), place.machine);
        nodes.entry(node).or_default().push(place.clone());
    }
    if nodes.is_empty() {
        bail!("no process was read: the program has not called HIP or HSA yet, or its node's roctop is older");
    }
    let mut is_well = true;
    for ((host, _), places) in nodes {
        let of_node = verdicts(&places);
        let mut table = Answer {
            title: format!("node {host}"),
            places,
            ..answer.clone()
        };
        table.place(MAX_LIMIT);
        // The verdicts come below, and only the facts stay.
        table.notes.drain(..of_node.len());
        ask::table(&table, out)?;
        if of_node.is_empty() {
            writeln!(out, "ok    nothing that is known of this node is wrong")?;
        }
        for verdict in of_node {
            is_well = false;
            writeln!(out, "BAD   {}", verdict.text)?;
            if let Some(remedy) = verdict.remedy {
                writeln!(out, "      try: {remedy}")?;
            }
        }
    }
    Ok(u8::from(!is_well))
}
