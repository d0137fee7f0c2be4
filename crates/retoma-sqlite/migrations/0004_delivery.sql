-- What delivering in full needs: texts recognised by their key, evidence, each receipt's first time, due work by channel.

-- The key of what an attempt said (never the text itself), by which its echo is recognised.
ALTER TABLE attempt ADD COLUMN said BLOB;

-- What was seen, or not, of a send whose outcome nobody knew (E4). Append only.
CREATE TABLE evidence (
    task    INTEGER NOT NULL,                   -- task.seq
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    witness TEXT NOT NULL,                      -- Witness
    said    TEXT NOT NULL,                      -- for people; no phone, no text
    PRIMARY KEY (task, n)
) WITHOUT ROWID;

-- The first time that each was said (E6).
ALTER TABLE provider_message ADD COLUMN accepted_at INTEGER;
ALTER TABLE provider_message ADD COLUMN sent_at INTEGER;
ALTER TABLE provider_message ADD COLUMN delivered_at INTEGER;
ALTER TABLE provider_message ADD COLUMN read_at INTEGER;
ALTER TABLE provider_message ADD COLUMN played_at INTEGER;

-- Due work by channel, answers to people before reminders: whoever loads what is due walks past a channel that is full or
-- dead without reading its backlog (E5), and a backlog of reminders hides no answer (FC-57).
DROP INDEX task_due;
CREATE INDEX task_due ON task (channel, (class = 'reminder'), next_attempt_at)
    WHERE handed = 1 AND status IN ('scheduled', 'failed');

-- Whether a person stopped the channel: then nothing tries it before a person says so.
ALTER TABLE channel_state ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0;
