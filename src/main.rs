//! roctop: parse, act, exit code.
#![forbid(unsafe_code)]

use clap::{CommandFactory, FromArgMatches};
use roctop::cli::usage_error::UsageError;
use roctop::cli::{self, Action, Cli};
use roctop::commands::failure::Failure;
use roctop::counters;
use roctop::demo;
use roctop::live::pty_keeper;
use roctop::live::run;
use roctop::process::launch;
use roctop::process::limits;
use roctop::process::witness;
use roctop::rocprofv3;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(arguments) = launch::trampoline_arguments() {
        return launch::trampoline(&arguments).into();
    }
    if let Some(arguments) = witness::arguments() {
        return witness::run(&arguments).into();
    }
    if let Some(arguments) = pty_keeper::arguments() {
        return pty_keeper::run(&arguments).into();
    }
    if counters::list::is_worker() {
        // The collector in this process has done all of it when it was loaded.
        return ExitCode::SUCCESS;
    }
    if demo::is_worker() {
        return demo::work().into();
    }
    limits::fail_writes_beyond_limit();
    match limits::check_stack() {
        Ok(()) => act_on_words(),
        Err(error) => finish(Err(error)),
    }
}

/// Does what the command line asks. Its frame is large.
#[inline(never)]
fn act_on_words() -> ExitCode {
    // Its command line is its own: nothing of it is for clap.
    let mut words = std::env::args_os();
    let name = words.next();
    let words: Vec<_> = words.collect();
    if rocprofv3::is_called(name.as_deref()) {
        return finish(rocprofv3::act(&words));
    }
    if words.first().is_some_and(|word| word == rocprofv3::NAME) {
        return finish(rocprofv3::act(&words[1..]));
    }
    let parsed = cli::command().try_get_matches();
    let read = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, cli::has_only_look(&matches))));
    let (cli, has_only_look) = match read {
        Ok(read) => read,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // A closed output is no failure of ours.
            let _ = if error.use_stderr() {
                write!(std::io::stderr(), "{}", cli::wrong(&error))
            } else {
                error.print()
            };
            return code.into();
        }
    };
    finish(act(cli, has_only_look))
}

fn finish(code: anyhow::Result<u8>) -> ExitCode {
    let code = code.unwrap_or_else(|error| {
        let failure = Failure::from(error);
        if !matches!(failure, Failure::OutputClosed) {
            run::say(&failure.to_string());
        }
        failure.exit_code()
    });
    code.into()
}

fn act(cli: Cli, has_only_look: bool) -> anyhow::Result<u8> {
    use roctop::commands;
    match cli.action {
        // Options of the screen are taken: the screen of a session that is chosen has them.
        None if cli.run.is_nothing() && !has_only_look => Err(UsageError(
            "no program was named: roctop [OPTIONS] APP ARGS; 'roctop' alone, or with options of the screen, shows GPUs and \
             running sessions"
                .into(),
        )
        .into()),
        Some(Action::Run(options)) if options.is_nothing() => {
            Err(UsageError("no program was named: roctop run [OPTIONS] APP ARGS".into()).into())
        }
        None => commands::run(&cli.run),
        Some(Action::Run(options)) => commands::run(&options),
        Some(Action::Demo(options)) => commands::demo(&options),
        Some(Action::Record(options)) => commands::record(&options),
        Some(Action::Attach(options)) => commands::attach(&options),
        Some(Action::Keep(options)) => commands::keep(&options),
        Some(Action::Job(options)) => commands::watch_job(&options),
        Some(Action::Open(options)) => commands::open(&options),
        Some(Action::Export(options)) => commands::export_files(&options),
        Some(Action::Rocprofv3 { words }) => rocprofv3::act(&words),
        Some(Action::Summary(options)) => commands::summary(&options),
        Some(Action::Diff(options)) => commands::compare(&options),
        Some(Action::Check(options)) => commands::check(&options),
        Some(Action::Ci(options)) => Ok(commands::ci(&options)),
        Some(Action::Ask(options)) => commands::ask(&options),
        Some(Action::Mcp(options)) => commands::mcp(&options),
        Some(Action::Cut(options)) => commands::cut(&options),
        Some(Action::Merge(options)) => commands::merge(&options),
        Some(Action::Recover(options)) => commands::recover(&options),
        Some(Action::Devices(options)) => commands::devices(&options),
        Some(Action::Counters(options)) => commands::counters(&options),
        Some(Action::Doctor(options)) => commands::doctor(&options),
        Some(Action::DropIn(options)) => commands::drop_in(&options),
        Some(Action::Config { wish }) => commands::config(wish),
        Some(Action::Completions { shell }) => {
            // In memory first: clap_complete panics where it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "roctop", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(0)
        }
        Some(Action::Man) => {
            clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
            Ok(0)
        }
    }
}
