#include "plan/simulation/simulated_disk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "io/files/file_calls.h"

namespace nearwise::plan::simulation {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t sector_bytes = 512;

Bytes read_real(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_file(const fs::path& path, const Bytes& content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path.string());
}

mode_t mode_of(const fs::path& path) {
  FileStatus status{};
  if (system_file_calls().stat(path.c_str(), &status) != 0)
    throw std::runtime_error("cannot stat " + path.string());
  return status.st_mode & 07777;
}

}  // namespace

SimulatedDisk::SimulatedDisk(const fs::path& root) : root_(root), top_(std::make_shared<Node>()) {
  top_->is_folder = true;
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
}

bool SimulatedDisk::is_inside(std::string_view path) const {
  const std::string& root = root_.native();
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

SimulatedDisk::Place SimulatedDisk::find(std::string_view path) const {
  if (!is_inside(path)) return {};
  Place place{.folder = top_, .name = "(root)", .node = top_};
  path.remove_prefix(root_.native().size());
  while (true) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    if (path.empty()) return place;
    if (place.node == nullptr) return {};  // a folder on the way is missing: the system says so
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    place.folder = place.node;
    place.name = name;
    const auto found = place.folder->entries.find(name);
    place.node = found == place.folder->entries.end() ? nullptr : found->second;
  }
}

void SimulatedDisk::apply(const Change& change, Entries& entries) {
  if (const auto found = entries.find(change.from); found != entries.end() && found->second == change.node)
    entries.erase(found);
  if (!change.to.empty()) entries[change.to] = change.node;
}

void SimulatedDisk::change(const Change& change) {
  apply(change, change.folder->entries);
  pending_.push_back(change);
}

int SimulatedDisk::open(const char* path, int flags, mode_t mode) {
  Place place = find(path);
  const int file = system_file_calls().open(path, flags, mode);
  if (file == -1 || place.folder == nullptr) return file;
  if (place.node == nullptr) {
    place.node = std::make_shared<Node>();
    change({.folder = place.folder, .node = place.node, .from = {}, .to = place.name});
  }
  if ((flags & O_TRUNC) != 0) place.node->content.clear();
  descriptors_[file] = {
      .node = place.node, .name = place.name, .position = 0, .appends = (flags & O_APPEND) != 0};
  return file;
}

void SimulatedDisk::overwrite(Node& node, std::uint64_t offset, const void* data, std::size_t bytes) {
  node.content.resize(std::max<std::size_t>(node.content.size(), offset + bytes));
  std::memcpy(node.content.data() + offset, data, bytes);
}

ssize_t SimulatedDisk::write(int file, const void* data, std::size_t bytes) {
  const ssize_t written = system_file_calls().write(file, data, bytes);
  const auto found = descriptors_.find(file);
  if (written <= 0 || found == descriptors_.end()) return written;
  Descriptor& descriptor = found->second;
  if (descriptor.appends) descriptor.position = descriptor.node->content.size();
  overwrite(*descriptor.node, descriptor.position, data, static_cast<std::size_t>(written));
  descriptor.position += static_cast<std::uint64_t>(written);
  return written;
}

ssize_t SimulatedDisk::pwrite(int file, const void* data, std::size_t bytes, off_t offset) {
  const ssize_t written = system_file_calls().pwrite(file, data, bytes, offset);
  if (const auto found = descriptors_.find(file); written > 0 && found != descriptors_.end())
    overwrite(*found->second.node, static_cast<std::uint64_t>(offset), data,
              static_cast<std::size_t>(written));
  return written;
}

void SimulatedDisk::sync(const NodePointer& node) {
  if (!node->is_folder) {
    node->durable_content = node->content;
    return;
  }
  node->durable_mode = node->mode;
  for (const Change& change : pending_)
    if (change.folder == node) apply(change, node->durable_entries);
  std::erase_if(pending_, [&](const Change& change) { return change.folder == node; });
}

void SimulatedDisk::sync(const fs::path& path) {
  if (const Place place = find(path.native()); place.node != nullptr) sync(place.node);
}

int SimulatedDisk::fsync(int file) {
  const auto found = descriptors_.find(file);
  if (found == descriptors_.end()) return system_file_calls().fsync(file);
  sync(found->second.node);
  return 0;
}

int SimulatedDisk::close(int file) {
  descriptors_.erase(file);
  return system_file_calls().close(file);
}

int SimulatedDisk::rename(const char* from, const char* to) {
  const Place before = find(from);
  const Place after = find(to);
  const int result = system_file_calls().rename(from, to);
  if (result != 0 || before.folder == nullptr) return result;
  if (before.folder != after.folder) throw std::logic_error("a rename from one folder to another");
  change({.folder = before.folder, .node = before.node, .from = before.name, .to = after.name});
  return result;
}

int SimulatedDisk::unlink(const char* path) {
  const Place place = find(path);
  const int result = system_file_calls().unlink(path);
  if (result == 0 && place.folder != nullptr)
    change({.folder = place.folder, .node = place.node, .from = place.name, .to = {}});
  return result;
}

int SimulatedDisk::mkdir(const char* path, mode_t mode) {
  const Place place = find(path);
  const int result = system_file_calls().mkdir(path, mode);
  if (result != 0 || place.folder == nullptr) return result;
  const auto node = std::make_shared<Node>();
  node->is_folder = true;
  node->mode = node->durable_mode = mode_of(path);
  change({.folder = place.folder, .node = node, .from = {}, .to = place.name});
  return result;
}

int SimulatedDisk::chmod(const char* path, mode_t mode) {
  const int result = system_file_calls().chmod(path, mode);
  if (const Place place = find(path); result == 0 && place.node != nullptr) place.node->mode = mode;
  return result;
}

bool SimulatedDisk::is_folder(int file) const {
  const auto found = descriptors_.find(file);
  return found != descriptors_.end() && found->second.node->is_folder;
}

std::string SimulatedDisk::name_of(int file) const {
  const auto found = descriptors_.find(file);
  return found == descriptors_.end() ? "(outside)" : found->second.name;
}

std::string SimulatedDisk::shown(const char* path) const {
  if (std::string_view(path) == root_.native()) return "(root)";
  return is_inside(path) ? fs::path(path).filename().native() : "(outside)";
}

Bytes SimulatedDisk::torn(const Node& node, Draws& draws) {
  const Bytes& before = node.durable_content;
  const Bytes& now = node.content;
  const std::size_t kind = draws.below(4);
  if (kind == 0 || before == now) return before;
  if (kind == 1) return now;
  // Nothing in the product makes a file shorter.
  const std::size_t shortest = std::min(before.size(), now.size());
  const std::size_t size =
      kind == 2 ? now.size() : shortest + draws.below(std::max(before.size(), now.size()) - shortest + 1);
  Bytes left = before;
  left.resize(size);
  const std::size_t kept = 1 + draws.below(8);  // of eight sectors
  for (std::size_t first = 0; first < std::min(size, now.size()); first += sector_bytes)
    if (draws.below(8) < kept)
      std::memcpy(left.data() + first, now.data() + first,
                  std::min(sector_bytes, std::min(size, now.size()) - first));
  return left;
}

void SimulatedDisk::settle(Node& node, Draws& draws) {
  if (!node.is_folder) {
    node.content = torn(node, draws);
    node.durable_content = node.content;
    return;
  }
  if (node.mode != node.durable_mode && draws.one_in(2)) node.durable_mode = node.mode;
  node.mode = node.durable_mode;
  node.entries = node.durable_entries;
  for (const auto& [name, entry] : node.entries) settle(*entry, draws);
}

void SimulatedDisk::lose_power(Draws& draws) {
  if (!descriptors_.empty()) throw std::logic_error("a file is open after a power loss");
  std::vector<Change> happened;
  if (draws.one_in(2)) {
    happened.assign(pending_.begin(),
                    pending_.begin() + static_cast<std::ptrdiff_t>(draws.below(pending_.size() + 1)));
  } else {
    for (const Change& change : pending_)
      if (draws.one_in(2))
        happened.insert(happened.begin() + static_cast<std::ptrdiff_t>(draws.below(happened.size() + 1)),
                        change);
  }
  for (const Change& change : happened) {
    Entries& entries = change.folder->durable_entries;
    // Out of order a file may be created after it was renamed; it keeps one name.
    const bool is_there =
        std::ranges::any_of(entries, [&](const auto& entry) { return entry.second == change.node; });
    if (!change.from.empty() || !is_there) apply(change, entries);
  }
  pending_.clear();
  settle(*top_, draws);
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  write_real(*top_, root_);
}

void SimulatedDisk::write_real(const Node& node, const fs::path& path) const {
  for (const auto& [name, entry] : node.entries) {
    if (!entry->is_folder) {
      write_file(path / name, entry->content);
      continue;
    }
    fs::create_directory(path / name);
    system_file_calls().chmod((path / name).c_str(), entry->mode);
    write_real(*entry, path / name);
  }
}

void SimulatedDisk::make_folder(const std::string& path) {
  mkdir((root_ / path).c_str(), 0755);
  sync((root_ / path).parent_path());
}

void SimulatedDisk::put(const std::string& path, const Bytes& content) {
  remove(path);
  const Place place = find((root_ / path).native());
  const auto node = std::make_shared<Node>();
  node->content = node->durable_content = content;
  change({.folder = place.folder, .node = node, .from = {}, .to = place.name});
  sync(place.folder);
  write_file(root_ / path, content);
}

void SimulatedDisk::remove(const std::string& path) {
  if (find((root_ / path).native()).node == nullptr) return;
  unlink((root_ / path).c_str());
  sync((root_ / path).parent_path());
}

std::map<std::string, Bytes> SimulatedDisk::files() const {
  std::map<std::string, Bytes> all;
  const std::function<void(const Node&, const std::string&)> add = [&](const Node& node,
                                                                       const std::string& prefix) {
    for (const auto& [name, entry] : node.entries)
      if (entry->is_folder)
        add(*entry, prefix + name + "/");
      else
        all.emplace(prefix + name, entry->content);
  };
  add(*top_, "");
  return all;
}

std::string SimulatedDisk::difference() const {
  const std::map<std::string, Bytes> expected = files();
  std::set<std::string> real;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_directory()) continue;
    const std::string name = entry.path().lexically_relative(root_).native();
    real.insert(name);
    const auto found = expected.find(name);
    if (found == expected.end()) return name + " was made by another call";
    if (read_real(entry.path()) != found->second) return name + " was changed by another call";
  }
  for (const auto& [name, content] : expected)
    if (!real.contains(name)) return name + " was removed by another call";
  return "";
}

}  // namespace nearwise::plan::simulation
