//! Asks at a session's socket.

use super::protocol::{MAX_RESPONSE, Request, Response, SOCKET};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Asks, and passes each response to `take` until that says no.
///
/// Errors: nobody answers there; or what `take` says.
pub fn ask(session: &Path, request: &Request, take: &mut dyn FnMut(Response) -> Result<bool>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(talk(session, request, take))
}

async fn talk(session: &Path, request: &Request, take: &mut dyn FnMut(Response) -> Result<bool>) -> Result<()> {
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    let stream = match UnixStream::connect(session.join(SOCKET)).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            bail!(
                "no roctop answers for session {name}: its roctop has gone, or is older than 'ask'; 'roctop attach {name}' watches it"
            )
        }
        Err(error) => return Err(error).with_context(|| format!("cannot ask session {name}")),
    };
    let peer = stream.peer_cred()?;
    if peer.uid() != rustix::process::getuid().as_raw() {
        bail!("session {name} is answered by another user's process");
    }
    let (read, mut write) = stream.into_split();
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    timeout(ANSWER_LIMIT, write.write_all(&line))
        .await
        .context("the session's roctop does not listen")??;
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut read).take(MAX_RESPONSE as u64);
        let got = timeout(ANSWER_LIMIT, limited.read_until(b'\n', &mut line)).await;
        got.context("the session's roctop does not answer")??;
        if line.is_empty() {
            return Ok(());
        }
        let response = serde_json::from_slice(&line).context("the session's roctop answers in another language")?;
        if !take(response)? {
            return Ok(());
        }
    }
}
