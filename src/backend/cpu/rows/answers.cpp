#include "backend/cpu/rows/answers.h"

#include "core/distance.h"

namespace nearwise::cpu {

void write_answers(std::span<const Answer> answers, Metric metric, Id id_offset, std::span<Id> ids,
                   std::span<float> distances) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool there = i < answers.size();
    ids[i] = there ? id_offset + static_cast<Id>(answers[i].row) : no_id;
    distances[i] = there ? distance_of_key(metric, answers[i].key) : padding_distance(metric);
  }
}

}  // namespace nearwise::cpu
