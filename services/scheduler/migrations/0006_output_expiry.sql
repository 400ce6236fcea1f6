-- How long the files that a batch writes are kept, counted from when each is made; null: until they are deleted.
ALTER TABLE batches ADD COLUMN output_expires_after_seconds bigint;
