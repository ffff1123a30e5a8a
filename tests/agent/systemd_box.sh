#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# systemd_box.sh UNITS: a systemd as PID 1 of its own namespaces, with the units of that directory
# and nothing else to start. It can write nothing that others see: the root file system and kernel
# parameters are read-only, /tmp, /run, /var, /dev and homes are its own. That is verified before it
# begins, because what systemd does at the start of a machine (to empty /tmp, to set kernel
# parameters) is not for this one.
set -eu

units=$1
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/sfbpf-systemd
[ "$group" != /sfbpf-systemd ] || { echo "no cgroup v2" >&2; exit 4; }
mkdir "$group"
echo $$ > "$group/cgroup.procs"

export units
exec unshare --mount --pid --fork --kill-child --ipc --uts --net --cgroup \
	--propagation private sh -euc '
mount -t proc proc /proc
mount -t tmpfs tmpfs /mnt
cp -r "$units" /mnt/units
mount -t tmpfs tmpfs /run
# In this namespace: systemd passes credentials on by a mount that must propagate.
mount --make-shared /run
mkdir -p /run/lock
mv /mnt/units /run/units
for d in /tmp /var /root /home /mnt /etc/systemd; do mount -t tmpfs tmpfs $d; done
mkdir -p /var/lib /var/log /var/cache /var/tmp /etc/systemd/system
mkdir /mnt/dev
for n in null zero full random urandom tty; do
	touch /mnt/dev/$n
	mount --bind /dev/$n /mnt/dev/$n
done
mkdir /mnt/dev/pts /mnt/dev/shm /mnt/dev/mqueue /mnt/dev/hugepages
mount -t devpts -o newinstance,ptmxmode=666 devpts /mnt/dev/pts
ln -s pts/ptmx /mnt/dev/ptmx
mount -t tmpfs tmpfs /mnt/dev/shm
: > /mnt/dev/console		# where systemd logs to
mount --rbind /mnt/dev /dev
# No work of a start: only what the units ask for.
for u in sysinit basic local-fs shutdown sockets timers paths slices network-online; do
	ln -s /dev/null /etc/systemd/system/$u.target
done
cp /run/units/* /etc/systemd/system/
umount -R /sys/fs/cgroup 2>/dev/null || umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /sys
awk "\$3 ~ /^(ext|xfs|btrfs|overlay|zfs|f2fs)/ { print \$2 }" /proc/mounts | sort -u |
	while read -r m; do mount -o remount,bind,ro "$m"; done
for d in / /etc /usr /opt /srv "$PWD"; do
	if touch "$d/systemd-box-probe" 2>/dev/null; then
		rm -f "$d/systemd-box-probe"
		echo "not contained: $d can be written to" >&2
		exit 5
	fi
done
if [ -n "$(ls -A /tmp)" ] || ( : > /proc/sys/kernel/hostname ) 2>/dev/null; then
	echo "not contained: /tmp or kernel parameters" >&2
	exit 5
fi
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other /lib/systemd/systemd --system \
	--unit=box.target --show-status=0 --log-target=console
'
