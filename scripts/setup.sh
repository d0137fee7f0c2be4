# Sourced by ./run, ./test and ./bench: puts in place what a bare Debian 12 with Rust lacks. Starts nothing.

# need PROGRAM PACKAGE..: installs the packages unless the program is there.
need() {
  local program=$1
  shift
  command -v "$program" >/dev/null 2>&1 && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      echo "$program is missing. Install it with:" >&2
      echo "    sudo apt-get update && sudo apt-get install -y $*" >&2
      exit 2
    fi
  fi
  echo "installing $* (for $program)" >&2
  "${as_root[@]}" apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@" >&2
}

# A C compiler: SQLite and the TLS primitives are built from source.
need_toolchain() {
  export PATH="$PATH:$HOME/.cargo/bin"
  if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo is missing. Install Rust 1.95 or newer (https://rustup.rs), then run this again." >&2
    exit 2
  fi
  need cc build-essential
}
