// expect: cannot convert .*Metric|assigning to 'nearwise::Metric'
// Options take words of the interface, not numbers.
#include "nearwise/exact.h"

void choose(nearwise::KnnOptions& options) {
#ifdef MISUSE
  options.metric = 1;
#else
  options.metric = nearwise::Metric::cosine;
#endif
}
