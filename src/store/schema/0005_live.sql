-- Two more kinds of moves; SQLite changes no CHECK list in place.
CREATE TABLE move_5 (
    instance TEXT NOT NULL PRIMARY KEY REFERENCES instance (uuid) ON DELETE CASCADE,
    kind     TEXT NOT NULL CHECK (kind IN ('resize', 'out', 'in', 'live-out', 'live-in', 'rescue')),
    phase    TEXT NOT NULL CHECK (phase IN ('prepared', 'finished')),
    baggage  TEXT NOT NULL CHECK (json_valid(baggage))
) STRICT, WITHOUT ROWID;
INSERT INTO move_5 (instance, kind, phase, baggage) SELECT instance, kind, phase, baggage FROM move;
DROP TABLE move;
ALTER TABLE move_5 RENAME TO move;
