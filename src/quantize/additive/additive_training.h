// Training of additive quantizers: codewords and codes in alternation. Arguments have been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/additive_quantizer.h"

namespace nearwise::quantize {

struct AdditiveTraining {
  const char* operation = "";
  std::size_t codebooks = 1;
  std::size_t rounds = 0;
  std::size_t iterations = 1;
};

struct TrainedCodebooks {
  std::vector<float> codewords;  // [codebooks, 256, dim]
  std::vector<float> norms;      // [256], ascending
};

// As cluster::training_cost().
double additive_training_cost(const RowsView& rows, const AdditiveTraining& training);

// Lower bound of the memory charged to the budget.
std::uint64_t additive_training_bytes(const Context& context, const RowsView& rows,
                                      const AdditiveTraining& training);

TrainedCodebooks train_additive_codebooks(const Context& context, const RowsView& rows,
                                          const AdditiveTraining& training);

}  // namespace nearwise::quantize
