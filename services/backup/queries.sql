-- name: list_columns: Return the tables of the schema with the columns that hold values of their own
SELECT
    relation.relname AS table_name,
    array_agg(attribute.attname::text ORDER BY attribute.attnum) AS columns
FROM pg_class AS relation
JOIN pg_attribute AS attribute ON attribute.attrelid = relation.oid
WHERE relation.relnamespace = current_schema()::regnamespace
    AND relation.relkind IN ('r', 'p') AND NOT relation.relispartition
    AND attribute.attnum > 0 AND NOT attribute.attisdropped AND attribute.attgenerated = ''
    AND relation.relname <> 'migrations'
GROUP BY relation.relname
ORDER BY relation.relname;

-- name: list_references: Return which table refers to which other one
SELECT DISTINCT source.relname AS table_name, target.relname AS refers_to
FROM pg_constraint AS reference
JOIN pg_class AS source ON source.oid = reference.conrelid
JOIN pg_class AS target ON target.oid = reference.confrelid
WHERE reference.contype = 'f' AND reference.connamespace = current_schema()::regnamespace
    AND source.oid <> target.oid;

-- name: list_numbered_columns: Return the columns that Postgres numbers
SELECT table_name, column_name
FROM information_schema.columns
WHERE table_schema = current_schema() AND is_identity = 'YES';

-- name: list_guarded_tables: Return the tables whose policies hold for their owner too
SELECT relname AS table_name
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relforcerowsecurity
ORDER BY relname;

-- name: list_migrations: Return the migrations that made the schema
SELECT name, compatible_from FROM migrations ORDER BY name;

-- name: export_snapshot: Let other connections see what this transaction sees
SELECT pg_export_snapshot() AS snapshot, now() AS taken_at;

-- name: lock_backup: Begin a backup, unless another one runs or objects are about to be deleted
SELECT pg_try_advisory_lock(hashtext('proctor backup'), hashtext('scheduler'));

-- name: lock_leadership: Keep schedulers from leading; false if one does
SELECT pg_try_advisory_lock(hashtext('proctor leader'), hashtext('scheduler'));
