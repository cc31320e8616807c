// nearwise::AdditiveQuantizer for Python.
#include "nearwise/quantize/additive_quantizer.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

AdditiveQuantizer train_additive(const BorrowedRows& rows, std::uint64_t codebooks, std::uint64_t rounds,
                                 std::uint64_t iterations, std::uint64_t training_rows,
                                 const Settings& settings, nb::handle progress) {
  const AdditiveQuantizerOptions options{.codebooks = codebooks,
                                         .rounds = rounds,
                                         .iterations = iterations,
                                         .training_rows = optional_of(training_rows)};
  const Context context = context_for(settings);
  std::optional<AdditiveQuantizer> trained;
  run(context, progress,
      [&](const Context& own) { trained.emplace(AdditiveQuantizer::train(own, rows.view(), options)); });
  return std::move(*trained);
}

AdditiveQuantizer additive_from_codebooks(std::uint64_t dim, const NumberList& codebooks,
                                          const NumberList& norms) {
  return AdditiveQuantizer::from_codebooks(dim, span_of(codebooks), span_of(norms));
}

// Never brief: the tables of all pairs of codewords are computed first.
NumpyMatrix<std::uint8_t> encode_additive(const AdditiveQuantizer& quantizer, const BorrowedRows& rows,
                                          std::uint64_t iterations, std::uint64_t passes,
                                          std::uint64_t perturbed, const Settings& settings,
                                          nb::handle progress) {
  const AdditiveEncodeOptions options{.iterations = iterations, .passes = passes, .perturbed = perturbed};
  const Context context = context_for(settings);
  std::optional<Matrix<std::uint8_t>> codes;
  run(context, progress, [&](const Context& own) { codes = quantizer.encode(own, rows.view(), options); });
  return to_numpy(std::move(*codes));
}

double additive_error(const AdditiveQuantizer& quantizer, const BorrowedRows& rows, std::uint64_t iterations,
                      std::uint64_t passes, std::uint64_t perturbed, const Settings& settings,
                      nb::handle progress) {
  const AdditiveEncodeOptions options{.iterations = iterations, .passes = passes, .perturbed = perturbed};
  const Context context = context_for(settings);
  double found = 0;
  run(context, progress, [&](const Context& own) { found = quantizer.error(own, rows.view(), options); });
  return found;
}

NumpyNeighbors search_additive(const AdditiveQuantizer& quantizer, const BorrowedRows& queries,
                               const BorrowedRows& codes, std::uint64_t k, const std::string& metric,
                               const Settings& settings, nb::handle progress) {
  const AdditiveSearchOptions options{.metric = parse_metric(metric)};
  const Context context = context_for(settings);
  std::optional<Neighbors> found;
  run_by_size(context, progress, multiplications(queries.view(), codes.view()), [&](const Context& own) {
    found = quantizer.search(own, queries.view(), codes_of(codes), k, options);
  });
  return to_numpy(std::move(*found));
}

}  // namespace

void bind_additive_quantizer(nb::module_& module) {
  nb::class_<AdditiveQuantizer> bound(module, "AdditiveQuantizer", "A trained additive quantizer.");
  bind_file<AdditiveQuantizer, load_additive_quantizer>(bound);
  bound
      .def_static("train", train_additive, nb::arg("rows"), nb::arg("codebooks"), nb::arg("rounds"),
                  nb::arg("iterations"), nb::arg("training_rows"), nb::arg("settings"),
                  nb::arg("progress").none())
      .def_static("from_codebooks", additive_from_codebooks, nb::arg("dim"), nb::arg("codebooks"),
                  nb::arg("norms"))
      .def("encode", encode_additive, nb::arg("rows"), nb::arg("iterations"), nb::arg("passes"),
           nb::arg("perturbed"), nb::arg("settings"), nb::arg("progress").none(), "codes [rows, code_bytes]")
      .def("decode", decode<AdditiveQuantizer>, nb::arg("codes"), nb::arg("settings"),
           nb::arg("progress").none(), "rows [codes, dim]")
      .def("error", additive_error, nb::arg("rows"), nb::arg("iterations"), nb::arg("passes"),
           nb::arg("perturbed"), nb::arg("settings"), nb::arg("progress").none(), "the mean over the rows")
      .def("search", search_additive, nb::arg("queries"), nb::arg("codes"), nb::arg("k"), nb::arg("metric"),
           nb::arg("settings"), nb::arg("progress").none(), "ids and distances, [queries, k]")
      .def_prop_ro("dim", &AdditiveQuantizer::dim)
      .def_prop_ro("codebooks", &AdditiveQuantizer::codebooks)
      .def_prop_ro("code_bytes", &AdditiveQuantizer::code_bytes)
      .def(
          "words", [](const AdditiveQuantizer& quantizer) { return copied(quantizer.codewords()); },
          "All codewords, [1, codebooks * 256 * dim].")
      .def(
          "norms", [](const AdditiveQuantizer& quantizer) { return copied(quantizer.norms()); }, "[1, 256]");
}

}  // namespace nearwise::python
