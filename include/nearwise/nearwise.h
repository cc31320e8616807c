// All of nearwise.
#pragma once

#include "nearwise/context.h"
#include "nearwise/device_memory.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/progress.h"
#include "nearwise/rotation.h"
#include "nearwise/select_k.h"
#include "nearwise/sharded.h"
#include "nearwise/storage.h"
#include "nearwise/types.h"
#include "nearwise/vector_file.h"
