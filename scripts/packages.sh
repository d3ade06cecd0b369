# Sourced by the scripts beside it: Debian packages and how to install them.

# What the program is built with.
build_packages=(
  cmake ninja-build g++ git
  libabsl-dev        # Status, strings, containers
  libboost-dev       # Boost.DLL, header-only
  libcli11-dev       # command line
  libedit-dev        # line editing in the REPL
  libyaml-cpp-dev    # pipeline files
  pkg-config         # finds libedit
  nlohmann-json3-dev # tool declarations, machine-readable output
)

# What its tests need besides.
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev clang-format
  python3            # the benchmark gate and its test
)

# install_missing PACKAGE...: installs what dpkg does not know as installed.
install_missing() {
  local package missing=()
  for package in "$@"; do
    if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
      grep -q 'install ok installed'; then
      missing+=("$package")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "Debian packages: all there."
    return 0
  fi
  echo "Debian packages to install: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "error: installing needs root or sudo. As root, run:" >&2
      echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
