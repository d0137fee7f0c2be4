//! Schema versions: numbered SQL files, applied once each, in order, with a checksum of what was applied.
//!
//! A released file is never edited; a database whose record differs from the file, or that knows more than this program,
//! is refused and left as it is.

use retoma_core::keys::digest16;
use rusqlite::{Connection, params};

use crate::OpenError;

pub(crate) struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal,)*) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../migrations/", $name, ".sql")),
        },)*]
    };
}

/// Every migration this program knows, in order.
const KNOWN: &[Migration] = migrations![
    1 "0001_tables",
    2 "0002_views",
    3 "0003_people",
    4 "0004_delivery",
    5 "0005_flow_versions",
    6 "0006_arrival",
    7 "0007_gate",
];

/// Brings the database to the newest schema; one transaction per step, so that a crash leaves a whole number of steps.
pub(crate) fn run(connection: &Connection) -> Result<(), OpenError> {
    run_list(connection, KNOWN)
}

fn run_list(connection: &Connection, known: &[Migration]) -> Result<(), OpenError> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migration (
            version  INTEGER PRIMARY KEY,
            name     TEXT NOT NULL,
            checksum TEXT NOT NULL
        )",
    )?;
    let applied: Vec<(u32, String, String)> = connection
        .prepare("SELECT version, name, checksum FROM schema_migration ORDER BY version")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (version, name, checksum) in &applied {
        let Some(migration) = known.iter().find(|migration| migration.version == *version) else {
            let newest = known.last().map_or(0, |migration| migration.version);
            return Err(OpenError::NewerSchema { found: *version, known: newest });
        };
        if migration.checksum() != *checksum {
            return Err(OpenError::ChangedMigration { name: name.clone() });
        }
    }
    for migration in known.iter().filter(|migration| applied.iter().all(|(version, ..)| *version != migration.version))
    {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let applied = connection.execute_batch(migration.sql).and_then(|()| {
            connection.execute(
                "INSERT INTO schema_migration (version, name, checksum) VALUES (?1, ?2, ?3)",
                params![migration.version, migration.name, migration.checksum()],
            )?;
            connection.execute_batch("COMMIT")
        });
        if let Err(error) = applied {
            let _ = connection.execute_batch("ROLLBACK");
            return Err(error.into());
        }
    }
    Ok(())
}

impl Migration {
    fn checksum(&self) -> String {
        format!("{:?}", digest16("migration", &[self.sql.as_bytes()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(steps: &[(u32, &'static str, &'static str)]) -> Vec<Migration> {
        steps.iter().map(|(version, name, sql)| Migration { version: *version, name, sql }).collect()
    }

    fn tables(connection: &Connection) -> Vec<String> {
        connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'schema_migration' ORDER BY name")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap()
    }

    const ONE: (u32, &str, &str) = (1, "0001_a", "CREATE TABLE a (x)");
    const TWO: (u32, &str, &str) = (2, "0002_b", "CREATE TABLE b (x); INSERT INTO b SELECT x FROM a");

    #[test]
    fn steps_are_applied_once_and_only_the_missing_ones() {
        let connection = Connection::open_in_memory().unwrap();
        run_list(&connection, &known(&[ONE])).unwrap();
        connection.execute("INSERT INTO a VALUES (7)", []).unwrap();
        run_list(&connection, &known(&[ONE, TWO])).unwrap();
        run_list(&connection, &known(&[ONE, TWO])).unwrap();
        assert_eq!(tables(&connection), ["a", "b"]);
        assert_eq!(connection.query_row("SELECT count(*) FROM b", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }

    #[test]
    fn a_schema_from_a_newer_program_is_refused_and_left_alone() {
        let connection = Connection::open_in_memory().unwrap();
        run_list(&connection, &known(&[ONE, TWO])).unwrap();
        let refused = run_list(&connection, &known(&[ONE])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the database has schema 2, this program knows 1: it was written by a newer version; install that one"
        );
        assert_eq!(tables(&connection), ["a", "b"]);
    }

    #[test]
    fn a_step_that_was_edited_after_its_release_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        run_list(&connection, &known(&[ONE])).unwrap();
        let refused = run_list(&connection, &known(&[(1, "0001_a", "CREATE TABLE a (x, y)")])).unwrap_err();
        assert!(matches!(refused, OpenError::ChangedMigration { .. }), "{refused}");
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_of_itself() {
        let connection = Connection::open_in_memory().unwrap();
        let broken = (2, "0002_b", "CREATE TABLE b (x); INSERT INTO nowhere VALUES (1)");
        run_list(&connection, &known(&[ONE, broken])).unwrap_err();
        assert_eq!(tables(&connection), ["a"]);
        run_list(&connection, &known(&[ONE, TWO])).unwrap();
        assert_eq!(tables(&connection), ["a", "b"]);
    }

    #[test]
    fn numbers_follow_each_other() {
        let numbers: Vec<u32> = KNOWN.iter().map(|migration| migration.version).collect();
        assert_eq!(numbers, (1..=u32::try_from(KNOWN.len()).unwrap()).collect::<Vec<_>>());
        assert!(KNOWN.iter().all(|migration| migration.name.starts_with(&format!("{:04}_", migration.version))));
    }
}
