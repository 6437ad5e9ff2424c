-- The flavor that an instance has; NULL in instances booked before this schema.
ALTER TABLE instance ADD COLUMN flavor TEXT;

-- More states and roles; SQLite changes no CHECK list in place.
CREATE TABLE claim_3 (
    id             TEXT    NOT NULL PRIMARY KEY,
    instance       TEXT    NOT NULL REFERENCES instance (uuid),
    uuid           TEXT    NOT NULL,
    parent         TEXT    NOT NULL,
    mdev_type      TEXT    NOT NULL,
    type_name      TEXT    NOT NULL,
    identity       TEXT    CHECK (json_valid(identity)),
    card           TEXT,
    device_api     TEXT    NOT NULL,
    resource_class TEXT    NOT NULL,
    grp            TEXT    NOT NULL,
    traits         TEXT    NOT NULL CHECK (json_type(traits) = 'array'),
    state          TEXT    NOT NULL
        CHECK (state IN ('reserved', 'ready', 'in-use', 'parked', 'releasing', 'missing', 'lost')),
    was_parked     INTEGER NOT NULL DEFAULT 0 CHECK (was_parked IN (0, 1)),
    role           TEXT    NOT NULL CHECK (role IN ('primary', 'outgoing', 'incoming')),
    created_usec   INTEGER NOT NULL,
    -- A virtual device belongs to at most one claim.
    UNIQUE (uuid, parent),
    FOREIGN KEY (uuid, parent) REFERENCES own_device (uuid, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO claim_3 (id, instance, uuid, parent, mdev_type, type_name, identity, card, device_api, resource_class, grp,
                     traits, state, role, created_usec)
    SELECT id, instance, uuid, parent, mdev_type, type_name, identity, card, device_api, resource_class, grp,
           traits, state, role, created_usec FROM claim;
DROP TABLE claim;
ALTER TABLE claim_3 RENAME TO claim;
CREATE INDEX claim_of_instance ON claim (instance);

-- An instance between two operations of a move. It leaves with its instance.
CREATE TABLE move (
    instance TEXT NOT NULL PRIMARY KEY REFERENCES instance (uuid) ON DELETE CASCADE,
    kind     TEXT NOT NULL CHECK (kind IN ('resize', 'out', 'in', 'rescue')),
    phase    TEXT NOT NULL CHECK (phase IN ('prepared', 'finished')),
    baggage  TEXT NOT NULL CHECK (json_valid(baggage))
) STRICT, WITHOUT ROWID;
