// nearwise::OptimizedProductQuantizer for Python.
#include "nearwise/quantize/optimized_product_quantizer.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

OptimizedProductQuantizer train_optimized(const BorrowedRows& rows, std::uint64_t parts, unsigned bits,
                                          std::uint64_t iterations, std::uint64_t training_rows,
                                          std::uint64_t rounds, const Settings& settings,
                                          nb::handle progress) {
  const OptimizedProductQuantizerOptions options{.quantizer = {.parts = optional_of(parts),
                                                               .bits = bits,
                                                               .iterations = iterations,
                                                               .training_rows = optional_of(training_rows)},
                                                 .rounds = rounds};
  const Context context = context_for(settings);
  std::optional<OptimizedProductQuantizer> trained;
  run(context, progress, [&](const Context& own) {
    trained.emplace(OptimizedProductQuantizer::train(own, rows.view(), options));
  });
  return std::move(*trained);
}

}  // namespace

void bind_optimized_product_quantizer(nb::module_& module) {
  nb::class_<OptimizedProductQuantizer> bound(module, "OptimizedProductQuantizer",
                                              "A rotation and a product quantizer of rotated vectors.");
  bind_coding(bound);
  bind_file<OptimizedProductQuantizer, load_optimized_product_quantizer>(bound);
  bound
      .def_static("train", train_optimized, nb::arg("rows"), nb::arg("parts"), nb::arg("bits"),
                  nb::arg("iterations"), nb::arg("training_rows"), nb::arg("rounds"), nb::arg("settings"),
                  nb::arg("progress").none())
      .def(
          "__init__",
          [](OptimizedProductQuantizer* self, const Rotation& rotation, const ProductQuantizer& quantizer) {
            new (self) OptimizedProductQuantizer{rotation, quantizer};
          },
          nb::arg("rotation"), nb::arg("quantizer"))
      .def_prop_ro("rotation", [](const OptimizedProductQuantizer& both) { return both.rotation; })
      .def_prop_ro("quantizer", [](const OptimizedProductQuantizer& both) { return both.quantizer; });
}

}  // namespace nearwise::python
