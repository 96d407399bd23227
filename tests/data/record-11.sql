PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO campaign VALUES(1,'a record that stays readable','0.1.0','2026-11-27T11:27:55Z','{"plan":{"title":"a record that stays readable","repeats":1,"warm_up":0,"margin":5.0,"time_limit":"86400000000000 ns","space_limit":null,"expect":[],"source":null,"copy_to":null,"scale":1.0,"seed":1,"reserve":"0 B","ranks":1,"hang_after":"60000000000 ns","cells":[]},"targets":[{"address":"/data/kept","capabilities":["keep","read","write","append","write_anywhere","resize","rename","remove","directories","list","sync","open_removed","strict_names","mounted"],"file_system":"ext4","mount_point":"/","source":"/dev/vda","options":"rw,relatime,rw,discard,resv_strict,resuid=65534,resgid=65534","device":"vda","space":{"size":"270553174016 B","free":"60058935296 B","used":"37734359040 B","inodes":16777216,"free_inodes":16226981},"writable":true,"direct":{"real":{"alignment":512}},"striping":null,"profile":{"kind":"ext4","layers":[{"name":"vda","kind":"virtual_disk","rotational":true,"write_cache":true}],"redundancy":"none known","features":[{"feature":"posix","answer":"yes","basis":"published"},{"feature":"metadata_server","answer":"none","basis":"published"},{"feature":"rdma","answer":"no","basis":"published"},{"feature":"striping","answer":"by the devices below","basis":"published"},{"feature":"failover","answer":"by the devices below","basis":"published"},{"feature":"quota","answer":"yes","basis":"published"},{"feature":"snapshots","answer":"no","basis":"published"},{"feature":"migration","answer":"no","basis":"published"},{"feature":"rename","answer":"yes","basis":"measured"},{"feature":"hard_links","answer":"yes","basis":"measured"},{"feature":"locks","answer":"yes","basis":"measured"},{"feature":"direct_io","answer":"yes","basis":"measured"},{"feature":"preallocation","answer":"yes","basis":"measured"},{"feature":"shared_mapping","answer":"yes","basis":"measured"},{"feature":"extended_attributes","answer":"yes","basis":"measured"},{"feature":"append","answer":"yes","basis":"measured"}]},"facts":[]},{"address":"null:","capabilities":["read","write","append","write_anywhere","resize","rename","remove","directories","list","sync","open_removed","strict_names","mounted"],"file_system":"null","mount_point":"","source":"none","options":"","device":null,"space":{"size":"4611686018427387904 B","free":"4611686018427387904 B","used":null,"inodes":null,"free_inodes":null},"writable":true,"direct":{"real":{"alignment":1}},"striping":null,"profile":{"kind":"unknown"},"facts":[["purpose","what the tool itself can do"]]}],"source":null,"archive":null,"ceiling":1}',0,1,5.0);
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
INSERT INTO environment VALUES(0,'nilometer','0.1.0');
INSERT INTO environment VALUES(0,'build','debug');
INSERT INTO environment VALUES(0,'host','vm');
INSERT INTO environment VALUES(0,'kernel','Linux 6.18.44-fc-v657');
INSERT INTO environment VALUES(0,'machine','x86_64');
INSERT INTO environment VALUES(0,'operating system','Debian GNU/Linux 12 (bookworm)');
INSERT INTO environment VALUES(0,'clock source','tsc');
INSERT INTO environment VALUES(0,'clock','not synchronised');
INSERT INTO environment VALUES(0,'processors','2');
INSERT INTO environment VALUES(0,'processor','AMD EPYC');
INSERT INTO environment VALUES(0,'hyper-threading','the processor has none');
INSERT INTO environment VALUES(0,'NUMA nodes','0');
INSERT INTO environment VALUES(0,'virtual machine','yes');
INSERT INTO environment VALUES(0,'memory','24684092 kB');
INSERT INTO environment VALUES(0,'swap','0 kB');
INSERT INTO environment VALUES(0,'transparent huge pages','madvise');
INSERT INTO environment VALUES(0,'swappiness','60');
INSERT INTO environment VALUES(0,'dirty_ratio','20');
INSERT INTO environment VALUES(0,'dirty_background_ratio','10');
INSERT INTO environment VALUES(0,'dirty_bytes','0');
INSERT INTO environment VALUES(0,'dirty_expire_centisecs','3000');
INSERT INTO environment VALUES(0,'open files','20000');
INSERT INTO environment VALUES(0,'locked memory','8388608');
INSERT INTO environment VALUES(0,'layout of kept-camera at a pace on /data/kept','files of a writer''s own, one after the other, of 256 MiB each, the last 2 kept; through the cache, 2 writers, 1 MiB of memory');
CREATE TABLE machine (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);
INSERT INTO machine VALUES(0,'vm');
CREATE TABLE link (
    machine  INTEGER NOT NULL REFERENCES machine (id),
    name     TEXT NOT NULL,
    is_card  INTEGER NOT NULL,
    speed    REAL,
    mtu      INTEGER,
    bond     TEXT,
    offloads TEXT,
    PRIMARY KEY (machine, name)
) WITHOUT ROWID;
INSERT INTO link VALUES(0,'eth0',1,NULL,1400,NULL,NULL);
CREATE TABLE target (
    id          INTEGER PRIMARY KEY,
    path        TEXT NOT NULL,
    file_system TEXT NOT NULL,
    description TEXT,
    left_out    TEXT
);
INSERT INTO target VALUES(0,'/data/kept','ext4','{"address":"/data/kept","capabilities":["keep","read","write","append","write_anywhere","resize","rename","remove","directories","list","sync","open_removed","strict_names","mounted"],"file_system":"ext4","mount_point":"/","source":"/dev/vda","options":"rw,relatime,rw,discard,resv_strict,resuid=65534,resgid=65534","device":"vda","space":{"size":"270553174016 B","free":"60058935296 B","used":"37734359040 B","inodes":16777216,"free_inodes":16226981},"writable":true,"direct":{"real":{"alignment":512}},"striping":null,"profile":{"kind":"ext4","layers":[{"name":"vda","kind":"virtual_disk","rotational":true,"write_cache":true}],"redundancy":"none known","features":[{"feature":"posix","answer":"yes","basis":"published"},{"feature":"metadata_server","answer":"none","basis":"published"},{"feature":"rdma","answer":"no","basis":"published"},{"feature":"striping","answer":"by the devices below","basis":"published"},{"feature":"failover","answer":"by the devices below","basis":"published"},{"feature":"quota","answer":"yes","basis":"published"},{"feature":"snapshots","answer":"no","basis":"published"},{"feature":"migration","answer":"no","basis":"published"},{"feature":"rename","answer":"yes","basis":"measured"},{"feature":"hard_links","answer":"yes","basis":"measured"},{"feature":"locks","answer":"yes","basis":"measured"},{"feature":"direct_io","answer":"yes","basis":"measured"},{"feature":"preallocation","answer":"yes","basis":"measured"},{"feature":"shared_mapping","answer":"yes","basis":"measured"},{"feature":"extended_attributes","answer":"yes","basis":"measured"},{"feature":"append","answer":"yes","basis":"measured"}]},"facts":[]}',NULL);
INSERT INTO target VALUES(1,'null:','null','{"address":"null:","capabilities":["read","write","append","write_anywhere","resize","rename","remove","directories","list","sync","open_removed","strict_names","mounted"],"file_system":"null","mount_point":"","source":"none","options":"","device":null,"space":{"size":"4611686018427387904 B","free":"4611686018427387904 B","used":null,"inodes":null,"free_inodes":null},"writable":true,"direct":{"real":{"alignment":1}},"striping":null,"profile":{"kind":"unknown"},"facts":[["purpose","what the tool itself can do"]]}',NULL);
CREATE TABLE cell (
    id          INTEGER PRIMARY KEY,
    stage       TEXT NOT NULL,
    name        TEXT NOT NULL,
    measurement TEXT NOT NULL
);
INSERT INTO cell VALUES(0,'stream','4 MiB by 1 MiB, buffered, 1 worker','{"workload":{"workers":1,"engine":"sync","depth":1,"time_limit":null,"stonewall":false,"volumes":"alone","stripe_count":null,"workload":{"stream":{"file_size":"4194304 B","block_size":"1048576 B","access":"buffered","sync":"close","files":1,"total_files":0,"layout":"own","preallocate":false,"source":"memory","rewrite":false,"read_back":true,"shift":0}}}}');
INSERT INTO cell VALUES(1,'camera','kept-camera at 12.8 kB/s for 2 s, buffer 1 MiB','{"recording":{"instrument":{"name":"kept-camera","title":"A camera of few pixels","source":"made up","assumed":[],"shape":[8,8],"pixel":"uint16","frame_rate":"100 Hz","streams":1,"burst":null,"recording":{"storing":"files","format":"raw"},"data":{"kind":"diffraction","intensity":null,"compressibility":null,"distinct":null},"readers":{"count":0,"distance":"0 ns","rate":null},"packets":null},"swept":{"payload":null,"rate":null,"streams":null,"format":null,"storing":null},"count":1,"goal":"pace","duration":"2000000000 ns","buffer":"1048576 B","keep":"1048576 B","fill":null,"repeats":1,"readers":{"count":0,"distance":"0 ns","rate":null},"company":null,"condition":null,"route":"in_place","onto":"target"}}');
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
    device_busy    INTEGER,
    device_queue   INTEGER,
    coldness       TEXT,
    invalid        TEXT,
    UNIQUE (target, cell, repeat, phase)
);
INSERT INTO sample VALUES(1,0,0,0,'write',4194304,7,8388608,0,1658000,4131934,99415,7789730,4,0,2298741,560843,28033,1795778876049567893,2.8199999999999998401,0,4202496,1,4000000,4000000,NULL,NULL);
INSERT INTO sample VALUES(2,0,0,0,'read',4194304,6,3355443,947000,0,1981974,41111,5876741,2,0,0,565799,35042,1795778876060150758,2.8199999999999998401,4194304,0,0,0,3000000,'proved',NULL);
INSERT INTO sample VALUES(3,1,0,0,'write',4194304,7,60871,35000,0,25871,0,0,0,0,0,553261,37746,1795778876074225718,2.8199999999999998401,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sample VALUES(4,1,0,0,'read',4194304,6,42334,23000,0,19334,0,0,0,0,0,556255,35243,1795778876080367620,2.8199999999999998401,NULL,NULL,NULL,NULL,NULL,'not provable here',NULL);
INSERT INTO sample VALUES(5,0,1,0,'ingest',25600,200,1991131989,0,49063000,1942068989,30192731,0,1466,19,161499076,14378000,28223,1795778876095806762,2.8199999999999998401,3854336,63488000,12,28000000,447000000,NULL,NULL);
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
INSERT INTO activity VALUES(1,'before',501959616,970000000,0,292,1000000,2000000,4096,512,65111000,0,0);
INSERT INTO activity VALUES(1,'during',6345949,20000000,0,18,0,4202496,0,0,2300000,899000,0);
INSERT INTO activity VALUES(2,'before',4204127,10000000,0,47,0,90112,0,0,1906000,257000,0);
INSERT INTO activity VALUES(2,'during',7340172,20000000,0,12,4194304,0,0,0,2732000,986000,0);
INSERT INTO activity VALUES(3,'before',6694067,0,0,63,0,90112,0,0,3518000,613000,0);
INSERT INTO activity VALUES(3,'during',509174,0,0,4,0,0,0,0,0,0,0);
INSERT INTO activity VALUES(4,'before',5673830,20000000,0,48,0,90112,0,0,2730000,212000,0);
INSERT INTO activity VALUES(4,'during',450607,0,0,4,0,0,0,0,0,0,0);
INSERT INTO activity VALUES(5,'before',14685991,30000000,0,86,0,94208,0,0,9153000,1774000,0);
INSERT INTO activity VALUES(5,'during',1992183196,3720000000,0,4399,3854336,63483904,0,0,430516000,1311969000,0);
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
INSERT INTO part VALUES(1,0,'node1',0,0,4100,1,2097152,4,309454,5789934,0,858000,1198741);
INSERT INTO part VALUES(1,1,'node2',-51200,2900,6200,1,2097152,3,411320,8388608,0,800000,1100000);
CREATE TABLE node_start (
    sample       INTEGER NOT NULL REFERENCES sample (id),
    position     INTEGER NOT NULL,
    node         TEXT NOT NULL,
    load         REAL NOT NULL,
    over         INTEGER NOT NULL,
    disk_read    INTEGER NOT NULL,
    disk_written INTEGER NOT NULL,
    received     INTEGER NOT NULL,
    sent         INTEGER NOT NULL,
    PRIMARY KEY (sample, position)
) WITHOUT ROWID;
INSERT INTO node_start VALUES(1,0,'node1',2.82,500000000,0,1000000,0,0);
INSERT INTO node_start VALUES(1,1,'node2',0.82,500000000,1000000,1000000,4096,512);
CREATE TABLE background (
    sample      INTEGER PRIMARY KEY REFERENCES sample (id),
    wall        INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    operations  INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL,
    errors      INTEGER NOT NULL
);
CREATE TABLE frames_beside (
    sample        INTEGER PRIMARY KEY REFERENCES sample (id),
    due           INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    late          INTEGER NOT NULL,
    allowance     INTEGER NOT NULL,
    longest_stall INTEGER NOT NULL
);
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
INSERT INTO worker VALUES(1,0,2097152,4,309454,5789934);
INSERT INTO worker VALUES(1,1,2097152,3,411320,8388608);
INSERT INTO worker VALUES(2,0,4194304,6,79255,2928974);
INSERT INTO worker VALUES(3,0,4194304,7,46870,60871);
INSERT INTO worker VALUES(4,0,4194304,6,37536,42334);
CREATE TABLE histogram (
    sample INTEGER NOT NULL REFERENCES sample (id),
    kind   TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (sample, kind, bucket)
) WITHOUT ROWID;
INSERT INTO histogram VALUES(1,'latency',564,1);
INSERT INTO histogram VALUES(1,'latency',780,1);
INSERT INTO histogram VALUES(1,'latency',785,1);
INSERT INTO histogram VALUES(1,'latency',798,1);
INSERT INTO histogram VALUES(1,'latency',831,1);
INSERT INTO histogram VALUES(1,'latency',897,1);
INSERT INTO histogram VALUES(1,'latency',1091,1);
INSERT INTO histogram VALUES(1,'lateness',0,7);
INSERT INTO histogram VALUES(2,'latency',463,1);
INSERT INTO histogram VALUES(2,'latency',470,1);
INSERT INTO histogram VALUES(2,'latency',649,1);
INSERT INTO histogram VALUES(2,'latency',811,1);
INSERT INTO histogram VALUES(2,'latency',919,1);
INSERT INTO histogram VALUES(2,'latency',1009,1);
INSERT INTO histogram VALUES(2,'lateness',0,6);
INSERT INTO histogram VALUES(3,'latency',144,1);
INSERT INTO histogram VALUES(3,'latency',159,1);
INSERT INTO histogram VALUES(3,'latency',331,1);
INSERT INTO histogram VALUES(3,'latency',333,1);
INSERT INTO histogram VALUES(3,'latency',334,1);
INSERT INTO histogram VALUES(3,'latency',425,1);
INSERT INTO histogram VALUES(3,'latency',525,1);
INSERT INTO histogram VALUES(3,'lateness',0,7);
INSERT INTO histogram VALUES(4,'latency',50,1);
INSERT INTO histogram VALUES(4,'latency',100,1);
INSERT INTO histogram VALUES(4,'latency',159,1);
INSERT INTO histogram VALUES(4,'latency',198,1);
INSERT INTO histogram VALUES(4,'latency',321,1);
INSERT INTO histogram VALUES(4,'latency',449,1);
INSERT INTO histogram VALUES(4,'lateness',0,6);
INSERT INTO histogram VALUES(5,'latency',762,2);
INSERT INTO histogram VALUES(5,'latency',764,1);
INSERT INTO histogram VALUES(5,'latency',767,2);
INSERT INTO histogram VALUES(5,'latency',768,2);
INSERT INTO histogram VALUES(5,'latency',769,3);
INSERT INTO histogram VALUES(5,'latency',770,6);
INSERT INTO histogram VALUES(5,'latency',773,2);
INSERT INTO histogram VALUES(5,'latency',774,5);
INSERT INTO histogram VALUES(5,'latency',775,2);
INSERT INTO histogram VALUES(5,'latency',776,2);
INSERT INTO histogram VALUES(5,'latency',777,5);
INSERT INTO histogram VALUES(5,'latency',778,5);
INSERT INTO histogram VALUES(5,'latency',779,2);
INSERT INTO histogram VALUES(5,'latency',780,2);
INSERT INTO histogram VALUES(5,'latency',781,4);
INSERT INTO histogram VALUES(5,'latency',782,3);
INSERT INTO histogram VALUES(5,'latency',784,5);
INSERT INTO histogram VALUES(5,'latency',785,2);
INSERT INTO histogram VALUES(5,'latency',786,7);
INSERT INTO histogram VALUES(5,'latency',787,3);
INSERT INTO histogram VALUES(5,'latency',788,2);
INSERT INTO histogram VALUES(5,'latency',789,2);
INSERT INTO histogram VALUES(5,'latency',790,3);
INSERT INTO histogram VALUES(5,'latency',791,4);
INSERT INTO histogram VALUES(5,'latency',792,4);
INSERT INTO histogram VALUES(5,'latency',793,2);
INSERT INTO histogram VALUES(5,'latency',794,4);
INSERT INTO histogram VALUES(5,'latency',795,3);
INSERT INTO histogram VALUES(5,'latency',796,3);
INSERT INTO histogram VALUES(5,'latency',798,2);
INSERT INTO histogram VALUES(5,'latency',799,2);
INSERT INTO histogram VALUES(5,'latency',800,4);
INSERT INTO histogram VALUES(5,'latency',801,2);
INSERT INTO histogram VALUES(5,'latency',804,2);
INSERT INTO histogram VALUES(5,'latency',806,4);
INSERT INTO histogram VALUES(5,'latency',808,1);
INSERT INTO histogram VALUES(5,'latency',809,2);
INSERT INTO histogram VALUES(5,'latency',810,3);
INSERT INTO histogram VALUES(5,'latency',816,1);
INSERT INTO histogram VALUES(5,'latency',817,3);
INSERT INTO histogram VALUES(5,'latency',820,2);
INSERT INTO histogram VALUES(5,'latency',836,1);
INSERT INTO histogram VALUES(5,'latency',896,1);
INSERT INTO histogram VALUES(5,'latency',897,2);
INSERT INTO histogram VALUES(5,'latency',904,1);
INSERT INTO histogram VALUES(5,'latency',916,1);
INSERT INTO histogram VALUES(5,'latency',1020,1);
INSERT INTO histogram VALUES(5,'latency',1021,2);
INSERT INTO histogram VALUES(5,'latency',1022,2);
INSERT INTO histogram VALUES(5,'latency',1024,2);
INSERT INTO histogram VALUES(5,'latency',1025,3);
INSERT INTO histogram VALUES(5,'latency',1083,2);
INSERT INTO histogram VALUES(5,'latency',1084,3);
INSERT INTO histogram VALUES(5,'latency',1085,5);
INSERT INTO histogram VALUES(5,'latency',1086,2);
INSERT INTO histogram VALUES(5,'latency',1088,2);
CREATE TABLE series (
    sample     INTEGER NOT NULL REFERENCES sample (id),
    bin        INTEGER NOT NULL,
    width      INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (sample, bin)
) WITHOUT ROWID;
INSERT INTO series VALUES(1,0,1048576,3,2097152);
INSERT INTO series VALUES(1,1,1048576,2,2097152);
INSERT INTO series VALUES(1,2,1048576,0,0);
INSERT INTO series VALUES(1,3,1048576,0,0);
INSERT INTO series VALUES(1,4,1048576,0,0);
INSERT INTO series VALUES(1,5,1048576,2,0);
INSERT INTO series VALUES(2,0,1048576,1,0);
INSERT INTO series VALUES(2,1,1048576,1,1048576);
INSERT INTO series VALUES(2,2,1048576,4,3145728);
INSERT INTO series VALUES(3,0,1048576,7,4194304);
INSERT INTO series VALUES(4,0,1048576,6,4194304);
INSERT INTO series VALUES(5,0,4194304,0,0);
INSERT INTO series VALUES(5,1,4194304,0,0);
INSERT INTO series VALUES(5,2,4194304,2,256);
INSERT INTO series VALUES(5,3,4194304,0,0);
INSERT INTO series VALUES(5,4,4194304,1,128);
INSERT INTO series VALUES(5,5,4194304,0,0);
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
    load          TEXT NOT NULL,
    written       INTEGER NOT NULL
);
INSERT INTO ingest VALUES(5,1,'pace',128,10000000,2000000000,200,200,0,8192,2,10598670,40000000,0,0,0,12672,'','','',25600);
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
INSERT INTO level VALUES(5,0,4194304,1,1,0);
INSERT INTO level VALUES(5,1,4194304,1,1,0);
INSERT INTO level VALUES(5,2,4194304,2,0,0);
INSERT INTO level VALUES(5,3,4194304,0,0,0);
INSERT INTO level VALUES(5,4,4194304,1,0,0);
INSERT INTO level VALUES(5,5,4194304,0,0,0);
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
INSERT INTO reader VALUES(5,0,0,1,200,25600,290917,0,0,0,0);
CREATE TABLE network_stage (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    machines TEXT NOT NULL
);
CREATE TABLE network_cell (
    stage    INTEGER NOT NULL REFERENCES network_stage (id),
    cell     INTEGER NOT NULL,
    name     TEXT NOT NULL,
    pattern  TEXT NOT NULL,
    protocol TEXT NOT NULL,
    flows    INTEGER NOT NULL,
    PRIMARY KEY (stage, cell)
) WITHOUT ROWID;
CREATE TABLE network_sample (
    id     INTEGER PRIMARY KEY,
    stage  INTEGER NOT NULL REFERENCES network_stage (id),
    cell   INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    asked  INTEGER,
    UNIQUE (stage, cell, repeat)
);
CREATE TABLE flow (
    sample           INTEGER NOT NULL REFERENCES network_sample (id),
    flow             INTEGER NOT NULL,
    sender           INTEGER NOT NULL,
    receiver         INTEGER NOT NULL,
    bytes            INTEGER NOT NULL,
    last             INTEGER NOT NULL,
    sent             INTEGER NOT NULL,
    sent_last        INTEGER NOT NULL,
    sending          INTEGER NOT NULL,
    receiving        INTEGER NOT NULL,
    retransmitted    INTEGER,
    round_trip       INTEGER,
    least_round_trip INTEGER,
    segment          INTEGER,
    congestion       TEXT,
    send_buffer      INTEGER,
    packets_sent     INTEGER,
    packets          INTEGER,
    reordered        INTEGER,
    send_failed      TEXT,
    receive_failed   TEXT,
    PRIMARY KEY (sample, flow)
) WITHOUT ROWID;
CREATE TABLE network_interval (
    sample        INTEGER NOT NULL REFERENCES network_sample (id),
    position      INTEGER NOT NULL,
    machine       INTEGER NOT NULL,
    since         INTEGER NOT NULL,
    until         INTEGER NOT NULL,
    retransmitted INTEGER,
    PRIMARY KEY (sample, position)
) WITHOUT ROWID;
CREATE TABLE link_interval (
    sample   INTEGER NOT NULL REFERENCES network_sample (id),
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    received INTEGER NOT NULL,
    sent     INTEGER NOT NULL,
    PRIMARY KEY (sample, position, name)
) WITHOUT ROWID;
CREATE TABLE conclusion (
    id      INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    words   TEXT NOT NULL
);
INSERT INTO conclusion VALUES(1,'kept-camera on /data/kept','carries it; no frame lost in 2 s: fewer than 5400 an hour (95 %); to claim fewer than 1 a day, record 72 h; the longest stall was 10.6 ms, which a buffer of 392 B covers; the recorder used 0.02 cores');
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
PRAGMA user_version=11;
COMMIT;
