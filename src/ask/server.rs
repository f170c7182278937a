//! The thread that answers at a session's socket.

use super::protocol::{self, MAX_REQUEST, Request, Response, SOCKET};
use crate::model::{Snapshot, Store};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Clients that are answered at once; others wait.
const MAX_CLIENTS: usize = 8;
/// How long a client may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two answers to the same request.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// A snapshot that is not older is used again: many questions do not cost more than few.
const SNAPSHOT_AGE: Duration = Duration::from_millis(50);
/// How long the first question waits, if records are counted from then on only.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How long the socket rests when the system has no descriptor left.
const REST: Duration = Duration::from_millis(100);

/// Whether records are counted: from the first question on.
pub type Asked = Arc<AtomicBool>;

/// What questions are answered from.
struct Answers {
    store: Arc<Mutex<Store>>,
    presets: Vec<(String, String)>,
    /// Set by the first question, if records are counted from then on; else none.
    asked: Option<Asked>,
    latest: Mutex<Option<(Instant, Arc<Snapshot>)>>,
}

impl Answers {
    fn snapshot(&self) -> Arc<Snapshot> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, snap)) = &*latest
            && at.elapsed() < SNAPSHOT_AGE
        {
            return snap.clone();
        }
        let snap = self.store.lock().unwrap_or_else(PoisonError::into_inner).glance();
        *latest = Some((Instant::now(), snap.clone()));
        snap
    }

    async fn response(&self, request: &Request) -> Response {
        if let Some(asked) = &self.asked
            && !asked.swap(true, Ordering::Relaxed)
        {
            sleep(FIRST_WAIT).await;
        }
        protocol::response(request, &self.snapshot(), &self.presets)
    }
}

/// A running server; its socket goes with it.
pub struct Server {
    path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to answer questions at a session's socket. With `asked`, the records are counted from the first question on.
    ///
    /// Errors: the socket cannot be made.
    pub fn start(
        session: &Path,
        store: Arc<Mutex<Store>>,
        presets: Vec<(String, String)>,
        asked: Option<Asked>,
    ) -> Result<Self> {
        let path = session.join(SOCKET);
        let cannot = || format!("cannot answer questions at {}", path.display());
        let listener = std::os::unix::net::UnixListener::bind(&path).with_context(cannot)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .with_context(cannot)?;
        let (stop, stopped) = oneshot::channel();
        let answers = Arc::new(Answers {
            store,
            presets,
            asked,
            latest: Mutex::default(),
        });
        let thread = std::thread::Builder::new().name("ask".into()).spawn(move || {
            // A socket that fails answers nobody; the program goes on.
            let _ = runtime.block_on(serve(listener, answers, stopped));
        });
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.with_context(cannot)?),
            path: path.clone(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(
    listener: std::os::unix::net::UnixListener,
    answers: Arc<Answers>,
    mut stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    let own = rustix::process::getuid().as_raw();
    loop {
        let accept = async {
            // The semaphore is never closed.
            let place = room.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            _ = &mut stopped => return Ok(()),
            accepted = accept => accepted,
        };
        let Ok((client, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        // Nobody else can reach the socket, unless its directory was opened to them.
        if !client.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            continue;
        }
        let answers = answers.clone();
        tokio::spawn(async move {
            // A client may go away at any time.
            let _ = converse(client, &answers).await;
            drop(place);
        });
    }
}

async fn send(client: &mut UnixStream, response: &Response) -> std::io::Result<()> {
    timeout(ANSWER_TIMEOUT, client.write_all(&response.line())).await?
}

async fn converse(mut client: UnixStream, answers: &Answers) -> std::io::Result<()> {
    let mut line = Vec::new();
    let mut limited = BufReader::new((&mut client).take(MAX_REQUEST as u64 + 1));
    timeout(REQUEST_TIMEOUT, limited.read_until(b'\n', &mut line)).await??;
    let request = match protocol::request(&line) {
        Ok(request) => request,
        Err(message) => return send(&mut client, &Response::Failed { message }).await,
    };
    loop {
        let response = answers.response(&request).await;
        send(&mut client, &response).await?;
        if !request.follow || !matches!(response, Response::Answer { last: false, .. }) {
            return client.shutdown().await;
        }
        // What a client sends now is nothing; if it closes, there is nobody to answer.
        let mut rest = [0u8; 64];
        match timeout(FOLLOW_INTERVAL, client.read(&mut rest)).await {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            Ok(Ok(_)) => sleep(FOLLOW_INTERVAL).await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::client;
    use crate::ask::protocol::Form;
    use crate::model::Options;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Plain;

    struct Session(PathBuf);

    impl Session {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("roctop-ask-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn server(&self, asked: Option<Asked>) -> Server {
            let store = Arc::new(Mutex::new(Store::new(Options::default())));
            Server::start(&self.0, store, Vec::new(), asked).unwrap()
        }

        fn ask(&self, question: &str) -> Response {
            let request = Request {
                question: question.into(),
                form: Form::Json,
                follow: false,
                rows: None,
            };
            let mut found = None;
            client::ask(&self.0, &request, &mut |response| {
                found = Some(response);
                Ok(false)
            })
            .unwrap();
            found.unwrap()
        }
    }

    impl Drop for Session {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_client_is_answered_and_the_socket_goes_with_the_server() {
        let session = Session::new("answer");
        let asked = Asked::default();
        let server = session.server(Some(asked.clone()));
        let mode = std::fs::metadata(session.0.join(SOCKET)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!asked.load(Ordering::Relaxed));
        let Response::Answer { text, last } = session.ask("status") else {
            panic!("no answer")
        };
        assert!(text.starts_with('{') && !last && asked.load(Ordering::Relaxed));
        assert!(matches!(
            session.ask("status where x"),
            Response::Wrong { column: 7, .. }
        ));
        drop(server);
        assert!(!session.0.join(SOCKET).exists());
    }

    #[test]
    fn hostile_clients_get_errors_and_others_are_answered() {
        let session = Session::new("hostile");
        let _server = session.server(None);
        let connect = || Plain::connect(session.0.join(SOCKET)).unwrap();
        // Some say nothing, some too much, some nonsense; some go away.
        let silent: Vec<Plain> = (0..MAX_CLIENTS - 1).map(|_| connect()).collect();
        for text in [
            vec![b'x'; 4 * MAX_REQUEST],
            b"\n".to_vec(),
            b"\xff\xfe\n".to_vec(),
            b"{\"question\":\"top kernels where /(/\"}\n".to_vec(),
            vec![b'['; MAX_REQUEST - 1],
        ] {
            let mut client = connect();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            // The server may have answered and closed before all is written.
            let _ = client.write_all(&text);
            let _ = client.shutdown(std::net::Shutdown::Write);
            let mut response = String::new();
            let _ = client.read_to_string(&mut response);
            assert!(
                response.is_empty() || response.contains("failed") || response.contains("wrong"),
                "{response}"
            );
        }
        for _ in 0..20 {
            drop(connect());
        }
        assert!(matches!(session.ask("status"), Response::Answer { .. }));
        drop(silent);
    }
}
