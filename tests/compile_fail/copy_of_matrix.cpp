// expect: use of deleted function|uses deleted function
// An owning matrix moves, never aliases: a copy of gigabytes must not happen by writing `=`.
#include <utility>

#include "nearwise/matrix.h"

nearwise::Matrix<float> take(nearwise::Matrix<float>& matrix) {
#ifdef MISUSE
  return nearwise::Matrix<float>(matrix);
#else
  return nearwise::Matrix<float>(std::move(matrix));
#endif
}
