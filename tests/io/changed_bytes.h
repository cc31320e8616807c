// Damage and attacks that every reader of a container must stand: bytes changed one at a time, and checksums
// made right again.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <vector>

#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "nearwise/error.h"

namespace nearwise::testing_io {

// use(path) loads a file and looks at what it got. Every `step`-th byte is changed in turn: the file is
// refused, and with right checksums it is refused by a fitting error, or holds something that works (text of
// the metadata may have become another valid text).
template <typename Use>
void expect_changes_found_or_harmless(const std::filesystem::path& path, std::size_t step, const Use& use) {
  const std::vector<std::byte> good = read_all(path);
  const std::filesystem::path changed = path.parent_path() / "changed.nw";
  std::size_t refused = 0;
  for (std::size_t place = 0; place < good.size(); place += step) {
    std::vector<std::byte> bad = good;
    bad[place] ^= std::byte{64};
    write_all(changed, bad);
    EXPECT_THROW(use(changed), Error) << place;
    reseal(bad);
    write_all(changed, bad);
    try {
      use(changed);
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported ||
                  error.code() == ErrorCode::invalid_argument)
          << place << ": " << error.what();
    }
  }
  EXPECT_GT(refused, 0U);  // of structural checks there is at least one
}

}  // namespace nearwise::testing_io
