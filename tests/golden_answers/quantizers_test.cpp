// Quantizers: codewords, codes, reconstructions, tables, searches in codes, and files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/product_quantizer.h"
#include "nearwise/quantize/rotation.h"

namespace nearwise::golden {
namespace {

using support::Rows;
using testing_io::TemporaryFolder;

// Codes of rows, the rows they stand for, the tables of queries and the error. With and without a rotation.
template <typename Quantizer>
void add_uses(Digest& digest, const Context& context, const Quantizer& quantizer, RowsView rows) {
  const Matrix<std::uint8_t> codes = quantizer.encode(context, rows);
  digest.add(codes);
  digest.add(quantizer.decode(context, codes));
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    digest.add(quantizer.tables(context, rows.slice(0, 11), metric));
  digest.add(quantizer.error(context, rows));
}

TEST(GoldenQuantizers, ProductQuantizer) {
  const TemporaryFolder folder;
  for (const unsigned bits : {4U, 8U}) {
    std::size_t number = 0;
    for (const ElementType type : every_type) {
      if (!is_due(number++, bits == 4 ? 1 : 5)) continue;
      const Rows rows = make_rows(600, 19, 31, type);
      const std::string name = fmt::format("product_quantizer.{}_bits.{}", bits, nearwise::name(type));
      for (const Context& context : every_context()) {
        const auto quantizer =
            ProductQuantizer::train(context, rows, {.parts = 5, .bits = bits, .iterations = 4});
        expect_answer(name + ".codewords", quantizer.codebooks());
        expect(name + ".uses", [&](Digest& digest) { add_uses(digest, context, quantizer, rows); });
      }
    }
    const Rows rows = make_rows(600, 32, 32);
    const auto quantizer =
        ProductQuantizer::train(context(), rows, {.bits = bits, .training_rows = std::size_t{2} << bits});
    expect(fmt::format("product_quantizer.{}_bits.usual_parts", bits), [&](Digest& digest) {
      digest.add(quantizer.codebooks());
      add_uses(digest, context(), quantizer, rows);
    });
    save(quantizer, folder / "pq.nw", {{"rows", "made"}});
    expect_container(fmt::format("file.product_quantizer.{}_bits", bits), folder / "pq.nw");
    expect_answer(fmt::format("product_quantizer.{}_bits.loaded", bits),
                  load_product_quantizer(folder / "pq.nw").encode(context(), rows));
  }
}

// Blocks of four elements are rotated by half a Hadamard matrix, and moved to other places: exact in f32.
Rotation exact_rotation(std::size_t dim, bool with_mean) {
  constexpr float signs[4][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}};
  std::vector<float> matrix(dim * dim, 0.0F);
  for (std::size_t axis = 0; axis < dim; ++axis)
    for (std::size_t i = 0; i < 4; ++i)
      matrix[(axis * 5 % dim) * dim + axis / 4 * 4 + i] = signs[axis % 4][i] / 2;
  std::vector<float> mean(with_mean ? dim : 0);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(i % 7) / 8 - 0.25F;
  return Rotation::from_matrix(dim, dim, matrix, mean);
}

TEST(GoldenQuantizers, Rotation) {
  for (const ElementType type : every_type) {
    const Rows rows = make_rows(200, 32, 33, type);
    const std::string ending(name(type));
    for (const Context& context : every_context())
      expect("rotation." + ending, [&](Digest& digest) {
        for (const bool with_mean : {false, true}) {
          const Rotation rotation = exact_rotation(32, with_mean);
          const Matrix<float> rotated = rotation.apply(context, rows);
          digest.add(rotated);
          digest.add(rotation.reverse(context, rotated));
        }
        digest.add(Rotation::identity(32).apply(context, rows));
      });
    const Rotation axes = Rotation::pca(context(), rows, 12, {.training_rows = 150});
    expect("rotation.pca." + ending, [&](Digest& digest) {
      digest.add(axes.matrix());
      digest.add(axes.mean());
      digest.add(axes.apply(context(), rows));
    });
    expect_answer("rotation.pca_mean." + ending, axes.mean());
  }
}

TEST(GoldenQuantizers, OptimizedProductQuantizer) {
  const TemporaryFolder folder;
  const Rows rows = make_rows(600, 32, 34);
  for (const unsigned bits : {4U, 8U}) {
    const ProductQuantizerOptions options = {.parts = 4, .bits = bits, .iterations = 3};
    const Rotation rotation = exact_rotation(32, false);
    const OptimizedProductQuantizer given = {
        rotation, ProductQuantizer::train(context(), rotation.apply(context(), rows), options)};
    const std::string name = fmt::format("optimized_product_quantizer.{}_bits", bits);
    expect(name, [&](Digest& digest) { add_uses(digest, context(), given, rows); });
    save(given, folder / "opq.nw");
    expect_container("file." + name, folder / "opq.nw");
    expect_answer(name + ".loaded",
                  load_optimized_product_quantizer(folder / "opq.nw").encode(context(), rows));

    const auto trained =
        OptimizedProductQuantizer::train(context(), rows, {.quantizer = options, .rounds = 2});
    expect(name + ".trained", [&](Digest& digest) {
      digest.add(trained.rotation.matrix());
      digest.add(trained.quantizer.codebooks());
      add_uses(digest, context(), trained, rows);
    });
    save(trained, folder / "opq.nw");
    expect_container("file." + name + ".trained", folder / "opq.nw");
  }
}

void add_uses(Digest& digest, const Context& context, const AdditiveQuantizer& quantizer, RowsView rows,
              const AdditiveEncodeOptions& options) {
  const Matrix<std::uint8_t> codes = quantizer.encode(context, rows, options);
  digest.add(codes);
  digest.add(quantizer.decode(context, codes));
  digest.add(quantizer.error(context, rows, options));
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    digest.add(quantizer.search(context, rows.slice(0, 13), codes, 10, {.metric = metric}));
}

AdditiveQuantizer untrained_additive_quantizer(std::size_t codebooks, std::size_t dim) {
  const support::Values values = make_values(codebooks * 256, dim, 35);
  std::vector<float> words;
  for (std::size_t word = 0; word < values.rows(); ++word)
    for (const double value : values.row(word)) words.push_back(static_cast<float>(value / 2));
  std::vector<float> norms;
  for (std::size_t i = 0; i < 256; ++i) norms.push_back(static_cast<float>(i) / 4);
  return AdditiveQuantizer::from_codebooks(dim, words, norms);
}

TEST(GoldenQuantizers, AdditiveCodes) {
  const TemporaryFolder folder;
  const AdditiveQuantizer quantizer = untrained_additive_quantizer(4, 19);
  for (const ElementType type : every_type) {
    const Rows rows = make_rows(100, 19, 36, type);
    for (const Context& context : every_context())
      expect("additive_quantizer." + std::string(name(type)), [&](Digest& digest) {
        add_uses(digest, context, quantizer, rows, {.iterations = 3, .passes = 2, .perturbed = 2});
      });
  }
  const Rows rows = make_rows(100, 19, 36);
  expect("additive_quantizer.usual",
         [&](Digest& digest) { add_uses(digest, context(), quantizer, rows, {}); });
  save(quantizer, folder / "additive.nw", {{"rows", "made"}});
  expect_container("file.additive_quantizer", folder / "additive.nw");
  expect_answer("additive_quantizer.loaded",
                load_additive_quantizer(folder / "additive.nw").encode(context(), rows));
}

TEST(GoldenQuantizers, AdditiveTraining) {
  const Rows rows = make_rows(1500, 19, 37);
  // No rounds: the codewords of a residual quantizer, which need no system of equations.
  const auto residual = AdditiveQuantizer::train(context(), rows, {.codebooks = 3, .rounds = 0});
  const auto trained =
      AdditiveQuantizer::train(context(), rows, {.codebooks = 3, .rounds = 2, .iterations = 2});
  EXPECT_FALSE(
      std::ranges::equal(residual.codewords(), trained.codewords()));  // or the test is about nothing
  const auto expect_trained = [&](const std::string& name, const AdditiveQuantizer& quantizer) {
    expect(name, [&](Digest& digest) {
      digest.add(quantizer.codewords());
      digest.add(quantizer.norms());
      add_uses(digest, context(), quantizer, rows.view().slice(0, 60), {.iterations = 2});
    });
  };
  expect_trained("additive_quantizer.residual", residual);
  expect_trained("additive_quantizer.trained", trained);
}

}  // namespace
}  // namespace nearwise::golden
