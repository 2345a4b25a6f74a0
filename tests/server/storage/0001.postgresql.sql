CREATE TABLE forms (
    seq BIGSERIAL NOT NULL,
    id VARCHAR(32) NOT NULL,
    name VARCHAR(64) NOT NULL,
    title VARCHAR(120),
    size INTEGER NOT NULL,
    PRIMARY KEY (seq),
    UNIQUE (id),
    UNIQUE (name)
);

CREATE TABLE series (
    name VARCHAR(50) NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE keys (
    key UUID NOT NULL,
    digest BIGINT NOT NULL,
    PRIMARY KEY (key)
);

CREATE TABLE segments (
    id BIGSERIAL NOT NULL,
    round BIGINT NOT NULL,
    hour INTEGER NOT NULL,
    n INTEGER NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX ix_segments_round_id ON segments (round, id);

CREATE TABLE access_keys (
    name VARCHAR(64) NOT NULL,
    scope VARCHAR(8) NOT NULL,
    hash BYTEA NOT NULL,
    created_at VARCHAR(32) NOT NULL,
    revoked_at VARCHAR(32),
    PRIMARY KEY (name),
    UNIQUE (hash)
);

CREATE TABLE secrets (
    name VARCHAR(16) NOT NULL,
    value BYTEA NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE acts (
    id BIGSERIAL NOT NULL,
    at VARCHAR(32) NOT NULL,
    key VARCHAR(64),
    act VARCHAR(24) NOT NULL,
    subject VARCHAR(64) NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE rounds (
    seq BIGSERIAL NOT NULL,
    id VARCHAR(32) NOT NULL,
    name VARCHAR(64) NOT NULL,
    protocol VARCHAR(16) NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL,
    parameter INTEGER,
    practice BOOLEAN NOT NULL,
    p DOUBLE PRECISION NOT NULL,
    q DOUBLE PRECISION NOT NULL,
    domain_size INTEGER NOT NULL,
    labels_bytes INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    question VARCHAR(300),
    title VARCHAR(120),
    thanks VARCHAR(300),
    language VARCHAR(35),
    access VARCHAR(8) NOT NULL,
    read_access VARCHAR(8) NOT NULL,
    retention VARCHAR(7) NOT NULL,
    state VARCHAR(8) NOT NULL,
    opened_at VARCHAR(32) NOT NULL,
    closed_at VARCHAR(32),
    seed VARCHAR(32),
    form VARCHAR(32),
    position INTEGER,
    series VARCHAR(50),
    number INTEGER,
    closes_at VARCHAR(32),
    PRIMARY KEY (seq),
    UNIQUE (form, position),
    UNIQUE (id),
    UNIQUE (name),
    FOREIGN KEY(form) REFERENCES forms (id)
);

CREATE INDEX ix_rounds_series_number ON rounds (series, number);

CREATE TABLE labels (
    round BIGINT NOT NULL,
    items BYTEA NOT NULL,
    PRIMARY KEY (round),
    FOREIGN KEY(round) REFERENCES rounds (seq)
);

CREATE TABLE tallies (
    round BIGINT NOT NULL,
    process INTEGER NOT NULL,
    n BIGINT NOT NULL,
    token BYTEA,
    counts BYTEA NOT NULL,
    PRIMARY KEY (round, process),
    FOREIGN KEY(round) REFERENCES rounds (seq)
);

CREATE TABLE verdicts (
    round BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    due_reports BIGINT NOT NULL,
    attack VARCHAR(17),
    verdict TEXT,
    recovery BYTEA,
    PRIMARY KEY (round),
    FOREIGN KEY(round) REFERENCES rounds (seq) ON DELETE CASCADE
);

CREATE FUNCTION ldprecover_abort_commit() RETURNS integer LANGUAGE plpgsql AS
    $$ BEGIN
        RAISE EXCEPTION 'keys or tally changed during the commit' USING ERRCODE = 'LD001';
    END $$;

ALTER TABLE segments ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE tallies ALTER COLUMN counts SET STORAGE EXTERNAL;

ALTER TABLE tallies SET (fillfactor = 50, toast.autovacuum_vacuum_cost_delay = 0);

CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);

INSERT INTO alembic_version VALUES ('0001')
