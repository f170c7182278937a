//! `roctop ask`: answers of recordings, and of running sessions.

use super::recordings::{Recorded, open_all};
use super::the_session;
use crate::ask::client;
use crate::ask::protocol::{Form, Request, Response};
use crate::cli::usage_error::UsageError;
use crate::cli::{self, AskFormat};
use crate::job::{AskedJob, Target};
use crate::model::ask::{self, Answer, Question};
use crate::query;
use crate::settings::Config;
use crate::ui::ask::{Source, answer};
use anyhow::{Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records of a stretch of time that are counted again in memory; more are read from the recording.
const MAX_COUNTED: usize = 1 << 21;
/// Between two answers of a job to the same question.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// A question that is none, and where.
fn wrong(source: &str, column: usize, message: &str) -> UsageError {
    UsageError(format!("{message} (column {} of '{source}')", column + 1))
}

/// A question of the user.
///
/// Errors: it is none; with the column.
fn parsed(source: &str) -> Result<Question> {
    let presets = Config::load()?.presets;
    let question = Question::parse(source, &presets);
    Ok(question.map_err(|error| wrong(source, error.column, &error.message))?)
}

/// `roctop ask`.
pub fn ask(options: &cli::Ask) -> Result<u8> {
    let (place, source) = match &options.words[..] {
        [question] => (None, question),
        [place, question] => (Some(place.as_str()), question),
        _ => bail!("roctop ask WHERE QUESTION"),
    };
    let question = parsed(source)?;
    if let Some(path) = place.map(Path::new).filter(|path| path.exists()) {
        if options.follow {
            return Err(UsageError("--follow is for running sessions; a recording does not change".into()).into());
        }
        let answer = of_recordings(&[path.to_owned()], &question)?;
        write(&answer, options.format)?;
        return Ok(0);
    }
    if let Some(target) = place.map(Target::of_text).transpose()?.flatten() {
        return of_job(&target, &question, options);
    }
    let session = the_session(place, "ask")?;
    let request = Request {
        question: source.clone(),
        form: match options.format {
            AskFormat::Table => Form::Table,
            AskFormat::Json => Form::Json,
            AskFormat::Csv => Form::Csv,
        },
        follow: options.follow,
        rows: None,
    };
    client::ask(&session, &request, &mut |response| {
        let (text, last) = text_of(source, response)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", text.trim_end_matches('\n'))?;
        if options.follow && !last && options.format != AskFormat::Json {
            writeln!(out)?;
        }
        out.flush()?;
        Ok(options.follow && !last)
    })?;
    Ok(0)
}

/// The answers of a job's ranks; with `--follow` again every second, until all have ended.
fn of_job(target: &Target, question: &Question, options: &cli::Ask) -> Result<u8> {
    let job = AskedJob::find(&target.job)?;
    loop {
        let answer = job.ask(question, target.rank)?;
        match options.format {
            // A line for each.
            AskFormat::Json if options.follow => writeln!(std::io::stdout(), "{}", ask::json(&answer))?,
            format => write(&answer, format)?,
        }
        if !options.follow || !answer.is_running {
            return Ok(0);
        }
        if options.format != AskFormat::Json {
            writeln!(std::io::stdout())?;
        }
        std::thread::sleep(FOLLOW_INTERVAL);
    }
}

/// The text of a response, and whether it is the last.
///
/// Errors: it is an error.
fn text_of(source: &str, response: Response) -> Result<(String, bool)> {
    match response {
        Response::Answer { text, last } => Ok((text, last)),
        Response::Wrong { column, message } => Err(wrong(source, column, &message).into()),
        Response::Failed { message } => bail!("{message}"),
    }
}

/// The answer of recordings.
pub fn of_recordings(paths: &[PathBuf], question: &Question) -> Result<Answer> {
    let recordings = open_all(paths)?;
    let recorded = Recorded::read(&recordings, true)?.named().counted(&question.filter)?;
    let mut failure = None;
    let mut reread = |span| match recorded.narrowed(span) {
        Ok(narrowed) => Some(narrowed),
        Err(error) => {
            failure = Some(error);
            None
        }
    };
    let mut source = Source {
        snap: &recorded.snapshot,
        most: MAX_COUNTED,
        reread: Some(&mut reread),
    };
    let of = |error: query::Error| wrong(&question.source, error.column, &error.message);
    let found = answer(question, &mut source).map_err(of);
    match failure {
        Some(error) => Err(error),
        None => Ok(found?),
    }
}

fn write(answer: &Answer, format: AskFormat) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        AskFormat::Table => ask::table(answer, &mut out)?,
        AskFormat::Json => writeln!(out, "{:#}", ask::json(answer))?,
        AskFormat::Csv => ask::csv(answer, &mut out)?,
    }
    Ok(())
}
