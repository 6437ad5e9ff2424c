-- Books, journal and facts. Words in CHECK lists are those of model::claim and model::journal; a new word is a new
-- schema file. Times are microseconds since the Unix epoch. UUIDs are lower case with dashes.

CREATE TABLE instance (
    uuid           TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    owner          TEXT    NOT NULL CHECK (owner IN ('mdevirt', 'caller')),
    request_digest TEXT    NOT NULL,
    created_usec   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What this service made. A device that is not here is foreign.
CREATE TABLE own_device (
    uuid         TEXT    NOT NULL,
    parent       TEXT    NOT NULL,
    type_id      TEXT    NOT NULL,
    type_name    TEXT    NOT NULL,
    created_usec INTEGER NOT NULL,
    PRIMARY KEY (uuid, parent)
) STRICT, WITHOUT ROWID;

CREATE TABLE claim (
    id             TEXT    NOT NULL PRIMARY KEY,
    instance       TEXT    NOT NULL REFERENCES instance (uuid),
    uuid           TEXT    NOT NULL,
    parent         TEXT    NOT NULL,
    mdev_type      TEXT    NOT NULL,
    type_name      TEXT    NOT NULL,
    device_api     TEXT    NOT NULL,
    resource_class TEXT    NOT NULL,
    grp            TEXT    NOT NULL,
    traits         TEXT    NOT NULL CHECK (json_type(traits) = 'array'),
    state          TEXT    NOT NULL CHECK (state IN ('reserved', 'ready', 'in-use', 'parked', 'releasing')),
    role           TEXT    NOT NULL CHECK (role IN ('primary')),
    created_usec   INTEGER NOT NULL,
    -- A virtual device belongs to at most one claim.
    UNIQUE (uuid, parent),
    FOREIGN KEY (uuid, parent) REFERENCES own_device (uuid, parent)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_of_instance ON claim (instance);

-- The journal outlives the instance, hence no reference. `nr` is the order in which sagas began. `op` has no list,
-- so that a new operation is not a new schema; its word is checked when it is read.
CREATE TABLE saga (
    nr             INTEGER NOT NULL PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    op             TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    instance       TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('running', 'unwinding', 'done', 'failed', 'stuck')),
    operation_id   TEXT    UNIQUE,
    request_digest TEXT    NOT NULL,
    params         TEXT    NOT NULL CHECK (json_valid(params)),
    result         TEXT    CHECK (json_valid(result)),
    created_usec   INTEGER NOT NULL
) STRICT;

-- One live saga per instance.
CREATE UNIQUE INDEX saga_live ON saga (instance) WHERE state IN ('running', 'unwinding');
CREATE INDEX saga_stuck ON saga (nr) WHERE state = 'stuck';
CREATE INDEX saga_of_instance ON saga (instance, nr);

CREATE TABLE saga_event (
    saga_id TEXT    NOT NULL REFERENCES saga (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL CHECK (seq > 0),
    step    INTEGER NOT NULL CHECK (step >= 0),
    name    TEXT    NOT NULL,
    event   TEXT    NOT NULL CHECK (event IN ('started', 'done', 'failed', 'undo-started', 'undone')),
    payload TEXT    CHECK (json_valid(payload)),
    at_usec INTEGER NOT NULL,
    PRIMARY KEY (saga_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE fact (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
