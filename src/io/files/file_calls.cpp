#include "io/files/file_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

namespace nearwise {
namespace {

constexpr FileCalls system_calls = {
    .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
    .open_to_read = [](const char* path, int flags) { return ::open(path, flags); },
    .pread = ::pread,
    .mmap = [](int file,
               std::size_t bytes) { return ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0); },
    .write = ::write,
    .pwrite = ::pwrite,
    .fchmod = ::fchmod,
    .fchown = ::fchown,
    .flock = ::flock,
    .fsync = ::fsync,
    .sync_file_range = ::sync_file_range,
    .close = ::close,
    .rename = std::rename,
    .unlink = ::unlink,
    .mkdir = ::mkdir,
    .chmod = ::chmod,
    .stat = ::stat,
    .getpid = ::getpid,
    .kill = ::kill,
    .getentropy = ::getentropy,
};

std::atomic<const FileCalls*> calls_in_use{&system_calls};

}  // namespace

const FileCalls& file_calls() { return *calls_in_use.load(std::memory_order_acquire); }

const FileCalls& system_file_calls() { return system_calls; }

void replace_file_calls(const FileCalls* calls) {
  calls_in_use.store(calls != nullptr ? calls : &system_calls, std::memory_order_release);
}

}  // namespace nearwise
