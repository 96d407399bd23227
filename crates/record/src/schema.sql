-- The record of one campaign. Times are in nanoseconds, sizes in bytes. Any SQLite tool may read it, also while the
-- campaign runs. Only nilometer writes it.

-- Exactly one row.
CREATE TABLE campaign (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    title     TEXT NOT NULL,
    nilometer TEXT NOT NULL,             -- version of the program
    started   TEXT NOT NULL,             -- UTC, ISO 8601
    plan      TEXT,                      -- the resolved plan without its cells, and its targets, JSON; null of results
                                         -- that no campaign of nilometer gave
    warm_up   INTEGER NOT NULL,          -- rounds that count for nothing: repeats below this number
    repeats   INTEGER NOT NULL,          -- rounds that count, as planned
    margin    REAL NOT NULL              -- no difference smaller than this counts as one, in percent
);

-- What happened besides: a target was left out, the campaign was resumed, the calendar's clock was set.
CREATE TABLE event (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,               -- since 1970, UTC
    what TEXT NOT NULL
);

-- Every directory that the campaign made on a target, or was about to make: noted before, so that what a killed
-- campaign left can be removed when it is resumed.
CREATE TABLE run (
    id        INTEGER PRIMARY KEY,
    target    INTEGER NOT NULL REFERENCES target (id),
    directory TEXT NOT NULL
);

-- Where and with what it was measured, one row a fact and node.
CREATE TABLE environment (
    node  INTEGER NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (node, key)
);

-- The machines of its processes, in the order of the first process on each; that of process 0 is machine 0.
CREATE TABLE machine (
    id   INTEGER PRIMARY KEY,            -- environment.node
    name TEXT NOT NULL                   -- its host name
);

-- Their network interfaces that were up, but the loopback; members of a bond are a part of it.
CREATE TABLE link (
    machine  INTEGER NOT NULL REFERENCES machine (id),
    name     TEXT NOT NULL,
    is_card  INTEGER NOT NULL,           -- 1: a card, or a bond of cards; of others the speed is what their driver says
    speed    REAL,                       -- bytes a second; null where it does not say
    mtu      INTEGER,
    bond     TEXT,                       -- JSON: how its members are used, and which they are; null of none
    offloads TEXT,                       -- JSON: what card and kernel do for many packets at once, as far as it is on;
                                         -- null where nobody tells
    PRIMARY KEY (machine, name)
) WITHOUT ROWID;

CREATE TABLE target (
    id          INTEGER PRIMARY KEY,     -- in the order of the command line, from 0
    path        TEXT NOT NULL,
    file_system TEXT NOT NULL,
    description TEXT,                    -- JSON; null where nilometer did not see it
    left_out    TEXT                     -- why it was given up, if it was
);

CREATE TABLE cell (
    id          INTEGER PRIMARY KEY,     -- in the order of the plan, from 0
    stage       TEXT NOT NULL,
    name        TEXT NOT NULL,           -- the parameters in words
    measurement TEXT NOT NULL            -- JSON: {"workload": ...} or {"recording": ...}, with all parameters
);

-- One repeat of one phase of one cell on one target: the unit of every comparison. What several processes measured of it
-- is one row: bytes, operations and processor times are those of all.
CREATE TABLE sample (
    id             INTEGER PRIMARY KEY,
    target         INTEGER NOT NULL REFERENCES target (id),
    cell           INTEGER NOT NULL REFERENCES cell (id),
    repeat         INTEGER NOT NULL,
    phase          TEXT NOT NULL,
    bytes          INTEGER NOT NULL,
    operations     INTEGER NOT NULL,
    wall           INTEGER NOT NULL,     -- barrier to last worker done
    user           INTEGER NOT NULL,     -- processor time of this process, user space
    system         INTEGER NOT NULL,     -- the same in the kernel
    wait           INTEGER NOT NULL,     -- wall x workers - user - system
    client         INTEGER NOT NULL,     -- processor time of kernel threads and the file system's daemon
    machine        INTEGER NOT NULL,     -- processor time of the machine above its idle level
    voluntary      INTEGER NOT NULL,     -- context switches of this process, to wait
    involuntary    INTEGER NOT NULL,     -- context switches of this process, because another's turn had come
    run_delay      INTEGER NOT NULL,     -- workers ready to run, waiting for a processor
    filling        INTEGER NOT NULL,     -- filling buffers, outside wall
    settling       INTEGER NOT NULL,     -- waiting for write-back to calm down, before
    started        INTEGER NOT NULL,     -- since 1970, UTC
    load           REAL NOT NULL,        -- load average over one minute, before
    device_read    INTEGER,              -- at the block device, during
    device_written INTEGER,
    device_flushes INTEGER,              -- times that the device was told to put its cache onto what lasts; null where it
                                         -- has no cache that a loss of power empties, or the kernel does not count that
    device_busy    INTEGER,              -- how long it had at least one request; null where the kernel does not count that
    device_queue   INTEGER,              -- the same, each moment as often as there were requests
    coldness       TEXT,                 -- of a read: proved, contradicted, not provable here, never
                                         -- seen here (another client wrote it)
    invalid        TEXT,                 -- why the figure must not be used: a code, then its figures (docs/invalid.md):
                                         -- hung, errors, warm-read, not-direct, not-preallocated, wrong, starved, slow,
                                         -- bursts, no-background: and why, refused: and why
    UNIQUE (target, cell, repeat, phase)
);

-- What the whole machine did just before a phase and during it.
CREATE TABLE activity (
    sample          INTEGER NOT NULL REFERENCES sample (id),
    moment          TEXT NOT NULL,       -- before, during
    over            INTEGER NOT NULL,    -- how long it was looked at
    busy            INTEGER NOT NULL,    -- processor time of all processes and the kernel
    stolen          INTEGER NOT NULL,    -- processor time that the host of a virtual machine gave to others
    switches        INTEGER NOT NULL,    -- context switches
    disk_read       INTEGER NOT NULL,    -- all disks
    disk_written    INTEGER NOT NULL,
    received        INTEGER NOT NULL,    -- all network devices but the loopback
    sent            INTEGER NOT NULL,
    pressure_cpu    INTEGER,             -- how long some task was delayed (PSI); null where the kernel does not tell
    pressure_io     INTEGER,
    pressure_memory INTEGER,
    PRIMARY KEY (sample, moment)
) WITHOUT ROWID;

-- What each process did in a sample that several measured together; nothing of one that one process measured alone.
CREATE TABLE part (
    sample       INTEGER NOT NULL REFERENCES sample (id),
    rank         INTEGER NOT NULL,       -- which process, from 0
    node         TEXT NOT NULL,          -- the name of its machine
    clock_offset INTEGER NOT NULL,       -- how far its clock was ahead of that of rank 0
    clock_uncertainty INTEGER NOT NULL,  -- that may be so much more or less
    began        INTEGER NOT NULL,       -- how long after the agreed start, by its clock, the last of its workers began
    workers      INTEGER NOT NULL,       -- so many rows of worker are its own, in the order of ranks
    bytes        INTEGER NOT NULL,
    operations   INTEGER NOT NULL,
    first_done   INTEGER NOT NULL,       -- from the agreed start
    last_done    INTEGER NOT NULL,
    user         INTEGER NOT NULL,       -- processor time, user space
    system       INTEGER NOT NULL,       -- the same in the kernel
    run_delay    INTEGER NOT NULL,       -- workers ready to run, waiting for a processor
    PRIMARY KEY (sample, rank)
) WITHOUT ROWID;

-- What a load beside it did while a sample was measured, of all its workers; nothing where there was none.
CREATE TABLE background (
    sample      INTEGER PRIMARY KEY REFERENCES sample (id),
    wall        INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    operations  INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL,        -- of these operations; where they were due at a time, from then
    errors      INTEGER NOT NULL
);

-- What became of the frames of a load that is an instrument, of all of it, beside its row in background.
CREATE TABLE frames_beside (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),
    due           INTEGER NOT NULL,      -- frames that came meanwhile
    lost          INTEGER NOT NULL,
    late          INTEGER NOT NULL,      -- acknowledged later than the allowance
    allowance     INTEGER NOT NULL,
    longest_stall INTEGER NOT NULL       -- the longest time in which frames waited and none was acknowledged
);

-- What processes saw of files that another one wrote: files count once for each process that looked for them.
CREATE TABLE visibility (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),
    files        INTEGER NOT NULL,
    missing      INTEGER NOT NULL,       -- closed, and not there when opened
    short        INTEGER NOT NULL,       -- closed, and not whole
    stale        INTEGER NOT NULL,       -- closed, and with other contents than were written last
    out_of_order INTEGER NOT NULL,       -- there, while the one that was closed before it was not, or not whole
    never        INTEGER NOT NULL,       -- not seen whole and right within the patience
    longest      INTEGER NOT NULL        -- the longest time from a close until the file was seen whole and right
);

-- What processes saw of a lock that they took in turn.
CREATE TABLE locking (
    sample  INTEGER PRIMARY KEY REFERENCES sample (id),
    tries   INTEGER NOT NULL,            -- attempts to take it while another process had it
    broken  INTEGER NOT NULL,            -- of these, those that got it
    passed  INTEGER NOT NULL,            -- times that one that had waited for it got it
    longest INTEGER NOT NULL             -- the longest time from giving it back until the next one had it
);

CREATE TABLE worker (
    sample     INTEGER NOT NULL REFERENCES sample (id),
    worker     INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    first_done INTEGER NOT NULL,         -- from the barrier
    last_done  INTEGER NOT NULL,
    PRIMARY KEY (sample, worker)
) WITHOUT ROWID;

-- 64 buckets an octave; bucket b < 64 holds b ns, then (64 + b % 64) << (b / 64 - 1) ns and above. Merge by SUM.
CREATE TABLE histogram (
    sample INTEGER NOT NULL REFERENCES sample (id),
    kind   TEXT NOT NULL,                -- latency: issue to done; lateness: due to issue. Of recordings, latency: due
                                         -- until the slot is free; durable, readable, read: due until the frame is so
    bucket INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (sample, kind, bucket)
) WITHOUT ROWID;

-- At most 600 bins a sample, all of one width.
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
    errno  INTEGER NOT NULL,             -- 0: fewer bytes were written than asked
    count  INTEGER NOT NULL,
    PRIMARY KEY (sample, errno)
) WITHOUT ROWID;

-- What became of an instrument's frames, for samples of the phase ingest.
CREATE TABLE ingest (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),
    count         INTEGER NOT NULL,      -- so many of it, each with a recorder of its own
    goal          TEXT NOT NULL,         -- limit: as fast as frames were taken; pace: when due;
                                         -- search, buffer: one trial of many, at its rate or with its buffer
    frame_size    INTEGER NOT NULL,
    period        INTEGER NOT NULL,
    duration      INTEGER NOT NULL,
    due           INTEGER NOT NULL,      -- frames
    stored        INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    slots         INTEGER NOT NULL,
    slots_high    INTEGER NOT NULL,
    longest_stall INTEGER NOT NULL,      -- the longest time in which frames waited and none was acknowledged
    allowance     INTEGER NOT NULL,      -- how late a frame may be, and what a stall is longer than
    late          INTEGER NOT NULL,      -- frames acknowledged later than that
    stalls        INTEGER NOT NULL,      -- times longer than that in which frames waited and none was acknowledged
    stalled       INTEGER NOT NULL,      -- all of them together
    slowest       INTEGER,               -- fewest bytes acknowledged in any second
    company       TEXT NOT NULL,         -- what else was recorded at the same time
    condition     TEXT NOT NULL,         -- the state that the target was brought into; empty for as it is
    load          TEXT NOT NULL,         -- what worked on the target meanwhile (table background); empty for nothing
    written       INTEGER NOT NULL       -- bytes of frames that the storage was given: fewer where they are compressed
);

-- What became of the packets that an instrument sent over loopback; frames are then blocks of them. Counts are of packets.
CREATE TABLE packet (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),
    size         INTEGER NOT NULL,       -- the longest, with what is not kept
    due          INTEGER NOT NULL,
    unsent       INTEGER NOT NULL,       -- the simulated instrument could not hand them to the network
    came         INTEGER NOT NULL,       -- out of the kernel: due - unsent - came were lost in its buffer
    dropped      INTEGER NOT NULL,       -- messages that the kernel says it dropped: of one packet, or of several joined
    ring         INTEGER NOT NULL,       -- found no room in the ring, or were in blocks that no lane was left to take
    stored       INTEGER NOT NULL,
    losses       INTEGER NOT NULL,       -- loss periods (RFC 3357)
    longest_loss INTEGER NOT NULL,       -- the most missing in a row
    reordered    INTEGER NOT NULL,       -- came after one with a higher number (RFC 4737, section 3.3)
    extent       INTEGER NOT NULL,       -- overtaken by so many others at the most (RFC 4737, section 4.2)
    overtaken    INTEGER NOT NULL,       -- all of these together
    duplicates   INTEGER NOT NULL,
    room         INTEGER NOT NULL,       -- the kernel's buffer as it was given, in bytes
    late         INTEGER NOT NULL,       -- how late a packet left at the most
    sending      INTEGER NOT NULL,       -- processor time of the simulated instrument, which waits awake
    receiving    INTEGER NOT NULL        -- processor time of what receives
);

-- How full the ring was over time: at most 600 bins a sample, all of one width.
CREATE TABLE level (
    sample INTEGER NOT NULL REFERENCES sample (id),
    bin    INTEGER NOT NULL,
    width  INTEGER NOT NULL,
    most   INTEGER NOT NULL,             -- slots in use
    last   INTEGER NOT NULL,             -- slots in use at the end of the bin
    lost   INTEGER NOT NULL,             -- frames
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;

-- The longest stalls of a recording.
CREATE TABLE stall (
    sample INTEGER NOT NULL REFERENCES sample (id),
    at     INTEGER NOT NULL,             -- when it began, from the first frame on
    length INTEGER NOT NULL
);

-- Who read a recording while it was made.
CREATE TABLE reader (
    sample INTEGER NOT NULL REFERENCES sample (id),
    reader INTEGER NOT NULL,
    copies INTEGER NOT NULL,             -- 1: it wrote what it read to a second target
    after  INTEGER NOT NULL,             -- 1: it read what was kept when the recording was over
    frames INTEGER NOT NULL,             -- read, and found right
    bytes  INTEGER NOT NULL,
    wall   INTEGER NOT NULL,
    missed INTEGER NOT NULL,             -- removed to make room before it came to them
    wrong  INTEGER NOT NULL,             -- not what the instrument delivered
    failed INTEGER NOT NULL,             -- operations
    hung   INTEGER NOT NULL,             -- 1: it wrote a copy, did not end in time and was given up
    PRIMARY KEY (sample, reader)
) WITHOUT ROWID;

-- A stage that measured the network between machines: once for all targets.
CREATE TABLE network_stage (
    id       INTEGER PRIMARY KEY,        -- among such stages, in the order of the plan, from 0
    name     TEXT NOT NULL,
    machines TEXT NOT NULL               -- JSON: names, processes and addresses, in the order in which patterns number them
);

-- What was measured there at the same time.
CREATE TABLE network_cell (
    stage    INTEGER NOT NULL REFERENCES network_stage (id),
    cell     INTEGER NOT NULL,           -- from 0
    name     TEXT NOT NULL,              -- all of it in words
    pattern  TEXT NOT NULL,              -- JSON: who sends to whom
    protocol TEXT NOT NULL,              -- tcp, udp
    flows    INTEGER NOT NULL,           -- from each machine to each other
    PRIMARY KEY (stage, cell)
) WITHOUT ROWID;

-- One trial.
CREATE TABLE network_sample (
    id     INTEGER PRIMARY KEY,
    stage  INTEGER NOT NULL REFERENCES network_stage (id),
    cell   INTEGER NOT NULL,
    repeat INTEGER NOT NULL,             -- the round; of udp, the trial of the search
    asked  INTEGER,                      -- of udp: bytes a second that each flow was to be sent at
    UNIQUE (stage, cell, repeat)
);

-- What became of each of its flows. Times are from the agreed start.
CREATE TABLE flow (
    sample           INTEGER NOT NULL REFERENCES network_sample (id),
    flow             INTEGER NOT NULL,
    sender           INTEGER NOT NULL,   -- which process
    receiver         INTEGER NOT NULL,
    bytes            INTEGER NOT NULL,   -- that came
    last             INTEGER NOT NULL,   -- when the last of them had come
    sent             INTEGER NOT NULL,   -- bytes that the sender handed over
    sent_last        INTEGER NOT NULL,   -- when it had handed over the last
    sending          INTEGER NOT NULL,   -- processor time of the sender's thread
    receiving        INTEGER NOT NULL,   -- and of the receiver's
    retransmitted    INTEGER,            -- of tcp: segments that were sent again, by TCP_INFO as all that follows
    round_trip       INTEGER,            -- smoothed, under load
    least_round_trip INTEGER,
    segment          INTEGER,            -- bytes
    congestion       TEXT,               -- the congestion control
    send_buffer      INTEGER,            -- bytes in the sender's kernel
    packets_sent     INTEGER,            -- of udp
    packets          INTEGER,            -- of udp: that came
    reordered        INTEGER,            -- of udp: that came after one with a higher number
    send_failed      TEXT,               -- why the sender did not come to its end
    receive_failed   TEXT,
    PRIMARY KEY (sample, flow)
) WITHOUT ROWID;

-- What was concluded when the campaign ended, in words: `nilometer check` derives each again from the samples.
CREATE TABLE conclusion (
    id      INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,               -- what it is about
    words   TEXT NOT NULL
);

-- How this file was when the campaign ended. Nothing while it runs.
CREATE TABLE seal (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    sealed TEXT NOT NULL,                -- UTC, ISO 8601
    mark   TEXT NOT NULL                 -- nilometer-sha256, a colon, and the SHA-256 of the file in which the 64 digits
                                         -- behind this colon are zeros
);

-- What a person asks first: rates by cell and repeat, warm-up apart.
CREATE VIEW rate AS
SELECT target.path, cell.stage, cell.name, sample.phase, sample.repeat,
       sample.bytes * 1e3 / sample.wall AS megabytes_per_second,
       sample.operations * 1e9 / sample.wall AS operations_per_second,
       (sample.user + sample.system) * 1.0 / sample.wall AS cores,
       sample.invalid
FROM sample JOIN target ON target.id = sample.target JOIN cell ON cell.id = sample.cell JOIN campaign
WHERE sample.wall > 0 AND sample.repeat >= campaign.warm_up;
