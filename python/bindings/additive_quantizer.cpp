// nearwise::AdditiveQuantizer for Python.
#include "nearwise/additive_quantizer.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

AdditiveQuantizer train_additive(nb::handle rows, const std::string& rows_type, std::uint64_t codebooks,
                                 std::uint64_t rounds, std::uint64_t iterations,
                                 std::uint64_t rows_per_centroid, std::uint64_t seed,
                                 const std::string& device, int threads, std::uint64_t memory_limit,
                                 const std::string& isa, nb::handle progress) {
  const AdditiveQuantizerOptions options{.codebooks = codebooks,
                                         .rounds = rounds,
                                         .iterations = iterations,
                                         .rows_per_centroid = rows_per_centroid};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<AdditiveQuantizer> trained;
  run(context, progress,
      [&](const Context& own) { trained.emplace(AdditiveQuantizer::train(own, borrowed.view(), options)); });
  return std::move(*trained);
}

AdditiveQuantizer additive_from_codebooks(std::uint64_t dim, const NumberList& codebooks,
                                          const NumberList& norms) {
  return AdditiveQuantizer::from_codebooks(dim, span_of(codebooks), span_of(norms));
}

// Encoding a row takes a search: never over in a millisecond, as tables of all pairs of codewords come first.
NumpyMatrix<std::uint8_t> encode_additive(const AdditiveQuantizer& quantizer, nb::handle rows,
                                          const std::string& rows_type, std::uint64_t iterations,
                                          std::uint64_t passes, std::uint64_t perturbed, std::uint64_t seed,
                                          const std::string& device, int threads, std::uint64_t memory_limit,
                                          const std::string& isa, nb::handle progress) {
  const AdditiveEncodeOptions options{.iterations = iterations, .passes = passes, .perturbed = perturbed};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<Matrix<std::uint8_t>> codes;
  run(context, progress,
      [&](const Context& own) { codes = quantizer.encode(own, borrowed.view(), options); });
  return to_numpy(std::move(*codes));
}

double additive_error(const AdditiveQuantizer& quantizer, nb::handle rows, const std::string& rows_type,
                      std::uint64_t iterations, std::uint64_t passes, std::uint64_t perturbed,
                      std::uint64_t seed, const std::string& device, int threads, std::uint64_t memory_limit,
                      const std::string& isa, nb::handle progress) {
  const AdditiveEncodeOptions options{.iterations = iterations, .passes = passes, .perturbed = perturbed};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  double found = 0;
  run(context, progress, [&](const Context& own) { found = quantizer.error(own, borrowed.view(), options); });
  return found;
}

NumpyNeighbors search_additive(const AdditiveQuantizer& quantizer, nb::handle queries,
                               const std::string& queries_type, nb::handle codes, std::uint64_t k,
                               const std::string& metric, const std::string& device, int threads,
                               std::uint64_t memory_limit, const std::string& isa, nb::handle progress) {
  const AdditiveSearchOptions options{.metric = parse_metric(metric)};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
  const BorrowedRows borrowed(codes, ElementType::u8, "codes");
  std::optional<Neighbors> found;
  run_by_size(context, progress, multiplications(query_rows.view(), borrowed.view()),
              [&](const Context& own) {
                found = quantizer.search(own, query_rows.view(), codes_of(borrowed), k, options);
              });
  return to_numpy(std::move(*found));
}

}  // namespace

void bind_additive_quantizer(nb::module_& module) {
  nb::class_<AdditiveQuantizer>(module, "AdditiveQuantizer", "A trained additive quantizer.")
      .def_static("train", train_additive, nb::arg("rows"), nb::arg("rows_type"), nb::arg("codebooks"),
                  nb::arg("rounds"), nb::arg("iterations"), nb::arg("rows_per_centroid"), nb::arg("seed"),
                  nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"),
                  nb::arg("progress").none())
      .def_static("from_codebooks", additive_from_codebooks, nb::arg("dim"), nb::arg("codebooks"),
                  nb::arg("norms"))
      .def("encode", encode_additive, nb::arg("rows"), nb::arg("rows_type"), nb::arg("iterations"),
           nb::arg("passes"), nb::arg("perturbed"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "codes [rows, code_bytes]")
      .def("decode", decode<AdditiveQuantizer>, nb::arg("codes"), nb::arg("device"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "rows [codes, dim]")
      .def("error", additive_error, nb::arg("rows"), nb::arg("rows_type"), nb::arg("iterations"),
           nb::arg("passes"), nb::arg("perturbed"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "the mean over the rows")
      .def("search", search_additive, nb::arg("queries"), nb::arg("queries_type"), nb::arg("codes"),
           nb::arg("k"), nb::arg("metric"), nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"),
           nb::arg("isa"), nb::arg("progress").none(), "ids and distances, [queries, k]")
      .def_prop_ro("dim", &AdditiveQuantizer::dim)
      .def_prop_ro("codebooks", &AdditiveQuantizer::codebooks)
      .def_prop_ro("code_bytes", &AdditiveQuantizer::code_bytes)
      .def(
          "words", [](const AdditiveQuantizer& quantizer) { return copied(quantizer.codewords()); },
          "All codewords, [1, codebooks * 256 * dim].")
      .def(
          "norms", [](const AdditiveQuantizer& quantizer) { return copied(quantizer.norms()); }, "[1, 256]")
      .def(
          "save",
          [](const AdditiveQuantizer& quantizer, const std::filesystem::path& path,
             const std::map<std::string, std::string>& provenance) {
            const nb::gil_scoped_release unlocked;
            save(quantizer, path, provenance);
          },
          nb::arg("path"), nb::arg("provenance"));
  module.def(
      "load_additive_quantizer",
      [](const std::filesystem::path& path) {
        const nb::gil_scoped_release unlocked;
        return load_additive_quantizer(path);
      },
      nb::arg("path"));
}

}  // namespace nearwise::python
