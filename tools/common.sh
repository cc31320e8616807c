# Sourced by the scripts of tools/ and .ci/: where the repository is, which versions, which virtual environment.
NEARWISE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/versions
source "$NEARWISE_ROOT/tools/versions"
: "${NEARWISE_ENV:=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/env}"
export NEARWISE_ENV

# Files of the repository that match the patterns, also those not yet added, NUL-terminated, without deleted ones.
repository_files() {
  local path
  git -C "$NEARWISE_ROOT" ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' path; do
      [[ -f $NEARWISE_ROOT/$path ]] && printf '%s\0' "$path"
    done || true
}
