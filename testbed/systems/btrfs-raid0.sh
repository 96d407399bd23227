# shellcheck shell=bash
# btrfs over four loop devices: data in stripes of 64 KiB (RAID 0), metadata twice (RAID 1).

# shellcheck disable=SC2034
NEEDS='mkfs.btrfs btrfs-progs'

version() {
    echo "Linux $(uname -r), btrfs-progs $(mkfs.btrfs --version | awk '{ sub("^v", "", $NF); print $NF }')"
}

start() {
    local devices=() number options=discard=async
    for number in 1 2 3 4; do
        devices+=("$(new_loop_device "image-$number" 2048)")
        options+=,device=${devices[-1]}
    done
    mkdir "$HERE/mount"
    logged mkfs mkfs.btrfs --quiet --data raid0 --metadata raid1 "${devices[@]}"
    mount -o "$options" "${devices[0]}" "$HERE/mount"
    # From here on the devices go when the mount goes.
    losetup --detach "${devices[@]}"
}

mounts() {
    echo "btrfs-raid0 btrfs $HERE/mount"
}
