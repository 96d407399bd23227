# shellcheck shell=bash
# CephFS: a monitor, a manager, three OSDs and a metadata server, mounted by ceph-fuse. Two copies of each object; a directory
# in which a file is one object after the other, and one in which it is striped over three.
# shellcheck disable=SC2034
NEEDS='ceph-mon ceph-mon
ceph-mgr ceph-mgr
ceph-osd ceph-osd
ceph-mds ceph-mds
ceph-fuse ceph-fuse
ceph ceph-common
setfattr attr'
# shellcheck disable=SC2034
BOOTSTRAP=testbed-extended
# shellcheck disable=SC2034
PORTS="3300 6789"
# shellcheck disable=SC2034
PRIVATE=(/run /var/lib/ceph)

version() {
    ceph --version | awk '{ print "Ceph " $3 }'
}

start() {
    local number
    mkdir "$HERE/mount" "$HERE/data/mon" "$HERE/data/mgr" "$HERE/data/mds"
    configure
    start_monitor
    serve mgr ceph-mgr -c "$HERE/etc/ceph.conf" -f -i a
    for number in 0 1 2; do
        make_osd "$number"
    done
    serve mds ceph-mds -c "$HERE/etc/ceph.conf" -f -i a
    # `harm` counts the servers that hold data.
    rm "$HERE"/run/m??.server
    ceph_command osd pool create data 16
    ceph_command osd pool create metadata 8
    ceph_command fs new cephfs metadata data
    await 90 "the metadata server and three OSDs" is_active
    launch client-mount ceph-fuse -c "$HERE/etc/ceph.conf" -f "$HERE/mount"
    await 60 "the mount" is_mounted "$HERE/mount" fuse.ceph-fuse
    mkdir "$HERE/mount/plain" "$HERE/mount/striped"
    setfattr --name=ceph.dir.layout --value="stripe_unit=1048576 stripe_count=3 object_size=4194304 pool=data" \
        "$HERE/mount/striped"
}

# Nobody else is in the network: who asks is not asked who it is.
configure() {
    cat >"$HERE/etc/ceph.conf" <<END
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = [v2:$ADDRESS:3300/0,v1:$ADDRESS:6789/0]
public addr = $ADDRESS
cluster addr = $ADDRESS
auth cluster required = none
auth service required = none
auth client required = none
run dir = /run
admin socket = /run/\$name.\$pid.asok
log file = $HERE/log/\$name.log
mon cluster log file = $HERE/log/cluster.log
mon data = $HERE/data/mon/\$id
mgr data = $HERE/data/mgr/\$id
mds data = $HERE/data/mds/\$id
osd data = $HERE/data/osd.\$id
osd objectstore = bluestore
bluestore block size = 8589934592
osd memory target = 939524096
osd crush chooseleaf type = 0
osd crush update on start = false
osd pool default size = 2
osd pool default min size = 1
osd pool default pg autoscale mode = off
mon data avail warn = 2
mon data avail crit = 1
mgr initial modules =
[client]
admin socket =
log file = $HERE/log/client.log
END
}

# A command of the cluster's, with a time limit: without a monitor it would wait for ever.
ceph_command() {
    logged ceph inside timeout 30 ceph -c "$HERE/etc/ceph.conf" "$@"
}

start_monitor() {
    local fsid
    fsid=$(awk '$1 == "fsid" { print $3 }' "$HERE/etc/ceph.conf")
    logged mon monmaptool --create --addv a "[v2:$ADDRESS:3300,v1:$ADDRESS:6789]" --fsid "$fsid" "$HERE/etc/monmap"
    logged mon inside ceph-mon -c "$HERE/etc/ceph.conf" --mkfs -i a --monmap "$HERE/etc/monmap"
    serve mon ceph-mon -c "$HERE/etc/ceph.conf" -f -i a
    await 30 "the monitor" inside timeout 10 ceph -c "$HERE/etc/ceph.conf" status
}

# Makes and starts an OSD. Making one takes seconds of waiting, so that all are made at once.
make_osd() {
    local number=$1 id
    id=$(cat /proc/sys/kernel/random/uuid)
    mkdir "$HERE/data/osd.$number"
    ceph_command osd new "$id"
    ceph_command osd crush add "osd.$number" 1.0 "host=host-$number" root=default
    # shellcheck disable=SC2016
    serve "osd-$number" sh -c 'ceph-osd "$@" --mkfs --osd-uuid "$0" && exec ceph-osd "$@"' \
        "$id" -c "$HERE/etc/ceph.conf" -f -i "$number"
}

is_active() {
    local ask=(inside timeout 10 ceph -c "$HERE/etc/ceph.conf")
    "${ask[@]}" mds stat | grep --quiet up:active && "${ask[@]}" osd stat | grep --quiet ' 3 up'
}

restart() {
    serve "$1" ceph-osd -c "$HERE/etc/ceph.conf" -f -i "${1#osd-}"
}

mounts() {
    echo "cephfs-plain fuse.ceph-fuse $HERE/mount/plain"
    echo "cephfs-striped fuse.ceph-fuse $HERE/mount/striped"
}
