#include "io/files/new_files.h"

#include <utility>

namespace nearwise {
namespace {

constinit thread_local mode_t permitted_here = all_permissions;

}  // namespace

NewFilesScope::NewFilesScope(mode_t permitted) noexcept : before_(std::exchange(permitted_here, permitted)) {}

NewFilesScope::~NewFilesScope() { permitted_here = before_; }

mode_t permitted_mode(mode_t mode) noexcept { return mode & permitted_here; }

}  // namespace nearwise
