#!/bin/sh
# Installs headers, libraries, and the files by which pkg-config and CMake find them.
#
#   crates/capi/install.sh FOLDER PREFIX    libraries of FOLDER, such as target/release
set -eu
[ $# -eq 2 ] || { echo "usage: $0 FOLDER PREFIX" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -1)

mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/sojourn"
cp "$here/include/sojourn.h" "$here/include/sojourn.hpp" "$prefix/include/"
cp "$1/libsojourn.a" "$1/libsojourn.so" "$prefix/lib/"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/packaging/sojourn.pc.in" \
    >"$prefix/lib/pkgconfig/sojourn.pc"
cp "$here/packaging/sojourn-config.cmake" "$prefix/lib/cmake/sojourn/"
