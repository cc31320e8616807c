#include "plan/graph/group_vectors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "plan/tasks/write_rows.h"

namespace nearwise::plan {

void write_vectors(const Context& context, const RowsView& block, std::size_t first_row,
                   std::span<const std::uint32_t> members, std::span<const std::uint64_t> group_ends,
                   ContainerWriter& writer) {
  Buffer<std::uint32_t> rows(*context.state().budget, members.size());
  std::ranges::copy(members, rows.data());
  std::vector<std::uint64_t> ends;
  std::uint64_t begin = 0;
  std::uint64_t kept = 0;
  for (const std::uint64_t end : group_ends) {
    std::sort(rows.data() + begin, rows.data() + end);
    kept = static_cast<std::uint64_t>(
        std::unique_copy(rows.data() + begin, rows.data() + end, rows.data() + kept) - rows.data());
    ends.push_back(kept);
    begin = end;
  }
  const auto all = rows.span().first(kept);
  writer.write_section("vector_ends", MatrixView<const std::uint64_t>(ends.data(), ends.size(), 1));
  writer.write_section("vector_rows", MatrixView<const std::uint32_t>(all.data(), all.size(), 1));
  const std::size_t row_bytes = block.dim() * element_size(block.type());
  writer.begin_section("vectors", container::Element::u8, {.columns = row_bytes});
  write_rows(context, writer, all.size(), row_bytes, [&](std::size_t i, std::byte* out) {
    std::memcpy(out, block.row(all[i] - first_row), row_bytes);
  });
}

GroupVectors::GroupVectors(const GraphWork& work, const ContainerReader& reader, std::size_t group) {
  const auto ends = reader.section("vector_ends").rows<std::uint64_t>();
  const std::uint64_t begin = group == 0 || group > ends.rows() ? 0 : ends(group - 1, 0);
  const std::uint64_t end = group < ends.rows() ? ends(group, 0) : 0;
  const SectionView all = reader.section("vector_rows");
  const SectionView bytes = reader.section("vectors");
  if (group >= ends.rows() || begin > end || end > all.info().rows || bytes.info().rows != all.info().rows ||
      bytes.info().columns != work.shape.row_bytes())
    fail(ErrorCode::corrupt, "{}: vectors {} to {} of {} expected in group {}", reader.source(), begin, end,
         bytes.info().rows, group);
  const auto numbers = all.rows<std::uint32_t>(begin, end - begin);
  rows = {numbers.data(), numbers.rows()};
  vectors = reinterpret_cast<const std::byte*>(bytes.rows<std::uint8_t>(begin, end - begin).data());
}

}  // namespace nearwise::plan
