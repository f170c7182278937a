//! A roctop that runs beside a test.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A roctop that ends with its test.
pub(crate) struct Running(Child);

impl Running {
    /// With these words.
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command
            .args(words)
            .env("ROCTOP_CONFIG", "/dev/null")
            .stdin(Stdio::null());
        Self::of(&mut command)
    }

    /// Of a command; nobody reads what it prints.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The name of its session.
    pub(crate) fn session(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        // It passes the signal on and ends with its program.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) && self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
