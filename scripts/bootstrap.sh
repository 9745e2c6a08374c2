# shellcheck shell=bash
# What ./cpverify and ./run-tests share: packages, CPU check, locked builds. Sourced, never run.
# The caller sets `root`, the absolute path of the checkout. Exit status 3 means that the machine
# lacks something, as it does for the cpverify command itself.
: "${root:?}"

# shellcheck disable=SC2034  # Read by the scripts that source this one.
build_packages=(g++ cmake ninja-build clang libfmt-dev libeigen3-dev libyaml-cpp-dev libcli11-dev
  nlohmann-json3-dev)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

lack() {
  say "$@"
  exit 3
}

# The programs are compiled for x86-64-v3; an older CPU would die of an illegal instruction.
require_cpu() {
  local cpuinfo=$1 key value
  while IFS=: read -r key value; do
    [[ $key == flags* ]] || continue
    [[ " $value " == *" avx2 "* && " $value " == *" fma "* ]] && return
    break
  done <"$cpuinfo"
  lack "this CPU lacks AVX2 or FMA, and cpverify is built for x86-64-v3"
}

# True when command $1 exists and the first version number it prints is at least $2 (major.minor).
has_version() {
  local found
  found=$("$1" --version 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1) || return 1
  [[ -n $found && $(printf '%s\n' "$2" "$found" | sort -V | head -n 1) == "$2" ]]
}

has_clang() {
  local candidate
  for candidate in clang++ clang++-{14..20}; do
    has_version "$candidate" 14 && return
  done
  return 1
}

# Tools count when they run, whoever installed them; libraries count when their package is there.
is_installed() {
  case $1 in
    g++) has_version g++ 12 ;;
    cmake) has_version cmake 3.25 ;;
    ninja-build) command -v ninja >/dev/null ;;
    clang) has_clang ;;
    *) [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]] ;;
  esac
}

# Prints the packages of "$@" that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    is_installed "$package" || printf '%s\n' "$package"
  done
}

# Installs what is missing of "$@", or explains and exits.
require_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    lack "this is not a Debian or Ubuntu system; install the equivalents of: ${missing[*]}"
  fi
  if [[ ${CPVERIFY_NO_INSTALL:-0} != 0 ]]; then
    lack "missing packages (CPVERIFY_NO_INSTALL is set): ${missing[*]}"
  fi
  say "installing with apt-get: ${missing[*]}"
  install_packages "${missing[@]}" ||
    lack "apt-get failed; install these packages and call again: ${missing[*]}"
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) ||
    lack "installed, but too old here (g++ 12, cmake 3.25, clang 14 are needed): ${missing[*]}"
}

# Descriptor 9 holds the build lock and must not live on in a daemon that a package starts.
install_packages() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || lack "neither root nor sudo; install these packages: $*"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -y -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update </dev/null >&2 9>&- || say "apt-get update failed; trying with what is known"
  "${apt[@]}" install --no-install-recommends "$@" </dev/null >&2 9>&-
}

# Copies a build's output from stdin to file $1; on a terminal shows the current step in one line.
follow_build() {
  local line columns=${COLUMNS:-80}
  while IFS= read -r line; do
    printf '%s\n' "$line" >&8
    if [[ -t 2 && $line == \[* ]]; then printf '\r\033[K%s' "${line:0:columns-1}" >&2; fi
  done 8>"$1"
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# A tree that was copied or moved, or whose first configure was cut short, starts over.
configure_preset() {
  local preset=$1 binary_dir=$root/build/$1
  shift
  local cache=$binary_dir/CMakeCache.txt
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    rm -rf "$binary_dir"
  fi
  local fresh=--fresh
  if [[ -e $binary_dir/build.ninja ]]; then
    if (($# == 0)); then return 0; fi
    fresh=--log-level=STATUS
  fi
  (cd "$root" && cmake "$fresh" --preset "$preset" "$@")
}

# Builds a preset into build/<preset> with the log in build/<preset>.log; further arguments go to
# the configure step. Returns 1 after showing the log's end when it fails.
build_preset() {
  local preset=$1 log=$root/build/$1.log start=$SECONDS
  say "building build/$preset (log: build/$preset.log)"
  if { configure_preset "$@" && cmake --build "$root/build/$preset"; } 2>&1 | follow_build "$log"
  then
    say "built build/$preset in $((SECONDS - start)) s"
    return 0
  fi
  tail -n 40 "$log" >&2
  say "build/$preset did not build; the whole log: $log"
  return 1
}
