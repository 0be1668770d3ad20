#!/bin/sh
# The guest's init behind its initramfs: what a Debian has mounted and set up before its services start, and then serve.py.
# The kernel's command line says what differs from guest to guest: guest_fs, guest_address, guest_modules, guest_host.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
exec </dev/null >/dev/console 2>&1
for word in $(cat /proc/cmdline); do
    case $word in
    guest_*=*) eval "${word%%=*}='${word#*=}'" ;;
    esac
done
mount -t tmpfs run /run
mkdir -p /run/lock /run/tgtd /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmp /tmp
hostname "$guest_host"
ip link set lo up
[ -z "$guest_modules" ] || modprobe -a $(echo "$guest_modules" | tr , ' ')
modprobe -a virtio_net configfs
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
if [ -n "$guest_address" ]; then
    ip addr add "$guest_address" dev eth0
    ip link set eth0 up
fi
if [ -n "$guest_fs" ]; then
    modprobe "$guest_fs"
    mkdir -p /data
    mount -t "$guest_fs" /dev/vdd /data
fi
cd /root
/usr/bin/python3 -S -E /opt/ipxeready/tests/lab/guest/serve.py
echo "guest: serve.py ended, $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
