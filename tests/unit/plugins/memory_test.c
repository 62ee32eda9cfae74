// SPDX-License-Identifier: Apache-2.0
// The memory that plugins share: texts keep all that is put into them, also
// when the host has nothing for an empty one.
#include "plugins/common/memory.h"

#include <stdlib.h>
#include <string.h>

#include "pestle/context.h"
#include "test.h"

typedef struct heap_t {
  size_t held;  // bytes
  bool is_empty;
} heap_t;

// As malloc() may be: no memory for 0 bytes.
static void* take(void* self, size_t size) {
  heap_t* heap = self;
  if (!size || heap->is_empty) return NULL;
  heap->held += size;
  return malloc(size);
}

static void give(void* self, void* data, size_t size) {
  heap_t* heap = self;
  if (data) heap->held -= size;
  free(data);
}

static pestle_status_t make_status(void* self, int32_t code, const char* file,
                                   int32_t line, const char* message) {
  (void)self;
  return pestle_status_make((pestle_status_code_t)code, file, line, "%s",
                            message);
}

static pestle_host_t make_host(heap_t* heap) {
  return (pestle_host_t){.struct_size = sizeof(pestle_host_t),
                         .self = heap,
                         .alloc = take,
                         .free = give,
                         .status_make = make_status};
}

static void long_pieces_stay_whole(void** state) {
  (void)state;
  heap_t heap = {0};
  pestle_host_t host = make_host(&heap);
  pestle_plugin_text_t text = {.host = &host};
  pestle_blob_t blob;
  char* name = malloc(5001);
  memset(name, 'x', 5000);
  name[5000] = 0;
  pestle_plugin_text_format(&text, "<%s|%d>", name, 7);
  pestle_plugin_text_format(&text, "%s", "");
  pestle_plugin_text_format(&text, "!");
  assert_ok(pestle_plugin_text_take(&text, &blob));
  assert_int_equal(blob.size, 5005);
  assert_memory_equal(blob.data, "<x", 2);
  assert_memory_equal((char*)blob.data + 5000, "x|7>!", 5);
  give(&heap, blob.data, blob.size);
  free(name);
  assert_int_equal(heap.held, 0);
}

static void empty_text(void** state) {
  (void)state;
  heap_t heap = {0};
  pestle_host_t host = make_host(&heap);
  pestle_plugin_text_t text = {.host = &host};
  pestle_blob_t blob;
  assert_ok(pestle_plugin_text_take(&text, &blob));
  assert_int_equal(blob.size, 0);
  give(&heap, blob.data, blob.size);
  assert_int_equal(heap.held, 0);
}

static void no_memory(void** state) {
  (void)state;
  heap_t heap = {.is_empty = true};
  pestle_host_t host = make_host(&heap);
  pestle_plugin_text_t text = {.host = &host};
  pestle_blob_t blob;
  pestle_plugin_text_format(&text, "a");
  heap.is_empty = false;
  assert_error(pestle_plugin_text_take(&text, &blob), OUT_OF_MEMORY,
               "no memory for a text");
  assert_null(blob.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_pieces_stay_whole),
      cmocka_unit_test(empty_text),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
