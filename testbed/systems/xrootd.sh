# shellcheck shell=bash
# XRootD: one server, and what it serves mounted by xrootdfs.
# shellcheck disable=SC2034
NEEDS='xrootd xrootd-server
xrdfs xrootd-client
xrootdfs xrootd-fuse'
# shellcheck disable=SC2034
PORTS=1094
# The server is not root and may not come through the folders above: all that is its own is in its /run.
# shellcheck disable=SC2034
PRIVATE=(/run)

version() {
    # It prints the version on stderr.
    echo "XRootD $(xrootd -v 2>&1 | sed 's/^v//')"
}

start() {
    local own=$PRIVATE_IN/run
    mkdir -p "$HERE/mount" "$own/store"
    cat >"$own/xrootd.cfg" <<END
all.export /store
oss.localroot /run
xrd.port 1094
all.adminpath /run/admin
all.pidpath /run/admin
xrootd.chksum max 2 adler32 crc32c
END
    chown --recursive xrootd:xrootd "$own"
    restart server
    await 20 "the server" inside timeout 20 xrdfs "root://$ADDRESS:1094" stat /store
    launch client-mount xrootdfs -f -o "rdr=root://$ADDRESS:1094//store" "$HERE/mount"
}

restart() {
    serve "$1" xrootd -R xrootd -c /run/xrootd.cfg
    # Its client would wait for seconds before it tries again.
    await 20 "the server" listens 1094
}

mounts() {
    echo "xrootd fuse $HERE/mount"
}

urls() {
    echo "xrootd root://$ADDRESS:1094//store"
}
