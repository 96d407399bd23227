-- Schema 7, frozen. What the columns mean stands in ../schema.sql.

CREATE TABLE campaign (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    title     TEXT NOT NULL,
    nilometer TEXT NOT NULL,
    started   TEXT NOT NULL,
    plan      TEXT,
    warm_up   INTEGER NOT NULL,
    repeats   INTEGER NOT NULL,
    margin    REAL NOT NULL
);

CREATE TABLE event (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    what TEXT NOT NULL
);

CREATE TABLE run (
    id        INTEGER PRIMARY KEY,
    target    INTEGER NOT NULL REFERENCES target (id),
    directory TEXT NOT NULL
);

CREATE TABLE environment (
    node  INTEGER NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (node, key)
);

CREATE TABLE target (
    id          INTEGER PRIMARY KEY,
    path        TEXT NOT NULL,
    file_system TEXT NOT NULL,
    description TEXT,
    left_out    TEXT
);

CREATE TABLE cell (
    id          INTEGER PRIMARY KEY,
    stage       TEXT NOT NULL,
    name        TEXT NOT NULL,
    measurement TEXT NOT NULL
);

CREATE TABLE sample (
    id             INTEGER PRIMARY KEY,
    target         INTEGER NOT NULL REFERENCES target (id),
    cell           INTEGER NOT NULL REFERENCES cell (id),
    repeat         INTEGER NOT NULL,
    phase          TEXT NOT NULL,
    bytes          INTEGER NOT NULL,
    operations     INTEGER NOT NULL,
    wall           INTEGER NOT NULL,
    user           INTEGER NOT NULL,
    system         INTEGER NOT NULL,
    wait           INTEGER NOT NULL,
    client         INTEGER NOT NULL,
    machine        INTEGER NOT NULL,
    voluntary      INTEGER NOT NULL,
    involuntary    INTEGER NOT NULL,
    run_delay      INTEGER NOT NULL,
    filling        INTEGER NOT NULL,
    settling       INTEGER NOT NULL,
    started        INTEGER NOT NULL,
    load           REAL NOT NULL,
    device_read    INTEGER,
    device_written INTEGER,
    device_flushes INTEGER,
    coldness       TEXT,
    invalid        TEXT,
    UNIQUE (target, cell, repeat, phase)
);

CREATE TABLE activity (
    sample          INTEGER NOT NULL REFERENCES sample (id),
    moment          TEXT NOT NULL,
    over            INTEGER NOT NULL,
    busy            INTEGER NOT NULL,
    stolen          INTEGER NOT NULL,
    switches        INTEGER NOT NULL,
    disk_read       INTEGER NOT NULL,
    disk_written    INTEGER NOT NULL,
    received        INTEGER NOT NULL,
    sent            INTEGER NOT NULL,
    pressure_cpu    INTEGER,
    pressure_io     INTEGER,
    pressure_memory INTEGER,
    PRIMARY KEY (sample, moment)
) WITHOUT ROWID;

CREATE TABLE part (
    sample       INTEGER NOT NULL REFERENCES sample (id),
    rank         INTEGER NOT NULL,
    node         TEXT NOT NULL,
    clock_offset INTEGER NOT NULL,
    clock_uncertainty INTEGER NOT NULL,
    began        INTEGER NOT NULL,
    workers      INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    operations   INTEGER NOT NULL,
    first_done   INTEGER NOT NULL,
    last_done    INTEGER NOT NULL,
    user         INTEGER NOT NULL,
    system       INTEGER NOT NULL,
    run_delay    INTEGER NOT NULL,
    PRIMARY KEY (sample, rank)
) WITHOUT ROWID;

CREATE TABLE visibility (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),
    files        INTEGER NOT NULL,
    missing      INTEGER NOT NULL,
    short        INTEGER NOT NULL,
    stale        INTEGER NOT NULL,
    out_of_order INTEGER NOT NULL,
    never        INTEGER NOT NULL,
    longest      INTEGER NOT NULL
);

CREATE TABLE locking (
    sample  INTEGER PRIMARY KEY REFERENCES sample (id),
    tries   INTEGER NOT NULL,
    broken  INTEGER NOT NULL,
    passed  INTEGER NOT NULL,
    longest INTEGER NOT NULL
);

CREATE TABLE worker (
    sample     INTEGER NOT NULL REFERENCES sample (id),
    worker     INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    first_done INTEGER NOT NULL,
    last_done  INTEGER NOT NULL,
    PRIMARY KEY (sample, worker)
) WITHOUT ROWID;

CREATE TABLE histogram (
    sample INTEGER NOT NULL REFERENCES sample (id),
    kind   TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (sample, kind, bucket)
) WITHOUT ROWID;

CREATE TABLE series (
    sample     INTEGER NOT NULL REFERENCES sample (id),
    bin        INTEGER NOT NULL,
    width      INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;

CREATE TABLE error (
    sample INTEGER NOT NULL REFERENCES sample (id),
    errno  INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (sample, errno)
) WITHOUT ROWID;

CREATE TABLE ingest (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),
    count         INTEGER NOT NULL,
    goal          TEXT NOT NULL,
    frame_size    INTEGER NOT NULL,
    period        INTEGER NOT NULL,
    duration      INTEGER NOT NULL,
    due           INTEGER NOT NULL,
    stored        INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    slots         INTEGER NOT NULL,
    slots_high    INTEGER NOT NULL,
    longest_stall INTEGER NOT NULL,
    allowance     INTEGER NOT NULL,
    late          INTEGER NOT NULL,
    stalls        INTEGER NOT NULL,
    stalled       INTEGER NOT NULL,
    slowest       INTEGER,
    company       TEXT NOT NULL,
    condition     TEXT NOT NULL,
    written       INTEGER NOT NULL
);

CREATE TABLE packet (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),
    size         INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    unsent       INTEGER NOT NULL,
    came         INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,
    ring         INTEGER NOT NULL,
    stored       INTEGER NOT NULL,
    losses       INTEGER NOT NULL,
    longest_loss INTEGER NOT NULL,
    reordered    INTEGER NOT NULL,
    extent       INTEGER NOT NULL,
    overtaken    INTEGER NOT NULL,
    duplicates   INTEGER NOT NULL,
    room         INTEGER NOT NULL,
    late         INTEGER NOT NULL,
    sending      INTEGER NOT NULL,
    receiving    INTEGER NOT NULL
);

CREATE TABLE level (
    sample INTEGER NOT NULL REFERENCES sample (id),
    bin    INTEGER NOT NULL,
    width  INTEGER NOT NULL,
    most   INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    lost   INTEGER NOT NULL,
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;

CREATE TABLE stall (
    sample INTEGER NOT NULL REFERENCES sample (id),
    at     INTEGER NOT NULL,
    length INTEGER NOT NULL
);

CREATE TABLE reader (
    sample INTEGER NOT NULL REFERENCES sample (id),
    reader INTEGER NOT NULL,
    copies INTEGER NOT NULL,
    after  INTEGER NOT NULL,
    frames INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    wall   INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    wrong  INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    hung   INTEGER NOT NULL,
    PRIMARY KEY (sample, reader)
) WITHOUT ROWID;

CREATE TABLE conclusion (
    id      INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    words   TEXT NOT NULL
);

CREATE TABLE seal (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    sealed TEXT NOT NULL,
    mark   TEXT NOT NULL
);

CREATE VIEW rate AS
SELECT target.path, cell.stage, cell.name, sample.phase, sample.repeat,
       sample.bytes * 1e3 / sample.wall AS megabytes_per_second,
       sample.operations * 1e9 / sample.wall AS operations_per_second,
       (sample.user + sample.system) * 1.0 / sample.wall AS cores,
       sample.invalid
FROM sample JOIN target ON target.id = sample.target JOIN cell ON cell.id = sample.cell JOIN campaign
WHERE sample.wall > 0 AND sample.repeat >= campaign.warm_up;
