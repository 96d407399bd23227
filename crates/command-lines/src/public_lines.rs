//! Lines in the form of public job scripts, each with its cell and the options that the cell lacks.

/// A line, its cell, and the options that the cell lacks.
pub type LineCase = (&'static str, &'static str, &'static str);

/// Lines of fio.
pub const FIO: &[LineCase] = &[
    (
        "sudo fio --name=soak --directory=/mnt/v1 --direct=1 --rw=randrw --bs=4K --numjobs=4 --iodepth=4 --ioengine=libaio --group_reporting --time_based --runtime=7200 --size=3G --output=/mnt/v1/fio.log",
        "mix 50 3G by 4k x4, depth 4, direct, synced at close, 7200 s based in /mnt/v1",
        "SYNC",
    ),
    (
        "fio --name=mac --ioengine=posixaio --rw=randrw --bs=4k --size=4G --filename=/tmp/fio_test --direct=1 --runtime=5m --time_based --eta=always --eta-newline=5 --status-interval=10",
        "mix 50 4G by 4k, direct, synced at close, 300 s based in /tmp",
        "SYNC",
    ),
    (
        "fio --name=integrity --bsrange=4k-512k --iodepth=128 --numjobs=1 --direct=1 --thread=1 --group_reporting=1 --rw=randrw --rwmixread=70 --filename=/mnt/sda2/file --verify=md5 --do_verify=1 --verify_backlog=1024 --fsync_on_close=1 --runtime=20 --time_based=1 --size=1024m",
        "mix 70 1G by 256k, direct, synced at close, 20 s based in /mnt/sda2",
        "--bsrange=4k-512k | --verify=md5 | --do_verify=1 | --verify_backlog=1024",
    ),
    (
        "fio --filename=/mnt/nvmeof/fio.bin --rw=randrw --rwmixread=70 --bs=4k --iodepth=16 --numjobs=4 --size=256M --runtime=60 --time_based --ioengine=io_uring --direct=1 --group_reporting",
        "mix 70 256M by 4k x4, depth 16, direct, synced at close, 60 s based in /mnt/nvmeof",
        "one file of all jobs | SYNC",
    ),
    (
        "fio -filename=/var/test.file -direct=1 -iodepth 1 -thread -rw=read -ioengine=psync -bs=16k -size=200G -numjobs=10 -runtime=300 -group_reporting -name=mytest",
        "read 200G by 16k x10, direct, 300 s in /var",
        "one file of all jobs",
    ),
    (
        "fio -directory=/cfs/mnt -ioengine=psync -rw=write -bs=128k -direct=1 -group_reporting=1 -fallocate=none -time_based=1 -runtime=120 -name=test_file_c -numjobs=4 -nrfiles=1 -size=10G",
        "write 10G by 128k x4, direct, 120 s based in /cfs/mnt",
        "going over the file again until the time is over",
    ),
    (
        "fio --name=jobA --directory=/mnt/nvme/job-a --rw=write --bs=8k --fdatasync=1 --numjobs=2 --rate_iops=470 --runtime=120 --time_based --size=256m --output-format=json --unlink=1",
        "write 256M by 8k x2, synced each, 940/s, 120 s based in /mnt/nvme/job-a",
        "going over the file again until the time is over",
    ),
    (
        "fio --name=test --ioengine=libaio --direct=1 --bs=128k --rw=write --rate=100m --size=1g --runtime=60",
        "write 1G by 128k, direct, 100MB/s, 60 s in .",
        "",
    ),
    (
        "fio --name=normal-read --filename=/mnt/data/testfile --size=1G --bs=4k --iodepth=4 --rw=randread --ioengine=libaio --direct=1 --rate_iops=1000 --runtime=60 --time_based",
        "random read 1G by 4k, depth 4, direct, 1000/s, 60 s based in /mnt/data",
        "",
    ),
    (
        "taskset -c 0 fio --name=write_seq --directory=/mnt/u --ioengine=libaio --iodepth=16 --rw=write --size=512M --direct=1 --bs=4k",
        "write 512M by 4k, depth 16, direct in /mnt/u",
        "",
    ),
    (
        "timeout 60 taskset -c 0 fio --name=randwrite --ioengine=libaio --iodepth=32 --rw=randwrite --bs=4k --direct=1 --size=512M --numjobs=4 --runtime=30 --time_based --group_reporting --directory=/bench --filename=fio_temp --output-format=json",
        "random write 512M by 4k x4, depth 32, direct, synced at close, 30 s based in /bench",
        "timeout 60 | one file of all jobs | SYNC",
    ),
    (
        "numactl --cpunodebind=0 fio --name=nvme --rw=randread --bs=4k --iodepth=32 --numjobs=8 --ioengine=libaio --direct=1 --size=4G --directory=/mnt/nvme0",
        "random read 4G by 4k x8, depth 32, direct in /mnt/nvme0",
        "",
    ),
    (
        "fio --name=fill --rw=write --bs=1M --size=1G --end_fsync=1 --directory=/data --name=read --stonewall --rw=read --size=1G",
        "write 1G by 1M, synced at close in /data",
        "job `read`",
    ),
    (
        "fio --direct=1 --ioengine=io_uring --iodepth=32 --bs=2M --size=8G --directory=/scratch --rw=write --name=a --name=b",
        "write 8G by 2M x2, depth 32, direct in /scratch",
        "",
    ),
    (
        "fio --direct=1 --bs=16k --size=1G --directory=/db --name=data --rw=randread --name=log --rw=write --rate_iops=100",
        "random read 1G by 16k, direct in /db",
        "job `log`",
    ),
    (
        "LD_PRELOAD=/opt/il.so fio --name=il --filename=/mnt/s/f.bin --rw=randread --bs=4k --size=2g --ioengine=psync --direct=1 --thread --numjobs=16 --group_reporting --runtime=30 --time_based",
        "random read 2G by 4k x16, direct, 30 s based in /mnt/s",
        "one file of all jobs",
    ),
    (
        "fio --randrepeat=1 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=test --filename=random_rw.fio --bs=4k --iodepth=64 --size=4G --readwrite=randrw --rwmixread=75",
        "mix 75 4G by 4k, depth 64, direct, synced at close in .",
        "SYNC",
    ),
    (
        "fio --name=db --bssplit=4k/60:64k/40 --rw=randwrite --size=1g --thinktime=100 --fsync=32 --directory=/pg",
        "random write 1048572k by 28k, synced at close in /pg",
        "--bssplit=4k/60:64k/40 | --thinktime=100 | the last 4096 bytes | SYNC",
    ),
    (
        "fio --name=seq --rw=rw --rwmixwrite=30 --bs=64k,128k --size=1g --directory=/d --norandommap",
        "mix 70 1G by 128k, synced at close, uniform in /d",
        "--rw=rw | --bs=64k,128k | SYNC",
    ),
    (
        "fio --name=ckpt --rw=write --bs=1m --size=1g --offset_increment=1g --numjobs=4 --filename=/d/one --direct=1 --ramp_time=5s",
        "write 1G by 1M x4, direct, segmented in /d",
        "--ramp_time=5s",
    ),
];

/// Lines of dd.
pub const DD: &[LineCase] = &[
    (
        "dd if=/dev/zero of=/data/test bs=8k count=50k conv=fsync",
        "write 400M by 8k, synced at close, zeros in /data",
        "",
    ),
    ("time dd if=/dev/urandom of=./test.dbf bs=1M count=10", "write 10M by 1M in .", "if=/dev/urandom"),
    ("sudo dd if=/dev/zero of=/swapfile bs=1M count=8192", "write 8G by 1M, zeros in /", ""),
    ("dd if=/mnt/t/test1 of=/dev/null bs=1M count=1024 iflag=direct", "read 1G by 1M, direct in /mnt/t", ""),
    (
        "dd if=/dev/zero of=/lustre/f bs=4M count=100 oflag=direct status=progress",
        "write 400M by 4M, direct, zeros in /lustre",
        "",
    ),
    (
        "dd if=/dev/zero of=/x/f bs=512 count=1000 oflag=dsync",
        "write 500k by 512, synced each, zeros in /x",
        "",
    ),
    ("dd if=/dev/random of=sample.txt bs=50MB count=1", "write 50000000 by 50000000 in .", "if=/dev/random"),
    (
        "dd if=/dev/zero of=/dev/shm/f bs=1G count=10G iflag=count_bytes,fullblock",
        "write 10G by 1G, zeros in /dev/shm",
        "",
    ),
    (
        "ionice -c 2 -n 0 nice -n -5 dd if=/src/big of=/dst/big bs=2x512 count=4096 conv=fdatasync,notrunc",
        "write 4M by 1k, synced at close in /dst",
        "conv=notrunc | if=/src/big",
    ),
];

/// Lines of IOR.
pub const IOR: &[LineCase] = &[
    (
        "srun ior -a POSIX -w -B -t 5m -b 20g -o /tmp/testFile",
        "write 20G by 5M, direct in /tmp",
        "srun without a number",
    ),
    (
        "srun -n 4 ior -a MPIIO -b 1g -w -r -F -t 64m -i 3 -o /out/",
        "write 1G by 64M x4, MPI-IO in /out/",
        "-i 3 | reading",
    ),
    (
        "mpirun --oversubscribe -np 4 ior -w -t 1m -b 16m -s 16 -F -k -e -o /d/ior",
        "write 256M by 1M x4, synced at close in /d",
        "",
    ),
    (
        "srun -n 32 --hint=nomultithread ./ior -t 2m -b 192m -F -o /dw/IOR_file -g -vv -C",
        "write 192M by 2M x32 in /dw",
        "reading",
    ),
    (
        "mpirun -np 8 --bind-to none --map-by node ior -a POSIX -w -r -b 4g -t 1m -o /s/ior_test -F -i 1 -e",
        "write 4G by 1M x8, synced at close in /s",
        "reading",
    ),
    (
        "mpirun --hostfile /app/hosts --map-by node ior -a POSIX -z -w -r -i 1 -m -d 1 -o /amlfs/test_file -t 1m -b 1g -A 123456 -F -C --posix.odirect",
        "random write 1G by 1M, direct, synced at close in /amlfs",
        "mpirun without a number | -m | -d 1 | reading | SYNC",
    ),
    (
        "ior -w -W -r -R -t 1M -e -o /gpfs/testDir/testFile -i 1 --posix.odirect -b 10g -F -v",
        "write 10G by 1M, direct, synced at close in /gpfs/testDir",
        "-W | -R | reading",
    ),
    (
        "srun -N 2 --ntasks-per-node=4 ior -t4096k -b4g -w -C -F -o /scr/t.bin",
        "write 4G by 4M x8 in /scr",
        "",
    ),
    (
        "aprun -n 16 -N 8 -cc depth ior -a MPIIO -c -w -t 47008 -b 47008 -s 100 -o ufs:/lus/f",
        "write 4700800 by 47008 x16, strided, MPI-IO together in /lus",
        "",
    ),
    (
        "jsrun -n 4 -a 2 -c 4 -r 1 ior -w -t 16m -b 1g -D 60 -O stoneWallingWearOut=1 -o /gpfs/f",
        "write 1G by 16M x8, segmented, 60 s in /gpfs",
        "-O stoneWallingWearOut=1",
    ),
    (
        "mpirun -np 4 ior -Y -w -t 4k -b 1m -s 8 -o /d/f",
        "write 8M by 4k x4, synced each, segmented in /d",
        "-s 8",
    ),
    (
        "mpirun --allow-run-as-root -np 1 --map-by node src/ior -v -a POSIX -i5 -g -e -w -b 4m -o /lustre/testfile -F -C -t 4k -O lustreStripeCount=1 -z",
        "random write 4M by 4k, synced at close in /lustre",
        "-i 5 | -O lustreStripeCount=1",
    ),
    (
        "mpiexec -n 4 -ppn 2 -f hosts -genv I_MPI_DEBUG 5 ior -r -C -t 1m -b 1g -F -o /beegfs/f -a HDF5",
        "read 1G by 1M x4 in /beegfs",
        "-a HDF5 | -C",
    ),
];

/// Lines of mdtest.
pub const MDTEST: &[LineCase] = &[
    (
        "mpirun --allow-run-as-root -np 512 --hostfile hfile64 mdtest -n 1000 -w 1024 -e 1024 -y -u -i 3 -N 1 -F -R -d /gone/test/mdtest",
        "tree 0/1 of 1000 files x512, unique, 1k each, shift 1 in /gone/test",
        "-y | -R | -i 3",
    ),
    (
        "mpirun mdtest -d /gone/nfs/mdtest -n 1000 -i 3 -u -L -F",
        "tree 0/1 of 1000 files, unique in /gone/nfs",
        "mpirun without a number | -i 3",
    ),
    (
        "mpirun -ppn 4 -np 16 mdtest -n 65536 -F -C -T -r -N 4 -d /gone/md",
        "tree 0/1 of 65536 files x16, shift 4, C T r in /gone",
        "",
    ),
    (
        "srun -N10 --tasks-per-node 24 ./mdtest -n 100 -F -i 10 -C -T -r -u -d /gone/area/x/",
        "tree 0/1 of 100 files x240, unique, C T r in /gone/area",
        "-i 10",
    ),
    (
        "srun --export=ALL,LD_PRELOAD=/opt/d.so -n 2 mdtest -n 100 -w 100 -e 100 -F -d /gone/md",
        "tree 0/1 of 100 files x2, 100 each in /gone",
        "",
    ),
    (
        "mpirun -np 16 mdtest -n 62500 -d /gone/mdtest_dir -u -i 3",
        "tree 0/1 of 62500 both x16, unique in /gone",
        "-i 3",
    ),
    (
        "mpirun -n 4 mdtest -I 20 -z 3 -b 5 -L -W 300 -x stone -d /gone/md",
        "tree 3/5 of 20 both x4, 300 s in /gone",
        "-L | -W 300",
    ),
    (
        "mdtest -n=1000 -i=10 -u --posix.odirect -D -d /gone/m",
        "tree 0/1 of 1000 directories, unique in /gone",
        "--posix.odirect | -i=10",
    ),
];

/// Lines of elbencho.
pub const ELBENCHO: &[LineCase] = &[
    (
        "elbencho -w -b 4M -t 16 --direct -s 20g /m/file1 /m/file2 /m/file3 /m/file4",
        "write 5G by 4M x16, direct in /m",
        "4 files that 16 threads share",
    ),
    (
        "elbencho -r -b 4k -t 16 --iodepth 16 --direct --rand --timelimit 20 -s 20g /m/file[1-16]",
        "random read 20G by 4k x16, depth 16, direct, 20 s in /m",
        "",
    ),
    (
        "elbencho -w -d -t 8 -n 1 -N 1 -s 4g -b 4m --direct /data/ckpt",
        "write 4G by 4M x8, direct in /data/ckpt",
        "",
    ),
    ("elbencho -w -r -t 4 -s 1G -b 4M /m/s/file", "write 256M by 4M x4, segmented in /m/s", "reading"),
    (
        "elbencho -t 2 --iodepth 4 --timelimit 2400 -b 1M --direct -s 100G -N 1000 -n 10 -D -F -d -w --rand /mount/share1",
        "random write 100G by 1M x2, depth 4, direct, synced at close, 10000 files, 2400 s in /mount/share1",
        "10000 files of each thread | directories of each thread | SYNC",
    ),
    (
        "elbencho -w --nolive --direct -t 2 -b 16m -s 512g --trunctosize --dropcache --nodelerr -F /d/f0 /d/f1",
        "write 512G by 16M x2, direct in /d",
        "--trunctosize",
    ),
    (
        "/root/bin/elbencho -r -b 4K -t 4 --iodepth 1 --limitread 4096 --direct --rand --lat --infloop --nolive --liveint 1000 --livecsvex --resfile /r -s 1g /m/f[1-4]",
        "random read 1G by 4k x4, direct, 16kB/s in /m",
        "",
    ),
];

/// Lines of iozone.
pub const IOZONE: &[LineCase] = &[
    (
        "./iozone -e -I -a -s 100M -r 4k -i 0 -i 1 -i 2 -f /mnt/sda1/iozone",
        "write 100M by 4k, direct, synced at close in /mnt/sda1",
        "-i 1 | -i 2",
    ),
    ("iozone -t 4 -i 0 -i 1 -r 1k -s 1m", "write 1M by 1k x4 in .", "-i 1"),
    ("iozone -t 1 -s 1g -i 0 -+n -r 1m -w -F /n/test1", "write 1G by 1M in /n", ""),
    ("timeout 25 ./iozone -t 2 -i 0 -i 2 -r 1k -s 1m", "write 1M by 1k x2 in .", "timeout 25 | -i 2"),
    (
        "sudo iozone -e -I -a -s 100M -r 4k -r 16k -i 0 -i 1",
        "write 100M by 4k, direct, synced at close in .",
        "-r 16384 B | -i 1",
    ),
    ("iozone -t1 -i0 -i2 -r1024 -s1048576 /tmp", "write 1G by 1M in .", "/tmp | -i 2"),
    ("iozone -i 1 -w -Rb out.xls -s 8g -r 64k -+u -C", "read 8G by 64k in .", ""),
];

/// All lines.
pub const ALL: [&[LineCase]; 6] = [FIO, DD, IOR, MDTEST, ELBENCHO, IOZONE];
