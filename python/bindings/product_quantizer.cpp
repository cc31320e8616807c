// nearwise::ProductQuantizer for Python.
#include "nearwise/quantize/product_quantizer.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

ProductQuantizer train_product(const BorrowedRows& rows, std::uint64_t parts, unsigned bits,
                               std::uint64_t iterations, std::uint64_t training_rows,
                               const Settings& settings, nb::handle progress) {
  const ProductQuantizerOptions options{.parts = optional_of(parts),
                                        .bits = bits,
                                        .iterations = iterations,
                                        .training_rows = optional_of(training_rows)};
  const Context context = context_for(settings);
  std::optional<ProductQuantizer> trained;
  // Never brief: k-means takes long even with few vectors.
  run(context, progress,
      [&](const Context& own) { trained.emplace(ProductQuantizer::train(own, rows.view(), options)); });
  return std::move(*trained);
}

ProductQuantizer from_codebooks(std::uint64_t dim, std::uint64_t parts, unsigned bits,
                                const NumberList& codebooks) {
  return ProductQuantizer::from_codebooks(dim, parts, bits, span_of(codebooks));
}

}  // namespace

void bind_product_quantizer(nb::module_& module) {
  nb::class_<ProductQuantizer> bound(module, "ProductQuantizer", "A trained product quantizer.");
  bind_coding(bound);
  bind_file<ProductQuantizer, load_product_quantizer>(bound);
  bound
      .def_static("train", train_product, nb::arg("rows"), nb::arg("parts"), nb::arg("bits"),
                  nb::arg("iterations"), nb::arg("training_rows"), nb::arg("settings"),
                  nb::arg("progress").none())
      .def_static("from_codebooks", from_codebooks, nb::arg("dim"), nb::arg("parts"), nb::arg("bits"),
                  nb::arg("codebooks"))
      .def_prop_ro("dim", &ProductQuantizer::dim)
      .def_prop_ro("parts", &ProductQuantizer::parts)
      .def_prop_ro("bits", &ProductQuantizer::bits)
      .def_prop_ro("centroids", &ProductQuantizer::centroids)
      .def_prop_ro("code_bytes", &ProductQuantizer::code_bytes)
      .def("part_begin", &ProductQuantizer::part_begin, nb::arg("part"))
      .def(
          "codebooks", [](const ProductQuantizer& quantizer) { return copied(quantizer.codebooks()); },
          "All codewords, part after part, [1, centroids * dim].");
}

}  // namespace nearwise::python
