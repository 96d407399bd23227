# shellcheck shell=bash
# XRootD as a cluster: a manager and three data servers, each of an xrootd and a cmsd, mounted by xrootdfs. A file is on
# one data server, and each new file costs a second or more until the manager knows that no server has it.
# shellcheck disable=SC2034
NEEDS='xrootd xrootd-server
cmsd xrootd-server
xrdfs xrootd-client
xrootdfs xrootd-fuse'
# shellcheck disable=SC2034
PORTS="2094 2095 2096 2097 3121"
# As for a server alone.
# shellcheck disable=SC2034
PRIVATE=(/run)

version() {
    # It prints the version on stderr.
    echo "XRootD $(xrootd -v 2>&1 | sed 's/^v//')"
}

start() {
    local node
    mkdir "$HERE/mount"
    for node in manager data-1 data-2 data-3; do
        configure "$node"
        serve_node "$node"
    done
    # It has no data: `harm` counts data servers.
    rm "$HERE"/run/manager*.server
    await 60 "three data servers" has_data_servers 3
    launch client-mount xrootdfs -f -o "rdr=root://$ADDRESS:2094//store" "$HERE/mount"
}

# `testbed` is the name of the servers' host: cmsd is a manager only if the manager has the name of its own host.
configure() {
    local own=$HERE/private/$1/run role=server port
    case $1 in
    manager) role=manager port=2094 ;;
    data-*) port=$((2094 + ${1#data-})) ;;
    esac
    mkdir -p "$own/store"
    cat >"$own/xrootd.cfg" <<END
all.role $role
all.manager testbed:3121
all.export /store r/w
if exec xrootd
xrd.port $port
fi
all.adminpath /run/admin
all.pidpath /run/admin
cms.delay startup 3 servers 1 lookup 1 full 1
cms.space min 1g 2g
cms.sched cpu 0 io 0 mem 0 pag 0 runq 0 space 0
xrootd.chksum max 2 adler32 crc32c
END
    [ "$role" = manager ] || echo "oss.localroot /run" >>"$own/xrootd.cfg"
    chown --recursive xrootd:xrootd "$own"
}

# The two servers of a node, which speak to each other through their /run. The node is counted by its first.
serve_node() {
    PRIVATE_IN=$HERE/private/$1
    serve "$1" xrootd -R xrootd -n "$1" -c /run/xrootd.cfg
    serve "$1-cmsd" cmsd -R xrootd -n "$1" -c /run/xrootd.cfg
    rm "$HERE/run/$1-cmsd.server"
}

restart() {
    local file=$HERE/run/$1-cmsd.pid
    ! runs "$file" || kill -s KILL "$(pid_of "$1-cmsd")"
    serve_node "$1"
}

has_data_servers() {
    local found
    found=$(inside timeout 20 xrdfs "root://$ADDRESS:2094" locate -h '*') || return 1
    [ "$(grep --count Server <<<"$found")" -ge "$1" ]
}

mounts() {
    echo "xrootd-cluster fuse $HERE/mount"
}

urls() {
    echo "xrootd-cluster root://$ADDRESS:2094//store"
}
