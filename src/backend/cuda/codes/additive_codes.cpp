// Additive encoding, after Martinez, Hoos, Little, "Solving multi-codebook quantization in the GPU", 2018:
// tables by matrix products, then a search with each row's own entries in shared memory and the pair tables,
// which all rows share, in global memory. Codes are the CPU's: table entries have the same integers, costs
// are summed in the same order.
#include <algorithm>
#include <limits>
#include <memory>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/codes/additive_entries.h"
#include "backend/cuda/kernels/codes/additive_rows.h"
#include "backend/cuda/kernels/codes/search_codes.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_tiles.h"
#include "backend/cuda/tuning/exact_search.h"
#include "codes/additive_codewords.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* operation = "additive_codes";

// Tables shared by all rows.
class Tables {
 public:
  Tables(const CudaStream& stream, const AdditiveCodewords& host)
      : offset_(stream, host.dim(), operation),
        codewords_(stream, host.codewords().size(), operation),
        columns_(stream, host.columns().size(), operation),
        norms_(stream, host.norms().size(), operation),
        scales_(stream, host.scales().size(), operation),
        pairs_(stream, AdditiveCodewords::pair_entries(host.count()), operation) {
    copy_to_device(stream, host.offset(), offset_.data(), operation);
    copy_to_device(stream, host.codewords(), codewords_.data(), operation);
    copy_to_device(stream, host.columns(), columns_.data(), operation);
    copy_to_device(stream, host.norms(), norms_.data(), operation);
    copy_to_device(stream, host.scales(), scales_.data(), operation);
    view_ = {.dim = static_cast<std::uint32_t>(host.dim()),
             .width = static_cast<std::uint32_t>(host.width()),
             .books = static_cast<std::uint32_t>(host.count()),
             .codewords = codewords_.data(),
             .columns = columns_.data(),
             .norms = norms_.data(),
             .scales = scales_.data()};
    launch_pair_entries(stream.handle(), view_, pairs_.data());
  }
  static std::uint64_t bytes(const AdditiveCodebooks& codebooks) {
    const std::size_t codewords = codebooks.count * additive_codebook_size;
    return device_bytes(codebooks.dim, sizeof(double)) +
           device_bytes(codewords * AdditiveCodewords::width_of(codebooks.dim), sizeof(float)) +
           device_bytes(codewords * codebooks.dim, sizeof(float)) + device_bytes(codewords, sizeof(float)) +
           device_bytes(codebooks.count, sizeof(float)) +
           device_bytes(AdditiveCodewords::pair_entries(codebooks.count), sizeof(std::int16_t));
  }

  const DeviceAdditiveCodewords& codewords() const { return view_; }
  const double* offset() const { return offset_.data(); }
  const std::int16_t* pairs() const { return pairs_.data(); }

 private:
  DeviceBuffer<double> offset_;
  DeviceBuffer<float> codewords_;
  DeviceBuffer<float> columns_;
  DeviceBuffer<float> norms_;
  DeviceBuffer<float> scales_;
  DeviceBuffer<std::int16_t> pairs_;
  DeviceAdditiveCodewords view_;
};

// Encodes rows tile by tile.
class Encoder {
 public:
  Encoder(const CudaStream& stream, const AdditiveCodewords& codewords, const AdditiveCodesArgs& args,
          std::size_t tile_rows)
      : stream_(stream),
        codewords_(codewords),
        args_(args),
        tables_(stream, codewords),
        tiles_(stream, args.rows, tile_rows, operation),
        values_(stream, tile_rows * codewords.width(), operation),
        shrinks_(stream, tile_rows, operation),
        keys_(stream, tile_rows, operation),
        own_(stream, tile_rows * codewords.count() * additive_codebook_size, operation),
        codes_(stream, tile_rows * codewords.count(), operation) {}
  static std::uint64_t bytes(const AdditiveCodebooks& codebooks, std::size_t element_bytes,
                             std::size_t tile_rows) {
    return Tables::bytes(codebooks) + RowTiles::bytes(codebooks.dim, element_bytes, tile_rows) +
           device_bytes(tile_rows * AdditiveCodewords::width_of(codebooks.dim), sizeof(float)) +
           device_bytes(tile_rows, sizeof(double)) + device_bytes(tile_rows, sizeof(std::uint64_t)) +
           device_bytes(tile_rows * codebooks.count * additive_codebook_size, sizeof(std::int16_t)) +
           device_bytes(tile_rows * codebooks.count, 1);
  }

  void run() {
    for (std::size_t first = 0; first < args_.rows.rows(); first += tiles_.tile_rows()) {
      const std::size_t count = std::min(tiles_.tile_rows(), args_.rows.rows() - first);
      load(first, count);
      search(count);
      copy_rows(stream_.handle(), args_.codes.row(first).data(), args_.codes.stride(), codes_.data(),
                codewords_.count(), codewords_.count(), count, cudaMemcpyDeviceToHost, operation);
      stream_.synchronize(operation);
      if (args_.progress != nullptr) args_.progress->add(count);
    }
  }

 private:
  void load(std::size_t first, std::size_t count) {
    launch_additive_rows(stream_.handle(), {.rows = tiles_.load(first, count),
                                            .count = static_cast<std::uint32_t>(count),
                                            .dim = tables_.codewords().dim,
                                            .offset = tables_.offset(),
                                            .unit = codewords_.unit(),
                                            .longest = codewords_.longest(),
                                            .width = tables_.codewords().width,
                                            .values = values_.data(),
                                            .shrinks = shrinks_.data(),
                                            .keys = keys_.data()});
    launch_own_entries(stream_.handle(), tables_.codewords(),
                       {.values = values_.data(),
                        .shrinks = shrinks_.data(),
                        .count = static_cast<std::uint32_t>(count),
                        .out = own_.data()});
  }

  // Each launch resumes from the best codes of the previous one.
  void search(std::size_t count) {
    for (std::size_t first = 0; first < args_.iterations; first += tuning::iterations_per_launch) {
      stream_.context.cancel.check();
      const std::size_t end = std::min(args_.iterations, first + tuning::iterations_per_launch);
      launch_search_codes(stream_.handle(), {.own = own_.data(),
                                             .pairs = tables_.pairs(),
                                             .values = values_.data(),
                                             .codewords = tables_.codewords().codewords,
                                             .keys = keys_.data(),
                                             .count = static_cast<std::uint32_t>(count),
                                             .books = tables_.codewords().books,
                                             .width = tables_.codewords().width,
                                             .first_iteration = static_cast<std::uint32_t>(first),
                                             .end_iteration = static_cast<std::uint32_t>(end),
                                             .rounds = static_cast<std::uint32_t>(std::min<std::size_t>(
                                                 args_.rounds, std::numeric_limits<std::uint32_t>::max())),
                                             .perturbed = static_cast<std::uint32_t>(args_.perturbed),
                                             .seed = args_.seed,
                                             .starts = first == 0,
                                             .codes = codes_.data()});
      if (end != args_.iterations) stream_.synchronize(operation);
    }
  }

  const CudaStream& stream_;
  const AdditiveCodewords& codewords_;
  const AdditiveCodesArgs& args_;
  const Tables tables_;
  RowTiles tiles_;
  DeviceBuffer<float> values_;        // [tile rows, width]
  DeviceBuffer<double> shrinks_;      // [tile rows]
  DeviceBuffer<std::uint64_t> keys_;  // [tile rows]
  DeviceBuffer<std::int16_t> own_;    // [tile rows, codebooks, 256]
  DeviceBuffer<std::uint8_t> codes_;  // [tile rows, codebooks]
};

}  // namespace

std::uint64_t additive_codes_bytes(const Stream&, const AdditiveCodebooks& codebooks) {
  return AdditiveCodewords::bytes(codebooks.dim, codebooks.count) +
         Encoder::bytes(codebooks, sizeof(float), tuning::min_coded_rows);
}

void additive_codes(Stream& stream, const AdditiveCodesArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  if (args.rows.rows() == 0) return;
  const AdditiveCodewords codewords(cuda.budget(), args.codebooks.dim, args.codebooks.count,
                                    args.codebooks.codewords);
  const auto bytes = [&](std::size_t tile_rows) {
    return Encoder::bytes(args.codebooks, element_size(args.rows.type()), tile_rows);
  };
  const auto encoder =
      with_working_memory(cuda, bytes(1), Tables::bytes(args.codebooks) + tuning::target_working_bytes, 0,
                          [&](std::uint64_t available) {
                            return std::make_unique<Encoder>(
                                cuda, codewords, args, choose_tile_rows(args.rows.rows(), available, bytes));
                          });
  encoder->run();
}

}  // namespace nearwise::gpu
