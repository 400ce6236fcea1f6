#!/bin/sh
# In the place of the installer of uv: its programs and `env` where it would write them.

here=${0%/*}
# Scripts may name the home folder of root in images.
for folder in "$HOME/.local/bin" "$HOME/.cargo/bin" ~root/.local/bin ~root/.cargo/bin \
  "$UV_INSTALL_DIR" "$UV_UNMANAGED_INSTALL" "$XDG_BIN_HOME"; do
  [ -n "$folder" ] && mkdir -p "$folder" 2>/dev/null || continue
  ln -sf "$here/uv" "$here/uvx" "$folder/" 2>/dev/null
  for env in "$folder/env" "${folder%/bin}/env"; do
    [ -e "$env" ] || echo "export PATH=\"$folder:\$PATH\"" > "$env" 2>/dev/null
  done
done
exit 0
