//! The protocol's server: its tools, and the thread that answers.

use super::sources::{Place, Sources};
use super::transport::Lines;
use crate::ask::client;
use crate::ask::protocol::{Form, Request, Response};
use crate::commands::ask::of_recordings;
use crate::job::AskedJob;
use crate::model::ask::tool::{self, Call, CallError, INSTRUCTIONS, MAX_ROWS, TOOLS, UNTRUSTED};
use crate::model::ask::{self, Question};
use anyhow::{Result, bail};
use rmcp::ServiceExt;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Calls that are answered at once. A question to a long recording leaves room for one to a session.
const MAX_RUNNING: usize = 2;
/// Calls that wait or are answered; a further one is refused.
const MAX_CALLS: usize = 32;
/// The code of the error of a call that is refused for now; the range is that of servers' own errors.
const BUSY: i32 = -32000;

struct Server {
    sources: Arc<Sources>,
    presets: Arc<Vec<(String, String)>>,
    running: Arc<Semaphore>,
    calls: Arc<Semaphore>,
}

/// Serves the protocol until standard input ends.
///
/// Errors: a thread cannot be started.
pub fn serve(sources: Sources, presets: Vec<(String, String)>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let lines = Lines::start()?;
    let server = Server {
        sources: Arc::new(sources),
        presets: Arc::new(presets),
        running: Arc::new(Semaphore::new(MAX_RUNNING)),
        calls: Arc::new(Semaphore::new(MAX_CALLS)),
    };
    runtime.block_on(async {
        // A client that goes away, before or after the first message, ends it.
        if let Ok(service) = server.serve(lines).await {
            let _ = service.waiting().await;
        }
    });
    // A question that nobody waits for any more does not hold the process.
    runtime.shutdown_background();
    Ok(())
}

/// A tool as the protocol describes it.
fn described(tool: &tool::Tool) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(true)
        .idempotent(true)
        .open_world(false);
    Tool::new(tool.name, tool.description, tool.input_schema()).with_annotations(annotations)
}

/// The answer to a call.
///
/// Errors: it is no question, or there is no such source.
fn answer(call: Call, sources: &Sources, presets: &[(String, String)]) -> Result<Value> {
    let Call::Ask { source, question } = call else {
        return Ok(sources.list());
    };
    let wrong = |column: usize, message: &str| format!("{message} (column {} of '{question}')", column + 1);
    let parsed = match Question::parse(&question, presets) {
        Ok(parsed) if parsed.limit > MAX_ROWS => bail!("an answer has at most {MAX_ROWS} rows here: limit {MAX_ROWS}"),
        Ok(parsed) => parsed,
        Err(error) => bail!("{}", wrong(error.column, &error.message)),
    };
    let found = match sources.find(source.as_deref())? {
        Place::Job(target) => ask::json(&AskedJob::find(&target.job)?.ask(&parsed, target.rank)?),
        Place::Recordings(paths) => ask::json(&of_recordings(&paths, &parsed)?),
        Place::Session(session) => {
            let request = Request {
                question: question.clone(),
                form: Form::Json,
                follow: false,
                rows: None,
            };
            let mut found = None;
            client::ask(&session, &request, &mut |response| {
                found = Some(response);
                Ok(false)
            })?;
            match found {
                Some(Response::Answer { text, .. }) => serde_json::from_str(&text)?,
                Some(Response::Wrong { column, message }) => bail!("{}", wrong(column, &message)),
                Some(Response::Failed { message }) => bail!("{message}"),
                None => bail!("the session has ended"),
            }
        }
    };
    Ok(tool::marked(found))
}

/// A result that says what is wrong: a language model reads it and asks again, which it cannot with an error of the protocol.
fn refused(text: &str) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(tool::untrusted(text))]).into()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("roctop", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = match tool::call(&request.name, &request.arguments.unwrap_or_default()) {
            Ok(call) => call,
            Err(error @ CallError::Tool(..)) => return Err(ErrorData::invalid_params(error.to_string(), None)),
            Err(error) => return Ok(refused(&error.to_string())),
        };
        let internal = |what: String| ErrorData::internal_error(what, None);
        let Ok(_place) = self.calls.clone().try_acquire_owned() else {
            let text = format!("{MAX_CALLS} calls are waiting");
            return Err(ErrorData::new(rmcp::model::ErrorCode(BUSY), text, None));
        };
        let turn = tokio::select! {
            turn = self.running.clone().acquire_owned() => turn.map_err(|error| internal(error.to_string()))?,
            () = context.ct.cancelled() => return Err(internal("cancelled".into())),
        };
        let (sources, presets) = (self.sources.clone(), self.presets.clone());
        let work = tokio::task::spawn_blocking(move || {
            // It goes on after its caller has cancelled it, and takes its turn until then.
            let _turn = turn;
            answer(call, &sources, &presets)
        });
        match work.await {
            Ok(Ok(found)) => {
                let mut result = CallToolResult::structured(found);
                result.content.insert(0, ContentBlock::text(UNTRUSTED));
                Ok(result.into())
            }
            Ok(Err(error)) => Ok(refused(&format!("{error:#}"))),
            Err(_) => Err(internal("the question could not be answered".into())),
        }
    }
}
