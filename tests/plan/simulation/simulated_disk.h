// A disk with a volatile cache: file calls on a real folder, and what a power loss leaves of them.
//
// The files are real, in a file system in memory, so that reading needs no second implementation. The disk
// keeps a copy of each file and folder as it is now, and as it is on the medium:
//
// - fsync() of a file makes its content durable, not its name.
// - fsync() of a folder makes its entries durable: neither the content of the files, nor the entry of the
//   folder itself in the one above.
// - sync_file_range() and close() promise nothing.
//
// A power loss leaves everything that is durable, and of the rest:
//
// - Content: each sector of 512 bytes is the old or the new one; beyond the old end of the file the new one
//   or zeros. The length is the old one, the new one, or any between them.
// - Entries: each creation, rename and removal since the last fsync() of the folder has happened or not: in
//   the order of the calls up to some moment, as the journals of ext4 and XFS do, or any of them in any
//   order, as POSIX permits. A rename has happened as a whole or not at all, a folder with its permissions.
//
// One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/simulation/draws.h"

namespace nearwise::plan::simulation {

using Bytes = std::vector<std::byte>;

class SimulatedDisk {
 public:
  // root: an existing folder, whose content is deleted.
  explicit SimulatedDisk(const std::filesystem::path& root);

  // As the POSIX functions. Calls on paths outside the root go to the system.
  int open(const char* path, int flags, mode_t mode);
  ssize_t write(int file, const void* data, std::size_t bytes);
  ssize_t pwrite(int file, const void* data, std::size_t bytes, off_t offset);
  int fsync(int file);
  int close(int file);
  int rename(const char* from, const char* to);
  int unlink(const char* path);
  int mkdir(const char* path, mode_t mode);
  int chmod(const char* path, mode_t mode);

  bool is_folder(int file) const;
  // The last part of the path it was opened by, and of any path. The same in every run.
  std::string name_of(int file) const;
  std::string shown(const char* path) const;

  // Makes the content of a file durable.
  void sync(const std::filesystem::path& path);
  // No file may be open.
  void lose_power(Draws& draws);

  // Below: without faults, on durable files, by paths relative to the root.
  void make_folder(const std::string& path);
  void put(const std::string& path, const Bytes& content);
  void remove(const std::string& path);

  // The content of all files.
  std::map<std::string, Bytes> files() const;
  // The first difference between the real files and the disk's copy, which a change that did not pass
  // through the calls would make; empty if there is none.
  std::string difference() const;

 private:
  struct Node;
  using NodePointer = std::shared_ptr<Node>;
  using Entries = std::map<std::string, NodePointer, std::less<>>;
  struct Node {
    bool is_folder = false;
    Bytes content;  // of a file
    Bytes durable_content;
    Entries entries;  // of a folder
    Entries durable_entries;
    mode_t mode = 0;
    mode_t durable_mode = 0;
  };
  struct Descriptor {
    NodePointer node;
    std::string name;
    std::uint64_t position = 0;
    bool appends = false;
  };
  // A change of a folder that is not synced.
  struct Change {
    NodePointer folder;
    NodePointer node;
    std::string from;  // its name before, empty for a new one
    std::string to;    // its name afterwards, empty for none
  };
  struct Place {
    NodePointer folder;  // null: outside the root
    std::string name;
    NodePointer node;  // null: there is none
  };

  bool is_inside(std::string_view path) const;
  Place find(std::string_view path) const;
  static void apply(const Change& change, Entries& entries);
  // Changes the entries of now and keeps it as not synced.
  void change(const Change& change);
  void sync(const NodePointer& node);
  static void overwrite(Node& node, std::uint64_t offset, const void* data, std::size_t bytes);
  static Bytes torn(const Node& node, Draws& draws);
  void settle(Node& node, Draws& draws);
  // Replaces the real files by those of now.
  void write_real(const Node& node, const std::filesystem::path& path) const;

  const std::filesystem::path root_;
  NodePointer top_;
  std::vector<Change> pending_;
  std::unordered_map<int, Descriptor> descriptors_;
};

}  // namespace nearwise::plan::simulation
