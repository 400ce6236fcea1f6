-- Reads are counted beside the other requests of a user, against a limit of their own.
ALTER TABLE request_counts
    ADD COLUMN is_read boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT request_counts_pkey,
    ADD PRIMARY KEY (username, is_read);
