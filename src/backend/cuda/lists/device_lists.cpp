#include "backend/cuda/lists/device_lists.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"
#include "core/lost_pages.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t max_piece_rows = 65536;  // copied at a time
constexpr std::size_t target_piece_bytes = std::size_t{16} << 20;

struct ListRange {
  std::size_t list = 0;
  std::size_t first = 0;  // row of the list
  std::size_t rows = 0;
  std::size_t to = 0;  // row of the piece
};

std::size_t padded(std::size_t rows) { return round_up<std::size_t>(rows, interleaved_rows); }

// Copies pieces of consecutive rows, which the host gathers.
class ListUpload {
 public:
  ListUpload(const CudaStream& stream, const PrepareListsArgs& args, DeviceLists& to)
      : stream_(stream),
        args_(args),
        to_(to),
        piece_rows_(std::min(
            padded(std::max<std::size_t>(to.rows, 1)),
            std::clamp(target_piece_bytes / (row_bytes() + sizeof(Id)) / interleaved_rows * interleaved_rows,
                       std::size_t{interleaved_rows}, max_piece_rows))),
        host_codes_(stream.budget(), piece_rows_ * to.code_bytes),
        host_ids_(stream.budget(), piece_rows_),
        host_vectors_(stream.budget(), piece_rows_ * to.vector_bytes),
        codes_(stream, to.is_flat ? 0 : piece_rows_ * to.code_bytes, prepare_lists_name),
        lists_(stream, to.is_flat ? 0 : piece_rows_ / interleaved_rows, prepare_lists_name),
        decoded_(stream, to.is_flat || to.scans_codes ? 0 : piece_rows_ * to.dim, prepare_lists_name),
        summary_(stream, to.scans_codes ? 0 : 1, prepare_lists_name),
        host_lists_(piece_rows_ / interleaved_rows) {
    if (!to.scans_codes)
      copy_to_device(stream_, std::span<const PackedSummary>(&packed_, 1), summary_.data(),
                     prepare_lists_name);
  }

  void run() {
    std::vector<ListRange> ranges;
    std::size_t filled = 0;
    for (std::size_t list = 0; list < args_.lists.size(); ++list) {
      const std::size_t rows = args_.lists[list].rows;
      for (std::size_t first = 0; first < rows;) {
        const std::size_t count = std::min(rows - first, piece_rows_ - filled);
        ranges.push_back({list, first, count, filled});
        first += count;
        filled += padded(count);
        if (filled == piece_rows_) send(ranges, std::exchange(filled, 0));
      }
    }
    send(ranges, filled);
    if (to_.scans_codes) return;
    fetch(stream_, summary_.data(), std::span(&packed_, 1), prepare_lists_name);
    to_.longest_row = longest_of(packed_);
  }

 private:
  std::size_t row_bytes() const { return std::max({to_.code_bytes, to_.vector_bytes, std::size_t{1}}); }

  void gather(const ListRange& range) {
    const ListView& list = args_.lists[range.list];
    const std::size_t code_bytes = to_.code_bytes;
    const std::size_t padding = padded(range.rows) - range.rows;
    std::byte* const codes = host_codes_.data() + range.to * code_bytes;
    std::memcpy(codes, list.codes + range.first * code_bytes, range.rows * code_bytes);
    std::memset(codes + range.rows * code_bytes, 0, padding * code_bytes);
    std::copy_n(list.ids + range.first, range.rows, host_ids_.data() + range.to);
    std::fill_n(host_ids_.data() + range.to + range.rows, padding, no_id);
    std::fill_n(host_lists_.data() + range.to / interleaved_rows, padded(range.rows) / interleaved_rows,
                static_cast<std::uint32_t>(range.list));
    if (to_.vector_bytes == 0) return;
    std::byte* const vectors = host_vectors_.data() + range.to * to_.vector_bytes;
    for (std::size_t i = 0; i < range.rows; ++i) {
      std::byte* const out = vectors + i * to_.vector_bytes;
      const std::byte* const vector =
          args_.kept.read(list.vectors + list.vector_row(range.first + i) * args_.kept.bytes, out);
      if (vector != out) std::memcpy(out, vector, to_.vector_bytes);
    }
    std::memset(vectors + range.rows * to_.vector_bytes, 0, padding * to_.vector_bytes);
  }

  void send(std::vector<ListRange>& ranges, std::size_t rows) {
    if (rows == 0) return;
    stream_.context.cancel.check();
    stream_.context.threads->for_each(ranges.size(), [&](std::size_t i) { gather(ranges[i]); });
    ranges.clear();
    const auto copy = [&]<typename T>(const T* from, std::size_t count, T* to) {
      copy_to_device(stream_, std::span<const T>(from, count), to, prepare_lists_name);
    };
    copy(host_ids_.data(), rows, to_.ids.data() + first_);
    if (to_.vector_bytes != 0)
      copy(host_vectors_.data(), rows * to_.vector_bytes, to_.vectors.data() + first_ * to_.vector_bytes);
    if (to_.is_flat) {
      copy(host_codes_.data(), rows * to_.code_bytes, to_.raw.data() + first_ * to_.code_bytes);
      pack(to_.raw.data() + first_ * to_.code_bytes, to_.code_bytes, rows);
    } else {
      copy(host_codes_.data(), rows * to_.code_bytes, codes_.data());
      copy(host_lists_.data(), rows / interleaved_rows, lists_.data());
      encode(rows);
    }
    first_ += rows;
  }

  void encode(std::size_t rows) {
    const std::size_t words = words_of_code(to_.code_bytes);
    const CodeRowsTask task = {.codes = reinterpret_cast<const std::uint8_t*>(codes_.data()),
                               .lists = lists_.data(),
                               .centroids = to_.centroids.data(),
                               .rows = static_cast<std::uint32_t>(rows),
                               .code_bytes = static_cast<std::uint32_t>(to_.code_bytes),
                               .books = to_.books.view()};
    launch_interleave_codes(stream_.handle(), task, static_cast<std::uint32_t>(words),
                            to_.interleaved.data() + first_ * words);
    if (to_.half_norms.size() != 0)
      launch_half_norms(stream_.handle(), task, to_.centre.data(), to_.half_norms.data() + first_);
    if (to_.scans_codes) return;
    launch_decode_rows(stream_.handle(), task, decoded_.data());
    pack(reinterpret_cast<const std::byte*>(decoded_.data()), to_.dim * sizeof(float), rows);
  }

  void pack(const std::byte* from, std::size_t stride_bytes, std::size_t rows) {
    launch_pack_rows(stream_.handle(), to_.type, Encoding::f32,
                     {.rows = from,
                      .stride_bytes = stride_bytes,
                      .count = rows,
                      .dim = static_cast<std::uint32_t>(to_.dim),
                      .width = static_cast<std::uint32_t>(to_.packed_width),
                      .centre = to_.centre.data(),
                      .normalise = to_.metric == Metric::cosine,
                      .bias = is_euclidean(to_.metric) ? Bias::half_norm : Bias::none,
                      .out = reinterpret_cast<std::byte*>(to_.packed.data() + first_ * to_.packed_width),
                      .summary = summary_.data()});
  }

  const CudaStream& stream_;
  const PrepareListsArgs& args_;
  DeviceLists& to_;
  const std::size_t piece_rows_;  // a multiple of 32
  std::size_t first_ = 0;         // of the next piece
  Buffer<std::byte> host_codes_;
  Buffer<Id> host_ids_;
  Buffer<std::byte> host_vectors_;
  DeviceBuffer<std::byte> codes_;
  DeviceBuffer<std::uint32_t> lists_;
  DeviceBuffer<float> decoded_;
  DeviceBuffer<PackedSummary> summary_;
  PackedSummary packed_ = {.first_bad_row = max_piece_rows};
  std::vector<std::uint32_t> host_lists_;
};

}  // namespace

DeviceLists::DeviceLists(const CudaStream& stream, const PrepareListsArgs& args)
    : metric(args.metric),
      type(args.codec.type),
      dim(args.codec.dim),
      code_bytes(args.codec.code_bytes),
      is_flat(args.codec.is_flat()),
      scans_codes(gpu::scans_codes(args.codec, args.metric)),
      bits(args.codec.bits),
      parts(is_flat ? 0 : args.codec.parts()),
      centroid_rows(args.lists.size()),
      packed_width(scans_codes ? 0 : gpu::packed_width(args.metric, dim, Encoding::f32)),
      vector_bytes(args.kept.any() ? args.kept.read_bytes() : 0),
      vector_type(args.kept.type) {
  std::vector<std::size_t> lengths;
  std::vector<std::uint32_t> starts;
  std::vector<std::uint32_t> list_sizes;
  for (const ListView& list : args.lists) {
    lengths.push_back(list.rows);
    starts.push_back(static_cast<std::uint32_t>(rows));
    list_sizes.push_back(static_cast<std::uint32_t>(list.rows));
    rows += padded(list.rows);
  }
  if (rows >= no_located_row)
    fail(ErrorCode::unsupported, "{}: a device keeps at most {} rows with those that fill lists, got {}",
         prepare_lists_name, no_located_row - 1, rows);
  std::ranges::sort(lengths, std::greater<>());
  longest = lengths.empty() ? 0 : static_cast<std::uint32_t>(lengths.front());
  most_columns_.push_back(0);
  for (const std::size_t length : lengths) most_columns_.push_back(most_columns_.back() + length);
  if (is_euclidean(metric)) host_centre.assign(args.centre.begin(), args.centre.end());
  if (scans_codes) bound.emplace(args.codec, metric, host_centre, std::span<const double>());

  const std::size_t words = is_flat ? 0 : words_of_code(code_bytes);
  const bool has_norms = scans_codes && is_euclidean(metric);
  const std::size_t book_size = is_flat ? 0 : args.codec.codewords.size();
  bytes_ =
      device_bytes(host_centre.size(), sizeof(float)) + device_bytes(centroid_rows * dim, sizeof(float)) +
      2 * device_bytes(centroid_rows, sizeof(std::uint32_t)) + device_bytes(rows, sizeof(Id)) +
      device_bytes(is_flat ? rows * code_bytes : 0, 1) + device_bytes(rows * words, sizeof(std::uint32_t)) +
      device_bytes(has_norms ? rows : 0, sizeof(float)) + device_bytes(rows * packed_width, sizeof(float)) +
      device_bytes(rows * vector_bytes, 1);
  MemoryBudget& budget = stream.budget();
  if (bytes_ > budget.available())
    fail(ErrorCode::out_of_memory, "{}: the lists take {} of memory on {}, the memory limit leaves {}",
         prepare_lists_name, format_bytes(bytes_), name(stream.context.place),
         format_bytes(budget.available()));
  const auto allocate = [&]<typename T>(DeviceBuffer<T>& buffer, std::size_t size) {
    buffer = DeviceBuffer<T>(stream, size, prepare_lists_name);
  };
  allocate(centre, host_centre.size());
  allocate(centroids, centroid_rows * dim);
  allocate(first_rows, centroid_rows);
  allocate(sizes, centroid_rows);
  allocate(ids, rows);
  allocate(raw, is_flat ? rows * code_bytes : 0);
  allocate(interleaved, rows * words);
  allocate(half_norms, has_norms ? rows : 0);
  allocate(packed, rows * packed_width);
  allocate(vectors, rows * vector_bytes);
  if (book_size != 0)
    books = args.codec.encoding == ListEncoding::lsq
                ? CodebooksOnDevice(stream, args.codec.codewords, dim, prepare_lists_name)
                : CodebooksOnDevice(stream, args.codec.codewords, args.codec.part_begins, bits,
                                    prepare_lists_name);
  copy_to_device(stream, std::span<const float>(host_centre), centre.data(), prepare_lists_name);
  copy_rows_to_device(stream, args.codec.centroids, reinterpret_cast<std::byte*>(centroids.data()));
  copy_to_device(stream, std::span<const std::uint32_t>(starts), first_rows.data(), prepare_lists_name);
  copy_to_device(stream, std::span<const std::uint32_t>(list_sizes), sizes.data(), prepare_lists_name);
  if (rows != 0) ListUpload(stream, args, *this).run();
  // Searches on other streams read it, and none that comes later would notice a lost page.
  stream.synchronize(prepare_lists_name);
  check_lost_pages();
}

std::unique_ptr<PreparedLists> prepare_lists(Stream& stream, const PrepareListsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  return std::make_unique<DeviceLists>(cuda, args);
}

}  // namespace nearwise::gpu
