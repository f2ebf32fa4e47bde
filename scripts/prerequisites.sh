# Sourced by setup.sh: finds the compiler, the tools and the Debian packages, and gets from Debian what is missing.

min_gxx=12
min_cmake=3.25
min_rust=1.88 # of the crate cxx
python_range="3.11 to 3.13"

required=() # Debian packages that must be installed
optional=() # Debian packages that only make the build faster
reasons=()  # what is missing or too old, for the message

version_at_least() { # <version> <minimum>
  [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

# The first version number in the output of a command; nothing when the command is not there.
version_of() {
  { "$@" 2>/dev/null || true; } | grep -oE '[0-9]+(\.[0-9]+)*' | head -n 1 || true
}

need_tool() { # <name to show> <minimum> <Debian package> <command...>
  local version
  version=$(version_of "${@:4}")
  if [[ -z $version ]]; then
    reasons+=("$1 >= $2 (not found)")
  elif ! version_at_least "$version" "$2"; then
    reasons+=("$1 >= $2 (found $version)")
  else
    return 0
  fi
  required+=("$3")
}

# A Python that the wheels of the lock files are made for, with the modules that make an environment.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 /usr/bin/python3}; do
    if "$candidate" -I -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
        >/dev/null 2>&1; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

need_python() {
  if ! stage_is_complete build && ! find_python >/dev/null; then
    reasons+=("Python $python_range with its venv module (PYTHON=<path> names another one)")
    required+=(python3-venv)
  fi
}

need_debian_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake will name what it does not find
  local name minimum kind installed packages
  packages=$(grep -v '^#' "$aitraining_root/requirements/debian.txt")
  # shellcheck disable=SC2046
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status} ${Version}\n' $(awk '{print $1}' <<<"$packages") \
    2>/dev/null || true)
  while read -r name minimum kind; do
    local version
    version=$(awk -v name="$name" '$1 == name && $2 == "installed" {print $3; exit}' <<<"$installed")
    if [[ -n $version ]] && dpkg --compare-versions "$version" ge "$minimum"; then
      continue
    fi
    if [[ $kind == optional ]]; then
      optional+=("$name")
    else
      required+=("$name")
      reasons+=("$name >= $minimum (${version:-not installed})")
    fi
  done <<<"$packages"
}

find_missing() {
  required=() optional=() reasons=()
  need_tool g++ "$min_gxx" g++ g++ -dumpfullversion
  need_tool cmake "$min_cmake" cmake cmake --version
  need_tool ninja 1.10 ninja-build ninja --version
  need_tool rustc "$min_rust" rustc-web rustc --version
  need_tool cargo "$min_rust" cargo-web cargo --version
  need_python
  need_debian_packages
}

apt_install() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600)
  say "installing Debian packages: $*"
  if ! compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null; then
    "${apt[@]}" update >/dev/null
  fi
  # Old package lists name files that are gone, so a failure is tried once more with new lists.
  "${apt[@]}" install --no-install-recommends "$@" >/dev/null 2>&1 ||
    { "${apt[@]}" update >/dev/null && "${apt[@]}" install --no-install-recommends "$@" >/dev/null; }
}

explain_missing() {
  {
    echo "aitraining cannot be built here yet. Missing:"
    printf '  %s\n' "${reasons[@]}"
    if command -v apt-get >/dev/null; then
      echo "Get them with:"
      echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${required[*]} ${optional[*]}"
      echo "(Rust may come from rustup instead.)"
    fi
  } >&2
}

check_prerequisites() {
  if [[ $(uname -sm) != "Linux x86_64" ]]; then
    fail "aitraining builds on x86_64 Linux; this is $(uname -sm)"
  fi
  find_missing
  if [[ ${#required[@]} -gt 0 || ${#optional[@]} -gt 0 ]] && [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    apt_install "${required[@]}" "${optional[@]}" || say "apt-get failed"
    hash -r
    find_missing
  fi
  if [[ ${#reasons[@]} -gt 0 ]]; then
    explain_missing
    exit 1
  fi
  if [[ ${#optional[@]} -gt 0 ]]; then
    say "not installed, and builds are slower without: ${optional[*]}"
  fi
}
