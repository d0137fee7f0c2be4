//! The tables that SQL users know (D3), over live and finished rows.

#![allow(clippy::unwrap_used, reason = "every line of it is a test")]

use retoma_core::task::TaskStatus;
use retoma_sqlite::{Database, Options};
use rusqlite::Connection;
use serde_json::{Value, json};

/// Rows as they lie there, written by hand so that every status word occurs.
const ROWS: &str = "
    INSERT INTO contact (id, tenant, bucket, version, paused_until, cycles, created_at) VALUES
        (x'00000000000070009000000000000001', 'default', 1, 3, 1790000100250, 1, 0),
        (x'00000000000070009000000000000002', 'default', 2, 0, NULL, 0, 0);
    INSERT INTO identity (match_key, kind, tenant, contact, value, confirmed) VALUES
        ('554199990001', 0, 'default', x'00000000000070009000000000000001', '5541999990001', 0),
        ('554188880001', 0, 'default', x'00000000000070009000000000000001', '554188880001', 1),
        ('ana@example.com', 4, 'default', x'00000000000070009000000000000002', 'ana@example.com', 0);
    INSERT INTO conversation (id, contact, tenant, ordinal, flow, offer, state, version, closed, deadline_at, body) VALUES
        (x'01', x'00000000000070009000000000000001', 'default', 1, 'vendas', 'curso', 'AGUARDANDO_PIX', 4, 0, 1790000900000, '{}');
    INSERT INTO transition_log (tenant, contact, conversation, from_state, event, to_state, event_id, at) VALUES
        ('default', x'00000000000070009000000000000001', x'01', 'NOVO', 'pix_gerado', 'AGUARDANDO_PIX', x'02', 1790000000001);
    INSERT INTO heartbeat (flow, seen_at) VALUES ('owner', 1790000000000);
    INSERT INTO gate_key (tenant, scope, key, status, first_seen_at, correlation_id, attempt, metadata, keep_until) VALUES
        ('default', 'cobranca', 'pedido-1', 'LOCKED', 1790000000000, 'pedido-1', 1, '{\"source\":\"n8n\"}', 0);
    INSERT INTO event (id, tenant, bucket, source, kind, key, delivery_key, contact, occurred_at, received_at, urgent, data,
        status, duplicates) VALUES
        (x'00000000000070008000000000000001', 'default', 1, 'zap', 'message.received', 'loja-a/1', x'01',
         x'00000000000070009000000000000002', 1790000000000, 1790000000500, 0, '{}', 'received', 2),
        (x'00000000000070008000000000000002', 'default', 1, 'zap', 'unknown', 'loja-a/2', x'02', NULL, 0, 0, 0, '{}', 'held', 0);
";

fn insert_task(connection: &Connection, id: &str, status: &str, cadence: Option<&str>, late_by_minutes: i64) {
    connection
        .execute(
            "INSERT INTO task (id, tenant, bucket, contact, flow, kind, cadence, touch_no, message, class, channel, order_txn,
                scheduled_for, next_attempt_at, handed, status, avoided, attempts, resent, created_at, updated_at, done,
                last_error)
             VALUES (?1, 'default', 1, x'00000000000070009000000000000001', 'vendas', 'touch', ?3, 1, 'lembrete_pix',
                'reminder', 'zap', 'HP1', 1790000000000, unixepoch('now') * 1000 - ?4 * 60000, 1, ?2, 0, 2, 0, 0, 0,
                ?2 IN ('sent', 'cancelled', 'dead'), 'HTTP 502')",
            (id, status, cadence, late_by_minutes),
        )
        .unwrap();
}

fn rows(database: &Database, sql: &str) -> Vec<Vec<Value>> {
    database.read(|database| database.query_sql(sql)).unwrap().rows
}

fn columns(database: &Database, view: &str) -> Vec<String> {
    database.read(|database| database.query_sql(&format!("SELECT * FROM {view}"))).unwrap().columns
}

fn filled() -> (tempfile::TempDir, Database) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("retoma.db");
    drop(Database::open(&path, Options::default()).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(ROWS).unwrap();
    for status in TaskStatus::ALL {
        insert_task(&connection, status.as_str(), status.as_str(), Some("pix_pendente"), 0);
    }
    insert_task(&connection, "action", "sent", None, 0);
    drop(connection);
    let database = Database::open_reader(&path, Options::default()).unwrap();
    (directory, database)
}

#[test]
fn every_view_has_exactly_the_promised_columns() {
    let (_directory, database) = filled();
    for (view, expected) in [
        (
            "tarefas",
            "tarefa_id contato motivo toque status agendada_para tentativas proxima_em ultimo_erro referencia criada_em \
             atualizada_em",
        ),
        ("conversas", "contato oferta estado versao prazo_em bot_pausado_ate"),
        ("transicoes", "contato de evento para quando"),
        ("fluxo_batimento", "fluxo visto_em"),
        ("idempotency_keys", "scope idempotency_key first_seen_at status metadata"),
    ] {
        assert_eq!(columns(&database, view).join(" "), expected, "{view}");
    }
}

#[test]
fn every_status_has_its_portuguese_word_live_or_finished() {
    let (_directory, database) = filled();
    let words = rows(&database, "SELECT tarefa_id, status FROM tarefas WHERE tarefa_id <> 'action' ORDER BY 1");
    let words: Vec<String> = words.iter().map(|row| format!("{} {}", row[0], row[1]).replace('"', "")).collect();
    assert_eq!(
        words,
        [
            "cancelled cancelada",
            "dead morta",
            "failed falha",
            "held retida",
            "scheduled agendada",
            "sending enviando",
            "sent enviada",
            "unsure incerta"
        ]
    );
}

#[test]
fn a_task_is_shown_as_sellers_know_it() {
    let (_directory, database) = filled();
    let shown = "SELECT contato, motivo, toque, agendada_para, tentativas, ultimo_erro, referencia FROM tarefas";
    assert_eq!(
        rows(&database, &format!("{shown} WHERE tarefa_id = 'sent'")),
        [[
            json!("554188880001"),
            json!("pix_pendente"),
            json!(1),
            json!("2026-09-21 14:13:20.000"),
            json!(2),
            json!("HTTP 502"),
            json!("HP1")
        ]],
        "the confirmed phone, the cadence, the touch's number"
    );
    assert_eq!(rows(&database, &format!("{shown} WHERE tarefa_id = 'action'"))[0][1], json!("lembrete_pix"));
}

/// The watchdog's query of an ordinary Postgres task table, with only the names changed.
#[test]
fn the_watchdogs_query_runs_on_tarefas() {
    let (directory, database) = filled();
    let connection = Connection::open(directory.path().join("retoma.db")).unwrap();
    insert_task(&connection, "late", "scheduled", Some("carrinho"), 16);
    insert_task(&connection, "late_retry", "failed", Some("carrinho"), 20);
    insert_task(&connection, "not_so_late", "scheduled", Some("carrinho"), 14);
    insert_task(&connection, "late_but_sent", "sent", Some("carrinho"), 90);
    let late = "SELECT tarefa_id FROM tarefas WHERE status IN ('agendada', 'falha')
                AND proxima_em < datetime('now', '-15 minutes') ORDER BY 1";
    assert_eq!(rows(&database, late), [[json!("late")], [json!("late_retry")]]);
    let second_touch = "SELECT count(*) FROM tarefas WHERE status = 'agendada' AND toque = 1 AND motivo = 'carrinho'";
    assert_eq!(rows(&database, second_touch), [[json!(2)]]);
    let silent = "SELECT fluxo FROM fluxo_batimento WHERE visto_em < datetime('now', '-10 minutes')
                  OR visto_em > datetime('now')";
    assert_eq!(rows(&database, silent), [[json!("owner")]]);
}

#[test]
fn the_other_views_show_what_is_stored() {
    let (_directory, database) = filled();
    let email_only = "00000000-0000-7000-9000-000000000002";
    for (sql, expected) in [
        (
            "SELECT * FROM conversas",
            json!([[
                "554188880001",
                "curso",
                "AGUARDANDO_PIX",
                4,
                "2026-09-21 14:28:20.000",
                "2026-09-21 14:15:00.250"
            ]]),
        ),
        (
            "SELECT * FROM transicoes",
            json!([["554188880001", "NOVO", "pix_gerado", "AGUARDANDO_PIX", "2026-09-21 14:13:20.001"]]),
        ),
        ("SELECT * FROM fluxo_batimento", json!([["owner", "2026-09-21 14:13:20.000"]])),
        (
            "SELECT scope, idempotency_key, first_seen_at, status FROM idempotency_keys",
            json!([
                ["cobranca", "pedido-1", "2026-09-21 14:13:20.000", "LOCKED"],
                ["zap", "loja-a/1", "2026-09-21 14:13:20.500", "PROCESSING"],
                ["zap", "loja-a/2", "1970-01-01 00:00:00.000", "FAILED"]
            ]),
        ),
        (
            "SELECT evento_id, contato, status, repeticoes FROM eventos",
            json!([
                ["00000000-0000-7000-8000-000000000001", email_only, "received", 2],
                ["00000000-0000-7000-8000-000000000002", null, "held", 0]
            ]),
        ),
    ] {
        assert_eq!(json!(rows(&database, sql)), expected, "{sql}");
    }
}
