// nearwise::ProductQuantizer for Python.
#include "nearwise/product_quantizer.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

ProductQuantizer train(nb::handle rows, const std::string& rows_type, std::uint64_t parts, unsigned bits,
                       std::uint64_t iterations, std::uint64_t rows_per_centroid, std::uint64_t seed,
                       const std::string& device, int threads, std::uint64_t memory_limit,
                       const std::string& isa, nb::handle progress) {
  const ProductQuantizerOptions options{
      .parts = parts, .bits = bits, .iterations = iterations, .rows_per_centroid = rows_per_centroid};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<ProductQuantizer> trained;
  // Never briefly: k-means takes a while even for few rows.
  run(context, progress,
      [&](const Context& own) { trained.emplace(ProductQuantizer::train(own, borrowed.view(), options)); });
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
  bound
      .def_static("train", train, nb::arg("rows"), nb::arg("rows_type"), nb::arg("parts"), nb::arg("bits"),
                  nb::arg("iterations"), nb::arg("rows_per_centroid"), nb::arg("seed"), nb::arg("device"),
                  nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none())
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
