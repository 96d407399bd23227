# shellcheck shell=bash
# Processes of a testbed: started with a file that says which they are, found again, and ended. A process is ours if
# such a file names it, by its number, the time at which it was started and the boot in which that was; or if its
# environment says so, which it has from us or from a process that we started. No process is found by its name.

# A line that says which process this is, and what: PID START BOOT WHAT. None of a process that has ended: one that nobody has waited
# for yet has a state of its own. It is read once, as the process may be gone at a second look.
note_process() {
    local process=$1 stat fields
    stat=$(cat "/proc/$process/stat" 2>/dev/null) || return 1
    # The name, the second field, may have spaces in it. The state follows it.
    read -ra fields <<<"${stat##*) }"
    [[ ${fields[0]} != [ZX] ]] || return 1
    echo "$process ${fields[19]} $(cat /proc/sys/kernel/random/boot_id) $2"
}

# Whether the process that this file names runs.
runs() {
    local process start boot what
    [ -s "$1" ] && read -r process start boot what <"$1" || return 1
    [ "$(note_process "$process" "$what")" = "$process $start $boot $what" ]
}

# Runs a command in the testbed's network, for the system, with its output in log/NAME.log, and notes it in run/NAME.pid.
# It stays in the foreground: its number is known before it begins, so that nothing is lost if we are killed.
launch() {
    local name=$1
    shift
    (
        note_process "$BASHPID" "$(basename "$1")" >"$HERE/run/$name.pid"
        exec {LOCK}>&-
        cd /
        exec env NILOMETER_TESTBED_OWNER="$FOLDER:$SYSTEM" setsid nsenter --net="/run/netns/$NAMESPACE" "$@"
    ) </dev/null >>"$HERE/log/$name.log" 2>&1 &
    until runs "$HERE/run/$name.pid" || ! kill -0 $! 2>/dev/null; do
        sleep 0.01
    done
}

# A command that ends by itself, with its output in log/NAME.log.
logged() {
    local name=$1
    shift
    "$@" </dev/null >>"$HERE/log/$name.log" 2>&1 || fail "$SYSTEM: failed: $*"
}

# A server: as `launch`, with mounts and a host name of its own. See `testbed/private`.
serve() {
    local name=$1
    shift
    : >"$HERE/run/$name.server"
    launch "$name" unshare --mount --uts "$TESTBED/private" "$FOLDER" "$ADDRESS" "$PRIVATE_IN" "${PRIVATE[@]}" -- "$@"
}

# A client's command, in the testbed's network and with the mounts of everybody: what it mounts all can see.
inside() {
    nsenter --net="/run/netns/$NAMESPACE" "$@"
}

# The number of a process that was noted.
pid_of() {
    cut -d' ' -f1 "$HERE/run/$1.pid"
}

# A command with the network and the mounts that a server has.
beside() {
    local server=$1
    shift
    nsenter --target "$(pid_of "$server")" --net --mount --uts "$@"
}

# The names of the system's servers, in the order in which `harm` counts them.
servers() {
    local file
    for file in "$HERE"/run/*.server; do
        basename "$file" .server
    done | sort --version-sort
}

# The system's processes, servers and clients, that no longer run.
dead_processes() {
    local file
    for file in "$HERE"/run/*.pid; do
        runs "$file" || basename "$file" .pid
    done
}

# Those that were dead before: `harm` starts a server again while others are not there.
DEAD_BEFORE=

# Waits until a command succeeds: SECONDS, what is waited for, the command. Ends if a process of the system has died. A limit only
# finds a server that hangs, so it is two minutes at least, and a busy machine gets a longer one.
await() {
    local seconds=$1 what=$2 dead begin=$SECONDS
    shift 2
    until "$@" >/dev/null 2>&1; do
        dead=$(dead_processes | grep --invert-match --line-regexp --fixed-strings --regexp="$DEAD_BEFORE" || true)
        [ -z "$dead" ] || fail "$SYSTEM: ended by itself: $(paste -sd ' ' <<<"$dead")"
        [ $((SECONDS - begin)) -lt $(((seconds < 120 ? 120 : seconds) * $(crowding))) ] || fail "$SYSTEM: waited $((SECONDS - begin)) s for $what"
        sleep 0.05
    done
}

# Threads that run, or wait for a processor or a disk, for each processor, from 1 to 5, rounded up: the mean of the last minute, or
# those that could run now where they are more.
crowding() {
    awk -v processors="$(nproc)" '{
        split($4, now, "/")
        load = int(($1 > now[1] ? $1 : now[1]) / processors) + 1
        print (load > 5 ? 5 : load)
    }' /proc/loadavg
}

# The processes of a system, or of `up`, that run: as their environment says, and as the files in run/ say.
owned() {
    local owner=$1 file
    {
        grep --files-with-matches --null-data --line-regexp --fixed-strings --no-messages \
            "NILOMETER_TESTBED_OWNER=$FOLDER:$owner" /proc/[0-9]*/environ | cut -d/ -f3 || true
        for file in "$FOLDER/$owner"/run/*.pid; do
            ! runs "$file" || cut -d' ' -f1 "$file"
        done
    } | sort --unique | grep --invert-match --line-regexp "$$" || true
}

# Kills the processes that a command lists until it lists none: one that was just starting may come to light after the
# first look. They are not asked to end first: all that they could still write is about to be removed.
end_processes() {
    local processes round
    for round in $(seq $((200 * $(crowding)))); do
        processes=$("$@")
        [ -n "$processes" ] || return 0
        # One may have ended since it was listed.
        # shellcheck disable=SC2086
        kill -s KILL $processes 2>/dev/null || true
        sleep 0.05
    done
    fail "these processes can't be ended, in $round tries: $(echo "$processes" | paste -sd ' ')"
}
