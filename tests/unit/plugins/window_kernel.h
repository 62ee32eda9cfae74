// SPDX-License-Identifier: Apache-2.0
// Pixels of windows, f16 [2, 5, 6, 72] (images, rows, columns, channels): windows of 2
// x 3 with steps 1 x 2, one column of padding before and one row of it behind, 5 x 3
// an image. The pixels at row 1, column 2 of 64 windows, the fifth and what follows
// it, go through shared memory to the result: first their channels 0 to 63, then
// those from 64 on.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_WINDOW_KERNEL_H_
#define PESTLE_TESTS_UNIT_PLUGINS_WINDOW_KERNEL_H_

// clang-format off
static const char* const window_lines[] = {
    "kernel @windows_0(",
    "    @x : global f16[4320] readonly align 16,",
    "    @y : global f16[8192] align 16,",
    "    @map_x : map f16[1] readonly tiles [0, 4, 128, 0, 0, 72, 64, 1, 0, 6, 64, 72, 0, 5, 1, 432, 0, 2, 1, 2160, 0, 1, 4294967295, 4294967294, 2, 0, 0, 1],",
    "    @tile : shared f16[8192] align 1024,",
    "    @full : shared mbar[1]) {",
    "  %0 = const 0 : index",
    "  %1 = const 1 : index",
    "  %2 = for %0 to %1 step 1 group.x : index name g {",
    "    %3 = const 128 : index",
    "    %4 = for %0 to %3 step 1 lane.x : index name lane {",
    "      %5 = eq %0, %4 : i1",
    "      %6 = ref @full, %0 : addr",
    "      %7 = ref @tile, %0 : addr",
    "      %8 = const 4096 : index",
    "      %9 = ref @tile, %8 : addr",
    "      %10 = const 2 : index",
    "      %11 = coord %10, %1 : addr",
    "      %12 = coord %0, %11 : addr",
    "      %13 = coord %1, %12 : addr",
    "      %14 = coord %1, %13 : addr",
    "      %15 = coord %0, %14 : addr",
    "      %16 = const 64 : index",
    "      %17 = coord %16, %14 : addr",
    "      if %5 {",
    "        mbar_init %6, 1",
    "        mbar_fence",
    "        mbar_expect %6, 16384",
    "        tile_load_window %7, @map_x, %15, %6",
    "        tile_load_window %9, @map_x, %17, %6",
    "      }",
    "      barrier",
    "      mbar_wait %6, %0",
    "      %27 = const 8 : index",
    "      %28 = remainder %4, %27 : index",
    "      %29 = for %0 to %27 step 1 unroll : index name j {",
    "        %30 = xor %28, %29 : index",
    "        %31 = madi %4, 64, %0 : index",
    "        %32 = madi %30, 8, %31 : index",
    "        %33 = load @tile[%32] : f16x8 align 16",
    "        %34 = madi %29, 8, %31 : index",
    "        store @y[%34], %33 align 16",
    "      }",
    "    }",
    "  }",
    "}",
};
// clang-format on

#endif  // PESTLE_TESTS_UNIT_PLUGINS_WINDOW_KERNEL_H_
