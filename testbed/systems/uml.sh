# shellcheck shell=bash
# A guest in User-Mode Linux, an ordinary program, with what the kernel of this machine may lack: md RAID 0, 5 and 6, LVM
# volumes, JFS, GFS2, NFS and SMB by the kernel over a bond of two links, and netem. What is mounted there is seen there only:
# `testbed/guest COMMAND...` runs a command in it.
# shellcheck disable=SC2034
NEEDS="$REPOSITORY/target/uml/done Debian:user-mode-linux
mkfs.xfs xfsprogs
mkfs.vfat dosfstools
rpcbind rpcbind
mount.nfs nfs-common"

version() {
    echo "Linux $(basename "$REPOSITORY"/target/uml/root/usr/lib/uml/modules/*) in User-Mode Linux"
}

start() {
    local disk disks=()
    mkdir "$HERE/exchange"
    for disk in b c d e f g h i j k l m n o p; do
        truncate --size=1G "$HERE/data/disk-$disk"
        disks+=("ubd$disk=$HERE/data/disk-$disk")
    done
    serve guest env LD_PRELOAD="$REPOSITORY/target/uml/ptrace.so" TMPDIR=/dev/shm \
        "$REPOSITORY/target/uml/root/usr/bin/linux.uml" mem=1G rootfstype=hostfs rootflags=/ ro init="$TESTBED/uml/init" \
        UNPACKED="$REPOSITORY/target/uml/root" LABORATORY="$TESTBED/uml" EXCHANGE="$HERE/exchange" \
        con=null con0=null,fd:1 quiet "${disks[@]}"
    # It can't be killed and go on.
    rm "$HERE/run/guest.server"
    await 300 "the laboratory" test -e "$HERE/exchange/ready"
}

urls() {
    local name
    for name in md-raid0 md-raid5 md-raid6 lvm-stripes gfs2 jfs jfs-folded vfat nfs-v3 nfs-v4.2 smb; do
        echo "uml-$name guest:/mnt/$name"
    done
}
