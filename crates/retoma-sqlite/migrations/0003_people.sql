-- People: who turned out to be whom, who was forgotten, and what the loop guard remembers.

ALTER TABLE contact ADD COLUMN ping_pong   TEXT;        -- JSON; NULL where there is nothing to remember
ALTER TABLE contact ADD COLUMN merged_into BLOB;        -- the contact that this one turned out to be
ALTER TABLE contact ADD COLUMN erased_at   INTEGER;     -- proof that it was forgotten

-- Whoever asked for silence and was forgotten afterwards: a digest of each identity, never the identity. An opt-out outlives
-- erasure and imports (C12). Looked at only where an identity is attached for the first time.
CREATE TABLE silenced (
    digest       BLOB PRIMARY KEY,
    opted_out_at INTEGER NOT NULL
) WITHOUT ROWID;
