#!/bin/sh
# Builds the docker sandbox's image: sh build.sh NAME:TAG
# From the container registry where one can be reached; otherwise with mmdebstrap, from the package
# sources of this Debian or Ubuntu machine.
set -eu
cd "$(dirname "$0")"
image=$1

if docker pull -q debian:bookworm-slim; then
    docker build -t "$image" .
    exit
fi

echo "No container registry can be reached; building from this machine's package sources." >&2
if ! command -v mmdebstrap > /dev/null; then
    echo "mmdebstrap is not installed; get it with: apt-get install mmdebstrap" >&2
    exit 1
fi
. /etc/os-release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for file in /etc/apt/sources.list.d/"$ID".sources /etc/apt/sources.list; do
    if [ -s "$file" ]; then sources=$file; break; fi
done
mmdebstrap --variant=minbase --include="$(paste -sd, packages.txt)" \
    "$VERSION_CODENAME" "$folder/root.tar" ${sources:+"$sources"}
docker import "$folder/root.tar" "$image"
