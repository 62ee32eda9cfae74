// SPDX-License-Identifier: Apache-2.0
// A shared library needs a source of its own; libpestle's are in the folders.
typedef int pestle_empty_t;
