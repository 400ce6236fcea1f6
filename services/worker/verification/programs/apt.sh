#!/bin/sh
# In the place of apt and apt-get: packages that are there are installed, and others cannot be.

is_there() {
  case "$1" in
    curl|wget|uv|pipx|apt|apt-utils|apt-transport-https|ca-certificates|gnupg|locales|tzdata) return 0 ;;
    software-properties-common|lsb-release|python3-pip|python3-pytest|python3-venv|python3-full) return 0 ;;
    build-essential) command -v gcc && command -v make && return 0 ;;
    procps) command -v ps && return 0 ;;
    netcat*) command -v nc && return 0 ;;
    iproute2) command -v ip && return 0 ;;
    nodejs) command -v node && return 0 ;;
    golang*) command -v go && return 0 ;;
    default-j*|openjdk-*) command -v java && return 0 ;;
    python3-*) python3 -c "import ${1#python3-}" && return 0 ;;
  esac
  command -v "$1" || dpkg -s "$1"
}

action=
before=
for word in "$@"; do
  case "$before" in -t|-o|-c|--target-release|--option) before=; continue ;; esac
  before=$word
  case "$word" in
    -*|*::*|*=true|*=false) continue ;;
    install) [ -n "$action" ] || { action=install; continue; } ;;
  esac
  action=${action:-$word}
  [ "$action" = install ] || exit 0
  name=${word%%=*}
  name=${name%%:*}
  case "$name" in
    ./*|/*) ;;
    *) is_there "$name" >/dev/null 2>&1 && continue ;;
  esac
  echo "E: Unable to locate package $name: a sandbox has no network" >&2
  exit 100
done
