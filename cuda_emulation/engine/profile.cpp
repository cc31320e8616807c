#include "cuda_emulation/engine/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace cuda_emulation {
namespace {

constexpr std::size_t max_buffered_requests = 1'000'000;
constexpr std::uint64_t sector_bytes = 32;
constexpr std::size_t widest_access = 16;

struct Site {
  bool shared;
  bool writes;
  std::size_t bytes;
  std::uint64_t requests = 0;
  std::uint64_t cost = 0;
  std::uint64_t min_cost = 0;
};

struct Request {
  std::array<std::uint64_t, 32> addresses = {};
  unsigned lanes = 0;
  std::size_t bytes = 0;
};

std::map<const void*, Site> sites;
std::map<std::tuple<const void*, unsigned, unsigned>, Request> requests;  // code, warp, occurrence
std::map<std::pair<const void*, unsigned>, unsigned> occurrences;         // code, thread

// 8-byte accesses are served half a warp at a time, 16-byte accesses a quarter. Each such phase takes as many
// cycles as the busiest bank has distinct words.
void add_shared(Site& site, const Request& request) {
  const auto phases = static_cast<unsigned>(std::max<std::size_t>(1, request.bytes / 4));
  const unsigned lanes = 32 / phases;
  for (unsigned phase = 0; phase < phases; ++phase) {
    std::array<std::set<std::uint64_t>, 32> banks;
    for (unsigned lane = phase * lanes; lane < (phase + 1) * lanes; ++lane) {
      if ((request.lanes >> lane & 1u) == 0) continue;
      for (unsigned word = 0; word < phases; ++word) {
        const std::uint64_t address = request.addresses[lane] / 4 + word;
        banks[address % 32].insert(address);
      }
    }
    std::size_t busiest = 0;
    for (const auto& bank : banks) busiest = std::max(busiest, bank.size());
    site.cost += busiest;
    site.min_cost += busiest > 0;
  }
}

void add_global(Site& site, const Request& request) {
  std::set<std::uint64_t> sectors;
  std::set<std::uint64_t> addresses;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((request.lanes >> lane & 1u) == 0) continue;
    const std::uint64_t first = request.addresses[lane];
    sectors.insert(first / sector_bytes);
    sectors.insert((first + request.bytes - 1) / sector_bytes);
    addresses.insert(first);
  }
  site.cost += sectors.size();
  site.min_cost += (addresses.size() * request.bytes + sector_bytes - 1) / sector_bytes;
}

void count_requests() {
  for (const auto& [key, request] : requests) {
    Site& site = sites.at(std::get<0>(key));
    ++site.requests;
    site.shared ? add_shared(site, request) : add_global(site, request);
  }
  requests.clear();
  occurrences.clear();
}

}  // namespace

void profile_access(const CheckedAccess& access, const Region& region, const Thread& thread) {
  if (access.bytes > widest_access) return;
  const bool shared = region.device == shared_memory;
  sites.try_emplace(access.code, Site{shared, access.writes, access.bytes});
  const unsigned occurrence = occurrences[{access.code, thread.index}]++;
  Request& request = requests[{access.code, thread.index / 32, occurrence}];
  request.bytes = access.bytes;
  request.lanes |= 1u << thread.lane;
  request.addresses[thread.lane] =
      shared ? static_cast<std::uint64_t>(access.address - region.begin)
             : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(access.address));
  if (requests.size() > max_buffered_requests) count_requests();
}

void print_profile() {
  count_requests();
  fmt::print("{:<7} {:<6} {:>5} {:>10} {:>13} {:>6}  source\n", "space", "access", "bytes", "requests",
             "cost/request", "least");
  for (const auto& entry : sites) {
    const Site& site = entry.second;
    const auto per_request = [&](std::uint64_t cost) {
      return static_cast<double>(cost) / static_cast<double>(site.requests);
    };
    fmt::print("{:<7} {:<6} {:>5} {:>10} {:>13.2f} {:>6.2f}  {}\n", site.shared ? "shared" : "global",
               site.writes ? "write" : "read", site.bytes, site.requests, per_request(site.cost),
               per_request(site.min_cost), source_line(entry.first));
  }
}

}  // namespace cuda_emulation
