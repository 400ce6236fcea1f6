-- name: take_access_version: Return the next version; later ones wait for the end of this transaction
UPDATE access_version SET version = version + 1 RETURNING version;

-- name: find_bypassing_role: Return the role of this session where policies do not hold for it
SELECT current_user::text WHERE NOT row_security_active('projects');

-- name: find_unguarded_role: Return the role of this session where policies do not hold for it, and a project is declared
SELECT current_user::text WHERE NOT row_security_active('projects') AND EXISTS (SELECT FROM projects);

-- name: find_requested_project: Return the project that a request has made
SELECT
    project_id, name, note, created_by, created_at, max_open_runs, max_cost, max_cost_per_month, archive_after_days,
    archive_over_bytes, is_shared
FROM project_rows
WHERE request_id = :request_id;

-- name: add_project: Store a project unless its name is taken
INSERT INTO projects (name, note, created_by, created_at, request_id, version)
VALUES (:name, :note, :created_by, :created_at, :request_id, :version)
ON CONFLICT (name) DO NOTHING
RETURNING project_id;

-- name: update_project: Set what is given of a project, and take away the limits that are named
UPDATE projects
SET name = coalesce(:name, name), note = coalesce(:note, note), version = :version,
    max_open_runs = coalesce(:max_open_runs, CASE WHEN 'max_open_runs' <> ALL (:reset) THEN max_open_runs END),
    max_cost = coalesce(:max_cost, CASE WHEN 'max_cost' <> ALL (:reset) THEN max_cost END),
    max_cost_per_month = coalesce(
        :max_cost_per_month, CASE WHEN 'max_cost_per_month' <> ALL (:reset) THEN max_cost_per_month END
    ),
    archive_after_days = coalesce(
        :archive_after_days, CASE WHEN 'archive_after_days' <> ALL (:reset) THEN archive_after_days END
    ),
    archive_over_bytes = coalesce(
        :archive_over_bytes, CASE WHEN 'archive_over_bytes' <> ALL (:reset) THEN archive_over_bytes END
    )
WHERE project_id = :project_id
RETURNING project_id;

-- name: lock_project_limits: Return the limits of a project, and let one transaction after the other order in it
SELECT name, max_open_runs, max_cost, max_cost_per_month
FROM projects
WHERE project_id = :project_id
FOR NO KEY UPDATE;

-- name: read_project_costs: Return what closed runs of a project have cost, in all and in a month
SELECT
    coalesce(sum(cost), 0) AS cost,
    coalesce(sum(cost) FILTER (WHERE month = date_trunc('month', :now AT TIME ZONE 'UTC')), 0) AS cost_this_month
FROM project_costs
WHERE project_id = :project_id;

-- name: count_projects: Count all projects
SELECT count(*) FROM projects;

-- name: list_project_names: Return the names of all projects but one
SELECT name FROM projects WHERE project_id <> :project_id;

-- name: find_project: Return a project by its number, or by its name
SELECT
    project_id, name, note, created_by, created_at, max_open_runs, max_cost, max_cost_per_month, archive_after_days,
    archive_over_bytes, is_shared
FROM project_rows
WHERE project_id = :project_id OR name = :name;

-- name: list_projects: Return projects by name
SELECT
    project_id, name, note, created_by, created_at, max_open_runs, max_cost, max_cost_per_month, archive_after_days,
    archive_over_bytes, is_shared
FROM project_rows
WHERE name > :after_name
ORDER BY name
LIMIT :limit;

-- name: list_members: Return the members of a project by name
SELECT username, role, changed_by, changed_at
FROM project_members
-- `*` is everybody: the project is shared.
WHERE project_id = :project_id AND role IS NOT NULL AND username <> '*'
ORDER BY username
LIMIT :limit;

-- name: remove_member: Take the role of a user in a project away and return true, unless there is none
UPDATE project_members SET role = NULL, changed_by = :changed_by, changed_at = :changed_at, version = :version
WHERE project_id = :project_id AND username = :username AND role IS NOT NULL
RETURNING true;

-- name: set_member: Give a user a role in a project and return true, unless it was so
INSERT INTO project_members AS present (project_id, username, role, changed_by, changed_at, version)
VALUES (:project_id, :username, :role, :changed_by, :changed_at, :version)
ON CONFLICT (project_id, username) DO UPDATE SET
    role = excluded.role, changed_by = excluded.changed_by, changed_at = excluded.changed_at, version = excluded.version
WHERE present.role IS DISTINCT FROM excluded.role
RETURNING true;

-- name: count_members: Count all members, and the projects of a user
SELECT count(*) AS members, count(*) FILTER (WHERE username = :username) AS projects
FROM project_members
WHERE role IS NOT NULL;
