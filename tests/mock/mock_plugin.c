// SPDX-License-Identifier: Apache-2.0
// The mock as a plugin file.
#include "mock/mock.h"

PESTLE_BACKEND_IMPL("mock", "mock-1", mock_init)
