-- Whether the outside owner of a domain ('caller') is a plain user of libvirt. A column of its own, because SQLite changes no
-- CHECK list in place and claims, moves and sagas hang on this table.
ALTER TABLE instance ADD COLUMN plain INTEGER NOT NULL DEFAULT 0 CHECK (plain IN (0, 1));
