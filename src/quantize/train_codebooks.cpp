#include "quantize/train_codebooks.h"

#include <algorithm>

#include "backend/context_state.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::quantize {
namespace {

RowsView part_of(const RowsView& rows, const Codebooks& shape, std::size_t part) {
  return {rows.data() + shape.begin(part) * element_size(rows.type()),
          rows.type(),
          rows.rows(),
          shape.length(part),
          rows.stride_bytes(),
          rows.place()};
}

KMeansOptions options_of(const CodebookTraining& training, std::size_t part) {
  KMeansOptions options = {.iterations = training.iterations};
  if (!training.initial.empty()) {
    Codebooks start = training.shape;
    start.words = training.initial;
    options.initial = MatrixView<const float>(start.of(part).data(), start.count(), start.length(part));
  }
  return options;
}

std::uint64_t result_bytes(const Codebooks& shape) {
  return buffer_bytes(checked_multiply(shape.dim, shape.count(), "codebooks"), sizeof(float));
}

}  // namespace

std::uint64_t training_pairs(const RowsView& rows, const CodebookTraining& training) {
  return std::uint64_t{rows.rows()} * training.shape.count() * training.shape.parts * training.iterations;
}

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const CodebookTraining& training) {
  // The first part is the longest, the last the shortest.
  const auto of_part = [&](std::size_t part) {
    return cluster::training_bytes(context, part_of(rows, training.shape, part), training.shape.count(),
                                   options_of(training, part));
  };
  return result_bytes(training.shape) + std::max(of_part(0), of_part(training.shape.parts - 1));
}

std::vector<float> train_codebooks(const Context& context, const RowsView& rows,
                                   const CodebookTraining& training, ProgressMeter& progress) {
  const Codebooks& shape = training.shape;
  const Reservation reservation(*context.state().budget, result_bytes(shape));
  std::vector<float> words(shape.dim * shape.count());
  for (std::size_t part = 0; part < shape.parts; ++part) {
    const KMeans trained = cluster::train(context, part_of(rows, shape, part), shape.count(),
                                          options_of(training, part), progress);
    std::copy_n(trained.centroids.data(), shape.count() * shape.length(part),
                words.begin() + static_cast<std::ptrdiff_t>(shape.begin(part) * shape.count()));
  }
  return words;
}

}  // namespace nearwise::quantize
