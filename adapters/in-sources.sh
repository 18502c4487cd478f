#!/bin/sh
# Builds the adapters in the sources of picoquic and quicly, and runs them. Missing sources are cloned.
#
#   adapters/in-sources.sh PICOQUIC QUICLY    folders; quicly with its submodules
set -eu
[ $# -eq 2 ] || { echo "usage: $0 PICOQUIC QUICLY" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
library="$root/target/release/libsojourn.a -lpthread -ldl -lm"
include=$root/crates/capi/include
mkdir -p "$root/out/adapters"

[ -d "$1" ] || git clone --depth 1 https://github.com/private-octopus/picoquic "$1"
[ -d "$2" ] || git clone --depth 1 --recurse-submodules https://github.com/h2o/quicly "$2"

echo "picoquic: the test of the adapter with the link of picoquic"
cc -std=c11 -D_GNU_SOURCE -O1 -ffunction-sections -Wl,--gc-sections -I "$1/picoquic" \
    -I "$root/adapters/picoquic" -I "$include" "$root/adapters/picoquic/sojourn_aqm.c" \
    "$root/adapters/picoquic/test.c" "$1/picoquic/sim_link.c" "$1/picoquic/util.c" \
    $library -o "$root/out/adapters/picoquic"
"$root/out/adapters/picoquic"

echo "quicly: two flows through 10 Mbit/s for 10 s in its simulator"
copy=$root/out/adapters/quicly
rm -rf "$copy"
cp -r "$2" "$copy"
sed -i 's|^static quicly_cid_plaintext_t next_quic_cid;|#include "sojourn_node.h"\n&|' \
    "$copy/t/simulator.c"
cmake -S "$copy" -B "$copy/build" -DWITH_FUSION=OFF -DWITH_DTRACE=OFF \
    -DCMAKE_C_FLAGS="-I$root/adapters/quicly -I$include" \
    -DCMAKE_C_STANDARD_LIBRARIES="$library" >"$copy/cmake.log"
make -C "$copy/build" simulator >"$copy/make.log" 2>&1
for qdisc in 'droptail(limit=125kB)' codel 'fq_codel(variant=linux)'; do
    SOJOURN=$qdisc "$copy/build/simulator" -b 1250000 -l 10 -- -d 0.02 -- -d 0.03 -s 2 >"$copy/run.json"
    bytes() { sed -n "s/.*bytes-available\": \([0-9]*\).*src\": $1}/\1/p" "$copy/run.json" | tail -1; }
    echo "$qdisc: $(bytes 2) and $(bytes 3) bytes, $(grep -c '"drop"' "$copy/run.json") drops"
done
