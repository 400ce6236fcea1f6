#!/bin/sh
# In the place of apt and apt-get: packages that are there are installed, and others cannot be.

is_there() {
  case "$1" in
    curl|wget|uv|pipx|apt|apt-utils|apt-transport-https|ca-certificates|gnupg|locales|tzdata) return 0 ;;
    software-properties-common|lsb-release|python3-pip|python3-pytest|python3-venv|python3-full) return 0 ;;
    build-essential) command -v gcc && command -v make && return 0 ;;
    python3-*) python3 -c "import ${1#python3-}" && return 0 ;;
  esac
  command -v "$(program_of "$1")" || dpkg -s "$1"
}

# A program of each package that is called otherwise: a sandbox has the programs, and no list of packages.
program_of() {
  case "$1" in
    bind9-dnsutils|dnsutils) echo dig ;;
    binutils) echo objdump ;;
    bsdextrautils|bsdmainutils) echo hexdump ;;
    coreutils) echo ls ;;
    default-j*|openjdk-*) echo java ;;
    diffutils) echo diff ;;
    docker.io) echo docker ;;
    findutils) echo find ;;
    golang*) echo go ;;
    imagemagick) echo convert ;;
    iproute2) echo ip ;;
    iputils-ping) echo ping ;;
    maven) echo mvn ;;
    net-tools) echo ifconfig ;;
    netcat*) echo nc ;;
    nodejs) echo node ;;
    openssh-client) echo ssh ;;
    openssh-server) echo sshd ;;
    p7zip*) echo 7z ;;
    poppler-utils) echo pdftotext ;;
    postgresql-client) echo psql ;;
    procps) echo ps ;;
    psmisc) echo killall ;;
    r-base|r-base-core) echo R ;;
    ripgrep) echo rg ;;
    tesseract-ocr) echo tesseract ;;
    texlive*) echo pdflatex ;;
    util-linux) echo mount ;;
    vim-*) echo vim ;;
    xz-utils) echo xz ;;
    *) echo "$1" ;;
  esac
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
