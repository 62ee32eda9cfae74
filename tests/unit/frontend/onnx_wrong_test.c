// SPDX-License-Identifier: Apache-2.0
// Each node of nodes/ with one thing changed: an attribute is missing, of another kind or
// another value, one that the op has elsewhere; an input or an output is missing, another
// one or one too many; an input has another dtype, rank or extent, or is a constant where it
// was an argument and the other way round; the opset is another. What is imported then
// verifies; what is refused has a code and a sentence that names the node or the value.
#include <math.h>

#include "frontend/onnx/importer.h"
#include "onnx_rows.h"
#include "onnx_tree.h"

enum {
  // Every so-many-th change.
  STEP = TEST_SANITIZED ? 40 : 1,
  MOST_ATTRS = 4096,
};

// An attribute that a row has, as bytes.
typedef struct seen_t {
  char op[64];
  pb_t attr;
} seen_t;

typedef struct wrong_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  seen_t seen[MOST_ATTRS];
  size_t seen_count;
  row_t row;
  const char* text;  // of the row
  const char* what;  // is changed
  tree_t* model;
  pestle_onnx_compat_t compat;
  size_t number, tried, read, wrong;
} wrong_t;

// --- What an import must give ---

// Whether |text| names the op, or quotes a name.
static bool names_the_place(const wrong_t* w, const char* text) {
  return strstr(text, w->row.op) || strchr(text, '\'') ||
         strstr(text, "the model");
}

static void check_refusal(wrong_t* w, pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  const char* text = pestle_status_message(status);
  bool is_right = code == PESTLE_STATUS_MALFORMED ||
                  code == PESTLE_STATUS_UNSUPPORTED ||
                  code == PESTLE_STATUS_RESOURCE_EXHAUSTED ||
                  code == PESTLE_STATUS_INVALID_ARGUMENT;
  if (!is_right || !names_the_place(w, text)) {
    print_error("%s\n  %s: %s: %s\n", w->text, w->what,
                pestle_status_code_name(code), text);
    ++w->wrong;
  }
  pestle_status_release(status);
}

// Extents that are not known are 2; elements are ones, of few arguments that are large.
static pestle_status_t give_values(pestle_module_t** module) {
  static int64_t data[1 << 12], dims[ROW_MOST][PESTLE_MAX_RANK];
  const pestle_block_t* block = pestle_module_entry(*module)->body->block;
  size_t count = pestle_function_argument_count(pestle_module_entry(*module));
  pestle_tensor_t views[ROW_MOST] = {0};
  bool fits = count <= ROW_MOST;
  for (size_t i = 0; i < count && fits; ++i) {
    pestle_type_t type = *block->arguments[i]->type;
    for (int32_t k = 0; k < type.rank; ++k) {
      if (type.dims[k] == PESTLE_DIM_DYNAMIC) type.dims[k] = 2;
      dims[i][k] = type.dims[k];
    }
    views[i] = (pestle_tensor_t){.data = data,
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = type.rank,
                                 .dtype = pestle_dtype_to_dlpack(type.dtype),
                                 .shape = dims[i]};
    if (pestle_type_count(&type) > PESTLE_VALUE_ARGUMENT_MAX)
      views[i].data = NULL;
  }
  memset(data, 1, sizeof(data));
  pestle_module_t* made = NULL;
  pestle_status_t status = NULL;
  if (fits)
    status = pestle_module_specialize_values(*module, views, count, &made);
  pestle_module_release(*module);
  *module = made;
  return status;
}

static void import_changed(wrong_t* w) {
  pb_t bytes = tree_bytes(w->model);
  // Of its exact size, so that a sanitizer sees a read beyond the end.
  uint8_t* data = malloc(bytes.size + 1);
  memcpy(data, bytes.data, bytes.size);
  pestle_import_options_t options = {.struct_size = sizeof(options),
                                     .onnx_compat = w->compat};
  pestle_module_t* module = NULL;
  pestle_status_t status = pestle_import_onnx(w->context, data, bytes.size,
                                              false, NULL, &options, &module);
  ++w->tried;
  if (!status && module->specialize) status = give_values(&module);
  if (status) {
    check_refusal(w, status);
    assert_null(module);
  } else if (module) {
    ++w->read;
    status = pestle_module_verify(module);
    if (status) {
      print_error("%s\n  %s: does not verify: %s\n", w->text, w->what,
                  pestle_status_message(status));
      ++w->wrong;
      pestle_status_release(status);
    }
    pestle_module_release(module);
  }
  free(data);
}

static void try_change(wrong_t* w, const char* what) {
  w->what = what;
  if (++w->number % STEP == 0) import_changed(w);
}

// --- Changes ---

static void try_without(wrong_t* w, tree_t* t, const char* what) {
  t->gone = true;
  try_change(w, what);
  t->gone = false;
}

// |t| is the message, string or number that |pb| holds.
static void try_bytes(wrong_t* w, tree_t* t, const void* data, size_t size,
                      const char* what) {
  tree_t old = *t;
  *t = (tree_t){
      .field = old.field, .wire = old.wire, .data = data, .size = size};
  try_change(w, what);
  *t = old;
}

static void try_text(wrong_t* w, tree_t* t, const char* text,
                     const char* what) {
  try_bytes(w, t, text, strlen(text), what);
}

static void try_number(wrong_t* w, tree_t* t, int64_t number,
                       const char* what) {
  tree_t old = *t;
  *t = (tree_t){.field = old.field, .number = (uint64_t)number};
  try_change(w, what);
  *t = old;
}

// |t| has one more field.
static void try_more(wrong_t* w, tree_t* t, unsigned field, const void* data,
                     size_t size, const char* what) {
  tree_t more = {.field = field, .wire = 2, .data = data, .size = size};
  tree_t** kids = malloc((t->count + 1) * sizeof(*kids));
  tree_t** old = t->kids;
  if (t->count) memcpy(kids, old, t->count * sizeof(*kids));
  t->kids = kids;
  t->kids[t->count++] = &more;
  try_change(w, what);
  --t->count;
  t->kids = old;
  free(kids);
}

// --- Attributes ---

// The attribute of |name| that |word| is, as a row has it.
static pb_t attr_of(const tree_t* name, const char* word) {
  char text[512];
  snprintf(text, sizeof(text), "%.*s%s", (int)name->size,
           (const char*)name->data, word);
  return row_attr(text);
}

static void try_attr_kinds(wrong_t* w, tree_t* attr) {
  static const char* const words[] = {
      "=0",
      "=1",
      "=-1",
      "=2",
      "=3",
      "=5",
      "=-3",
      "=16",
      "=100",
      "=1099511627776",
      "=9223372036854775807",
      "=-9223372036854775808",
      "=0.5",
      "=-1.0",
      "=0.0",
      "=nan",
      "=1e30",
      ":%",
      ":x",
      ":NOTSET",
      "=[]",
      "=[0]",
      "=[1]",
      "=[-1]",
      "=[2]",
      "=[0,1]",
      "=[1,0]",
      "=[1,1]",
      "=[2,2]",
      "=[-1,-1]",
      "=[3,3]",
      "=[1,2,0]",
      "=[0,0,0,0]",
      "=[1,1,1,1]",
      "=[1,0,0,1]",
      "=[0,1,2,3,4,5,6,7,8]",
      "=[4611686018427387904,4611686018427387904]",
      "=[0.5]",
      "=[0.5,nan]",
      "=[1.0,2.0,3.0]",
      ":[a]",
      ":[a,b,a]",
      "=!f32[]=0.5",
      "=!i64[1]=2",
      "=!i64[0]",
      "=!f32[2,2]",
      "=!i8[2]=3,4",
      "=!str[2]=a,b",
      "={x:f32[2] | Neg:x>y | y}",
      "={| | }",
  };
  const tree_t* name = tree_find(attr, 1);
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    pb_t pb = attr_of(name, words[i]);
    try_bytes(w, attr, pb.data, pb.size, words[i]);
    pb_free(&pb);
  }
}

// Each number or string of a list is missing, twice, or another one.
static void try_list(wrong_t* w, tree_t* attr) {
  for (size_t i = 0; i < attr->count && i < 24; ++i) {
    tree_t* item = attr->kids[i];
    if (item->field == 8) {
      static const int64_t numbers[] = {0, -1, 1, 2, 7, (int64_t)1 << 62};
      for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); ++k)
        try_number(w, item, numbers[k], "an int of a list");
    } else if (item->field == 9) {
      try_text(w, item, "", "an empty string of a list");
      try_text(w, item, "other", "a string of a list");
    } else if (item->field == 7) {
      float numbers[] = {0, -2, 1e30f, NAN};
      for (size_t k = 0; k < 4; ++k)
        try_bytes(w, item, &numbers[k], 4, "a float of a list");
    } else {
      continue;
    }
    try_without(w, item, "one less of a list");
  }
}

static void try_tensor(wrong_t* w, tree_t* tensor);

static void try_attr(wrong_t* w, tree_t* attr) {
  try_without(w, attr, "an attribute less");
  try_attr_kinds(w, attr);
  try_list(w, attr);
  tree_t* kind = tree_find(attr, 20);
  for (int64_t i = 0; kind && i < 15; ++i)
    try_number(w, kind, i, "another kind of attribute");
  if (tree_find(attr, 5)) try_tensor(w, tree_find(attr, 5));
}

// Those of other rows with this op, in place of the node's own.
static void try_other_attrs(wrong_t* w, tree_t* node) {
  for (size_t i = 0; i < w->seen_count; ++i) {
    const seen_t* seen = &w->seen[i];
    if (strcmp(seen->op, w->row.op) != 0) continue;
    // The name is the first field.
    size_t name = (size_t)seen->attr.data[1] + 2;
    tree_t* own = NULL;
    for (size_t k = 0; k < node->count; ++k) {
      const tree_t* kid = node->kids[k];
      const tree_t* its = kid->kind == TREE_ATTR ? tree_find(kid, 1) : NULL;
      if (its && its->size + 2 == name &&
          !memcmp(its->data, seen->attr.data + 2, its->size))
        own = node->kids[k];
    }
    if (own) {
      try_bytes(w, own, seen->attr.data, seen->attr.size,
                "another row's attribute");
    } else {
      try_more(w, node, 5, seen->attr.data, seen->attr.size,
               "another row's attribute more");
    }
  }
}

// --- Inputs and outputs of nodes ---

static void try_operands(wrong_t* w, tree_t* node, unsigned field) {
  tree_t* own[ROW_MOST];
  size_t count = 0;
  for (size_t i = 0; i < node->count && count < ROW_MOST; ++i) {
    if (node->kids[i]->field == field) own[count++] = node->kids[i];
  }
  for (size_t i = 0; i < count; ++i) {
    try_text(w, own[i], "", "an operand that is left out");
    try_text(w, own[i], "nothing", "an operand that nothing makes");
    try_without(w, own[i], "an operand less");
    for (size_t k = 0; k < count && field == 1; ++k) {
      if (k != i)
        try_bytes(w, own[i], own[k]->data, own[k]->size, "another operand");
    }
  }
  if (count) {
    try_more(w, node, field, field == 1 ? "i0" : "more", field == 1 ? 2 : 4,
             "an operand more");
  }
  // The first ones alone.
  for (size_t i = count; i-- > 0;) {
    own[i]->gone = true;
    try_change(w, "the first operands alone");
  }
  for (size_t i = 0; i < count; ++i)
    own[i]->gone = false;
}

static void try_graph(wrong_t* w, tree_t* graph, bool is_whole);

static void try_node(wrong_t* w, tree_t* node) {
  try_operands(w, node, 1);
  try_operands(w, node, 2);
  for (size_t i = 0; i < node->count; ++i) {
    tree_t* kid = node->kids[i];
    if (kid->kind != TREE_ATTR) continue;
    tree_t* graph = tree_find(kid, 6);
    if (graph) {
      try_graph(w, graph, false);
      try_without(w, kid, "an attribute less");
    } else {
      try_attr(w, kid);
    }
  }
  try_other_attrs(w, node);
}

// --- Values ---

static const int64_t extents[] = {0, 1, 2, 3, 4, 6, 8, 2000, (int64_t)1 << 40};

static void try_dims(wrong_t* w, tree_t* shape) {
  for (size_t i = 0; i < shape->count; ++i) {
    tree_t* dim = shape->kids[i];
    tree_t* extent = tree_find(dim, 1);
    for (size_t k = 0; extent && k < sizeof(extents) / sizeof(extents[0]); ++k)
      try_number(w, extent, extents[k], "another extent");
    if (extent)
      try_number(w, extent, (int64_t)extent->number + 1, "one longer");
    if (extent)
      try_number(w, extent, (int64_t)extent->number * 2, "twice as long");
    if (extent) try_number(w, extent, -1, "a negative extent");
    try_text(w, dim, "", "an extent that is not stated");
    try_text(w, dim, "\x12\x01n", "an extent with a name");
    try_without(w, dim, "an axis less");
  }
  try_text(w, shape, "", "no axes");
  for (int64_t extent = 1; extent <= 3; ++extent) {
    char data[] = {8, (char)extent};
    try_more(w, shape, 1, data, 2, "an axis more");
  }
  char nine[36];
  for (size_t i = 0; i < 9; ++i)
    memcpy(nine + i * 4, "\x0a\x02\x08\x02", 4);
  try_bytes(w, shape, nine, sizeof(nine), "nine axes");
  try_bytes(w, shape, nine, 24, "six axes");
  try_bytes(w, shape, nine, 12, "three axes");
  try_bytes(w, shape, nine, 8, "two axes");
  try_bytes(w, shape, nine, 4, "one axis");
}

static void try_value(wrong_t* w, tree_t* value) {
  tree_t* type = tree_find(value, 2);
  if (!type) return;
  try_without(w, type, "no type");
  tree_t* tensor = tree_find(type, 1);
  if (!tensor) return;
  tree_t* dtype = tree_find(tensor, 1);
  for (int64_t i = 0; dtype && i < 27; ++i)
    try_number(w, dtype, i, "another dtype");
  tree_t* shape = tree_find(tensor, 2);
  if (!shape) return;
  try_without(w, shape, "no shape");
  try_dims(w, shape);
}

static void try_tensor(wrong_t* w, tree_t* tensor) {
  tree_t *dtype = tree_find(tensor, 2), *raw = tree_find(tensor, 9);
  for (int64_t i = 0; dtype && i < 27; ++i)
    try_number(w, dtype, i, "another dtype of a constant");
  for (size_t i = 0; i < tensor->count; ++i) {
    tree_t* dim = tensor->kids[i];
    if (dim->field != 1) continue;
    static const int64_t numbers[] = {0, 1, -1, 3, (int64_t)1 << 50};
    for (size_t k = 0; k < 5; ++k)
      try_number(w, dim, numbers[k], "another extent of a constant");
    // The same elements with an axis more or less.
    if (dim->number == 1) try_without(w, dim, "an axis of a constant less");
  }
  tree_t one = {.field = 1, .number = 1};
  tensor->kids = realloc(tensor->kids, (tensor->count + 1) * sizeof(tree_t*));
  tensor->kids[tensor->count++] = &one;
  try_change(w, "an axis of a constant more");
  --tensor->count;
  if (!raw || raw->size > 64) return;
  // Each element, all of them, and none.
  uint8_t bytes[64];
  static const uint8_t values[] = {0, 1, 2, 7, 0xff, 0x7f, 0x3f};
  for (size_t k = 0; k < sizeof(values); ++k) {
    for (size_t i = 0; i < raw->size; i += raw->size % 8 ? 4 : 8) {
      memcpy(bytes, raw->data, raw->size);
      bytes[i] = values[k];
      try_bytes(w, raw, bytes, raw->size, "another element");
    }
    memset(bytes, values[k], raw->size);
    try_bytes(w, raw, bytes, raw->size, "other elements");
  }
  try_bytes(w, raw, bytes, raw->size / 2, "half of the elements");
}

// --- Graphs ---

static tree_t* type_of(tree_t* value) {
  tree_t* type = value->field == 11 ? tree_find(value, 2) : NULL;
  return type ? tree_find(type, 1) : NULL;
}

// All inputs of one dtype have another one.
static void try_dtypes(wrong_t* w, tree_t* graph) {
  for (uint64_t from = 1; from < 24; ++from) {
    tree_t* own[ROW_MOST];
    size_t count = 0;
    for (size_t i = 0; i < graph->count && count < ROW_MOST; ++i) {
      tree_t* tensor = type_of(graph->kids[i]);
      tree_t* dtype = tensor ? tree_find(tensor, 1) : NULL;
      if (dtype && dtype->number == from) own[count++] = dtype;
    }
    if (count < 2) continue;
    for (uint64_t to = 1; to < 24; ++to) {
      for (size_t i = 0; i < count; ++i)
        own[i]->number = to;
      try_change(w, "another dtype of all");
    }
    for (size_t i = 0; i < count; ++i)
      own[i]->number = from;
  }
}

// All extents of one size have another one.
static void try_extents(wrong_t* w, tree_t* graph) {
  for (uint64_t from = 0; from < 65; ++from) {
    tree_t* own[4 * ROW_MOST];
    size_t count = 0;
    for (size_t i = 0; i < graph->count; ++i) {
      tree_t* tensor = type_of(graph->kids[i]);
      tree_t* shape = tensor ? tree_find(tensor, 2) : NULL;
      for (size_t k = 0; shape && k < shape->count; ++k) {
        tree_t* extent = tree_find(shape->kids[k], 1);
        if (extent && extent->number == from && count < 4 * ROW_MOST)
          own[count++] = extent;
      }
    }
    if (count < 2) continue;
    static const uint64_t to[] = {0, 1, 2, 3, 5, 16, 33};
    for (size_t k = 0; k < sizeof(to) / sizeof(to[0]); ++k) {
      for (size_t i = 0; i < count; ++i)
        own[i]->number = to[k];
      try_change(w, "another extent of all");
    }
    for (size_t i = 0; i < count; ++i)
      own[i]->number = from;
  }
}

// An initializer in place of an input, or an input in place of an initializer.
static void try_constant(wrong_t* w, tree_t* graph, tree_t* value) {
  const tree_t* tensor = type_of(value);
  const tree_t* shape = tensor ? tree_find(tensor, 2) : NULL;
  if (!shape) return;
  pb_t pb = {0};
  int64_t count = 1;
  for (size_t i = 0; i < shape->count; ++i) {
    const tree_t* extent = tree_find(shape->kids[i], 1);
    if (!extent) return;
    pb_int(&pb, 1, (int64_t)extent->number);
    count *= (int64_t)extent->number;
  }
  int type = (int)tree_find(tensor, 1)->number;
  if (count > 300 || type == 8) {
    pb_free(&pb);
    return;
  }
  pb_t raw = {0};
  bool half = false;
  for (int64_t i = 0; i < count; ++i)
    row_put(&raw, type, (double)((i + 1) % 3), &half);
  const tree_t* name = tree_find(value, 1);
  pb_int(&pb, 2, type);
  pb_bytes(&pb, 8, name->data, name->size);
  pb_bytes(&pb, 9, raw.data, raw.size);
  pb_free(&raw);
  value->gone = true;
  try_more(w, graph, 5, pb.data, pb.size, "a constant for an argument");
  value->gone = false;
  pb_free(&pb);
}

static void try_argument(wrong_t* w, tree_t* graph, tree_t* tensor) {
  char dims[96] = "", name[32];
  size_t at = 0;
  for (size_t i = 0; i < tensor->count; ++i) {
    if (tensor->kids[i]->field == 1)
      at +=
          (size_t)snprintf(dims + at, sizeof(dims) - at, at ? ",%llu" : "%llu",
                           (unsigned long long)tensor->kids[i]->number);
  }
  const tree_t *its = tree_find(tensor, 8), *dtype = tree_find(tensor, 2);
  snprintf(name, sizeof(name), "%.*s", (int)its->size, (const char*)its->data);
  pb_t pb = onnx_value(name, (int)dtype->number, dims);
  tensor->gone = true;
  try_more(w, graph, 11, pb.data, pb.size, "an argument for a constant");
  tensor->gone = false;
  pb_free(&pb);
}

static void try_graph(wrong_t* w, tree_t* graph, bool is_whole) {
  for (size_t i = 0; i < graph->count; ++i) {
    tree_t* kid = graph->kids[i];
    try_without(w, kid, "a part of the graph less");
    if (kid->kind == TREE_NODE) try_node(w, kid);
    if (kid->kind == TREE_VALUE) try_value(w, kid);
    if (kid->kind == TREE_VALUE && is_whole) try_constant(w, graph, kid);
    if (kid->kind == TREE_TENSOR) try_tensor(w, kid);
    if (kid->kind == TREE_TENSOR && is_whole) try_argument(w, graph, kid);
  }
  if (!is_whole) return;
  try_dtypes(w, graph);
  try_extents(w, graph);
}

static void try_opsets(wrong_t* w, tree_t* model) {
  for (size_t i = 0; i < model->count; ++i) {
    if (model->kids[i]->kind != TREE_OPSET) continue;
    try_without(w, model->kids[i], "no opset");
    tree_t* version = tree_find(model->kids[i], 2);
    for (int64_t opset = 0; opset <= PESTLE_ONNX_LAST_OPSET + 1; ++opset)
      try_number(w, version, opset, "another opset");
  }
}

// --- Rows ---

static void note_attrs(void* self, const char* text) {
  wrong_t* w = self;
  pb_t model = row_model(text, &w->row);
  tree_t* tree = tree_parse(TREE_MODEL, 0, model.data, model.size);
  const tree_t* graph = tree_find(tree, 7);
  for (size_t n = 0; n < graph->count; ++n) {
    const tree_t* node = graph->kids[n];
    const tree_t* op = node->kind == TREE_NODE ? tree_find(node, 4) : NULL;
    for (size_t i = 0; op && i < node->count; ++i) {
      const tree_t* attr = node->kids[i];
      if (attr->kind != TREE_ATTR || tree_find(attr, 6)) continue;
      bool is_new = w->seen_count < MOST_ATTRS;
      for (size_t k = 0; k < w->seen_count; ++k) {
        is_new =
            is_new && !(tree_is(op, w->seen[k].op) &&
                        w->seen[k].attr.size == attr->size &&
                        !memcmp(w->seen[k].attr.data, attr->data, attr->size));
      }
      if (!is_new) continue;
      seen_t* seen = &w->seen[w->seen_count++];
      snprintf(seen->op, sizeof(seen->op), "%.*s", (int)op->size,
               (const char*)op->data);
      pb_raw(&seen->attr, attr->data, attr->size);
    }
  }
  tree_free(tree);
  pb_free(&model);
}

static void try_row(void* self, const char* text) {
  wrong_t* w = self;
  pb_t model = row_model(text, &w->row);
  w->text = text;
  w->model = tree_parse(TREE_MODEL, 0, model.data, model.size);
  w->what = "as it is";
  import_changed(w);
  ++w->number;
  w->compat = PESTLE_ONNX_COMPAT_ORT;
  try_change(w, "as ONNX Runtime reads it");
  w->compat = PESTLE_ONNX_COMPAT_TEXT;
  try_opsets(w, w->model);
  try_graph(w, tree_find(w->model, 7), true);
  tree_free(w->model);
  pb_free(&model);
}

static void try_file(const char* file) {
  static wrong_t w;
  memset(&w, 0, sizeof(w));
  pestle_test_allocator_init(&w.memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&w.memory),
      .cache_dir = "",
      .no_cache = true,
      .backend_path = "/nonexistent",
      .threads = 1};
  assert_ok(pestle_context_create(&options, &w.context));
  rows_visit(file, note_attrs, &w);
  rows_visit(file, try_row, &w);
  pestle_context_release(w.context);
  pestle_test_allocator_check(&w.memory);
  for (size_t i = 0; i < w.seen_count; ++i)
    pb_free(&w.seen[i].attr);
  print_message("%s: %zu changes, %zu of them are read\n", file, w.tried,
                w.read);
  assert_int_equal(w.wrong, 0);
  assert_true(w.tried > 50000 / STEP && w.read > 10000 / STEP);
}

static void changes_onnx(void** state) {
  (void)state;
  try_file("onnx.txt");
}

static void changes_bounded(void** state) {
  (void)state;
  try_file("bounded.txt");
}

static void changes_ml(void** state) {
  (void)state;
  try_file("ml.txt");
}

static void changes_microsoft(void** state) {
  (void)state;
  try_file("microsoft.txt");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changes_onnx),
      cmocka_unit_test(changes_bounded),
      cmocka_unit_test(changes_ml),
      cmocka_unit_test(changes_microsoft),
  };
  return cmocka_run_group_tests_name("onnx_wrong", tests, NULL, NULL);
}
