//! The program under test as a child process, its output in files that survive it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::{http, wait_until};

/// The binary that cargo built for this test.
pub(crate) const RETOMA: &str = env!("CARGO_BIN_EXE_retoma");

/// A running child. Killed when dropped, so that a failing test leaves nothing behind.
pub(crate) struct Running {
    name: String,
    child: Child,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
}

impl Running {
    /// Starts the program with `args` in `folder`. Output goes to `NAME.out` and `NAME.err` there, appended, so that all runs
    /// of one server are in one file.
    pub(crate) fn start(name: &str, folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let (stdout, stderr) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let append = |path: &Path| File::options().create(true).append(true).open(path).unwrap();
        let child = Command::new(RETOMA)
            .args(args)
            .current_dir(folder)
            .env_remove("RETOMA_CONFIG")
            .env_remove("RETOMA_LOG")
            .env_remove("RETOMA_LOG_FORMAT")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(append(&stdout))
            .stderr(append(&stderr))
            .spawn()
            .unwrap();
        Self { name: name.to_owned(), child, stdout, stderr }
    }

    /// Waits until something answers HTTP on `port`.
    pub(crate) fn ready(mut self, port: u16, path: &str) -> Self {
        wait_until(&format!("{} answers on port {port}\n{}", self.name, self.tail()), Duration::from_secs(60), || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{} ended with {status}\n{}", self.name, self.tail());
            }
            http::get(port, path, &[]).is_ok_and(|answer| answer.status < 500)
        });
        self
    }

    /// The most memory that it ever held, in MiB.
    pub(crate) fn peak_memory_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
    }

    /// SIGKILL: no destructor, no flush, no goodbye.
    pub(crate) fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGHUP: read the flows anew.
    pub(crate) fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// SIGTERM, and the exit status of the graceful end.
    pub(crate) fn stop(&mut self, within: Duration) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.wait(within)
    }

    /// Waits for the process to end by itself.
    pub(crate) fn wait(&mut self, within: Duration) -> ExitStatus {
        let mut status = None;
        wait_until(&format!("{} ends\n{}", self.name, self.tail()), within, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.expect("the wait ended because there is one")
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The end of what it wrote, for messages of failing tests.
    pub(crate) fn tail(&self) -> String {
        [&self.stdout, &self.stderr]
            .map(|path| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let lines: Vec<&str> = text.lines().rev().take(15).collect();
                lines.into_iter().rev().collect::<Vec<_>>().join("\n")
            })
            .join("\n--\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program to its end and answers its exit code, stdout and stderr.
pub(crate) fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = Command::new(RETOMA)
        .args(args)
        .current_dir(folder)
        .env_remove("RETOMA_CONFIG")
        .env_remove("RETOMA_LOG")
        .env_remove("RETOMA_LOG_FORMAT")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
