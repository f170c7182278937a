//! A user at a terminal: a pseudo-terminal with roctop in it, typed keys, and the visible screen.

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time after which a wait fails the test: a watchdog, not a measure.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A terminal with a program in it.
pub(crate) struct Terminal {
    master: File,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    child: Child,
}

impl Terminal {
    /// Starts roctop with `arguments` in a terminal of `columns` x `rows`, in `place`.
    pub(crate) fn start(place: &Path, columns: u16, rows: u16, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_program(place, columns, rows, env!("CARGO_BIN_EXE_roctop"), arguments, variables)
    }

    /// Starts a program.
    pub(crate) fn start_program(
        place: &Path,
        columns: u16,
        rows: u16,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        rustix::termios::tcsetwinsize(&master, size(columns, rows)).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave: OwnedFd = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
        let roctop = env!("CARGO_BIN_EXE_roctop");
        // roctop's own trampoline creates the session with this terminal.
        let mut command = Command::new(roctop);
        command
            .args(["__launch", "terminal", program, "0", program])
            .args(arguments)
            .current_dir(place);
        command
            .env("TERM", "xterm-256color")
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env_remove("COLORTERM")
            .env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        command.stdin(Stdio::from(slave.try_clone().unwrap()));
        command.stdout(Stdio::from(slave.try_clone().unwrap()));
        command.stderr(Stdio::from(slave));
        let child = command.spawn().unwrap();
        drop(command);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut near = File::from(rustix::io::dup(&master).unwrap());
        let (seen, bytes) = (screen.clone(), written.clone());
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0u8; 65536];
            while let Ok(count @ 1..) = near.read(&mut buffer) {
                seen.lock().unwrap().process(&buffer[..count]);
                bytes.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            master: File::from(master),
            screen,
            written,
            reader,
            child,
        }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// The visible screen.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The visible rows.
    pub(crate) fn rows(&self) -> Vec<String> {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        screen.screen().rows(0, columns.get()).collect()
    }

    /// All bytes written to the terminal so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.written.lock().unwrap().clone()
    }

    /// Whether any screen so far had a text, however shortly. The size must not have changed.
    pub(crate) fn has_shown(&self, text: &str) -> bool {
        // Few enough bytes that no screen begins and ends within them.
        const STEP: usize = 8;
        let (rows, columns) = self.screen.lock().unwrap().screen().size();
        let mut screen = vt100::Parser::new(rows, columns, 0);
        self.bytes().chunks(STEP).any(|bytes| {
            screen.process(bytes);
            screen.screen().contents().contains(text)
        })
    }

    /// True while the alternate screen is shown.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    /// Waits until the screen satisfies `wanted`.
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(started.elapsed() < WAIT_LIMIT, "never seen: {what}\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types keys again and again until the screen satisfies `wanted`: the first ones may follow an escape so closely that
    /// they are another key with it.
    pub(crate) fn keys_until(&mut self, keys: &str, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            self.keys(keys);
            let typed = Instant::now();
            while typed.elapsed() < Duration::from_secs(3) {
                let text = self.text();
                if wanted(&text) {
                    return text;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                started.elapsed() < WAIT_LIMIT && ended.is_none(),
                "never seen: {what}; roctop: {ended:?}\n{}",
                self.text()
            );
        }
    }

    /// Chooses in the menu on the screen by a letter, and does it. A menu takes no key for 300 ms after it opened, and may go
    /// with the program, or with roctop.
    pub(crate) fn choose(&mut self, letter: &str) {
        let is_over = |text: &str| text.contains('■');
        let is_chosen = |text: &str| {
            ["▸", ">"]
                .iter()
                .any(|sign| text.contains(&format!("{sign} {letter} ")))
        };
        if !self.wait_or_end_for("the menu", |text| text.contains("enter does it") || is_over(text)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(400));
        self.keys(letter);
        if self.wait_or_end_for("the choice", |text| is_chosen(text) || is_over(text)) {
            self.keys("\r");
        }
    }

    /// Types the letter of an act until the screen shows what it asks; false if roctop ended. On a busy machine roctop reads
    /// the letter with the keys before, and refuses it.
    pub(crate) fn asks(&mut self, letter: &str, question: &str) -> bool {
        let started = Instant::now();
        loop {
            self.keys(letter);
            let typed = Instant::now();
            // Long: a letter that is only late would close what the one before it opened.
            while typed.elapsed() < Duration::from_secs(20) {
                if self.text().contains(question) {
                    return true;
                }
                if self.child.try_wait().unwrap().is_some() {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(
                started.elapsed() < WAIT_LIMIT,
                "never seen: {question}\n{}",
                self.text()
            );
        }
    }

    /// Leaves the screen of a program that has ended.
    pub(crate) fn leave(&mut self) -> ExitStatus {
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < WAIT_LIMIT, "roctop did not end\n{}", self.text());
            self.keys("q");
            let typed = Instant::now();
            while typed.elapsed() < Duration::from_secs(3) && self.child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.end()
    }

    /// Asks for an act by its letter, and does it.
    pub(crate) fn acts(&mut self, letter: &str) {
        self.asks(letter, "enter does it   any other key does not");
        self.keys("\r");
    }

    /// Types a line, and enter once the line is seen: one that acts takes enter alone.
    pub(crate) fn line(&mut self, line: &str) {
        self.keys(line);
        self.shows(line);
        self.keys("\r");
    }

    /// Waits until the screen shows a text; false if roctop ended first.
    pub(crate) fn wait_or_end(&mut self, text: &str) -> bool {
        self.wait_or_end_for(text, |screen| screen.contains(text))
    }

    /// Waits until the screen satisfies `wanted`; false if roctop ended first.
    pub(crate) fn wait_or_end_for(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> bool {
        let started = Instant::now();
        loop {
            if wanted(&self.text()) {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(started.elapsed() < WAIT_LIMIT, "never seen: {what}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen shows a text.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(cells(rows), cells(columns));
        rustix::termios::tcsetwinsize(&self.master, size(columns, rows)).unwrap();
    }

    /// The terminal's input modes, as `stty` prints them.
    pub(crate) fn modes(&self) -> String {
        let modes = rustix::termios::tcgetattr(&self.master).unwrap();
        format!(
            "{:?} {:?} {:?} {:?}",
            modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes
        )
    }

    /// Process id of roctop.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until roctop has ended.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.read_the_rest();
                return status;
            }
            assert!(started.elapsed() < WAIT_LIMIT, "roctop did not end\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Terminal {
    /// roctop's last output may still be on its way to the reading thread, which ends when nobody has the terminal
    /// open; a program that is left behind may keep it open for ever.
    fn read_the_rest(&self) {
        let mut quiet = Instant::now();
        while !self.reader.is_finished() && quiet.elapsed() < Duration::from_secs(1) {
            if rustix::io::ioctl_fionread(&self.master).is_ok_and(|waiting| waiting > 0) {
                quiet = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A program outlives a roctop that is killed, and ends with a roctop that is asked to end.
        let began = Instant::now();
        let pid = rustix::process::Pid::from_child(&self.child);
        while !matches!(self.child.try_wait(), Ok(Some(_))) && began.elapsed() < Duration::from_secs(3) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has cells")
}
