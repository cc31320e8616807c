// Element types of vectors: conversion between all of them, and the check for NaN and infinity.
//
// Conversions go through f32, which holds every value of the four smaller types. Narrowing rounds to nearest,
// ties to even; a finite value beyond the range of the target is refused by row and column, never clamped.
#pragma once

#include <cstddef>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::cli {

// Whether every value of `from` is also a value of `to`.
bool is_exact(ElementType from, ElementType to);

// Writes rows to out, [rows, dim] without gaps. Infinities and NaN pass from float to float; integers refuse
// them with InvalidData. first_row is the position of the first row in its file.
void convert_rows(RowsView rows, ElementType to, std::byte* out, std::size_t first_row);

// Throws InvalidData at the first NaN or infinity.
void require_finite(RowsView rows, std::size_t first_row);

}  // namespace nearwise::cli
