#!/usr/bin/env bash
# Runs scripts/run-clang-tidy in a small tree with stand-ins for clang-tidy and ninja: files with a
# defect fail, clean files are remembered, and a changed header makes them be looked at again.
set -euo pipefail
unset CPVERIFY_TIDY  # What the caller wants linted is not what is tested.

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree="$work/a tree"
mkdir -p "$tree"/{scripts,src,build/dev} "$work/bin"
cp "$here/../../scripts/run-clang-tidy" "$tree/scripts/"
echo "rules" >"$tree/.clang-tidy"
echo "header" >"$tree/src/a.hpp"
for name in a b; do
  echo "text" >"$tree/src/$name.cpp"
  printf '%s.o: #deps 2, deps mtime 0 (VALID)\n    ../../src/%s.cpp\n    ../../src/a.hpp\n\n' \
    "$name" "$name" >>"$work/deps"
done
cat >"$tree/build/dev/compile_commands.json" <<JSON
[{"directory": "$tree/build/dev", "command": "c++ -o a.o -c a", "file": "$tree/src/a.cpp"},
 {"directory": "$tree/build/dev", "command": "c++ -o b.o -c b", "file": "$tree/src/b.cpp"}]
JSON
printf '#!/bin/sh\ncat "%s/deps"\n' "$work" >"$work/bin/ninja"
cat >"$work/bin/clang-tidy-19" <<'STUB'
#!/usr/bin/env bash
[[ $1 == --version ]] && exit 0
echo "${!#}" >>"$STUB_LOG"
! grep -q defect "${!#}"
STUB
chmod +x "$work/bin"/*
export PATH="$work/bin:$PATH" STUB_LOG=$work/log XDG_CACHE_HOME=$work/cache

# expect STATUS FILES...: the exit status of a run, and the sources it looks at.
expect() {
  local wanted=$1 status=0
  shift
  : >"$STUB_LOG"
  "$tree/scripts/run-clang-tidy" >"$work/out" 2>&1 || status=$?
  if [[ $status != "$wanted" || $(sort "$STUB_LOG" | tr '\n' ' ') != "$*${*:+ }" ]]; then
    echo "exit $status, expected $wanted; looked at $(tr '\n' ' ' <"$STUB_LOG"), expected $*"
    cat "$work/out"
    exit 1
  fi
}

expect 0 src/a.cpp src/b.cpp
expect 0
echo "text with a defect" >"$tree/src/b.cpp"
expect 1 src/b.cpp
grep -q 'src/b.cpp' "$work/out"
expect 1 src/b.cpp
echo "text" >"$tree/src/b.cpp"
expect 0
echo "other header" >"$tree/src/a.hpp"
expect 0 src/a.cpp src/b.cpp
echo "other rules" >"$tree/.clang-tidy"
expect 0 src/a.cpp src/b.cpp
# Another checkout of the same text has nothing to do.
mv "$tree" "$work/moved"
tree=$work/moved
sed -i "s|$work/a tree|$tree|g" "$tree/build/dev/compile_commands.json"
expect 0
# Without sources there would be nothing to find, for ever.
echo "[]" >"$tree/build/dev/compile_commands.json"
expect 1
