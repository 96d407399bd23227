# shellcheck shell=bash
# Several nodes on this machine, each with a network, a host name and mounts of its own, joined by a bridge; each mounts the
# GlusterFS volumes and the MooseFS of the testbed that are up, by clients of its own, with caches of their own.
# `testbed/node 1 COMMAND...` runs a command on one, `mpirun` among them: it reaches the others as over ssh.
# NILOMETER_TESTBED_NODES says how many, 3 otherwise.
# shellcheck disable=SC2034
NEEDS='ip iproute2
hostname hostname'

version() {
    echo "$(node_count) nodes, 10.78.$(subnet).1 to .$(node_count)"
}

node_count() {
    cat "$HERE/count"
}

# The third byte of the testbed's address tells the nodes of testbeds apart too.
subnet() {
    cut -d. -f3 <<<"$ADDRESS"
}

start() {
    local count=${NILOMETER_TESTBED_NODES:-3} number
    [[ $count =~ ^[1-9][0-9]?$ ]] || fail "NILOMETER_TESTBED_NODES is '$count': valid are 1 to 99"
    echo "$count" >"$HERE/count"
    mkdir "$HERE/mount" "$HERE/private" "$HERE/tmp"
    write_hosts
    write_remote_shell
    make_bridge
    for number in $(seq "$count"); do
        start_node "$number"
    done
    for number in $(seq "$count"); do
        mount_on "$number"
    done
}

write_hosts() {
    local number
    {
        echo "127.0.0.1 localhost"
        for number in $(seq "$(node_count)"); do
            echo "10.78.$(subnet).$number node-$number"
        done
    } >"$HERE/etc/hosts"
}

# What launchers of MPI call as they call ssh: HOST COMMAND...
write_remote_shell() {
    cat >"$HERE/rsh" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec nsenter --target "\$(cut -d' ' -f1 "$HERE/run/\$host.pid")" --net --uts --mount -- sh -c "\$*"
END
    chmod 755 "$HERE/rsh"
}

make_bridge() {
    # One of a testbed whose nodes were killed may be there yet.
    inside ip link delete nodes 2>/dev/null || true
    inside ip link add nodes type bridge
    inside ip address add "10.78.$(subnet).254/24" dev nodes
    inside ip link set nodes up
}

# A node is a process that sleeps: its namespaces are there as long as it, or what runs on the node. Its network is in a /sys of its
# own.
start_node() {
    local name=node-$1 process
    launch "$name" unshare --net --mount --uts "$TESTBED/private" "$FOLDER" "$ADDRESS" "$HERE/private/$name" -- \
        sh -c "hostname $name && mount --bind '$HERE/etc/hosts' /etc/hosts && mount -t sysfs node /sys && touch '$HERE/run/$name.named' && exec sleep infinity"
    await 20 "$name" test -e "$HERE/run/$name.named"
    process=$(pid_of "$name")
    inside ip link add "$name" type veth peer name eth0 netns "$process"
    inside ip link set "$name" master nodes up
    beside "$name" ip link set lo up
    beside "$name" ip address add "10.78.$(subnet).$1/24" dev eth0
    beside "$name" ip link set eth0 up
    beside "$name" ip route add "$ADDRESS" via "10.78.$(subnet).254"
}

# What is mounted on a node is seen there only, at the same place on each.
mount_on() {
    local volume
    for volume in $(gluster_volumes); do
        on_node "$1" "$volume" glusterfs --no-daemon --process-name fuse --volfile-server="$ADDRESS" \
            --volfile-id="/${volume#gluster-}" --log-file="$HERE/log/$volume-$1.log" "$HERE/mount/$volume"
    done
    [ ! -e "$FOLDER/moosefs/milliseconds" ] ||
        on_node "$1" moosefs mfsmount -f "$HERE/mount/moosefs" -H "$ADDRESS" -S / -o mfsioretries=5
}

gluster_volumes() {
    [ ! -e "$FOLDER/gluster/milliseconds" ] || printf 'gluster-%s\n' distributed sharded dispersed replicated
}

# A client that mounts, on a node.
on_node() {
    local number=$1 name=$2
    shift 2
    mkdir -p "$HERE/mount/$name"
    launch "client-$name-$number" nsenter --target "$(pid_of "node-$number")" --net --uts --mount "$@"
    await 20 "the mount of $name on node-$number" mounted_on "$number" "$HERE/mount/$name"
}

mounted_on() {
    grep --quiet " $2 fuse" "/proc/$(pid_of "node-$1")/mounts"
}

urls() {
    local place
    for place in $(gluster_volumes) $([ ! -e "$FOLDER/moosefs/milliseconds" ] || echo moosefs/goal-1 moosefs/goal-2); do
        echo "nodes-${place//\//-} node:$HERE/mount/$place"
    done
}
