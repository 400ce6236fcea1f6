-- Which scheduler leads.

-- One row. Each term of leadership raises the token; a write with an older token is rejected.
CREATE TABLE leadership (
    is_only        boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    fencing_token  bigint NOT NULL
);
INSERT INTO leadership (fencing_token) VALUES (0);
