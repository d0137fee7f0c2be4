//! Watches, in unit tests, for statements that walk a whole table: every connection reports them here, and the whole
//! conformance suite is run over it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, StatementStatus};

static SCANS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

pub(crate) fn watch(connection: &mut Connection) {
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note)).unwrap();
}

fn note(event: TraceEvent<'_>) {
    if let TraceEvent::Profile(statement, _) = event
        && statement.get_status(StatementStatus::FullscanStep) > 0
    {
        let sql = statement.sql().split_whitespace().collect::<Vec<_>>().join(" ");
        SCANS.lock().unwrap().insert(sql);
    }
}

/// Tables and walks that may be read from end to end: small ones, those that hold nothing but what is asked for, and pages
/// that begin at one end and stop when they are full.
const MAY_WALK: &[&str] = &[
    "FROM inbox AS i JOIN event AS e ON e.seq = i.seq ORDER BY i.id",
    "SELECT received_at FROM inbox ORDER BY id LIMIT 1",
    "FROM heartbeat",
    "FROM flow_version",
    // Counts where conversations stand, before a flow changes.
    "FROM conversation WHERE tenant = ?1 AND closed = 0 GROUP BY",
    "FROM counter",
    "FROM channel_state",
    "FROM lease_bucket",
    "UPDATE lease_bucket",
    "FROM schema_migration",
    // A migration, once.
    "ALTER TABLE",
    "DROP INDEX",
    "FROM task AS t INDEXED BY task_unsure",
    "FROM task AS t INDEXED BY task_local",
    "FROM dead_letter",
    "FROM mine",
    "ORDER BY a.seq DESC LIMIT",
    "ORDER BY d.seq DESC LIMIT",
    "ORDER BY e.seq DESC LIMIT",
    "ORDER BY t.seq DESC LIMIT",
    "ORDER BY g.seq DESC LIMIT",
    "ORDER BY h.seq DESC LIMIT",
    "FROM gate_held ORDER BY seq LIMIT",
    "FROM event WHERE seq > ?1 ORDER BY seq",
    "FROM task WHERE seq > ?1 ORDER BY seq",
];

#[tokio::test]
async fn no_verb_walks_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    retoma_store::conformance::run(async || {
        count.set(count.get() + 1);
        let path = directory.path().join(format!("{}.db", count.get()));
        crate::SqliteStore::open(path, crate::Options::default()).unwrap()
    })
    .await;
    assert!(count.get() > 90, "the suite ran");
    let scans = SCANS.lock().unwrap();
    assert!(scans.iter().any(|sql| sql.contains("FROM counter")), "scans are seen at all");
    let strangers: Vec<&String> =
        scans.iter().filter(|sql| !MAY_WALK.iter().any(|allowed| sql.contains(allowed))).collect();
    assert!(strangers.is_empty(), "{strangers:#?}");
}
