-- compatible-from: 0005_rollouts.sql
-- Whether only a limit of its rows keeps the run of an entry from being ranked with whole ones. Nothing reads that from the text of
-- the conditions any more; they still begin with "limited; ", so that code from before this does not take such runs for whole.
ALTER TABLE leaderboard_entries ADD COLUMN is_limited boolean NOT NULL DEFAULT false;

UPDATE leaderboard_entries SET is_limited = true WHERE starts_with(conditions, 'limited; ');
