#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fleet_host.sh NAME BIN [DIRECTORY...]: a host of its own for check_fleet.py, as far as the
# commands of docs/fleet.md see one: a name, a network, and a root file system that looks like this
# machine's and whose changes are in memory. BIN's programs are in its /usr/local/bin, the other
# directories are those of this machine. Processes and cgroups are the machine's, because the agent
# needs those of a whole host. Prints "ready" and stays.
set -eu
exec unshare --mount --net --uts --propagation private sh -euc '
bin=$1
hostname "$0"
shift
ip link set lo up
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cp "$bin"/* /mnt/root/usr/local/bin/
for d in run tmp; do mount -t tmpfs tmpfs /mnt/root/$d; done
for d in /proc /sys /dev "$@"; do
	mkdir -p "/mnt/root$d"
	mount --rbind "$d" "/mnt/root$d"
done
exec chroot /mnt/root sh -c "echo ready; exec sleep infinity"
' "$@"
