# shellcheck shell=bash
# XFS on a loop device.

# shellcheck disable=SC2034
NEEDS='mkfs.xfs xfsprogs'

version() {
    echo "Linux $(uname -r), xfsprogs $(mkfs.xfs -V | awk '{ print $3 }')"
}

start() {
    local device
    device=$(new_loop_device image 8192)
    mkdir "$HERE/mount"
    logged mkfs mkfs.xfs -q "$device"
    mount -o discard "$device" "$HERE/mount"
    # From here on the device goes when the mount goes.
    losetup --detach "$device"
}

mounts() {
    echo "xfs xfs $HERE/mount"
}
