#include "quantize/product/train_codebooks.h"

#include <algorithm>
#include <cstring>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::quantize {
namespace {

// A contiguous copy of one part of all rows: k-means reads it dozens of times, and in whole rows a part uses
// only a few bytes of each cache line.
class PartRows {
 public:
  PartRows(const Context& context, const RowsView& rows, const Codebooks& shape)
      : context_(context), rows_(rows), shape_(shape), values_(*context.state().budget, bytes(rows, shape)) {}

  // The first part is the longest.
  static std::size_t bytes(const RowsView& rows, const Codebooks& shape) {
    return rows.rows() * shape.length(0) * element_size(rows.type());
  }
  // A view with the shape of a part, for cost estimates.
  static RowsView like(const RowsView& rows, const Codebooks& shape, std::size_t part) {
    return {rows.data(), rows.type(), rows.rows(), shape.length(part),
            shape.length(part) * element_size(rows.type())};
  }

  RowsView take(std::size_t part) {
    const std::size_t part_bytes = shape_.length(part) * element_size(rows_.type());
    const std::size_t offset = shape_.begin(part) * element_size(rows_.type());
    context_.state().threads->for_each(divide_up(rows_.rows(), task_rows), [&](std::size_t task) {
      context_.state().cancel.check();
      const std::size_t end = std::min(rows_.rows(), (task + 1) * task_rows);
      for (std::size_t row = task * task_rows; row < end; ++row)
        std::memcpy(values_.data() + row * part_bytes, rows_.row(row) + offset, part_bytes);
    });
    return {values_.data(), rows_.type(), rows_.rows(), shape_.length(part), part_bytes};
  }

 private:
  static constexpr std::size_t task_rows = 8192;

  const Context& context_;
  const RowsView rows_;
  const Codebooks& shape_;
  Buffer<std::byte> values_;
};

KMeansOptions options_of(const CodebookTraining& training, std::size_t part) {
  KMeansOptions options = {.iterations = training.iterations};
  if (!training.initial.empty()) {
    Codebooks start = training.shape;
    start.codewords = training.initial;
    options.initial = MatrixView<const float>(start.of(part).data(), start.count(), start.length(part));
  }
  return options;
}

std::uint64_t result_bytes(const Codebooks& shape) {
  return buffer_bytes(checked_multiply(shape.dim, shape.count(), "codebooks"), sizeof(float));
}

}  // namespace

double training_cost(const RowsView& rows, const CodebookTraining& training) {
  double cost = 0;
  for (std::size_t part = 0; part < training.shape.parts; ++part)
    cost += cluster::training_cost(PartRows::like(rows, training.shape, part), training.shape.count(),
                                   options_of(training, part));
  return cost;
}

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const CodebookTraining& training) {
  // The first part is the longest, the last the shortest.
  const auto of_part = [&](std::size_t part) {
    return cluster::training_bytes(context, PartRows::like(rows, training.shape, part),
                                   training.shape.count(), options_of(training, part));
  };
  return result_bytes(training.shape) + buffer_bytes(PartRows::bytes(rows, training.shape), 1) +
         std::max(of_part(0), of_part(training.shape.parts - 1));
}

std::vector<float> train_codebooks(const Context& context, const RowsView& rows,
                                   const CodebookTraining& training) {
  const Codebooks& shape = training.shape;
  const Reservation reservation(*context.state().budget, result_bytes(shape));
  std::vector<float> codewords(shape.dim * shape.count());
  PartRows part_rows(context, rows, shape);
  Stages stages(context, "ProductQuantizer::train");
  for (std::size_t part = 0; part < shape.parts; ++part) {
    const KMeans trained = cluster::train(stages.next(1, static_cast<double>(shape.parts - part - 1)),
                                          part_rows.take(part), shape.count(), options_of(training, part));
    std::copy_n(trained.centroids.data(), shape.count() * shape.length(part),
                codewords.begin() + static_cast<std::ptrdiff_t>(shape.begin(part) * shape.count()));
  }
  stages.finish();
  return codewords;
}

}  // namespace nearwise::quantize
