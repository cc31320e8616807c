// expect: ElementTypeOf<double>
// Vectors come in five element types; others are refused when compiling, not converted silently.
#include "nearwise/matrix.h"

std::size_t rows(nearwise::RowsView view);

std::size_t use(const float* floats, const double* doubles) {
#ifdef MISUSE
  return rows(nearwise::MatrixView<const double>(doubles, 2, 3));
#else
  return rows(nearwise::MatrixView<const float>(floats, 2, 3)) + (doubles != nullptr ? 1 : 0);
#endif
}
