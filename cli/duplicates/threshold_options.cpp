#include "cli/duplicates/threshold_options.h"

#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "nearwise/dedup.h"

namespace nearwise::cli {

float ThresholdArguments::threshold(const Session& session) const {
  if (similarity.has_value() == radius.has_value())
    refuse(session, "expected --similarity or --radius, one of the two");
  return radius ? static_cast<float>(*radius) : threshold_of_similarity(metric_or_default(), *similarity);
}

std::string ThresholdArguments::text() const {
  return fmt::format("{} {} {} --metric {}", quote(rows.string()), radius ? "--radius" : "--similarity",
                     radius ? *radius : similarity.value_or(0), name(metric_or_default()));
}

void add_threshold_options(CLI::App& parser, ThresholdArguments& arguments) {
  add_path(parser, "vectors", arguments.rows, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  CLI::Option* const similarity =
      add_number(parser, "--similarity", arguments.similarity,
                 "Smallest similarity of duplicates; for cosine, the default metric then, and inner_product");
  add_number(parser, "--radius", arguments.radius,
             "Largest distance of duplicates, in the unit of the metric")
      ->excludes(similarity);
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; default with --radius: sqeuclidean");
  add_context_options(parser, arguments.context);
}

Provenance describe_planned_join(const Session& session, const ThresholdArguments& arguments,
                                 const std::string& command) {
  if (arguments.context.memory_limit == 0) refuse(session, "work over files needs --memory-limit");
  const VectorFile file = open_vectors(arguments.rows);
  return describe_planned_run(command, describe_input(arguments.rows, file.rows()));
}

}  // namespace nearwise::cli
