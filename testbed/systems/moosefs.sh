# shellcheck shell=bash
# MooseFS: a master and three chunk servers; a directory of which each file is kept once, and one where it is kept twice.
# shellcheck disable=SC2034
NEEDS='mfsmaster moosefs-master
mfschunkserver moosefs-chunkserver
mfsmount moosefs-client
mfscli moosefs-cli'
# shellcheck disable=SC2034
PORTS="9419 9420 9421 9422 9423 9424"

version() {
    echo "MooseFS $(mfsmaster -v | awk '{ print $2 }')"
}

start() {
    local number
    mkdir "$HERE/mount"
    start_master
    for number in 1 2 3; do
        configure_chunk_server "$number"
        restart "chunkserver-$number"
    done
    await 20 "three chunk servers" has_chunk_servers 3
    launch client-mount mfsmount -f "$HERE/mount" -H "$ADDRESS" -S / -o mfsioretries=5
    await 20 "the mount" is_mounted "$HERE/mount" fuse
    # The master takes a file only some time after the servers have come.
    await 20 "a file to be written" touch_whole "$HERE/mount/.first"
    rm "$HERE/mount/.first"
    make_goal 1
    make_goal 2
    # Their room is known later still.
    await 20 "the room of three chunk servers" has_chunk_servers 3 'with room'
    # The client asks once in a while.
    await 20 "free room in the mount" has_room
}

has_room() {
    [ "$(free_bytes "$HERE/mount")" -gt 0 ]
}

touch_whole() {
    echo data | timeout --signal=KILL $((10 * $(crowding))) dd of="$1" conv=fsync status=none
}

make_goal() {
    mkdir "$HERE/mount/goal-$1"
    logged mfssetgoal inside mfssetgoal "$1" "$HERE/mount/goal-$1"
    # What is removed would keep its room for a day.
    logged mfssettrashtime inside mfssettrashtime 0 "$HERE/mount/goal-$1"
    inside mfsgetgoal "$HERE/mount/goal-$1" | grep --quiet ": $1$" || fail "moosefs: the goal of goal-$1 is not $1"
}

start_master() {
    mkdir "$HERE/data/master"
    # What the package has for a first start, an empty file system.
    printf 'MFSM NEW' >"$HERE/data/master/metadata.mfs"
    printf '* / rw,alldirs,admin,maproot=0:0\n* . rw\n' >"$HERE/etc/exports.cfg"
    : >"$HERE/etc/topology.cfg"
    cat >"$HERE/etc/master.cfg" <<END
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = $HERE/data/master
EXPORTS_FILENAME = $HERE/etc/exports.cfg
TOPOLOGY_FILENAME = $HERE/etc/topology.cfg
MATOML_LISTEN_HOST = $ADDRESS
MATOCS_LISTEN_HOST = $ADDRESS
MATOCL_LISTEN_HOST = $ADDRESS
NICE_LEVEL = 0
END
    serve master mfsmaster -c "$HERE/etc/master.cfg" -f start
    # It has no data of its own to lose: `harm` counts chunk servers.
    rm "$HERE/run/master.server"
    await 20 "the master" has_chunk_servers 0
}

# HDD_SPARSIFY_ON_WRITE is off, for else zeros are not written at all. By its own default a server runs before all else on
# the machine, with nice level -19.
configure_chunk_server() {
    mkdir -p "$HERE/data/chunkserver-$1/disk" "$HERE/data/chunkserver-$1/state"
    echo "$HERE/data/chunkserver-$1/disk" >"$HERE/etc/disks-$1.cfg"
    cat >"$HERE/etc/chunkserver-$1.cfg" <<END
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = $HERE/data/chunkserver-$1/state
HDD_CONF_FILENAME = $HERE/etc/disks-$1.cfg
HDD_LEAVE_SPACE_DEFAULT = 64MiB
HDD_SPARSIFY_ON_WRITE = 0
NICE_LEVEL = 0
MASTER_HOST = $ADDRESS
BIND_HOST = $ADDRESS
CSSERV_LISTEN_HOST = $ADDRESS
CSSERV_LISTEN_PORT = $((9421 + $1))
LABELS = $(cut -c"$1" <<<ABC)
END
}

restart() {
    serve "$1" mfschunkserver -c "$HERE/etc/$1.cfg" -f start
}

# Whether the master answers and knows so many chunk servers, or so many whose room it knows: the eleventh column.
has_chunk_servers() {
    local listed
    listed=$(inside timeout 20 mfscli -H "$ADDRESS" -p -n -SCS) || return 1
    awk -F '\t' -v least="$1" -v room="${2:-}" '
        NF > 10 && (room == "" || $11 > 0) { found++ }
        END { exit found < least }' <<<"$listed"
}

mounts() {
    echo "moosefs-goal-1 fuse $HERE/mount/goal-1"
    echo "moosefs-goal-2 fuse $HERE/mount/goal-2"
}
