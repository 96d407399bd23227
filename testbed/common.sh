# shellcheck shell=bash
# What `up`, `status`, `down`, `harm` and `enter` share: where a testbed lies, what it is named after, and which systems
# there are. A testbed is one folder: configuration, data, logs, pid files and mount points of a system lie in
# FOLDER/SYSTEM, and nothing lies elsewhere but the name of the network namespace in /run/netns.
set -euo pipefail
shopt -s nullglob

PATH=$PATH:/usr/sbin:/sbin
TESTBED=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Where what is not of Debian lies, below target/.
# shellcheck disable=SC2034
REPOSITORY=$(dirname "$TESTBED")
PROGRAM=testbed/$(basename "$0")
MARKER=.nilometer-testbed
# Daemons print their errors in the words that we look for.
export LC_ALL=C

# shellcheck source=testbed/processes.sh
. "$TESTBED/processes.sh"
# shellcheck source=testbed/mounts.sh
. "$TESTBED/mounts.sh"

# Ends because of what was asked or what is missing: nothing was started.
refuse() {
    echo "$PROGRAM: $*" >&2
    exit 2
}

# Ends because something that was asked rightly did not work.
fail() {
    echo "$PROGRAM: $*" >&2
    exit 1
}

must_be_root() {
    [ "$(id -u)" = 0 ] || refuse "needs root: it makes a network namespace, loop devices and mounts"
}

# The names of all systems, those first that `testbed/up` is most often asked for.
all_systems() {
    local first="ext4 xfs btrfs-raid0 gluster moosefs xrootd xrootd-cluster nfs s3 cephfs hdfs nodes uml" name
    for name in $first; do
        [ ! -e "$TESTBED/systems/$name.sh" ] || echo "$name"
    done
    for name in "$TESTBED"/systems/*.sh; do
        name=$(basename "$name" .sh)
        [[ " $first " == *" $name "* ]] || echo "$name"
    done
}

must_be_a_system() {
    [[ -e $TESTBED/systems/$1.sh && $1 != */* ]] ||
        refuse "unknown system '$1': valid are $(all_systems | paste -sd ' ')"
}

# Sets FOLDER and everything that is named after it, so that testbeds in two folders have nothing in common.
choose_folder() {
    local digest
    FOLDER=${NILOMETER_TESTBED:-/var/tmp/nilometer-testbed}
    # Anybody may put a link into /var/tmp, and what a testbed is in is removed with it.
    [ ! -L "${FOLDER%/}" ] || refuse "the folder '$FOLDER' (NILOMETER_TESTBED) is a symbolic link: name the directory itself"
    FOLDER=$(realpath --canonicalize-missing "$FOLDER")
    # Daemons put sockets below it, whose names the kernel limits to 107 bytes, and take some characters for separators.
    [[ $FOLDER =~ ^/[A-Za-z0-9/._-]{1,59}$ ]] ||
        refuse "the folder '$FOLDER' (NILOMETER_TESTBED) must have at most 60 characters, of A-Z a-z 0-9 / . _ -"
    case $FOLDER/ in
    /run/* | /var/run/* | /proc/* | /sys/* | /dev/*) refuse "a testbed can't be in '$FOLDER' (NILOMETER_TESTBED): choose another folder" ;;
    esac
    digest=$(printf %s "$FOLDER" | sha256sum)
    NAMESPACE=nilometer-${digest:0:8}
    ADDRESS=10.77.$((16#${digest:8:2})).$((16#${digest:10:2} % 254 + 1))
}

# Whether the folder holds a testbed. One that is someone else's, or something else, is refused.
is_there() {
    [ -e "$FOLDER" ] || return 1
    [[ -d $FOLDER && -O $FOLDER ]] || refuse "'$FOLDER' is not a directory of this user: set NILOMETER_TESTBED to another"
    [ -e "$FOLDER/$MARKER" ] && return 0
    [ -z "$(ls -A "$FOLDER")" ] || refuse "'$FOLDER' has files in it that are not a testbed's: set NILOMETER_TESTBED to another folder"
    return 1
}

# Nothing else may change the testbed until this process ends. What it starts must not inherit LOCK.
lock() {
    exec {LOCK}>>"$FOLDER/lock"
    if ! flock --nonblock "$LOCK"; then
        if runs "$FOLDER/changed-by"; then
            refuse "process $(cut -d' ' -f1 "$FOLDER/changed-by") ($(cut -d' ' -f4 "$FOLDER/changed-by")) is at work in $FOLDER: wait for it, or end it"
        fi
        # It was killed, and something that it started still holds the lock.
        [ "$PROGRAM" = testbed/down ] || refuse "what was at work in $FOLDER was killed: testbed/down"
        end_processes owned up
        flock --timeout $((20 * $(crowding))) "$LOCK" || fail "cannot lock $FOLDER/lock: see who holds it with: fuser $FOLDER/lock"
    fi
    note_process $$ "$PROGRAM" >"$FOLDER/changed-by"
}

# What a file of `systems/` does not define itself: NEEDS is a line a command (or file) and the Debian package that brings
# it, BOOTSTRAP what `scripts/bootstrap` calls all of these; PORTS those on which it listens; PRIVATE the directories that
# its servers have for themselves, which lie in PRIVATE_IN.
# shellcheck disable=SC2034,SC2317
use_defaults() {
    NEEDS=
    BOOTSTRAP=testbed
    PORTS=
    PRIVATE=()
    urls() { :; }
    mounts() { :; }
    restart() { refuse "$SYSTEM has no servers that can be started again"; }
}

# Sets SYSTEM and HERE, its folder, and its functions: version, start, mounts, urls, restart.
use_system() {
    SYSTEM=$1
    HERE=$FOLDER/$SYSTEM
    PRIVATE_IN=$HERE/private
    use_defaults
    # shellcheck source=/dev/null
    . "$TESTBED/systems/$SYSTEM.sh"
}

# The systems whose folders are there, whatever state they are in.
present_systems() {
    local system
    for system in $(all_systems); do
        [ ! -d "$FOLDER/$system" ] || echo "$system"
    done
}

# How long the system took to start.
seconds() {
    awk '{ printf "%.1f", $1 / 1000 }' "$HERE/milliseconds"
}

remove_testbed_if_empty() {
    [ -e "$FOLDER/$MARKER" ] && [ -z "$(present_systems)" ] || return 0
    remove_network
    rm -rf --one-file-system "$FOLDER"
    echo "the testbed in $FOLDER is gone"
}

# Ends all that a system has: its mounts, its processes, its loop devices, its folder. Says nothing if there is nothing.
stop_system() {
    use_system "$1"
    unmount_gently
    end_processes owned "$SYSTEM"
    unmount_by_force
    release_loop_devices
    [ -z "$(mount_points_below "$HERE")" ] || fail "these can't be unmounted: $(mount_points_below "$HERE" | paste -sd ' ')"
    rm -rf --one-file-system "$HERE"
}
