# shellcheck shell=bash
# ext4 on a loop device.

# shellcheck disable=SC2034
NEEDS='mkfs.ext4 e2fsprogs'

version() {
    echo "Linux $(uname -r), $(mkfs.ext4 -V 2>&1 | awk 'NR == 1 { print "e2fsprogs " $2 }')"
}

start() {
    local device
    device=$(new_loop_device image 8192)
    mkdir "$HERE/mount"
    # Tables are made now and not by the kernel while something is measured.
    logged mkfs mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$device"
    mount -o discard "$device" "$HERE/mount"
    # From here on the device goes when the mount goes.
    losetup --detach "$device"
}

mounts() {
    echo "ext4 ext4 $HERE/mount"
}
