-- The gate's trail: which execution claimed, which repetitions were stopped and why, who asked without a key.

ALTER TABLE gate_key ADD COLUMN mismatches INTEGER NOT NULL DEFAULT 0;
-- The size of a result that was too large to be kept.
ALTER TABLE gate_key ADD COLUMN result_omitted INTEGER;
-- Listing a scope, newest first. New keys of a scope stand at its end.
CREATE INDEX gate_scope ON gate_key (tenant, scope, seq);
-- What a person must look at. Partial: keys leave it when they are done.
CREATE INDEX gate_locked ON gate_key (seq) WHERE status = 'LOCKED';
CREATE INDEX gate_failed ON gate_key (seq) WHERE status = 'FAILED';

ALTER TABLE gate_attempt ADD COLUMN correlation_id TEXT;
ALTER TABLE gate_attempt ADD COLUMN actor TEXT;

-- Claims that did not proceed. `slot` bounds them: the first ten keep theirs, the rest share forty in turn.
CREATE TABLE gate_repeat (
    gate           INTEGER NOT NULL,            -- gate_key.seq
    slot           INTEGER NOT NULL,
    n              INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    outcome        TEXT NOT NULL,
    correlation_id TEXT,
    actor          TEXT NOT NULL,
    PRIMARY KEY (gate, slot)
) WITHOUT ROWID;

-- Claims without a usable key: evidence for a person, no personal data. `what` says what was wrong with the key.
CREATE TABLE gate_held (
    seq            INTEGER PRIMARY KEY,
    tenant         TEXT NOT NULL,
    scope          TEXT NOT NULL,
    at             INTEGER NOT NULL,
    what           TEXT NOT NULL,
    correlation_id TEXT,
    actor          TEXT NOT NULL
);
CREATE INDEX gate_held_scope ON gate_held (tenant, scope, seq);
