// All commands. Each function declares one on the parser of its noun, or of the program.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/shared/session.h"

namespace nearwise::cli {

void add_knn(CLI::App& parent, Session& session);
void add_kmeans(CLI::App& parent, Session& session);
void add_dedup(CLI::App& parent, Session& session);
void add_join(CLI::App& parent, Session& session);
void add_eval(CLI::App& parent, Session& session);
void add_convert(CLI::App& parent, Session& session);
void add_verify(CLI::App& parent, Session& session);
void add_info(CLI::App& parent, Session& session);
void add_completion(CLI::App& parent, Session& session);

void add_index_choose(CLI::App& parent, Session& session);
void add_index_build(CLI::App& parent, Session& session);
void add_index_add(CLI::App& parent, Session& session);
void add_index_remove(CLI::App& parent, Session& session);
void add_index_merge(CLI::App& parent, Session& session);
void add_index_calibrate(CLI::App& parent, Session& session);
void add_index_search(CLI::App& parent, Session& session);
void add_index_export(CLI::App& parent, Session& session);

void add_graph_build(CLI::App& parent, Session& session);
void add_graph_merge(CLI::App& parent, Session& session);
void add_graph_add(CLI::App& parent, Session& session);
void add_graph_remove(CLI::App& parent, Session& session);
void add_graph_eval(CLI::App& parent, Session& session);
void add_graph_path(CLI::App& parent, Session& session);
void add_graph_components(CLI::App& parent, Session& session);
void add_graph_duplicates(CLI::App& parent, Session& session);
void add_graph_export(CLI::App& parent, Session& session);

void add_quantizer_train(CLI::App& parent, Session& session);
void add_quantizer_encode(CLI::App& parent, Session& session);
void add_quantizer_decode(CLI::App& parent, Session& session);

void add_plan_index(CLI::App& parent, Session& session);
void add_plan_graph(CLI::App& parent, Session& session);
void add_plan_join(CLI::App& parent, Session& session);
void add_plan_dedup(CLI::App& parent, Session& session);

}  // namespace nearwise::cli
