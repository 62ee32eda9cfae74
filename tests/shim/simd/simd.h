// SPDX-License-Identifier: Apache-2.0
// An empty header: SPIRV-Cross includes Apple's simd/simd.h and uses nothing of
// it.
