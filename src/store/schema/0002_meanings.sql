-- What stays of a claim's type when its id moves, and the card it is on; NULL in claims booked before this schema.
ALTER TABLE claim ADD COLUMN identity TEXT CHECK (json_valid(identity));
ALTER TABLE claim ADD COLUMN card TEXT;

-- What a word of the operator's means on a parent; words in CHECK lists are those of model::meaning.
CREATE TABLE meaning (
    kind     TEXT NOT NULL CHECK (kind IN ('type', 'trait')),
    word     TEXT NOT NULL,
    parent   TEXT NOT NULL,
    identity TEXT NOT NULL CHECK (json_valid(identity)),
    type_id  TEXT NOT NULL,
    seen     TEXT NOT NULL CHECK (json_valid(seen)),
    PRIMARY KEY (kind, word, parent)
) STRICT, WITHOUT ROWID;

-- What became of it.
CREATE TABLE shift (
    nr      INTEGER NOT NULL PRIMARY KEY,
    at_usec INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('type', 'trait')),
    word    TEXT    NOT NULL,
    parent  TEXT    NOT NULL,
    shift   TEXT    NOT NULL CHECK (shift IN ('renumbered', 'renamed', 'drifted', 'accepted')),
    was     TEXT    NOT NULL,
    now     TEXT    NOT NULL,
    reason  TEXT    NOT NULL
) STRICT;

CREATE INDEX shift_of_word ON shift (kind, word, nr);
