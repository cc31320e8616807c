// A file that appears complete or not at all.
//
// Written under a temporary name in the folder of its target (.NAME.PID.RANDOM.tmp), synced, closed, renamed,
// and the folder synced: at every moment the target is the complete old file or the complete new one. On any
// failure, and when commit() is never reached, the temporary is removed. Temporaries of dead processes for
// the same target are swept. A target that is a symbolic link stays one; permissions of a replaced file are
// kept, and its owner and group where the process may set them; a NewFilesScope narrows the permissions. One
// thread at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace nearwise {

class AtomicFile {
 public:
  // Throws Error(cannot_create).
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws Error(io), for instance on a full disk; then the temporary is gone and nothing can
  // follow.
  void write(std::span<const std::byte> bytes);
  void write_zeros(std::size_t bytes);
  // Replaces bytes already written: headers whose content is known only at the end.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  // Bytes appended so far.
  std::uint64_t size() const { return size_; }

  // Throws Error(io), and as write() does Error(cancelled). Should the very last step fail, the sync of the
  // folder, then the new file is in place but might not survive a power cut; the message says so.
  void commit();

  // As the user gave it, for messages.
  const std::filesystem::path& path() const { return path_; }

 private:
  enum class State { open, committed, discarded };

  // Opens nothing yet. The public constructor delegates to it, so that the destructor cleans up after its
  // failures.
  AtomicFile(const std::filesystem::path& path, State state) : path_(path), state_(state) {}
  void create_temporary();
  void require_open() const;
  void flush();
  void write_through(std::span<const std::byte> bytes);
  // Discards the output if the check throws.
  template <typename Check>
  void stop_unless(const Check& check);
  void sync_pieces();
  void keep_owner_and_mode();
  void close_file();
  void discard() noexcept;
  [[noreturn]] void discard_and_fail(const char* attempt, int error);

  const std::filesystem::path path_;
  std::filesystem::path target_;     // absolute, symbolic links resolved
  std::filesystem::path temporary_;  // empty: there is none
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t size_ = 0;
  int file_ = -1;
  int folder_ = -1;
  mode_t kept_mode_ = 0;  // permissions, owner and group of the file to be replaced
  uid_t kept_owner_ = 0;
  gid_t kept_group_ = 0;
  bool replaces_ = false;
  State state_;
};

// Removes temporaries that dead processes left behind for this target (absolute path). Failures are ignored:
// they cost disk space, not data.
void sweep_stale_temporaries(const std::filesystem::path& target) noexcept;
// The same for all targets in a folder.
void sweep_folder(const std::filesystem::path& folder) noexcept;

}  // namespace nearwise
