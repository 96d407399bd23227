# shellcheck shell=bash
# GlusterFS: one daemon, eleven bricks, and four volumes that store files in four ways.
# shellcheck disable=SC2034
NEEDS='glusterd glusterfs-server
glusterfs glusterfs-client
setfattr attr'
# shellcheck disable=SC2034
PORTS=24007
# Where it keeps its state, its logs and its sockets, whatever its options say.
# shellcheck disable=SC2034
PRIVATE=(/run /var/lib/glusterd /var/log/glusterfs)
VOLUMES="distributed sharded dispersed replicated"

version() {
    glusterfs --version | awk 'NR == 1 { print "GlusterFS " $2 }'
}

bricks_of() {
    case $1 in
    replicated) echo 1 2 ;;
    *) echo 1 2 3 ;;
    esac
}

# Bricks are on a file system that also others use, which the client refuses without `force`. Nothing asks questions.
volume() {
    logged gluster beside glusterd gluster --mode=script volume "$@"
}

start() {
    local volume
    must_have_trusted_attributes
    mkdir "$HERE/mount" "$HERE/private"
    mkdir -p "$HERE/private/var/log/glusterfs"
    ln -s ../private/var/log/glusterfs "$HERE/log/glusterfs"
    serve glusterd glusterd --no-daemon --log-file="$HERE/log/glusterd.log"
    # It is not one of the servers that hold data.
    rm "$HERE/run/glusterd.server"
    await 60 "glusterd to answer" beside glusterd timeout 20 gluster pool list
    for volume in $VOLUMES; do
        create "$volume"
        mount_volume "$volume"
    done
}

must_have_trusted_attributes() {
    touch "$HERE/data/attribute"
    setfattr --name=trusted.nilometer --value=1 "$HERE/data/attribute" 2>/dev/null ||
        fail "gluster: the file system of $FOLDER keeps no trusted extended attributes: set NILOMETER_TESTBED to another folder"
}

create() {
    local volume=$1 layout=() bricks=() number
    case $volume in
    dispersed) layout=(disperse 3 redundancy 1) ;;
    replicated) layout=(replica 2) ;;
    esac
    for number in $(bricks_of "$volume"); do
        bricks+=("$ADDRESS:$HERE/data/$volume-$number")
    done
    volume create "$volume" "${layout[@]}" transport tcp "${bricks[@]}" force
    if [ "$volume" = sharded ]; then
        volume set "$volume" features.shard on
        volume set "$volume" features.shard-block-size 64MB
    fi
    volume start "$volume"
    note_bricks "$volume"
}

# The daemon starts the bricks, and writes down their numbers before its command ends.
note_bricks() {
    local volume=$1 number file note
    for number in $(bricks_of "$volume"); do
        file=("$HERE/private/run/gluster/vols/$volume/"*"-data-$volume-$number.pid")
        note=$(note_process "$(cat "${file[0]}")" "brick") || return 1
        echo "$note" >"$HERE/run/$volume-$number.pid"
        runs "$HERE/run/$volume-$number.pid" || return 1
        : >"$HERE/run/$volume-$number.server"
    done
}

mount_volume() {
    mkdir "$HERE/mount/$1"
    launch "client-$1" glusterfs --no-daemon --process-name fuse --volfile-server="$ADDRESS" --volfile-id="/$1" \
        --log-file="$HERE/log/client-$1.log" "$HERE/mount/$1"
}

mounts() {
    local volume
    for volume in $VOLUMES; do
        echo "gluster-$volume fuse.glusterfs $HERE/mount/$volume"
    done
}

restart() {
    await 30 "the brick $1" start_bricks "${1%-*}"
}

# Starts the bricks of a volume that do not run. The daemon leaves out one whose end it has not noticed yet.
start_bricks() {
    beside glusterd gluster --mode=script volume start "$1" force && note_bricks "$1"
}
