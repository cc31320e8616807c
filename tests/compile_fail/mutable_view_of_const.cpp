// expect: (conversion from|no viable conversion from|could not convert).*MatrixView
// What was lent for reading cannot be written to.
#include "nearwise/matrix.h"

void fill(nearwise::MatrixView<float> target);

void use(nearwise::Matrix<float>& ours, const nearwise::Matrix<float>& lent) {
#ifdef MISUSE
  fill(lent.view());
#else
  fill(ours.view());
  [[maybe_unused]] const nearwise::MatrixView<const float> readable = lent.view();
#endif
}
