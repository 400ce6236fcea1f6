-- compatible-from: 0005_rollouts.sql
-- What every query over answers asks of an outcome. The planner puts both into the query that calls them.

-- Whether the model answered: also where the answer could not be scored.
CREATE FUNCTION is_answered(status outcome_status, failed_as failure_class) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status <> 'failed' OR failed_as = 'scoring';

-- The text that is shown and searched: a choice has no text of its own.
CREATE FUNCTION shown_text(answer_text text, prediction text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN answer_text = '' THEN prediction ELSE answer_text END;
