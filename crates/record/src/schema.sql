-- The record of one campaign. Times are in nanoseconds and sizes in bytes, unless a comment names another unit. Any
-- SQLite tool may read it, also during the campaign. Only Nilometer writes it.

-- The campaign. Exactly one row.
CREATE TABLE campaign (
    id        INTEGER PRIMARY KEY CHECK (id = 1),  -- always 1
    title     TEXT NOT NULL,                       -- title of the plan
    nilometer TEXT NOT NULL,                       -- version of the program
    started   TEXT NOT NULL,                       -- start in UTC, ISO 8601
    plan      TEXT,                                -- the resolved plan without its cells, and its targets, JSON. Null
                                                   -- if `import` made the record
    warm_up   INTEGER NOT NULL,                    -- rounds that do not count: repeats below this number
    repeats   INTEGER NOT NULL,                    -- planned rounds that count
    margin    REAL NOT NULL                        -- differences smaller than this do not count, in percent
);

-- Incidents of the campaign. Examples: it gave up a target, somebody resumed it, the clock of the calendar changed.
CREATE TABLE event (
    id   INTEGER PRIMARY KEY,            -- in the order of time
    at   INTEGER NOT NULL,               -- time since 1970, UTC
    what TEXT NOT NULL                   -- the incident in words
);

-- Directories on targets. The campaign adds a row before it makes a directory. After a kill, a resumed campaign removes
-- them.
CREATE TABLE run (
    id        INTEGER PRIMARY KEY,                      -- in the order of time
    target    INTEGER NOT NULL REFERENCES target (id),  -- the target
    directory TEXT NOT NULL                             -- path of the directory
);

-- Facts about the machines of the campaign, such as the kernel. One row for each fact and machine.
CREATE TABLE environment (
    node  INTEGER NOT NULL,              -- number of the machine, as in machine
    key   TEXT NOT NULL,                 -- name of the fact
    value TEXT NOT NULL,                 -- the fact in words
    PRIMARY KEY (node, key)
);

-- Machines, in the order of the first process on each. Machine 0 has process 0.
CREATE TABLE machine (
    id   INTEGER PRIMARY KEY,            -- number of the machine, as in environment
    name TEXT NOT NULL                   -- host name
);

-- Network interfaces that were up, without the loopback. Members of a bond are a part of it.
CREATE TABLE link (
    machine  INTEGER NOT NULL REFERENCES machine (id),  -- the machine
    name     TEXT NOT NULL,                             -- name on the machine
    is_card  INTEGER NOT NULL,                          -- 1: a card, or a bond of cards. The speed of other interfaces
                                                        -- is arbitrary
    speed    REAL,                                      -- capacity in bytes a second. Null if the driver does not
                                                        -- report it
    mtu      INTEGER,                                   -- longest packet, in bytes
    bond     TEXT,                                      -- mode and members of a bond, JSON. Null if it is no bond
    offloads TEXT,                                      -- offloads that are on (`ethtool -k`), JSON. Null if unknown
    PRIMARY KEY (machine, name)
) WITHOUT ROWID;

-- Targets of the campaign.
CREATE TABLE target (
    id          INTEGER PRIMARY KEY,     -- in the order of the command line, from 0
    path        TEXT NOT NULL,           -- directory or URL
    file_system TEXT NOT NULL,           -- type of its file system
    description TEXT,                    -- description before the campaign, JSON. Null if `import` made the record
    left_out    TEXT                     -- reason why the campaign gave it up. Null if it did not
);

-- Cells of the plan: each is a stage with one value for each of its parameters.
CREATE TABLE cell (
    id          INTEGER PRIMARY KEY,     -- in the order of the plan, from 0
    stage       TEXT NOT NULL,           -- name of the stage
    name        TEXT NOT NULL,           -- parameters in words
    measurement TEXT NOT NULL            -- JSON: `{"workload": ...}` or `{"recording": ...}`, with all parameters
);

-- One repeat of one phase of one cell on one target: the unit of every comparison. Several processes that measured it
-- together share one row. Its bytes, operations and processor times are the sums over these processes.
CREATE TABLE sample (
    id             INTEGER PRIMARY KEY,                      -- number of the row
    target         INTEGER NOT NULL REFERENCES target (id),  -- the target
    cell           INTEGER NOT NULL REFERENCES cell (id),    -- the cell
    repeat         INTEGER NOT NULL,                         -- number of the round, from 0
    phase          TEXT NOT NULL,                            -- name of the phase, such as `write`
    bytes          INTEGER NOT NULL,                         -- bytes moved
    operations     INTEGER NOT NULL,                         -- operations finished
    wall           INTEGER NOT NULL,                         -- from the barrier until the last worker was done
    user           INTEGER NOT NULL,                         -- processor time of this process in user space
    system         INTEGER NOT NULL,                         -- processor time of this process in the kernel
    wait           INTEGER NOT NULL,                         -- waiting time: wall x workers - user - system
    client         INTEGER NOT NULL,                         -- processor time of kernel threads and of the daemon of
                                                             -- the file system
    machine        INTEGER NOT NULL,                         -- processor time of the machine above its idle level
    voluntary      INTEGER NOT NULL,                         -- context switches of this process, to wait
    involuntary    INTEGER NOT NULL,                         -- context switches of this process, because another
                                                             -- thread's turn had come
    run_delay      INTEGER NOT NULL,                         -- time in which workers were ready to run, and waited for
                                                             -- a processor
    filling        INTEGER NOT NULL,                         -- time to fill buffers, outside wall
    settling       INTEGER NOT NULL,                         -- time until write-back calmed down, before the phase
    started        INTEGER NOT NULL,                         -- start of the phase since 1970, UTC
    load           REAL NOT NULL,                            -- load average over one minute, just before
    device_read    INTEGER,                                  -- bytes that the block device read during the phase
    device_written INTEGER,                                  -- bytes that the block device wrote during the phase
    device_flushes INTEGER,                                  -- times that the device flushed its cache. Null if the
                                                             -- device has no volatile cache, or the kernel does not
                                                             -- count flushes
    device_busy    INTEGER,                                  -- time in which the device had at least one request. Null
                                                             -- if the kernel does not count it
    device_queue   INTEGER,                                  -- the same time, weighted by the number of requests
    coldness       TEXT,                                     -- origin of the data of a read: `proved` (from the
                                                             -- storage), `contradicted` (from a cache), `not provable
                                                             -- here`, `never seen here` (another client wrote them)
    invalid        TEXT,                                     -- reason to reject the figure: a code, then its figures
                                                             -- (docs/invalid.md). Codes: `hung`, `errors`, `warm-read`,
                                                             -- `not-direct`, `not-preallocated`, `wrong`, `starved`,
                                                             -- `slow`, `bursts`, `no-background`, `refused`
    UNIQUE (target, cell, repeat, phase)
);

-- Activity of the whole machine during a phase, and just before it that of all but Nilometer.
CREATE TABLE activity (
    sample          INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    moment          TEXT NOT NULL,                            -- `before` or `during`
    over            INTEGER NOT NULL,                         -- length of the observation
    busy            INTEGER NOT NULL,                         -- processor time of all processes and the kernel
    stolen          INTEGER NOT NULL,                         -- processor time that the hypervisor gave to other
                                                              -- virtual machines
    switches        INTEGER NOT NULL,                         -- context switches
    disk_read       INTEGER NOT NULL,                         -- bytes read from all disks
    disk_written    INTEGER NOT NULL,                         -- bytes written to all disks
    received        INTEGER NOT NULL,                         -- bytes received from the network, without the loopback
    sent            INTEGER NOT NULL,                         -- bytes sent to the network, without the loopback
    pressure_cpu    INTEGER,                                  -- time in which some task waited for a processor (PSI).
                                                              -- Null if the kernel does not report it
    pressure_io     INTEGER,                                  -- time in which some task waited for input or output
    pressure_memory INTEGER,                                  -- time in which some task waited for memory
    PRIMARY KEY (sample, moment)
) WITHOUT ROWID;

-- Share of each process in a sample that several processes measured together. A sample of one process has no row.
CREATE TABLE part (
    sample       INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    rank         INTEGER NOT NULL,                         -- number of the process, from 0
    node         TEXT NOT NULL,                            -- name of its machine
    clock_offset INTEGER NOT NULL,                         -- nanoseconds by which its clock was ahead of that of rank 0
    clock_uncertainty INTEGER NOT NULL,                    -- uncertainty of clock_offset, in either direction
    began        INTEGER NOT NULL,                         -- from the agreed start until the last of its workers began,
                                                           -- by its clock
    workers      INTEGER NOT NULL,                         -- number of its workers. Rows of worker are in the order of
                                                           -- ranks
    bytes        INTEGER NOT NULL,                         -- bytes moved
    operations   INTEGER NOT NULL,                         -- operations finished
    first_done   INTEGER NOT NULL,                         -- completion of its first operation, from the agreed start
    last_done    INTEGER NOT NULL,                         -- completion of its last operation, from the agreed start
    user         INTEGER NOT NULL,                         -- processor time in user space
    system       INTEGER NOT NULL,                         -- processor time in the kernel
    run_delay    INTEGER NOT NULL,                         -- time in which workers were ready to run, and waited for a
                                                           -- processor
    PRIMARY KEY (sample, rank)
) WITHOUT ROWID;

-- State of each machine just before a sample that several processes measured together, as the first process there that
-- measured saw it. A sample of one process has no row: its table is activity.
CREATE TABLE node_start (
    sample       INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    position     INTEGER NOT NULL,                         -- number of the machine, in the order of the first rank on each
    node         TEXT NOT NULL,                            -- name of the machine
    load         REAL NOT NULL,                            -- load average over one minute
    over         INTEGER NOT NULL,                         -- length of the observation; 0 if there was none
    disk_read    INTEGER NOT NULL,                         -- bytes read from all disks
    disk_written INTEGER NOT NULL,                         -- bytes written to all disks
    received     INTEGER NOT NULL,                         -- bytes received from the network, without the loopback
    sent         INTEGER NOT NULL,                         -- bytes sent to the network, without the loopback
    PRIMARY KEY (sample, position)
) WITHOUT ROWID;

-- Work of a background load during a sample, summed over its workers. A sample without a load has no row.
CREATE TABLE background (
    sample      INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    wall        INTEGER NOT NULL,                            -- from the begin of the phase to its end
    bytes       INTEGER NOT NULL,                            -- bytes moved
    operations  INTEGER NOT NULL,                            -- operations finished
    latency_sum INTEGER NOT NULL,                            -- sum of the latencies of these operations. An operation
                                                             -- with a due time counts from then
    errors      INTEGER NOT NULL                             -- operations that failed
);

-- Fate of the frames of a background load that consists of instruments, in addition to its row in background.
CREATE TABLE frames_beside (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    due           INTEGER NOT NULL,                            -- frames that came due
    lost          INTEGER NOT NULL,                            -- frames that found no room in the ring, or whose write
                                                               -- failed
    late          INTEGER NOT NULL,                            -- frames acknowledged later than the allowance
    allowance     INTEGER NOT NULL,                            -- the longest permitted delay of a frame
    longest_stall INTEGER NOT NULL                             -- longest time in which frames waited and the storage
                                                               -- acknowledged none
);

-- Files that one process wrote and closed, and others looked for. A file counts once for each process that looked for
-- it.
CREATE TABLE visibility (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    files        INTEGER NOT NULL,                            -- files looked for
    missing      INTEGER NOT NULL,                            -- closed files that were missing at their open
    short        INTEGER NOT NULL,                            -- closed files that were too short
    stale        INTEGER NOT NULL,                            -- closed files with older contents than the last ones
                                                              -- written
    out_of_order INTEGER NOT NULL,                            -- files that were there although one closed before their
                                                              -- creation was missing or incomplete
    never        INTEGER NOT NULL,                            -- files never seen whole and right within the patience of
                                                              -- the observer
    longest      INTEGER NOT NULL                             -- longest time from a close until a process saw the file
                                                              -- whole and right
);

-- Attempts to take a lock, by processes that take it in turn.
CREATE TABLE locking (
    sample  INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    tries   INTEGER NOT NULL,                            -- attempts to take it while another process had it
    broken  INTEGER NOT NULL,                            -- attempts among these that got it: the lock excluded nobody
    passed  INTEGER NOT NULL,                            -- times that a process released it and the waiting process got
                                                         -- it
    longest INTEGER NOT NULL                             -- longest time from a release until the next process had it
);

-- Totals of each worker of a sample, over all processes in the order of their ranks.
CREATE TABLE worker (
    sample     INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    worker     INTEGER NOT NULL,                         -- number of the worker, from 0
    bytes      INTEGER NOT NULL,                         -- bytes moved
    operations INTEGER NOT NULL,                         -- operations finished
    first_done INTEGER NOT NULL,                         -- completion of its first operation, from the barrier
    last_done  INTEGER NOT NULL,                         -- completion of its last operation, from the barrier
    PRIMARY KEY (sample, worker)
) WITHOUT ROWID;

-- Times in 64 buckets an octave. Bucket b < 64 holds b ns; a higher one holds (64 + b % 64) << (b / 64 - 1) ns and
-- more. Add the counts of several samples to merge them.
CREATE TABLE histogram (
    sample INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    kind   TEXT NOT NULL,                            -- `latency`: issue to done. `lateness`: due to issue. For
                                                     -- recordings, `latency`: due until the slot is free; `durable`,
                                                     -- `readable`, `read`: due until the frame is so
    bucket INTEGER NOT NULL,                         -- number of the bucket
    count  INTEGER NOT NULL,                         -- number of times in it
    PRIMARY KEY (sample, kind, bucket)
) WITHOUT ROWID;

-- Work over time, at most 600 bins a sample, all of one width.
CREATE TABLE series (
    sample     INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    bin        INTEGER NOT NULL,                         -- number of the bin, from 0
    width      INTEGER NOT NULL,                         -- length of a bin
    operations INTEGER NOT NULL,                         -- operations finished in it
    bytes      INTEGER NOT NULL,                         -- bytes moved in it
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;

-- Failed operations of a sample.
CREATE TABLE error (
    sample INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    errno  INTEGER NOT NULL,                         -- error number of the kernel. 0: the write was shorter than
                                                     -- requested
    count  INTEGER NOT NULL,                         -- operations that failed so
    PRIMARY KEY (sample, errno)
) WITHOUT ROWID;

-- Fate of the frames of an instrument, for samples of the phase ingest.
CREATE TABLE ingest (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    count         INTEGER NOT NULL,                            -- number of instruments of this kind, each with its own
                                                               -- recorder. Figures are totals of all
    goal          TEXT NOT NULL,                               -- `limit`: frames arrive as soon as there is room.
                                                               -- `pace`: when due. `search`, `buffer`: one trial of
                                                               -- many, at its own rate or with its own buffer
    frame_size    INTEGER NOT NULL,                            -- bytes of a frame
    period        INTEGER NOT NULL,                            -- mean time between frames, over all instruments
    duration      INTEGER NOT NULL,                            -- time in which frames arrived
    due           INTEGER NOT NULL,                            -- frames that were due
    stored        INTEGER NOT NULL,                            -- frames acknowledged by the storage
    lost          INTEGER NOT NULL,                            -- frames that found no free slot, or whose write failed
                                                               -- everywhere
    slots         INTEGER NOT NULL,                            -- slots of the ring
    slots_high    INTEGER NOT NULL,                            -- the most slots in use at once
    longest_stall INTEGER NOT NULL,                            -- longest time in which frames waited and the storage
                                                               -- acknowledged none
    allowance     INTEGER NOT NULL,                            -- the longest permitted delay of a frame. A longer wait
                                                               -- is a stall
    late          INTEGER NOT NULL,                            -- frames acknowledged later than the allowance
    stalls        INTEGER NOT NULL,                            -- number of stalls: times longer than the allowance in
                                                               -- which frames waited and the storage acknowledged none
    stalled       INTEGER NOT NULL,                            -- total time of all stalls
    slowest       INTEGER,                                     -- fewest bytes acknowledged in any whole second. Null if
                                                               -- the recording was shorter
    company       TEXT NOT NULL,                               -- other instruments recorded at the same time, in words.
                                                               -- Empty if there were none
    condition     TEXT NOT NULL,                               -- condition that the campaign brought the target into.
                                                               -- Empty if it left the target as it was
    load          TEXT NOT NULL,                               -- background load on the target, in words (table
                                                               -- background). Empty if there was none
    written       INTEGER NOT NULL                             -- bytes given to the storage: fewer than the frames have
                                                               -- if the recorder compressed them
);

-- Fate of the packets that a simulated instrument sent over loopback. Its frames are blocks of them. Counts are of
-- packets.
CREATE TABLE packet (
    sample       INTEGER PRIMARY KEY REFERENCES sample (id),  -- the sample
    size         INTEGER NOT NULL,                            -- bytes of the longest packet, including those that the
                                                              -- recorder drops
    due          INTEGER NOT NULL,                            -- packets that were due
    unsent       INTEGER NOT NULL,                            -- packets that the simulated instrument could not hand to
                                                              -- the network
    came         INTEGER NOT NULL,                            -- packets received from the kernel. Its buffer lost due -
                                                              -- unsent - came
    dropped      INTEGER NOT NULL,                            -- messages dropped by the kernel, by its own count. Each
                                                              -- has one packet, or several that it had joined
    ring         INTEGER NOT NULL,                            -- packets that found no room in the ring, or were in
                                                              -- blocks that no lane was left to take
    stored       INTEGER NOT NULL,                            -- packets that have their place on the storage
    losses       INTEGER NOT NULL,                            -- runs of missing packets (loss periods of RFC 3357)
    longest_loss INTEGER NOT NULL,                            -- the most packets missing in a row
    reordered    INTEGER NOT NULL,                            -- packets that arrived after one with a higher number
                                                              -- (RFC 4737, section 3.3)
    extent       INTEGER NOT NULL,                            -- the most packets that overtook a single one (RFC 4737,
                                                              -- section 4.2)
    overtaken    INTEGER NOT NULL,                            -- sum of the packets that overtook others
    duplicates   INTEGER NOT NULL,                            -- packets that arrived twice
    room         INTEGER NOT NULL,                            -- bytes of the socket buffer that the kernel granted
    late         INTEGER NOT NULL,                            -- latest departure of a packet after its due time
    sending      INTEGER NOT NULL,                            -- processor time of the simulated instrument, which waits
                                                              -- actively
    receiving    INTEGER NOT NULL                             -- processor time of the receiving side
);

-- Fill level of the ring over time, at most 600 bins a sample, all of one width.
CREATE TABLE level (
    sample INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    bin    INTEGER NOT NULL,                         -- number of the bin, from 0
    width  INTEGER NOT NULL,                         -- length of a bin
    most   INTEGER NOT NULL,                         -- the most slots in use
    last   INTEGER NOT NULL,                         -- slots in use at the end of the bin
    lost   INTEGER NOT NULL,                         -- frames lost
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;

-- The longest stalls of a recording, at most 200.
CREATE TABLE stall (
    sample INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    at     INTEGER NOT NULL,                         -- start of the stall, counted from the first frame
    length INTEGER NOT NULL                          -- length of the stall
);

-- Readers of a recording while the recorder made it.
CREATE TABLE reader (
    sample INTEGER NOT NULL REFERENCES sample (id),  -- the sample
    reader INTEGER NOT NULL,                         -- number of the reader, from 0
    copies INTEGER NOT NULL,                         -- 1: it wrote its data to a second target
    after  INTEGER NOT NULL,                         -- 1: it read the stored frames after the recording had ended
    frames INTEGER NOT NULL,                         -- frames that it read and found right
    bytes  INTEGER NOT NULL,                         -- their bytes
    wall   INTEGER NOT NULL,                         -- from its first frame until its last
    missed INTEGER NOT NULL,                         -- frames that it did not reach: removed before, or unread 2 s after the end
    wrong  INTEGER NOT NULL,                         -- frames that it read and that differ from the instrument's
    failed INTEGER NOT NULL,                         -- reads and writes that failed
    hung   INTEGER NOT NULL,                         -- 1: it wrote a copy, did not end in time and was given up
    PRIMARY KEY (sample, reader)
) WITHOUT ROWID;

-- Stages that measured the network between machines: once for all targets.
CREATE TABLE network_stage (
    id       INTEGER PRIMARY KEY,        -- in the order of such stages in the plan, from 0
    name     TEXT NOT NULL,              -- name of the stage
    machines TEXT NOT NULL               -- JSON: names, processes and addresses, in the order of the numbers in
                                         -- patterns
);

-- Flows that the campaign measured at the same time.
CREATE TABLE network_cell (
    stage    INTEGER NOT NULL REFERENCES network_stage (id),  -- the stage
    cell     INTEGER NOT NULL,                                -- number of the cell, from 0
    name     TEXT NOT NULL,                                   -- the cell in words
    pattern  TEXT NOT NULL,                                   -- JSON: senders and receivers, alone or in an object with
                                                              -- the settings of flows (docs/cluster.md)
    protocol TEXT NOT NULL,                                   -- protocol: `tcp` or `udp`
    flows    INTEGER NOT NULL,                                -- number of flows from each machine to each other
    PRIMARY KEY (stage, cell)
) WITHOUT ROWID;

-- One trial of a network cell.
CREATE TABLE network_sample (
    id     INTEGER PRIMARY KEY,                             -- number of the row
    stage  INTEGER NOT NULL REFERENCES network_stage (id),  -- the stage
    cell   INTEGER NOT NULL,                                -- the cell
    repeat INTEGER NOT NULL,                                -- number of the round. For UDP, of the trial of the search
    asked  INTEGER,                                         -- for UDP: requested bytes a second of each flow
    UNIQUE (stage, cell, repeat)
);

-- Flows of a trial. Times are from the agreed start.
CREATE TABLE flow (
    sample           INTEGER NOT NULL REFERENCES network_sample (id),  -- the trial
    flow             INTEGER NOT NULL,                                 -- number of the flow, from 0
    sender           INTEGER NOT NULL,                                 -- number of the process that sent
    receiver         INTEGER NOT NULL,                                 -- number of the process that received
    bytes            INTEGER NOT NULL,                                 -- bytes that the receiver got
    last             INTEGER NOT NULL,                                 -- time of the last byte received
    sent             INTEGER NOT NULL,                                 -- bytes that the sender handed over
    sent_last        INTEGER NOT NULL,                                 -- time of the last byte handed over
    sending          INTEGER NOT NULL,                                 -- processor time of the sender's thread
    receiving        INTEGER NOT NULL,                                 -- processor time of the receiver's thread
    retransmitted    INTEGER,                                          -- for TCP: retransmitted segments. The kernel
                                                                       -- reports this and the next five columns
                                                                       -- (TCP_INFO)
    round_trip       INTEGER,                                          -- smoothed round trip time, under load
    least_round_trip INTEGER,                                          -- shortest round trip time
    segment          INTEGER,                                          -- bytes of a segment
    congestion       TEXT,                                             -- name of the congestion control
    send_buffer      INTEGER,                                          -- bytes of the sender's socket buffer
    packets_sent     INTEGER,                                          -- for UDP: packets sent
    packets          INTEGER,                                          -- for UDP: packets received
    reordered        INTEGER,                                          -- for UDP: packets that arrived after one with a
                                                                       -- higher number
    send_failed      TEXT,                                             -- reason why the sender did not finish. Null if
                                                                       -- it did
    receive_failed   TEXT,                                             -- reason why the receiver did not finish. Null
                                                                       -- if it did
    PRIMARY KEY (sample, flow)
) WITHOUT ROWID;

-- Traffic of a machine in an interval of a trial. Schemas before 11 do not have this table and the next one.
CREATE TABLE network_interval (
    sample        INTEGER NOT NULL REFERENCES network_sample (id),  -- the trial
    position      INTEGER NOT NULL,                                 -- number of the interval, from 0, over all machines
    machine       INTEGER NOT NULL,                                 -- number of the machine, as in patterns
    since         INTEGER NOT NULL,                                 -- begin, from the agreed start
    until         INTEGER NOT NULL,                                 -- end, from the agreed start
    retransmitted INTEGER,                                          -- segments that all TCP connections of the machine
                                                                    -- sent again. Null if its kernel does not count
                                                                    -- them
    PRIMARY KEY (sample, position)
) WITHOUT ROWID;

-- Traffic of an interface in such an interval, by its kernel's counters.
CREATE TABLE link_interval (
    sample   INTEGER NOT NULL REFERENCES network_sample (id),  -- the trial
    position INTEGER NOT NULL,                                 -- number of the interval
    name     TEXT NOT NULL,                                    -- name of the interface on the machine
    received INTEGER NOT NULL,                                 -- bytes received
    sent     INTEGER NOT NULL,                                 -- bytes sent
    PRIMARY KEY (sample, position, name)
) WITHOUT ROWID;

-- Conclusions at the end of the campaign, in words. `nilometer check` derives each again from the samples.
CREATE TABLE conclusion (
    id      INTEGER PRIMARY KEY,         -- number of the row
    subject TEXT NOT NULL,               -- subject of the conclusion
    words   TEXT NOT NULL                -- the conclusion
);

-- Checksum of this file at the end of the campaign. No row before that.
CREATE TABLE seal (
    id     INTEGER PRIMARY KEY CHECK (id = 1),  -- always 1
    sealed TEXT NOT NULL,                       -- time in UTC, ISO 8601
    mark   TEXT NOT NULL                        -- the text `nilometer-sha256`, a colon, and 64 digits: the SHA-256 of
                                                -- the file with zeros in place of these digits
);

-- Rates by cell and repeat, without warm-up rounds. Most questions begin here.
CREATE VIEW rate AS
SELECT target.path, cell.stage, cell.name, sample.phase, sample.repeat,
       sample.bytes * 1e3 / sample.wall AS megabytes_per_second,
       sample.operations * 1e9 / sample.wall AS operations_per_second,
       (sample.user + sample.system) * 1.0 / sample.wall AS cores,
       sample.invalid
FROM sample JOIN target ON target.id = sample.target JOIN cell ON cell.id = sample.cell JOIN campaign
WHERE sample.wall > 0 AND sample.repeat >= campaign.warm_up;
