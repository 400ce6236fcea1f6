-- name: sum_database_bytes: Return the size of all databases that this role may open, without the write-ahead log
SELECT coalesce(sum(pg_database_size(oid)), 0)::bigint AS bytes
FROM pg_database
WHERE has_database_privilege(oid, 'CONNECT');
