#!/usr/bin/env bash
# launcher_test.sh CASE: runs ./cpverify in a copy of the tree's skeleton with stand-ins for CMake,
# dpkg-query and apt-get, so that a case takes well under a second.
set -euo pipefail

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
source_dir=$(cd "$here/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tree="$work/a checkout"
mkdir -p "$tree"/{src,include,reference,kernels,cmake,scripts}
cp "$source_dir/cpverify" "$tree/"
cp "$source_dir/scripts/bootstrap.sh" "$tree/scripts/"
touch "$tree"/{CMakeLists.txt,CMakePresets.json,src/a.cpp}
export PATH="$here/stubs:$PATH"
export STUB_LOG=$work/log STUB_MISSING=$work/missing STUB_BROKEN=$work/broken
unset CPVERIFY_NO_INSTALL
touch "$STUB_LOG"

fail() {
  printf 'FAILED: %s\n--- stub log\n' "$*" >&2
  cat "$STUB_LOG" "$work/err" >&2
  exit 1
}

# launch STATUS ARGS...: calls ./cpverify and leaves its streams in $work/out and $work/err.
launch() {
  local expected=$1 status=0
  shift
  "$tree/cpverify" "$@" >"$work/out" 2>"$work/err" || status=$?
  [[ $status == "$expected" ]] || fail "exit status $status, expected $expected"
}

calls() { grep -c "^$1" "$STUB_LOG" || true; }
expect_calls() { [[ $(calls "$1") == "$2" ]] || fail "$(calls "$1") calls of $1, expected $2"; }
expect_said() { grep -qF -- "$1" "$work/err" || fail "stderr does not say: $1"; }
expect_out() { [[ $(<"$work/out") == "$1" ]] || fail "stdout is: $(<"$work/out")"; }

case_builds_once_and_passes_arguments_and_status() {
  cd "$work"
  launch 7 run 'a b' --seed 1
  expect_out "ran in $work: [run] [a b] [--seed] [1]"
  launch 7
  [[ ! -s $work/err ]] || fail "the second call talks"
  expect_calls configure 1
  expect_calls build 1
}

case_works_through_a_symlink() {
  ln -s "$tree/cpverify" "$work/link"
  (cd / && "$work/link" x >"$work/out" 2>"$work/err") || [[ $? == 7 ]] || fail "did not run"
  expect_out "ran in /: [x]"
}

case_rebuilds_when_a_source_changes_comes_or_goes() {
  launch 7
  sleep 0.02
  touch "$tree/src/a.cpp"
  launch 7
  expect_calls build 2
  sleep 0.02
  touch "$tree/src/b.cpp"
  launch 7
  expect_calls build 3
  sleep 0.02
  rm "$tree/src/b.cpp"
  launch 7
  expect_calls build 4
  launch 7
  expect_calls build 4
  expect_calls configure 1
}

case_a_change_during_the_build_is_built_next_time() {
  STUB_BUILD_SECONDS=0.3 "$tree/cpverify" >/dev/null 2>"$work/err" &
  until [[ $(calls build) == 1 ]]; do sleep 0.02; done
  touch "$tree/src/a.cpp"
  wait $! || true
  launch 7
  expect_calls build 2
}

case_failed_build_shows_the_end_of_the_log_and_recovers() {
  touch "$STUB_BROKEN"
  launch 3
  expect_said "stub: error: broken source"
  expect_said "build/release.log"
  launch 3
  rm "$STUB_BROKEN"
  launch 7
}

case_simultaneous_first_calls_build_once() {
  local pids=() status
  for _ in 1 2 3; do
    STUB_BUILD_SECONDS=0.2 "$tree/cpverify" >/dev/null 2>>"$work/err" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    status=0
    wait "$pid" || status=$?
    [[ $status == 7 ]] || fail "exit status $status"
  done
  expect_calls build 1
  expect_said "waiting for another call"
}

case_interrupted_build_is_recovered() {
  set -m
  STUB_BUILD_SECONDS=5 "$tree/cpverify" >/dev/null 2>"$work/err" &
  local pid=$! status=0
  until [[ $(calls build) == 1 ]]; do sleep 0.02; done
  kill -INT -- "-$pid"
  wait "$pid" || status=$?
  set +m
  [[ $status == 130 ]] || fail "exit status $status, expected 130"
  launch 7
  expect_calls build 2
}

case_moved_tree_is_configured_again() {
  launch 7
  mv "$tree" "$work/moved"
  tree=$work/moved
  launch 7
  expect_calls configure 2
  expect_calls build 2
}

case_no_install_lists_what_is_missing() {
  printf 'libfmt-dev\nlibeigen3-dev\n' >"$STUB_MISSING"
  CPVERIFY_NO_INSTALL=1 launch 3
  expect_said "libfmt-dev libeigen3-dev"
  expect_calls apt-get 0
  expect_calls build 0
}

case_installs_what_is_missing_and_says_so() {
  echo libyaml-cpp-dev >"$STUB_MISSING"
  # Not root and without a password prompt: a stand-in for sudo that runs its arguments.
  printf '#!/bin/sh\nexec "$@"\n' >"$work/sudo"
  chmod +x "$work/sudo"
  PATH="$work:$PATH" launch 7
  expect_said "installing with apt-get: libyaml-cpp-dev"
  grep -q '^apt-get .*update' "$STUB_LOG" || fail "no apt-get update"
  grep -q '^apt-get .*install .*libyaml-cpp-dev$' "$STUB_LOG" || fail "no apt-get install"
}

case_failing_apt_is_an_environment_error() {
  echo libfmt-dev >"$STUB_MISSING"
  printf '#!/bin/sh\nexec "$@"\n' >"$work/sudo"
  chmod +x "$work/sudo"
  PATH="$work:$PATH" STUB_APT_FAILS=1 launch 3
  expect_said "install these packages and call again: libfmt-dev"
}

case_old_cmake_is_an_environment_error() {
  printf '#!/bin/sh\nexec "$@"\n' >"$work/sudo"
  chmod +x "$work/sudo"
  PATH="$work:$PATH" STUB_CMAKE_VERSION=3.9.6 launch 3
  expect_said "too old"
}

case_old_cpu_is_refused() {
  # shellcheck disable=SC2034  # Read by bootstrap.sh.
  local root=$tree status=0
  printf 'processor\t: 0\nflags\t\t: fpu sse2 avx fma\n' >"$work/avx"
  printf 'processor\t: 0\nflags\t\t: fpu sse2 avx2 fma4\n' >"$work/avx2"
  printf 'processor\t: 0\nflags\t\t: fpu fma sse2 avx2\n' >"$work/haswell"
  # shellcheck source=scripts/bootstrap.sh
  source "$tree/scripts/bootstrap.sh"
  for cpu in avx avx2; do
    status=0
    (require_cpu "$work/$cpu") 2>"$work/err" || status=$?
    [[ $status == 3 ]] || fail "$cpu: exit status $status"
    expect_said "AVX2"
  done
  (require_cpu "$work/haswell") 2>"$work/err" || fail "refuses AVX2 with FMA"
}

case_second_call_adds_under_100_ms() {
  launch 7
  local start=${EPOCHREALTIME/[.,]/} best=1000000 now
  for _ in 1 2 3 4 5; do
    start=${EPOCHREALTIME/[.,]/}
    launch 7
    now=${EPOCHREALTIME/[.,]/}
    ((now - start < best)) && best=$((now - start))
  done
  ((best < 100000)) || fail "the best of five calls took $best us"
}

"case_$1"
