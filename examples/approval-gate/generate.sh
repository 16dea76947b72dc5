#!/bin/sh
# Generates the Go packages of the protocol from its proto files: generate.sh <proto folder> <output folder>
#
# With protoc-gen-go-grpc installed, the generators are taken for today's; else protoc-gen-go is taken for Debian's (1.3), which
# also generates services, and does not know `optional` in proto3. For that one, an optional field becomes the only member of a
# oneof: the same bytes on the wire, and the same presence.
set -eu
protos=$1
mkdir -p "$2"
output=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/proto" "$work/go"

module=hookledger.example/protocol
if command -v protoc-gen-go-grpc >/dev/null; then
  optional=
else
  optional='s|^\( *\)optional \([^ ]*\) \([a-z_]*\) = \([0-9]*\);|\1oneof _\3 { \2 \3 = \4; }|'
fi

# pluggableharness/hook/v1 becomes package hookv1.
(cd "$protos" && find . -name '*.proto' | sed 's|^\./||') >"$work/files"
while read -r file; do
  folder=$(dirname "$file")
  mkdir -p "$work/proto/$folder"
  name=$(basename "$(dirname "$folder")")$(basename "$folder")
  sed -e "$optional" -e "s|^package .*;|&\\
option go_package = \"$module/$folder;$name\";|" "$protos/$file" >"$work/proto/$file"
done <"$work/files"

# One package at a time, which is how Debian's generator wants them.
while read -r file; do dirname "$file"; done <"$work/files" | sort -u >"$work/folders"
while read -r folder; do
  if [ -z "$optional" ]; then
    protoc -I "$work/proto" --go_out="$work/go" --go-grpc_out="$work/go" "$work/proto/$folder"/*.proto
  else
    known=Mgoogle/protobuf/struct.proto=github.com/golang/protobuf/ptypes/struct
    protoc -I "$work/proto" --go_out="plugins=grpc,$known:$work/go" "$work/proto/$folder"/*.proto
  fi
done <"$work/folders"
cp -R "$work/go/$module/." "$output"
