//! Asks at a session's socket.

use super::protocol::{MAX_RESPONSE, Request, Response, SOCKET};
use crate::log;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long an answer may take, for the first and the second request: the machine may be busy.
const ANSWER_LIMITS: [Duration; 2] = [Duration::from_secs(10); 2];

/// Asks, and passes each response to `take` until that returns false. A question without an answer is asked once more. A question
/// that follows the session waits as long as the session's roctop runs.
///
/// Errors: nobody answers there; or what `take` says.
pub fn ask(session: &Path, request: &Request, take: &mut dyn FnMut(Response) -> Result<bool>) -> Result<()> {
    let mut late = || {
        log::line("the session's roctop is late with its answer; Ctrl-C ends the wait");
    };
    ask_within(ANSWER_LIMITS, session, request, &mut late, take)
}

fn ask_within(
    limits: [Duration; 2],
    session: &Path,
    request: &Request,
    late: &mut dyn FnMut(),
    take: &mut dyn FnMut(Response) -> Result<bool>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let mut silence = None;
    for limit in limits {
        silence = runtime.block_on(talk(limit, session, request, late, take))?;
        if silence.is_none() {
            break;
        }
    }
    match silence {
        Some(why) => bail!("the session's roctop does not answer: {why}"),
        None => Ok(()),
    }
}

/// Why there was no answer at all; `None` if there was one.
async fn talk(
    limit: Duration,
    session: &Path,
    request: &Request,
    late: &mut dyn FnMut(),
    take: &mut dyn FnMut(Response) -> Result<bool>,
) -> Result<Option<String>> {
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
    match timeout(limit, write.write_all(&line)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Ok(Some(error.to_string())),
        Err(_) => return Ok(Some(format!("it did not listen for {limit:?}"))),
    }
    let mut read = BufReader::new(read);
    let mut is_answered = false;
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut read).take(MAX_RESPONSE as u64);
        let got = loop {
            // Bytes that were read before the limit stay in `line`.
            match timeout(limit, limited.read_until(b'\n', &mut line)).await {
                Ok(got) => break got,
                Err(_) if request.follow => late(),
                Err(_) => return Ok(Some(format!("nothing came for {limit:?}"))),
            }
        };
        match got {
            Err(error) if !is_answered => return Ok(Some(error.to_string())),
            got => got?,
        };
        if line.is_empty() {
            return Ok((!is_answered).then(|| "it closed the connection".to_owned()));
        }
        let response = serde_json::from_slice(&line).context("the session's roctop answers in another language")?;
        is_answered = true;
        if !take(response)? {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::protocol::Form;
    use std::io::{BufRead, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_mins(1);

    fn session(name: &str) -> (PathBuf, UnixListener) {
        let path = std::env::temp_dir().join(format!("roctop-client-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let listener = UnixListener::bind(path.join(SOCKET)).unwrap();
        (path, listener)
    }

    fn request(follow: bool) -> Request {
        Request {
            question: "status".into(),
            form: Form::Json,
            follow,
            rows: None,
        }
    }

    /// The next client, which has asked.
    fn asked(listener: &UnixListener) -> UnixStream {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(&stream).read_line(&mut line).unwrap();
        assert!(line.contains("status"), "{line}");
        stream
    }

    fn answer(mut stream: &UnixStream, text: &str, last: bool) {
        let text = text.to_owned();
        stream.write_all(&Response::Answer { text, last }.line()).unwrap();
    }

    #[test]
    fn a_question_without_an_answer_is_asked_once_more() {
        for is_closed in [false, true] {
            let (path, listener) = session(&format!("again-{is_closed}"));
            let server = std::thread::spawn(move || {
                let silent = asked(&listener);
                let silent = (!is_closed).then_some(silent);
                answer(&asked(&listener), "here", true);
                drop(silent);
            });
            let mut texts = Vec::new();
            let limits = if is_closed { [LONG; 2] } else { [SHORT, LONG] };
            let answered = ask_within(
                limits,
                &path,
                &request(false),
                &mut || panic!("late"),
                &mut |response| {
                    texts.push(response);
                    Ok(false)
                },
            );
            answered.unwrap();
            assert!(
                matches!(&texts[..], [Response::Answer { text, .. }] if text == "here"),
                "{texts:?}"
            );
            server.join().unwrap();
            std::fs::remove_dir_all(path).unwrap();
        }
    }

    #[test]
    fn nobody_who_answers_is_an_error() {
        let (path, listener) = session("nobody");
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                drop(asked(&listener));
            }
        });
        let answered = ask_within([LONG; 2], &path, &request(false), &mut || (), &mut |_| Ok(false));
        let said = answered.unwrap_err().to_string();
        assert!(said.contains("does not answer: it closed the connection"), "{said}");
        server.join().unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn who_follows_is_told_of_a_late_answer_and_gets_it() {
        let (path, listener) = session("late");
        let (waits, waiting) = channel();
        let server = std::thread::spawn(move || {
            let client = asked(&listener);
            for last in [false, true] {
                // The first answer comes at once, the second after the limit, in two parts.
                if last {
                    let line = Response::Answer { text: "2".into(), last }.line();
                    (&client).write_all(&line[..9]).unwrap();
                    waiting.recv().unwrap();
                    (&client).write_all(&line[9..]).unwrap();
                } else {
                    answer(&client, "1", last);
                }
            }
        });
        let mut texts = Vec::new();
        let mut late = || _ = waits.send(());
        let answered = ask_within([SHORT; 2], &path, &request(true), &mut late, &mut |response| {
            let Response::Answer { text, last } = response else {
                panic!("{response:?}")
            };
            texts.push(text);
            Ok(!last)
        });
        answered.unwrap();
        assert_eq!(texts, ["1", "2"]);
        server.join().unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}
