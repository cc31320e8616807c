# Sourced by the scripts of tools/ and .ci/: where the repository is, which versions, which virtual environment.
NEARWISE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/versions
source "$NEARWISE_ROOT/tools/versions"
: "${NEARWISE_ENV:=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/env}"
export NEARWISE_ENV
NEARWISE_DOCS_ENV=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/docs-env  # of tools/setup --docs
# The CUDA toolkit that tools/setup installs where there is none; cmake/cuda.cmake looks here, too.
NEARWISE_CUDA_ENV=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/cuda-env

# Files of the repository that match the patterns, also those not yet added, NUL-terminated, without deleted ones.
repository_files() {
  local path
  git -C "$NEARWISE_ROOT" ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' path; do
      [[ -f $NEARWISE_ROOT/$path ]] && printf '%s\0' "$path"
    done || true
}

# The folder of a CUDA toolkit of the machine that will do: nvcc new enough, with cuBLAS. Fails where there is none.
find_cuda() {
  local place release
  for place in "${CUDA_PATH:-}" "${CUDA_HOME:-}" "$(command -v nvcc || true)" /usr/local/cuda; do
    if [[ $place == */nvcc ]]; then place=$(dirname "$(dirname "$(readlink -f "$place")")"); fi
    if [[ -z $place || ! -x $place/bin/nvcc || ! -f $place/include/cublas_v2.h ]]; then continue; fi
    release=$("$place/bin/nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    if ((${release:-0} >= CUDA_VERSION)); then
      printf '%s\n' "$place"
      return
    fi
  done
  return 1
}
