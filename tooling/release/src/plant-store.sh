#!/bin/sh
# Runs plant-store with the Node of this folder, wherever the folder is and through any links to this file.
# With a dot before it, `cd` does not look a relative path up in CDPATH.
case $0 in
  /*) file=$0 ;;
  *) file=./$0 ;;
esac
while [ -L "$file" ]; do
  target=$(readlink "$file")
  case $target in
    /*) file=$target ;;
    *) file=${file%/*}/$target ;;
  esac
done
lib=$(cd "${file%/*}/../lib" && pwd -P) || exit 1
# glibc keeps freed memory: this returns most of it (docs/settings.md).
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}" MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-131072}"
# Node needs libatomic, which small systems lack.
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib"
exec "$lib/node" "$lib/plant-store/dist/main.js" "$@"
