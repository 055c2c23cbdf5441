/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU twin of Ascend C: kernels include this name, as they include the device's. -DAF_TWIN_CHECKED=1 picks the policy that checks
 * and counts; without it calls are plain vectorised loops. See docs/twin.md.
 */
#pragma once

#include "twin/arith.h"
#include "twin/cast.h"
#include "twin/copy.h"
#include "twin/forms.h"
#include "twin/launch.h"
#include "twin/move.h"
#include "twin/pipe.h"
#include "twin/reduce.h"
#include "twin/select.h"
#include "twin/sync.h"
