// Additive encoding on the CPU: iterated conditional modes with perturbations (Martinez, Clement, Hoos,
// Little: Revisiting additive quantization, 2016; Martinez, Hoos, Little: Solving multi-codebook quantization
// in the GPU, 2018).
//
// A task encodes a batch of vectors. The outer loop is over codebooks: the pair tables of one codebook (0.9
// MB with 8 codebooks) stay in the L2 cache for all vectors of the batch.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/codes/additive_tables.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/rows_to_floats.h"
#include "codes/additive_codewords.h"
#include "codes/additive_draws.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// Vectors per batch: a larger batch amortizes loading the tables once per codebook; the minimum is for
// limited memory.
constexpr std::size_t max_rows = 2048;
constexpr std::size_t min_rows = 64;

// Encoder of one batch. Not thread-safe.
class Batch {
 public:
  Batch(CpuStream& cpu, const AdditiveTables& tables, const AdditiveCodesArgs& args, std::size_t rows)
      : cpu_(cpu),
        kernels_(additive_kernels(cpu.set)),
        tables_(tables),
        args_(args),
        values_(cpu.budget(), rows * tables.width()),
        own_(cpu.budget(), rows * tables.codebooks() * additive_codebook_size),
        codes_(cpu.budget(), rows * tables.codebooks()),
        best_(cpu.budget(), rows * tables.codebooks()),
        costs_(cpu.budget(), rows),
        best_costs_(cpu.budget(), rows),
        settled_(cpu.budget(), rows),
        keys_(cpu.budget(), rows) {}

  static std::uint64_t bytes(const AdditiveCodebooks& codebooks, std::size_t rows) {
    return buffer_bytes(rows * AdditiveCodewords::width_of(codebooks.dim), sizeof(float)) +
           buffer_bytes(rows * codebooks.count * additive_codebook_size, sizeof(std::int16_t)) +
           2 * buffer_bytes(rows * codebooks.count, 1) + 2 * buffer_bytes(rows, sizeof(float)) +
           buffer_bytes(rows, sizeof(std::uint32_t)) + buffer_bytes(rows, sizeof(std::uint64_t));
  }

  void encode(const RowsView& rows, const MatrixView<std::uint8_t>& codes) {
    count_ = rows.rows();
    load(rows);
    start();
    std::copy_n(codes_.data(), count_ * books(), best_.data());
    evaluate(best_costs_);
    for (std::size_t iteration = 0; iteration < args_.iterations; ++iteration) {
      cpu_.context.cancel.check();
      if (iteration != 0) perturb(iteration);
      descend();
      accept();
    }
    for (std::size_t row = 0; row < count_; ++row)
      std::copy_n(best_.data() + row * books(), books(), codes.row(row).data());
  }

 private:
  std::size_t books() const { return tables_.codebooks(); }
  const AdditiveCodewords& codewords() const { return tables_.codewords(); }
  float* values(std::size_t row) { return values_.data() + row * tables_.width(); }

  void load(const RowsView& rows) {
    std::vector<std::size_t> longer;
    for (std::size_t row = 0; row < count_; ++row) {
      load_row(rows, row);
      double squares = 0;
      for (std::size_t i = 0; i < rows.dim(); ++i)
        squares += static_cast<double>(values(row)[i]) * static_cast<double>(values(row)[i]);
      if (squares <= codewords().longest() * codewords().longest()) continue;
      longer.push_back(row);
      const double shrunk = codewords().longest() / std::sqrt(squares);
      for (std::size_t i = 0; i < rows.dim(); ++i)
        values(row)[i] = static_cast<float>(static_cast<double>(values(row)[i]) * shrunk);
    }
    for (std::size_t book = 0; book < books(); ++book)
      tables_.fill_own(kernels_, book, values_.data(), count_, own(book));
    // Costs are computed for the original vectors.
    for (const std::size_t row : longer) load_row(rows, row);
  }

  // Loads a vector minus the sum of the codebook means, scaled as the tables, and the key of its random
  // numbers, a hash of its elements.
  void load_row(const RowsView& rows, std::size_t row) {
    float* const out = values(row);
    rows_to_floats(rows.slice(row, 1), out);
    std::uint64_t key = rows.dim();
    for (std::size_t i = 0; i < rows.dim(); ++i) {
      key = with_element(key, out[i]);
      out[i] =
          static_cast<float>((static_cast<double>(out[i]) - codewords().offset()[i]) * codewords().unit());
    }
    std::fill(out + rows.dim(), out + tables_.width(), 0.0F);
    keys_[row] = key;
  }

  std::int16_t* own(std::size_t book) { return own_.data() + book * count_ * additive_codebook_size; }

  // Chooses the codes of one codebook given the others of [0, end).
  std::size_t choose(std::size_t book, std::size_t end) {
    std::size_t others[32];
    const std::int16_t* pairs[32];
    std::size_t other_count = 0;
    for (std::size_t other = 0; other < end; ++other) {
      if (other == book) continue;
      others[other_count] = other;
      pairs[other_count++] = tables_.pairs(book, other);
    }
    return kernels_.conditional_modes({.own = own(book),
                                       .codes = codes_.data(),
                                       .stride = books(),
                                       .count = count_,
                                       .code = book,
                                       .others = others,
                                       .tables = pairs,
                                       .other_count = other_count,
                                       .settled = settled_.data()});
  }

  // Initial codes by residual quantization: each codebook encodes the residual of those before it.
  void start() {
    std::fill_n(codes_.data(), count_ * books(), std::uint8_t{0});
    for (std::size_t book = 0; book < books(); ++book) {
      std::fill_n(settled_.data(), count_, std::uint32_t{0});
      choose(book, book);
    }
  }

  void descend() {
    std::fill_n(settled_.data(), count_, std::uint32_t{0});
    for (std::size_t round = 0; round < args_.rounds; ++round) {
      std::size_t chosen = 0;
      for (std::size_t book = 0; book < books(); ++book) chosen += choose(book, books());
      if (chosen == 0) return;
    }
  }

  // Replaces some codes of every vector by random ones, each with a fixed probability.
  void perturb(std::size_t iteration) {
    for (std::size_t row = 0; row < count_; ++row) {
      std::uint8_t* const codes = codes_.data() + row * books();
      std::size_t needed = args_.perturbed;
      PhiloxBlock draws = {};
      for (std::size_t book = 0; book < books() && needed != 0; ++book) {
        if (book % draws.size() == 0)
          draws = perturbation_draws(keys_[row], args_.seed, static_cast<std::uint32_t>(iteration),
                                     static_cast<std::uint32_t>(book / draws.size()));
        const std::uint32_t draw = draws[book % draws.size()];
        if (!is_perturbed(draw, static_cast<std::uint32_t>(books() - book),
                          static_cast<std::uint32_t>(needed)))
          continue;
        codes[book] = static_cast<std::uint8_t>(draw);
        --needed;
      }
    }
  }

  void evaluate(Buffer<float>& costs) {
    kernels_.costs({.rows = values_.data(),
                    .count = count_,
                    .width = tables_.width(),
                    .codewords = codewords().codewords().data(),
                    .codebooks = books(),
                    .codes = codes_.data(),
                    .costs = costs.data()});
  }

  // Keeps codes that lowered the cost; resets the others to the best so far.
  void accept() {
    evaluate(costs_);
    for (std::size_t row = 0; row < count_; ++row) {
      std::uint8_t* const codes = codes_.data() + row * books();
      std::uint8_t* const best = best_.data() + row * books();
      if (costs_[row] < best_costs_[row]) {
        best_costs_[row] = costs_[row];
        std::copy_n(codes, books(), best);
      } else {
        std::copy_n(best, books(), codes);
      }
    }
  }

  CpuStream& cpu_;
  const AdditiveKernels& kernels_;
  const AdditiveTables& tables_;
  const AdditiveCodesArgs& args_;
  std::size_t count_ = 0;
  Buffer<float> values_;      // [rows, width] minus the sum of the means
  Buffer<std::int16_t> own_;  // [codebooks, rows, 256]
  Buffer<std::uint8_t> codes_;
  Buffer<std::uint8_t> best_;
  Buffer<float> costs_;
  Buffer<float> best_costs_;
  Buffer<std::uint32_t> settled_;
  Buffer<std::uint64_t> keys_;
};

// Batch size that divides the vectors evenly among threads, within the limits above and the available memory.
std::size_t batch_rows(const CpuStream& cpu, const AdditiveCodebooks& codebooks, std::size_t rows) {
  const auto threads = static_cast<std::size_t>(cpu.threads().count());
  const std::uint64_t each = cpu.budget().available() / threads;
  std::size_t batch = max_rows;
  while (batch > min_rows && Batch::bytes(codebooks, batch) > each) batch /= 2;
  return std::clamp(divide_up(rows, threads), std::size_t{1}, batch);
}

}  // namespace

std::uint64_t additive_codes_bytes(const Stream& stream, const AdditiveCodebooks& codebooks) {
  return AdditiveTables::bytes(codebooks) +
         static_cast<std::uint64_t>(cpu_stream(stream).threads().count()) * Batch::bytes(codebooks, min_rows);
}

void additive_codes(Stream& stream, const AdditiveCodesArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const AdditiveTables tables(cpu, args.codebooks);
  const std::size_t size = batch_rows(cpu, args.codebooks, args.rows.rows());
  cpu.threads().for_each(divide_up(args.rows.rows(), size), [&](std::size_t task) {
    const std::size_t first = task * size;
    const std::size_t count = std::min(size, args.rows.rows() - first);
    Batch batch(cpu, tables, args, count);
    batch.encode(args.rows.slice(first, count), args.codes.slice(first, count));
    if (args.progress != nullptr) args.progress->add(count);
  });
}

}  // namespace nearwise::cpu
