-- compatible-from: 0007_reads.sql
-- Who changed what: a row is written in the transaction that makes the change, and stays when its object is deleted.
CREATE TABLE changes (
    change_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    changed_at  timestamptz NOT NULL,
    username    text NOT NULL,
    action      text NOT NULL,
    kind        text NOT NULL,
    object_id   text NOT NULL,
    detail      text NOT NULL DEFAULT '',
    -- A transaction that is repeated, because its answer was lost, makes no second row.
    UNIQUE (object_id, changed_at, action, kind)
);
