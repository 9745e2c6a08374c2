#!/usr/bin/env bash
# shellcheck disable=SC2016  # The backticks are Markdown.
# check_readme_test.sh CHECK_README: shows the README checker pages that are right and wrong.
set -euo pipefail
checker=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect STATUS PAGE: the checker's exit status for a page.
expect() {
  local status=0
  printf '%b' "$2" >"$work/page.md"
  "$checker" "$work/page.md" >/dev/null 2>"$work/err" || status=$?
  [[ $status == "$1" ]] || { printf 'exit %s, expected %s, for:\n%b' "$status" "$1" "$2"; exit 1; }
}

expect 0 '```console\n$ echo a; echo b\na\nb\n```\n'
expect 1 '```console\n$ echo a\nb\n```\n'
expect 1 '```console\n$ echo a\n```\n'
expect 1 '```console\n$ true\na\n```\n'
expect 0 '```console\n$ false\n[exit 1]\n```\n'
expect 1 '```console\n$ false\n```\n'
expect 1 '```console\n$ true\n[exit 1]\n```\n'
expect 0 '```console\n$ seq 5\n1\n...\n5\n```\n'
expect 1 '```console\n$ seq 5\n1\n...\n4\n```\n'
expect 0 '```console\n$ echo a\na\n$ echo b\nb\n```\n'
expect 1 '```console\n$ echo a\na\n$ echo b\nc\n```\n'
# Talk on stderr is not the result, and other blocks are not run.
expect 0 '```console\n$ echo talk >&2\n```\n```sh\nfalse\n```\n'
# A page without commands would pass for ever.
expect 1 'words\n'
expect 1 '```console\n$ true\n'
