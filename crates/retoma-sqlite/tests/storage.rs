//! What happens when storage fails, and what opening promises.

#![allow(clippy::unwrap_used, reason = "every line of it is a test")]

use bytes::Bytes;
use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind};
use retoma_core::ids::{EventId, RequestId, Tenant};
use retoma_core::keys::digest16;
use retoma_sqlite::{Database, FaultPlan, OpenError, Options, SqliteStore};
use retoma_store::{
    Appended, AuditRow, Entry, Error, Intake, LeaseRequest, NewEvent, Page, PendingQuery, RawRequest, Store, Subject,
};
use rusqlite::Connection;

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

fn intake(n: u32, body: usize) -> Intake {
    let key = n.to_be_bytes();
    Intake {
        request: Some(RawRequest {
            id: RequestId(uuid::Uuid::from_u128(u128::from(n))),
            headers: Vec::new(),
            body: Bytes::from(vec![b'x'; body]),
        }),
        events: vec![NewEvent {
            id: EventId(uuid::Uuid::from_u128(u128::from(n))),
            tenant: Tenant::default(),
            source: "zap".into(),
            kind: EventKind::MessageReceived,
            key: n.to_string(),
            delivery_key: digest16("delivery", &[&key]),
            business_key: None,
            digest: digest16("body", &[&key]),
            entry: Entry::Received,
            subject: Subject::Nobody,
            occurred_at: now(),
            received_at: now(),
            urgent: false,
            data: EventData::default(),
            receipt: None,
        }],
    }
}

async fn pending(store: &SqliteStore) -> usize {
    let lease =
        LeaseRequest { node: "n".to_owned(), lease: std::time::Duration::ZERO, max_buckets: 1024, explicit: false };
    let owner = store.acquire_leases(lease).await.unwrap().owner;
    let query = PendingQuery { owner, after: None, rescan_from: None, limit: 10_000 };
    store.load_pending(query).await.unwrap().len()
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("retoma.db");
    (directory, path)
}

/// The page limit is SQLite's own, so this is the code path of a disk without room.
#[tokio::test]
async fn a_full_disk_refuses_keeps_what_it_had_and_goes_on_when_there_is_room() {
    let (_directory, path) = file();
    let faults = FaultPlan::default();
    let options = Options { max_page_count: Some(400), faults: faults.clone(), ..Options::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    let mut stored = 0;
    let refused = loop {
        match store.append_events(vec![intake(stored, 20_000)]).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full(_)) && refused.is_retryable(), "{refused:?}");
    assert!(stored > 10, "{stored} were stored before it was full");
    assert_eq!(pending(&store).await, usize::try_from(stored).unwrap(), "nothing of the refused one is there");
    assert!(matches!(store.append_events(vec![intake(stored, 20_000)]).await, Err(Error::Full(_))));
    faults.limit_pages(100_000);
    let answers = store.append_events(vec![intake(stored, 20_000)]).await.unwrap();
    assert!(matches!(answers[0][0], Appended::New { .. }), "the same batch succeeds: {answers:?}");
    assert_eq!(pending(&store).await, usize::try_from(stored + 1).unwrap());
    store.close().await;
}

#[tokio::test]
async fn a_failed_sync_poisons_the_store_for_good() {
    let (_directory, path) = file();
    let faults = FaultPlan::default();
    let store = SqliteStore::open(&path, Options { faults: faults.clone(), ..Options::default() }).unwrap();
    store.append_events(vec![intake(1, 10)]).await.unwrap();
    faults.fail_next_sync();
    let failed = store.append_events(vec![intake(2, 10)]).await.unwrap_err();
    assert!(matches!(failed, Error::Poisoned(_)) && failed.is_fatal(), "{failed:?}");
    // The fault is over; nothing is acknowledged all the same, and nothing read.
    for _ in 0..2 {
        assert!(matches!(store.append_events(vec![intake(3, 10)]).await, Err(Error::Poisoned(_))));
        assert!(matches!(store.stats(now()).await, Err(Error::Poisoned(_))));
        assert!(matches!(store.next_wake().await, Err(Error::Poisoned(_))));
    }
    store.close().await;
    // What was acknowledged is there; what was not may be, and here is not.
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    assert_eq!(pending(&store).await, 1);
    store.close().await;
}

#[tokio::test]
async fn verbs_that_wait_together_share_a_commit_and_a_bad_one_fails_alone() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let good = |n| store.append_events(vec![intake(n, 10)]);
    // Another event under an id that is taken: no backend can store it, and it must not take its neighbours along.
    let mut bad = intake(1, 10);
    bad.events[0].delivery_key = digest16("delivery", &[b"other"]);
    let (first, bad, last) = tokio::join!(good(1), store.append_events(vec![bad]), good(2));
    assert!(matches!(first.unwrap()[0][0], Appended::New { .. }));
    let refused = bad.unwrap_err();
    assert!(matches!(refused, Error::Other(_)) && !refused.is_retryable(), "{refused:?}");
    assert!(matches!(last.unwrap()[0][0], Appended::New { .. }));
    assert_eq!(pending(&store).await, 2);
    store.close().await;
}

#[tokio::test]
async fn a_second_opener_is_refused_until_the_first_has_closed() {
    let (_directory, path) = file();
    let first = SqliteStore::open(&path, Options::default()).unwrap();
    let refused = SqliteStore::open(&path, Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::AlreadyOpen { .. }), "{refused:?}");
    assert!(refused.to_string().contains("open for writing already"), "{refused}");
    first.close().await;
    assert!(matches!(first.append_events(vec![intake(1, 1)]).await, Err(Error::Closed)));
    assert!(matches!(first.next_wake().await, Err(Error::Closed)));
    SqliteStore::open(&path, Options::default()).unwrap().close().await;
}

#[test]
fn settings_are_what_the_promises_rest_on() {
    let (_directory, path) = file();
    let database = Database::open(&path, Options::default()).unwrap();
    let setting = |database: &Database, name: &str| {
        let rows = database.read(|database| database.query_sql(&format!("SELECT * FROM pragma_{name}"))).unwrap().rows;
        rows[0][0].to_string().replace('"', "")
    };
    for (name, expected) in [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("journal_size_limit", "134217728"),
        ("foreign_keys", "0"),
        ("temp_store", "2"),
        ("cache_size", "-12288"),
        ("query_only", "0"),
    ] {
        assert_eq!(setting(&database, name), expected, "{name}");
    }
    let reader = Database::open_reader(&path, Options::default()).unwrap();
    assert_eq!(setting(&reader, "query_only"), "1");
    let written = reader.read(|reader| reader.append_events(&[intake(1, 1)]));
    assert!(written.is_err(), "a reader cannot write");
}

#[test]
fn a_setting_that_sqlite_does_not_take_is_refused() {
    let (_directory, path) = file();
    // Beyond 2^63 SQLite reads "no limit", silently.
    let options = Options { journal_bytes_max: u64::MAX, ..Options::default() };
    let refused = Database::open(&path, options).unwrap_err();
    assert!(matches!(&refused, OpenError::Setting { name, .. } if name == "journal_size_limit"), "{refused:?}");
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_in_plain_words() {
    let (_directory, path) = file();
    SqliteStore::open(&path, Options::default()).unwrap().close().await;
    let connection = Connection::open(&path).unwrap();
    connection.execute("INSERT INTO schema_migration VALUES (99, '0099_later', 'x')", []).unwrap();
    drop(connection);
    let refused = SqliteStore::open(&path, Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, .. }), "{refused:?}");
    assert!(refused.to_string().contains("written by a newer version"), "{refused}");
}

#[tokio::test]
async fn a_backup_is_whole_opens_by_itself_and_never_overwrites() {
    let (directory, path) = file();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    for n in 0..50 {
        store.append_events(vec![intake(n, 5000)]).await.unwrap();
    }
    let target = directory.path().join("copy.db");
    store.backup(target.clone()).await.unwrap();
    store.append_events(vec![intake(99, 10)]).await.unwrap();
    let again = store.backup(target.clone()).await;
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    let copy = SqliteStore::open(&target, Options::default()).unwrap();
    assert_eq!((pending(&copy).await, pending(&store).await), (50, 51));
    copy.close().await;
    store.close().await;
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

#[tokio::test]
async fn the_checkpointer_keeps_the_log_short_off_the_commit_path() {
    let (_directory, path) = file();
    let options =
        Options { checkpoint_pages: 50, restart_pages: 200, journal_bytes_max: 400 * 4096, ..Options::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    for n in 0..600 {
        store.append_events(vec![intake(n, 20_000)]).await.unwrap();
    }
    let log = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    store.close().await;
    // Without checkpoints it would be more than 600 x 20 kB.
    assert!(log < 6_000_000, "{log} bytes of log");
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    assert_eq!(pending(&store).await, 600);
    store.close().await;
}

#[tokio::test]
async fn a_read_that_takes_too_long_is_ended_and_the_next_one_is_served() {
    let (_directory, path) = file();
    let options = Options { read_max: std::time::Duration::from_millis(30), ..Options::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let ended = store.query_sql(endless.to_owned()).await;
    assert!(matches!(ended, Err(Error::Busy(_))), "{ended:?}");
    assert_eq!(store.query_sql("SELECT 1".to_owned()).await.unwrap().rows.len(), 1);
    store.close().await;
}

#[tokio::test]
async fn closing_commits_what_was_queued() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let row = |n: i64| AuditRow {
        tenant: Tenant::default(),
        at: now(),
        actor: "ana".to_owned(),
        action: "test".to_owned(),
        target: n.to_string(),
        detail: serde_json::Value::Null,
    };
    let (written, ()) = tokio::join!(store.append_audit((0..100).map(row).collect()), store.close());
    written.unwrap();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let page = store.list_audit(Tenant::default(), Page { cursor: None, limit: 500 }).await.unwrap();
    assert_eq!(page.items.len(), 100);
    store.close().await;
}
