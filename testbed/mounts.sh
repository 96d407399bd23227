# shellcheck shell=bash
# Mounts, loop devices and the network namespace of a testbed: made, looked at and taken away.

# The mount points at and below a directory, the innermost first.
mount_points_below() {
    awk -v at="$1" '$5 == at || index($5, at "/") == 1 { print $5 }' /proc/self/mountinfo | tac
}

# TYPE SOURCE POINT of the mount that holds a path: the longest prefix, and of those the last that was made.
mount_of() {
    awk -v path="$1" '
        $2 == "/" || path == $2 || index(path, $2 "/") == 1 {
            if (length($2) >= length(point)) { type = $3; source = $1; point = $2 }
        }
        END { print type, source, point }' /proc/self/mounts
}

# Whether a path of the system is on a mount of the system, of the type that it should have.
is_mounted() {
    local path=$1 type=$2 found point
    read -r found _ point < <(mount_of "$path")
    [ "$found" = "$type" ] && [[ $point/ == "$HERE"/* ]]
}

# Ends if one of the system's mounts is not there: what would be measured then is the file system below it.
await_mounts() {
    local name type path
    while read -r name type path; do
        await 20 "the mount of $name at $path" is_mounted "$path" "$type"
    done < <(mounts)
}

unmount_gently() {
    local point
    for point in $(mount_points_below "$HERE"); do
        timeout --signal=KILL 5 umount --no-canonicalize "$point" 2>/dev/null || true
    done
}

# For mounts that are in use, or whose server or client no longer answers.
unmount_by_force() {
    local point
    for point in $(mount_points_below "$HERE"); do
        timeout --signal=KILL 5 umount --lazy --no-canonicalize "$point" || true
    done
}

# Loop devices on files of the system, also on such as were deleted.
loop_devices() {
    losetup --list --noheadings --raw --output NAME,BACK-FILE | awk -v at="$HERE/" 'index($2, at) == 1 { print $1 }'
}

release_loop_devices() {
    local device tries
    for device in $(loop_devices); do
        losetup --detach "$device" 2>/dev/null || true
    done
    # The kernel lets go of a device when the last user of it has.
    for tries in $(seq $((100 * $(crowding)))); do
        [ -n "$(loop_devices)" ] || return 0
        sleep 0.05
    done
    fail "$SYSTEM: loop devices are still in use after $tries looks: $(loop_devices | paste -sd ' ')"
}

# A loop device on a new sparse file of so many MiB. Direct, so that data are not cached twice, where the file system can.
new_loop_device() {
    local file=$HERE/data/$1
    truncate --size="${2}M" "$file"
    losetup --find --show --direct-io=on "$file" 2>/dev/null || losetup --find --show "$file"
}

# Free room in bytes where a path lies, or nothing if it does not answer within 5 s, or more on a busy machine.
free_bytes() {
    local blocks size
    read -r blocks size < <(timeout --signal=KILL $((5 * $(crowding))) stat --file-system --format='%a %S' "$1" 2>/dev/null) || return 1
    echo $((blocks * size))
}

# The network namespace, with one address on its loopback: some daemons refuse 127.0.0.1.
make_network() {
    if [ ! -e "/run/netns/$NAMESPACE" ]; then
        ip netns add "$NAMESPACE"
    fi
    inside ip link set lo up
    inside ip address replace "$ADDRESS/32" dev lo
}

remove_network() {
    [ ! -e "/run/netns/$NAMESPACE" ] || ip netns delete "$NAMESPACE"
}

# Whether a server listens on a port of the namespace.
listens() {
    inside ss --no-header --listening --numeric --tcp | grep --quiet ":$1 "
}

# Ends if a port that the system needs is in use in the namespace.
must_have_ports() {
    local port used
    used=$(inside ss --no-header --listening --numeric --tcp --udp | awk '{ print $5 }')
    for port in $PORTS; do
        ! grep -q ":$port\$" <<<"$used" ||
            refuse "$SYSTEM: port $port is in use in the network namespace $NAMESPACE: see who uses it with: testbed/enter ss -ltnup"
    done
}
