-- The tables. Times are INTEGER unix milliseconds (UTC); UUIDs are BLOB(16); words are the TEXT of the API.
--
-- `bucket` is a plain column here: one process owns every bucket of a SQLite file, and a key that led with it would scatter
-- appends over 1024 leaves. What is appended (events, contacts, tasks, the log) sits in commit order (`seq`), so that one
-- commit touches few pages; only what must be found by a random key (dedupe, identity, gate) lives under one.
-- No foreign keys: every row is written by the verbs of this crate, in one transaction.

-- ---- events --------------------------------------------------------------------------------------------------------

-- One row per recognised happening. Immutable but for the end columns (status .. business_key).
CREATE TABLE event (
    seq          INTEGER PRIMARY KEY,           -- commit order
    id           BLOB NOT NULL UNIQUE,
    tenant       TEXT NOT NULL,
    bucket       INTEGER NOT NULL,
    source       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    key          TEXT NOT NULL,                 -- the delivery key in words, for people
    delivery_key BLOB NOT NULL,
    contact      BLOB,
    raw          INTEGER,                       -- raw_request.seq
    occurred_at  INTEGER NOT NULL,
    received_at  INTEGER NOT NULL,
    urgent       INTEGER NOT NULL,
    data         TEXT NOT NULL,                 -- EventData as JSON
    status       TEXT NOT NULL,
    reason       TEXT,
    completed_at INTEGER,
    result       TEXT,
    error        TEXT,
    duplicates   INTEGER NOT NULL DEFAULT 0,
    altered      INTEGER NOT NULL DEFAULT 0,
    business_key BLOB,                          -- the fact it states; of a held one, claimed when it is released
    said_first   INTEGER NOT NULL DEFAULT 0,    -- 1: the fact was claimed by this event as it came in
    digest       BLOB                           -- of its bytes
);
-- The timeline of a contact. Contact ids of one process sort by time, so new contacts append here.
CREATE INDEX event_contact ON event (contact, seq) WHERE contact IS NOT NULL;
-- What a person must look at. Partial: ordinary events never enter it.
CREATE INDEX event_attention ON event (status, seq) WHERE status IN ('held', 'quarantined', 'dead');

-- The bytes as they came, once per request whatever the number of parts. `altered_of` marks the other bytes of a
-- repeated key.
CREATE TABLE raw_request (
    seq         INTEGER PRIMARY KEY,
    id          BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    refs        INTEGER NOT NULL,               -- events that were read from it
    altered_of  INTEGER,                        -- event.seq
    headers     TEXT NOT NULL,
    body        BLOB NOT NULL
);
CREATE INDEX raw_request_altered ON raw_request (altered_of) WHERE altered_of IS NOT NULL;

-- Events that wait to be decided: presence here is what "pending" means. Rows leave with their decision, so that
-- loading, the look at undecided events before a start, and queue age cost the same after ten million events.
CREATE TABLE inbox (
    id          BLOB PRIMARY KEY,               -- event.id
    seq         INTEGER NOT NULL,               -- event.seq
    tenant      TEXT NOT NULL,
    bucket      INTEGER NOT NULL,
    contact     BLOB,
    urgent      INTEGER NOT NULL,
    received_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX inbox_contact ON inbox (contact, urgent) WHERE contact IS NOT NULL;

-- Whatever may happen once: deliveries, business facts, ids of tasks that retention removed. Never updated, in no lifecycle
-- but its own; a finished or removed row elsewhere never frees a business key or a task id. The keys of the newest events
-- enter late, many at a time (events/recognised.rs); until then their event rows say the same.
CREATE TABLE dedupe (
    key    BLOB PRIMARY KEY,
    what   INTEGER NOT NULL,                    -- 1 delivery, 2 business fact, 3 task that is gone
    ref    BLOB,                                -- of a business fact: the event that said it first
    seq    INTEGER,                             -- of a delivery: event.seq
    digest BLOB                                 -- of a delivery's bytes
) WITHOUT ROWID;

-- The keys of all events up to this one are in `dedupe`.
CREATE TABLE dedupe_until (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
);

-- What was said of an order's money, whichever contact holds it. Never taken back.
CREATE TABLE payment_fact (
    txn         TEXT NOT NULL,
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    rank        INTEGER NOT NULL,
    occurred_at INTEGER NOT NULL,
    event       BLOB NOT NULL,
    PRIMARY KEY (txn, platform, account, tenant, kind)
) WITHOUT ROWID;

-- ---- people --------------------------------------------------------------------------------------------------------

CREATE TABLE contact (
    id              BLOB PRIMARY KEY,
    tenant          TEXT NOT NULL,
    bucket          INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    opted_out_at    INTEGER,
    paused_until    INTEGER,
    last_inbound_at INTEGER,
    last_channel    TEXT,
    vars            TEXT,                       -- JSON; NULL where there are none
    cycles          INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) WITHOUT ROWID;

-- Who holds an identity. Unique by match key, so that both ninth-digit spellings cannot be created at once.
CREATE TABLE identity (
    match_key TEXT NOT NULL,
    kind      INTEGER NOT NULL,                 -- IdentityKind::ALL, from 0
    tenant    TEXT NOT NULL,
    contact   BLOB NOT NULL,
    value     TEXT NOT NULL,
    confirmed INTEGER NOT NULL,
    PRIMARY KEY (match_key, kind, tenant)
) WITHOUT ROWID;
CREATE INDEX identity_contact ON identity (contact, kind);

-- Identities that a contact claims and another one holds: evidence for "cancel wide" and for linking by a person.
CREATE TABLE identity_alias (
    match_key TEXT NOT NULL,
    kind      INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    contact   BLOB NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (match_key, kind, tenant, contact)
) WITHOUT ROWID;
CREATE INDEX identity_alias_contact ON identity_alias (contact);

-- `body` is the whole Conversation; the columns beside it are what SQL asks for.
CREATE TABLE conversation (
    seq         INTEGER PRIMARY KEY,
    id          BLOB NOT NULL,
    contact     BLOB NOT NULL,
    tenant      TEXT NOT NULL,
    ordinal     INTEGER NOT NULL,
    flow        TEXT NOT NULL,
    offer       TEXT,
    state       TEXT NOT NULL,
    version     INTEGER NOT NULL,
    closed      INTEGER NOT NULL,
    deadline_at INTEGER,
    body        TEXT NOT NULL,
    UNIQUE (contact, id)
);
CREATE INDEX conversation_deadline ON conversation (deadline_at) WHERE deadline_at IS NOT NULL AND closed = 0;

-- Append only (C14).
CREATE TABLE transition_log (
    seq          INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    contact      BLOB NOT NULL,
    conversation BLOB NOT NULL,
    from_state   TEXT NOT NULL,
    event        TEXT NOT NULL,
    taken_as     TEXT,
    to_state     TEXT NOT NULL,
    reason       TEXT,
    actions      TEXT,                          -- JSON; NULL where there are none
    rule         TEXT,
    event_id     BLOB NOT NULL,
    at           INTEGER NOT NULL
);
CREATE INDEX transition_contact ON transition_log (contact, seq);

-- ---- promises ------------------------------------------------------------------------------------------------------

-- Live and finished tasks in one table: finished work leaves the partial indexes below at once, which is what keeps the
-- due index tiny; copying rows to a second table would double the pages written per finish and halve nothing.
CREATE TABLE task (
    seq                 INTEGER PRIMARY KEY,    -- order of promise
    id                  TEXT NOT NULL,
    tenant              TEXT NOT NULL,
    bucket              INTEGER NOT NULL,
    contact             BLOB NOT NULL,
    conversation        BLOB,
    flow                TEXT NOT NULL,
    kind                TEXT NOT NULL,
    cadence             TEXT,
    touch               TEXT,
    touch_no            INTEGER,
    message             TEXT NOT NULL,
    text                TEXT,
    class               TEXT NOT NULL,
    channel             TEXT NOT NULL,
    order_platform      TEXT,
    order_account       TEXT,
    order_txn           TEXT,
    amount              TEXT,
    link                TEXT,
    scheduled_for       INTEGER NOT NULL,       -- commercial time
    next_attempt_at     INTEGER NOT NULL,       -- technical time
    handed              INTEGER NOT NULL,
    max_late            INTEGER,                -- milliseconds
    on_ambiguous        TEXT,
    cancel_on           TEXT,                   -- JSON; NULL where there is none
    status              TEXT NOT NULL,
    reason              TEXT,
    avoided             INTEGER NOT NULL,
    attempts            INTEGER NOT NULL,
    cancel_reason       TEXT,
    reconcile_until     INTEGER,
    resent              INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    -- Beside what a Task carries:
    done                INTEGER NOT NULL,       -- status is final
    starts              INTEGER NOT NULL DEFAULT 0, -- attempt.ord of the last attempt; `attempts` counts fewer
    started_at          INTEGER,                -- of the last attempt
    outcome             TEXT,                   -- of the last attempt
    last_error          TEXT,
    provider_message_id TEXT,
    detail              TEXT,                   -- what is missing, for held; evidence
    UNIQUE (id, tenant)
);
CREATE INDEX task_contact ON task (contact, done);
-- `done` leads, so that whatever is still open can be found by anything else without walking history.
CREATE INDEX task_order ON task (done, order_txn);
CREATE INDEX task_due ON task (next_attempt_at) WHERE handed = 1 AND status IN ('scheduled', 'failed');
CREATE INDEX task_unsure ON task (reconcile_until) WHERE status = 'unsure';
CREATE INDEX task_sending ON task (started_at) WHERE status = 'sending';
CREATE INDEX task_attention ON task (status, seq) WHERE status IN ('held', 'unsure', 'dead');

-- One try of a task. Appended at its start, ended once. `counts` is 1 while the message was or may have been sent. A try
-- that burns no attempt (a rate limit) gives its number `n` to the next one.
CREATE TABLE attempt (
    task                INTEGER NOT NULL,       -- task.seq
    ord                 INTEGER NOT NULL,
    n                   INTEGER NOT NULL,
    contact             BLOB NOT NULL,
    class               TEXT NOT NULL,
    started_at          INTEGER NOT NULL,
    counts              INTEGER NOT NULL,
    ended_at            INTEGER,
    outcome             TEXT,
    http_status         INTEGER,
    error               TEXT,
    response            TEXT,
    provider_message_id TEXT,
    PRIMARY KEY (task, ord)
) WITHOUT ROWID;
CREATE INDEX attempt_contact ON attempt (contact, started_at) WHERE counts = 1;

-- What is known of a message at the provider (E6): our own result and the provider's receipts, merged in any order.
-- `rank` moves forward only (1 accepted .. 5 played); `failed_at` is the side state.
CREATE TABLE provider_message (
    message_id TEXT NOT NULL,
    channel    TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    task       TEXT,
    rank       INTEGER NOT NULL,
    rank_at    INTEGER,
    failed_at  INTEGER,
    PRIMARY KEY (message_id, channel, tenant)
) WITHOUT ROWID;

CREATE TABLE dead_letter (
    seq              INTEGER PRIMARY KEY,
    tenant           TEXT NOT NULL,
    id               TEXT NOT NULL,
    kind             TEXT NOT NULL,             -- task, event
    source           TEXT,
    flow             TEXT,
    key              TEXT NOT NULL,
    attempts         INTEGER NOT NULL,
    last_error       TEXT,
    errors           TEXT NOT NULL,             -- JSON
    reason           TEXT NOT NULL,
    payload          TEXT NOT NULL,             -- JSON
    consumer_version TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    died_at          INTEGER NOT NULL,
    UNIQUE (id, kind, tenant)
);

-- ---- ownership -----------------------------------------------------------------------------------------------------

CREATE TABLE lease_node (
    node  TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE lease_bucket (
    bucket INTEGER PRIMARY KEY,
    node   TEXT,
    epoch  INTEGER NOT NULL
);

-- ---- the gate ------------------------------------------------------------------------------------------------------

CREATE TABLE gate_key (
    seq               INTEGER PRIMARY KEY,
    tenant            TEXT NOT NULL,
    scope             TEXT NOT NULL,
    key               TEXT NOT NULL,
    status            TEXT NOT NULL,            -- LOCKED, DONE, FAILED
    token             TEXT,
    lease_until       INTEGER,
    first_seen_at     INTEGER NOT NULL,
    correlation_id    TEXT NOT NULL,
    attempt           INTEGER NOT NULL,
    duplicates        INTEGER NOT NULL DEFAULT 0,
    last_duplicate_at INTEGER,
    fingerprint       BLOB,
    result            TEXT,
    error             TEXT,
    retryable         INTEGER NOT NULL DEFAULT 0,
    metadata          TEXT NOT NULL,
    keep_until        INTEGER NOT NULL,
    UNIQUE (key, scope, tenant)
);
CREATE INDEX gate_keep ON gate_key (keep_until);

CREATE TABLE gate_attempt (
    gate       INTEGER NOT NULL,                -- gate_key.seq
    n          INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    ended_at   INTEGER,
    outcome    TEXT,                            -- done, failed, lapsed, released
    error      TEXT,
    PRIMARY KEY (gate, n)
) WITHOUT ROWID;

-- ---- the rest ------------------------------------------------------------------------------------------------------

CREATE TABLE heartbeat (
    flow    TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE channel_state (
    tenant  TEXT NOT NULL,
    channel TEXT NOT NULL,
    stopped TEXT,
    since   INTEGER NOT NULL,
    PRIMARY KEY (tenant, channel)
) WITHOUT ROWID;

CREATE TABLE api_key (
    id         TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    hash       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- Append only (G3).
CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    at     INTEGER NOT NULL,
    actor  TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT NOT NULL
);

-- Counts for the status page, moved in the transaction that moves what they count: `count(*)` over ten million rows is
-- no way to draw a page.
CREATE TABLE counter (
    name  TEXT NOT NULL,
    word  TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (name, word)
) WITHOUT ROWID;
