// SPDX-License-Identifier: Apache-2.0
// What SPIRV-Cross includes and does not use.
