-- What becomes of a message after the provider took it: which spelling of the number it went to, whether anything was heard
-- of it since, and what was heard of messages that nobody knows. And what was promised for a local time.

-- Whether the provider knew nobody under the first spelling of the number, and the other one is tried (C11).
ALTER TABLE task ADD COLUMN respelled INTEGER NOT NULL DEFAULT 0;

-- What was promised for a local time (FC-55): that time and its zone; the instant is computed anew at every start.
ALTER TABLE task ADD COLUMN local_time TEXT;
CREATE INDEX task_local ON task (seq) WHERE local_time IS NOT NULL AND done = 0;

-- Accepted messages of a channel in the order of time; new ones stand at the end, and receipts move none (FC-78).
CREATE INDEX provider_message_taken ON provider_message (tenant, channel, accepted_at)
    WHERE task IS NOT NULL AND accepted_at IS NOT NULL;

-- Receipts of messages that no task claims (FC-28). What is claimed later leaves.
CREATE INDEX provider_message_orphan ON provider_message (coalesce(rank_at, failed_at)) WHERE task IS NULL;

-- Messages that came without their content and still wait for it (FC-06). What is filled leaves.
CREATE INDEX event_without_content ON event (received_at) WHERE status = 'ignored' AND reason = 'content_pending';
