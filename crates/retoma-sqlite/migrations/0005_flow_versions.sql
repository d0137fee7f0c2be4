-- Flows as they took effect (C15): whoever reads the history can read what decided it.
CREATE TABLE flow_version (
    seq          INTEGER PRIMARY KEY,           -- order of taking effect
    tenant       TEXT NOT NULL,
    flow         TEXT NOT NULL,
    version      INTEGER NOT NULL,              -- the number that the file gives itself
    text         TEXT NOT NULL,                 -- the file
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL
);
CREATE INDEX flow_version_flow ON flow_version (tenant, flow, seq);
