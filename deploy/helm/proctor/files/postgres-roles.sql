-- A role for each service that has a schema. psql runs this when the image of Postgres makes its data folder.
--
-- Services do not get the image's own user: it is a superuser, for which row level security does not hold.
-- A file in /secrets has the password of the role, without a line end.

\set scheduler_password `cat /secrets/scheduler`
\set results_password `cat /secrets/results`

REVOKE ALL ON DATABASE proctor FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;

CREATE ROLE proctor_scheduler LOGIN PASSWORD :'scheduler_password';
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE proctor TO proctor_scheduler;
CREATE SCHEMA scheduler AUTHORIZATION proctor_scheduler;

CREATE ROLE proctor_results LOGIN PASSWORD :'results_password';
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE proctor TO proctor_results;
CREATE SCHEMA results AUTHORIZATION proctor_results;
