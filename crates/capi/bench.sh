#!/bin/sh
# Prints the time of a packet through each border, in ns, as a table: enqueue, dequeue, and a look
# for dropped packets. Needs the library in FOLDER, installed in PREFIX; Go is left out if it is
# missing.
#
#   crates/capi/bench.sh FOLDER PREFIX
set -eu
[ $# -eq 2 ] || { echo "usage: $0 FOLDER PREFIX" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
prefix=$(cd "$2" && pwd)
library="$1/libsojourn.a -lpthread -ldl -lm"
cd "$root"
cc -O2 -I crates/capi/include crates/capi/tests/c/bench.c $library -o out/bench-c
c++ -std=c++17 -O2 -I crates/capi/include crates/capi/tests/c/bench.cpp $library -o out/bench-cpp
PATH=$PATH:/usr/local/go/bin
{
    cargo run --quiet --release -p sojourn-capi --example rust_side
    out/bench-c
    out/bench-cpp
    if command -v go >/dev/null; then
        cd adapters/go
        PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib \
            go test -run '^$' -bench Qdisc -benchtime 20000x -count 50 |
            sed -n 's|^BenchmarkQdisc/\([a-z0-9_]*\)-*[0-9]* .* \([0-9.]*\) ns/op.*|\1 Go \2|p'
    fi
} | awk '
    !($1 in seen) { seen[$1] = 1; rows[++n] = $1 }
    !(($1, $2) in best) || $3 < best[$1, $2] { best[$1, $2] = $3 }
    END {
        print "| discipline | Rust | C, bursts of 32 | C | C++ | Go |"
        print "|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            d = rows[i]
            print "| `" d "` | " best[d, "Rust"] " | " best[d, "bursts"] " | " best[d, "C"] \
                " | " best[d, "C++"] " | " best[d, "Go"] " |"
        }
    }'
