-- The state of a daemon that died while it made the second device of a spawn. Schema 2, with what its words meant.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
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
INSERT INTO "claim" VALUES('00000000-0000-0000-0000-000040000000','00000000-0000-0000-0000-000010000001','00000000-0000-0000-0000-000030000000','0000:00:00.0','nvidia-746','NVIDIA A2-4Q','vfio-pci','VGPU','1','["CUSTOM_A","HW_GPU_B"]','ready','primary',0);
INSERT INTO "claim" VALUES('00000000-0000-0000-0000-000040000001','00000000-0000-0000-0000-000010000001','00000000-0000-0000-0000-000030000001','0000:01:00.0','nvidia-746','NVIDIA A2-4Q','vfio-pci','VGPU','1','["CUSTOM_A","HW_GPU_B"]','reserved','primary',1);
CREATE TABLE fact (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "fact" VALUES('boot_id','5a3c');
CREATE TABLE instance (
    uuid           TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    owner          TEXT    NOT NULL CHECK (owner IN ('mdevirt', 'caller')),
    request_digest TEXT    NOT NULL,
    created_usec   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "instance" VALUES('00000000-0000-0000-0000-000010000001','vm-1','mdevirt','digest-1',1);
CREATE TABLE own_device (
    uuid         TEXT    NOT NULL,
    parent       TEXT    NOT NULL,
    type_id      TEXT    NOT NULL,
    type_name    TEXT    NOT NULL,
    created_usec INTEGER NOT NULL,
    PRIMARY KEY (uuid, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO "own_device" VALUES('00000000-0000-0000-0000-000030000000','0000:00:00.0','nvidia-746','NVIDIA A2-4Q',0);
INSERT INTO "own_device" VALUES('00000000-0000-0000-0000-000030000001','0000:01:00.0','nvidia-746','NVIDIA A2-4Q',0);
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
INSERT INTO "saga" VALUES(1,'00000000-0000-0000-0000-000020000001','spawn',1,'00000000-0000-0000-0000-000010000001','running','op-1','digest-1','{"domain":"<domain/>"}',NULL,1);
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
INSERT INTO "saga_event" VALUES('00000000-0000-0000-0000-000020000001',1,0,'create_device.0','started',NULL,0);
INSERT INTO "saga_event" VALUES('00000000-0000-0000-0000-000020000001',2,0,'create_device.0','done','"create_device.0"',1);
INSERT INTO "saga_event" VALUES('00000000-0000-0000-0000-000020000001',3,1,'create_device.1','started',NULL,1);
CREATE INDEX claim_of_instance ON claim (instance);
CREATE UNIQUE INDEX saga_live ON saga (instance) WHERE state IN ('running', 'unwinding');
CREATE INDEX saga_stuck ON saga (nr) WHERE state = 'stuck';
CREATE INDEX saga_of_instance ON saga (instance, nr);
ALTER TABLE claim ADD COLUMN identity TEXT CHECK (json_valid(identity));
ALTER TABLE claim ADD COLUMN card TEXT;

CREATE TABLE meaning (
    kind     TEXT NOT NULL CHECK (kind IN ('type', 'trait')),
    word     TEXT NOT NULL,
    parent   TEXT NOT NULL,
    identity TEXT NOT NULL CHECK (json_valid(identity)),
    type_id  TEXT NOT NULL,
    seen     TEXT NOT NULL CHECK (json_valid(seen)),
    PRIMARY KEY (kind, word, parent)
) STRICT, WITHOUT ROWID;

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
UPDATE claim SET identity = '{"vendor_id":"0x10de","device_id":null,"name":"NVIDIA A2-4Q","type_id":null,"device_api":"vfio-pci","framebuffer_mib":4096,"heads":4,"max_resolution":"7680x4320"}', card = '0000:00:01.0' WHERE id = '00000000-0000-0000-0000-000040000000';
INSERT INTO meaning VALUES('trait','CUSTOM_A','0000:00:00.0','{"vendor_id":"0x10de","device_id":null,"name":"NVIDIA A2-4Q","type_id":null,"device_api":"vfio-pci","framebuffer_mib":4096,"heads":4,"max_resolution":"7680x4320"}','nvidia-746','{"vendor_id":"0x10de","device_id":null,"name":"NVIDIA A2-4Q","type_id":null,"device_api":"vfio-pci","framebuffer_mib":4096,"heads":4,"max_resolution":"7680x4320"}');
INSERT INTO shift VALUES(1,5,'trait','CUSTOM_A','0000:00:00.0','renumbered','nvidia-700','nvidia-746','');
PRAGMA user_version = 2;
COMMIT;
