# shellcheck shell=bash
# NFS version 3, served by NFS-Ganesha from a directory, with an rpcbind of its own. It has no mount, for many kernels
# have no client: programs reach its URL through libnfs.
# shellcheck disable=SC2034
NEEDS='ganesha.nfsd nfs-ganesha
/usr/lib/*/ganesha/libfsalvfs.so nfs-ganesha-vfs
rpcbind rpcbind
nfs-cp libnfs-utils'
# shellcheck disable=SC2034
PORTS="111 2049 20048"
# Both have fixed places for sockets and state; an rpcbind of this machine would be found there.
# shellcheck disable=SC2034
PRIVATE=(/run /var/lib/nfs)

version() {
    ganesha.nfsd -v | awk '{ sub("^V", "", $NF); print "NFS-Ganesha " $NF }'
}

start() {
    mkdir -p "$HERE/data/export" "$PRIVATE_IN/run/rpcbind" "$PRIVATE_IN/run/ganesha" "$PRIVATE_IN/var/lib/nfs/ganesha"
    cat >"$HERE/etc/ganesha.conf" <<END
NFS_CORE_PARAM {
    NFS_Port = 2049;
    MNT_Port = 20048;
    Protocols = 3, 4;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    mount_path_pseudo = true;
}
NFS_KRB5 { Active_krb5 = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; }
EXPORT {
    Export_Id = 1;
    Path = $HERE/data/export;
    Pseudo = /export;
    Protocols = 3, 4;
    Transports = TCP;
    Access_Type = RW;
    Squash = None;
    SecType = sys;
    FSAL { Name = VFS; }
}
END
    serve rpcbind rpcbind -f
    # It has no data: `harm` counts servers of files.
    rm "$HERE/run/rpcbind.server"
    await 10 "rpcbind" listens 111
    restart server
}

restart() {
    serve "$1" ganesha.nfsd -F -f "$HERE/etc/ganesha.conf" -L "$HERE/log/ganesha.log" -p /run/ganesha.pid -N NIV_EVENT
    await 20 "the server" inside timeout 20 nfs-ls "nfs://$ADDRESS/export?version=3"
}

urls() {
    echo "nfs nfs://$ADDRESS/export?version=3"
}
