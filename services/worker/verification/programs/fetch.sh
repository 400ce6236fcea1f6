#!/bin/sh
# In the place of curl and wget: the installers of uv and pip have nothing to do, and all else is fetched by the
# machine's own program.

own=${0##*/}
here=${0%/*}
what=
name=
target=-
[ "$own" = curl ] || target=
before=
for word in "$@"; do
  case "$word" in
    *astral.sh/uv*install.sh|*astral-sh/uv/*install*.sh) what=uv; name=${word##*/} ;;
    *pypa.io*/get-pip.py) what=pip; name=get-pip.py ;;
  esac
  case "$own$before" in
    curl-o|curl--output|curl-[!-]*o|wget-O|wget--output-document|wget-[!-]*O) target=$word ;;
  esac
  case "$own$word" in
    wget-[!-]*O-) target=- ;;
    curl--output=*|wget--output-document=*) target=${word#*=} ;;
    curl-O|curl--remote-name|curl-[!-]*O) target= ;;
  esac
  before=$word
done

answer() {
  if [ "$what" = pip ]; then
    echo 'print("pip is there")'
  else
    echo '#!/bin/sh'
    echo "exec $here/have-uv"
  fi
}

if [ -z "$what" ]; then
  rest=
  IFS=:
  for folder in $PATH; do
    [ "$folder" = "$here" ] || rest=$rest${rest:+:}$folder
  done
  unset IFS
  program=$(PATH=$rest command -v "$own") || { echo "sh: 1: $own: not found" >&2; exit 127; }
  exec "$program" "$@"
fi
target=${target:-$name}
if [ "$target" = - ]; then answer; else answer > "$target"; fi
