//! The folder of a run: one preloaded database, and a fresh copy for every server. Removed when the run ends, however it
//! ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use retoma_engine::Clock;

use crate::fail;

/// What `statfs` says of memory that looks like a disk.
const TMPFS: i64 = 0x0102_1994;
/// Writes behind the figure of one sync.
const SYNCS: usize = 50;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
/// Room for the preloaded database and its log: for each event, and at least. A million events without bodies are 0.7 GB.
const ROOM_PER_EVENT_BYTES: u64 = 2 * 1024;
const ROOM_LEAST_BYTES: u64 = 512 * 1024 * 1024;

/// The folder.
pub(super) struct Workdir {
    path: PathBuf,
    /// Where the preloaded database lies: it is filled and copied, never measured, so it is in memory where there is room,
    /// which takes a third of the time.
    base: PathBuf,
}

impl Workdir {
    /// Makes the folder: beside the database that `--store` names, else among the system's temporary files, or here where
    /// those are kept in memory.
    pub(super) fn make(store: Option<&str>, preload: u64) -> anyhow::Result<Self> {
        let parent = match store {
            None | Some("sqlite") => temporary(),
            Some(url) => match url.strip_prefix("sqlite://") {
                Some(path) => Path::new(path).parent().map_or_else(PathBuf::new, Path::to_owned),
                None => {
                    return Err(fail::usage(format!(
                        "--store {url}: not available in this version; sqlite://PATH is, and measures on the disk of PATH \
                         without touching it"
                    )));
                }
            },
        };
        let parent = if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent };
        let name = format!("retoma-bench-{}", std::process::id());
        let path = parent.join(&name);
        fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        let in_memory = Path::new(MEMORY).join(name);
        let base = if has_room(Path::new(MEMORY), preload) && fs::create_dir(&in_memory).is_ok() {
            in_memory
        } else {
            path.clone()
        };
        Ok(Self { path, base })
    }

    /// The preloaded database.
    pub(super) fn base(&self) -> PathBuf {
        self.base.join("base.db")
    }

    /// A fresh copy of the preloaded database, on disk before this returns, so that writing it back disturbs no
    /// measurement.
    pub(super) fn copy(&self, name: &str) -> anyhow::Result<PathBuf> {
        let to = self.path.join(format!("{name}.db"));
        let copied = || -> io::Result<()> {
            fs::copy(self.base(), &to)?;
            File::open(&to)?.sync_all()?;
            let log = self.base().with_extension("db-wal");
            if log.exists() {
                fs::copy(log, to.with_extension("db-wal"))?;
            }
            Ok(())
        };
        copied().with_context(|| format!("the preloaded database cannot be copied to {}", to.display()))?;
        Ok(to)
    }

    /// Removes a copy, and what stands beside it.
    pub(super) fn discard(&self, database: &Path) {
        for beside in ["db", "db-wal", "db-shm", "db.lock"] {
            // What was never there need not go; the rest goes with the folder.
            let _ = fs::remove_file(database.with_extension(beside));
        }
    }

    /// Whether the folder is in memory, where a synced commit costs nothing and proves nothing.
    pub(super) fn is_in_memory(&self) -> bool {
        is_in_memory(&self.path)
    }

    /// The median time of one synced write of a page on this disk.
    pub(super) fn sync_time(&self, clock: &dyn Clock) -> anyhow::Result<Duration> {
        let path = self.path.join("sync");
        let mut file = File::create(&path).with_context(|| path.display().to_string())?;
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let begun = clock.monotonic();
            file.write_all(&[0x5a; 4096])?;
            file.sync_data()?;
            times.push(clock.monotonic() - begun);
        }
        fs::remove_file(path)?;
        times.sort_unstable();
        Ok(times[SYNCS / 2])
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        let folders = if self.base == self.path { vec![&self.path] } else { vec![&self.base, &self.path] };
        for folder in folders {
            if let Err(error) = fs::remove_dir_all(folder) {
                tracing::warn!(event = "bench_files_left", path = %folder.display(), error = %error, "remove them by hand");
            }
        }
    }
}

fn temporary() -> PathBuf {
    let temporary = std::env::temp_dir();
    if is_in_memory(&temporary) { PathBuf::from(".") } else { temporary }
}

/// Whether a folder is in memory and has room for a preloaded database, and the machine memory for it beside the servers.
fn has_room(folder: &Path, preload: u64) -> bool {
    let needed = ROOM_LEAST_BYTES.max(preload.saturating_mul(ROOM_PER_EVENT_BYTES));
    let free = rustix::fs::statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
    let available_kib = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    is_in_memory(folder) && free >= needed && available_kib.unwrap_or(0) / 4 >= needed / 1024
}

fn is_in_memory(path: &Path) -> bool {
    // The field's type differs between architectures.
    rustix::fs::statfs(path).is_ok_and(|found| i128::from(found.f_type) == i128::from(TMPFS))
}
