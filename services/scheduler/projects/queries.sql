-- name: take_access_version: Return the next version; later ones wait for the end of this transaction
UPDATE access_version SET version = version + 1 RETURNING version;

-- name: find_bypassing_role: Return the role of this session where policies do not hold for it
SELECT current_user::text WHERE NOT row_security_active('projects');

-- name: find_unguarded_role: Return the role of this session where policies do not hold for it, and a project is declared
SELECT current_user::text WHERE NOT row_security_active('projects') AND EXISTS (SELECT FROM projects);

-- name: find_requested_project: Return the project that a request has made
SELECT project_id, name, note, created_by, created_at FROM projects WHERE request_id = :request_id;

-- name: add_project: Store a project unless its name is taken
INSERT INTO projects (name, note, created_by, created_at, request_id)
VALUES (:name, :note, :created_by, :created_at, :request_id)
ON CONFLICT (name) DO NOTHING
RETURNING project_id, name, note, created_by, created_at;

-- name: count_projects: Count all projects
SELECT count(*) FROM projects;

-- name: find_project: Return a project
SELECT project_id, name, note, created_by, created_at FROM projects WHERE project_id = :project_id;

-- name: list_projects: Return projects by name
SELECT project_id, name, note, created_by, created_at
FROM projects
WHERE name > :after_name
ORDER BY name
LIMIT :limit;

-- name: list_members: Return the members of a project by name
SELECT username, role, changed_by, changed_at
FROM project_members
WHERE project_id = :project_id AND role IS NOT NULL
ORDER BY username
LIMIT :limit;

-- name: set_member: Give a user a role in a project, or none, and return true unless it was so
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
