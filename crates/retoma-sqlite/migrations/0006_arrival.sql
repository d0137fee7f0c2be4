-- What becomes of a message after the provider took it: under which spelling it was sent.

-- Whether the provider knew nobody under the first spelling of the number, and the other one is tried (C11).
ALTER TABLE task ADD COLUMN respelled INTEGER NOT NULL DEFAULT 0;
