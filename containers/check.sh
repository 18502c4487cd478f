#!/bin/sh
# Builds the image without a registry of images, and uses links in it. The base is made of Debian's
# packages: the same release and Python as in the line FROM. As root, with buildah and debootstrap.
#
#   containers/check.sh WHEEL
set -eu
[ $# -eq 1 ] || { echo "usage: $0 WHEEL" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
base=$(sed -n 's/^FROM //p' "$here/Containerfile")
wheel=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
tool() { buildah --root "$place/images" --runroot "$place/run" --storage-driver vfs "$@"; }

debootstrap --variant=minbase --include=ca-certificates,python3-pip "${base##*-}" "$place/tree"
rm "$place"/tree/usr/lib/python3.*/EXTERNALLY-MANAGED  # pip may install, as in the image of Python
stage=$(tool from scratch)
tool add -q "$stage" "$place/tree" /
tool commit -q "$stage" "$base"

certificates=/etc/ssl/certs/ca-certificates.crt
tool bud --isolation chroot --pull-never -v "$certificates:$certificates:ro" -v "$wheel:$wheel:ro" \
    --build-arg PACKAGE="$wheel" -t sojourn -f "$here/Containerfile" "$here"
image=$(tool from --pull-never localhost/sojourn)
inside() {
    tool run --isolation chroot --cap-add CAP_SYS_ADMIN --cap-add CAP_NET_ADMIN \
        --cap-add CAP_NET_RAW "$@"
}
inside "$image" -- sojourn link --profile lte -- ping -c 3 198.18.0.1

# The example of docs/how-to/ci.md. `--privileged` would make /proc/sys writable.
mkdir "$place/tests"
sed '1,/^## A link for each test/d' "$here/../docs/how-to/ci.md" |
    sed '1,/^```python/d; /^```/,$d' >"$place/tests/test_page.py"
inside -v "$place/tests:/work" "$image" -- \
    sh -c 'mount -o remount,bind,rw /proc/sys && pytest --sojourn-required'
