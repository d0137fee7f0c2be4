//! The real binary on a disk that fails: a small library, loaded before the system's, makes syncs fail or the disk full
//! while a flag file exists. A failed sync ends the process before anything else is acknowledged; a full disk is answered
//! 503 and leaves no mark once there is room again (DESIGN.md, "Storage").

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/harness.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::http::{self, Answer};
use harness::process::Running;
use harness::shop::{self, Shop, Webhook};
use harness::{free_port, wait_until};

/// A moment long ago: what it would remind of is too late, and nothing is sent to the provider that is not there.
const UNIX_MS: i64 = 1_790_000_000_000;

/// The shop on a disk that can be made to fail.
struct Shelf {
    folder: tempfile::TempDir,
    port: u16,
    sync_fails: PathBuf,
    disk_full: PathBuf,
    shim: PathBuf,
}

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, fake_port) = (free_port(), free_port());
        Shop::new(port, fake_port).write(folder.path());
        let [sync_fails, disk_full, shim] = ["sync-fails", "disk-full", "shim.so"].map(|name| folder.path().join(name));
        compile_shim(&shim);
        Self { folder, port, sync_fails, disk_full, shim }
    }

    fn serve(&self) -> Running {
        let env = [
            ("LD_PRELOAD", text(&self.shim)),
            ("SHIM_FILE", shop::DATABASE),
            ("SHIM_SYNC_FAILS", text(&self.sync_fails)),
            ("SHIM_DISK_FULL", text(&self.disk_full)),
        ];
        Running::start("serve", self.folder.path(), &["serve"], &env).ready(self.port, "/healthz/live")
    }

    fn post(&self, webhook: &Webhook) -> std::io::Result<Answer> {
        http::post(self.port, webhook.path, &[(webhook.header.0, &webhook.header.1)], &webhook.body)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn compile_shim(to: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/disk/shim.c");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(to)
        .arg(source)
        .arg("-ldl")
        .output()
        .expect("a C compiler is there: the database is built with it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_failed_sync_acknowledges_nothing_more_and_ends_the_process() {
    let shelf = Shelf::new();
    let mut server = shelf.serve();
    assert_eq!(shelf.post(&shop::pix_created(1, UNIX_MS)).unwrap().status, 200, "the disk works at first");

    std::fs::write(&shelf.sync_fails, "").unwrap();
    // What was not synced must not be acknowledged: refused, or cut off by the end of the process.
    for buyer in 2..5 {
        if let Ok(answer) = shelf.post(&shop::pix_created(buyer, UNIX_MS)) {
            assert_eq!(answer.status, 503, "{}", answer.text());
        }
    }
    let status = server.wait(Duration::from_secs(30));
    assert!(!status.success(), "a process that cannot keep its promise must say so in its exit code");
    let said = std::fs::read_to_string(&server.stderr).unwrap();
    assert!(said.contains("sync") || said.contains("storage failed"), "stderr must say why it ended:\n{said}");

    // The next start finds what was acknowledged, and takes what was not as new or as known, but once.
    std::fs::remove_file(&shelf.sync_fails).unwrap();
    let _server = shelf.serve();
    for buyer in 1..5 {
        assert_eq!(shelf.post(&shop::pix_created(buyer, UNIX_MS)).unwrap().status, 200, "buyer {buyer}");
    }
    let status = http::get(shelf.port, "/status.json", &[]).unwrap().json();
    assert!(status["duplicates"].as_u64().unwrap() >= 1, "the acknowledged one was known: {status}");
}

#[test]
fn a_full_disk_is_answered_503_and_forgotten_when_there_is_room() {
    let shelf = Shelf::new();
    let mut server = shelf.serve();
    assert_eq!(shelf.post(&shop::pix_created(1, UNIX_MS)).unwrap().status, 200, "the disk works at first");

    std::fs::write(&shelf.disk_full, "").unwrap();
    for _ in 0..3 {
        let answer = shelf.post(&shop::pix_created(2, UNIX_MS)).unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text());
        let wait = answer.header("retry-after").and_then(|text| text.parse::<u64>().ok());
        assert!(wait.is_some_and(|seconds| (1..=300).contains(&seconds)), "{}", answer.head);
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("application/problem+json")));
    }
    assert!(server.is_running(), "a full disk is no reason to end\n{}", server.tail());

    std::fs::remove_file(&shelf.disk_full).unwrap();
    wait_until("the refused webhook is taken once there is room", Duration::from_secs(30), || {
        shelf.post(&shop::pix_created(2, UNIX_MS)).is_ok_and(|answer| answer.status == 200)
    });
    wait_until("both events are decided", Duration::from_secs(30), || {
        let status = http::get(shelf.port, "/status.json", &[]).unwrap().json();
        let events = |word: &str| status["events"][word].as_u64().unwrap_or(0);
        events("received") == 0 && events("decided") >= 2
    });
    assert!(server.is_running());
}
