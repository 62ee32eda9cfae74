// SPDX-License-Identifier: Apache-2.0
// Telling files that are no models by their first bytes (foreign.def), by what an
// archive holds, and by the fields of a protobuf.
#include "frontend/foreign.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "frontend/onnx/proto.h"

enum { ANY_TEXT = -1 };

typedef struct row_t {
  int offset;
  size_t size;
  const char* bytes;
  pestle_status_code_t code;
  const char *what, *advice;
} row_t;

#define ROW(offset, bytes, code, what, advice) \
  {offset, sizeof(bytes) - 1, bytes, PESTLE_STATUS_##code, what, advice},
static const row_t rows[] = {
#define PESTLE_FOREIGN ROW
#include "frontend/foreign.def"
};

static const row_t stand_ins[] = {
#define PESTLE_STAND_IN ROW
#include "frontend/foreign.def"
};

typedef struct file_t {
  const char* name;
  const unsigned char* data;
  size_t size;
} file_t;

static pestle_status_t say(const file_t* file, pestle_status_code_t code,
                           const char* what, const char* advice) {
  return pestle_status_make(code, __FILE__, __LINE__, "'%s' is %s: %s",
                            file->name, what, advice);
}

// --- By bytes ---

static bool has_bytes(const file_t* file, size_t offset, const char* bytes,
                      size_t size) {
  return file->size >= size && offset <= file->size - size &&
         !memcmp(file->data + offset, bytes, size);
}

static size_t skip_space(const file_t* file) {
  size_t at = has_bytes(file, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
  while (at < file->size && strchr(" \t\r\n", file->data[at]) &&
         file->data[at]) {
    ++at;
  }
  return at;
}

static int lower(int c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// Whether |text|, in lower case, is at |offset|.
static bool has_text(const file_t* file, size_t offset, const char* text,
                     size_t size) {
  if (offset > file->size || file->size - offset < size) return false;
  for (size_t i = 0; i < size; ++i) {
    if (lower(file->data[offset + i]) != text[i]) return false;
  }
  return true;
}

static bool fits(const file_t* file, const row_t* row) {
  return row->offset == ANY_TEXT
             ? has_text(file, skip_space(file), row->bytes, row->size)
             : has_bytes(file, (size_t)row->offset, row->bytes, row->size);
}

// Whether |text| occurs in [begin, end).
static bool holds(const file_t* file, size_t begin, size_t end,
                  const char* text) {
  size_t size = strlen(text);
  if (end > file->size) end = file->size;
  for (size_t at = begin; at + size <= end; ++at) {
    if (!memcmp(file->data + at, text, size)) return true;
  }
  return false;
}

// --- Archives ---

// The names of a zip's files are in its directory, at its end.
static pestle_status_t check_zip(const file_t* file) {
  static const struct {
    const char *name, *what, *advice;
  } kinds[] = {
      {"constants.pkl", "a TorchScript archive",
       "export the model to ONNX (torch.onnx.export)"},
      {"serialized_exported_program", "a program of torch.export",
       "export the model to ONNX (torch.onnx.export)"},
      {"models/model.json", "a program of torch.export",
       "export the model to ONNX (torch.onnx.export)"},
      {"data.pkl", "a PyTorch checkpoint, weights without the operations",
       "load it in PyTorch and export the model (torch.onnx.export)"},
      {"model.weights.h5", "a Keras model", "convert it with tf2onnx"},
      {"saved_model.pb", "a zip archive of a TensorFlow SavedModel",
       "unpack it and convert its folder with tf2onnx"},
      {".onnx", "a zip archive that holds an ONNX model",
       "unpack it first ('unzip')"},
      {".npy", "an archive of numpy arrays, not a model",
       "arrays go with --input NAME=FILE.npy or --inputs DIR"},
  };
  enum { DIRECTORY = 1 << 18 };
  if (!has_bytes(file, 0, "PK\x03\x04", 4)) return NULL;
  size_t begin = file->size > DIRECTORY ? file->size - DIRECTORY : 0;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    if (holds(file, begin, file->size, kinds[i].name)) {
      return say(file, PESTLE_STATUS_UNSUPPORTED, kinds[i].what,
                 kinds[i].advice);
    }
  }
  return say(file, PESTLE_STATUS_UNSUPPORTED, "a zip archive",
             "unpack it first ('unzip')");
}

// A Python pickle begins with its version and ends with a point.
static pestle_status_t check_pickle(const file_t* file) {
  if (file->size < 4 || file->data[0] != 0x80 || file->data[1] < 2 ||
      file->data[1] > 5 || file->data[file->size - 1] != '.') {
    return NULL;
  }
  return say(file, PESTLE_STATUS_UNSUPPORTED,
             "a Python pickle, as PyTorch once saved models and scikit-learn "
             "does",
             "load it in Python and export the model to ONNX");
}

// The length of a JSON header, and then that.
static pestle_status_t check_safetensors(const file_t* file) {
  if (file->size < 10) return NULL;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | file->data[i];
  if (length < 2 || length > file->size - 8 || file->data[8] != '{')
    return NULL;
  size_t end = length < 4096 ? 8 + (size_t)length : 8 + 4096;
  if (file->data[9] != '"' && file->data[9] != '}' &&
      !holds(file, 8, end, "\":")) {
    return NULL;
  }
  return say(file, PESTLE_STATUS_UNSUPPORTED,
             "a safetensors file, weights without the model's operations",
             "export the model to ONNX, or to StableHLO as text");
}

// --- Text ---

static pestle_status_t check_text(const file_t* file) {
  size_t at = skip_space(file), end = at + 4096;
  if (has_text(file, at, "<", 1) && holds(file, at, end, "ir_version")) {
    return say(file, PESTLE_STATUS_UNSUPPORTED, "an ONNX model as text",
               "write it as binary: onnx.save(onnx.parser.parse_model(text), "
               "FILE)");
  }
  if (has_text(file, at, "<?xml", 5)) {
    bool net = holds(file, at, end, "<net ");
    return say(file, PESTLE_STATUS_UNSUPPORTED,
               net ? "the XML of an OpenVINO model" : "XML, not a model",
               "use the ONNX file that it was made from");
  }
  if (!has_text(file, at, "{", 1)) return NULL;
  // MLIR's text begins with a brace as little as with a bracket.
  bool onnx = holds(file, at, end, "\"irVersion\"") ||
              holds(file, at, end, "\"ir_version\"");
  if (onnx) {
    return say(file, PESTLE_STATUS_UNSUPPORTED, "an ONNX model as JSON",
               "write it as binary: google.protobuf.json_format.Parse() and "
               "onnx.save()");
  }
  if (!holds(file, at, end, "\":")) return NULL;
  return say(file, PESTLE_STATUS_MALFORMED, "JSON, not a model",
             "a model is ONNX, Pestle or StableHLO text, or Pestle's binary "
             "form");
}

pestle_status_t pestle_foreign_check(const char* name, const void* data,
                                     size_t size) {
  const file_t file = {name, data, size};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    const row_t* row = &rows[i];
    if (fits(&file, row)) return say(&file, row->code, row->what, row->advice);
  }
  pestle_status_t (*const checks[])(const file_t*) = {
      check_zip, check_pickle, check_safetensors, check_text};
  for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); ++i) {
    pestle_status_t status = checks[i](&file);
    if (status) return status;
  }
  return NULL;
}

pestle_status_t pestle_foreign_check_data(const char* name, const void* data,
                                          size_t size) {
  const file_t file = {name, data, size};
  for (size_t i = 0; i < sizeof(stand_ins) / sizeof(stand_ins[0]); ++i) {
    const row_t* row = &stand_ins[i];
    if (fits(&file, row)) return say(&file, row->code, row->what, row->advice);
  }
  return NULL;
}

// --- Protobufs ---

// The fields of the outermost message; numbers of 63 and more are one.
typedef struct fields_t {
  uint64_t varints, bytes;
  uint64_t first;  // field 1, if it is a number
} fields_t;

static bool read_fields(const file_t* file, fields_t* out) {
  pestle_proto_t message = pestle_proto_make(file->data, file->size);
  *out = (fields_t){0};
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    pestle_status_t status = pestle_proto_next(&message, &field, &more);
    if (status) {
      pestle_status_release(status);
      return false;
    }
    if (!more) return true;
    uint64_t bit = UINT64_C(1) << (field.number < 63 ? field.number : 63);
    if (field.wire == PESTLE_PROTO_BYTES) out->bytes |= bit;
    if (field.wire == PESTLE_PROTO_VARINT) out->varints |= bit;
    if (field.number == 1 && field.wire == PESTLE_PROTO_VARINT)
      out->first = field.value;
  }
}

static bool has(uint64_t fields, unsigned number) {
  return fields >> number & 1;
}

pestle_status_t pestle_foreign_check_protobuf(const char* name,
                                              const void* data, size_t size) {
  const file_t file = {name, data, size};
  fields_t f;
  if (!read_fields(&file, &f) || has(f.bytes, 7)) return NULL;
  // SavedModel: its version, meta graphs.
  if (f.first == 1 && has(f.bytes, 2) && f.bytes == 1u << 2) {
    return say(&file, PESTLE_STATUS_UNSUPPORTED, "a TensorFlow SavedModel",
               "convert its folder with 'python -m tf2onnx.convert "
               "--saved-model FOLDER --output FILE.onnx'");
  }
  // GraphDef: nodes, versions.
  if (has(f.bytes, 1) && !(f.bytes & ~UINT64_C(0x16)) && has(f.bytes, 4)) {
    return say(&file, PESTLE_STATUS_UNSUPPORTED, "a frozen TensorFlow graph",
               "convert it with 'python -m tf2onnx.convert --graphdef FILE "
               "--inputs ... --outputs ...'");
  }
  // Core ML: its version, a description, the kind of model from 200 on. Caffe:
  // a name, layers as field 100.
  if (has(f.bytes, 63) && f.first && has(f.bytes, 2)) {
    return say(&file, PESTLE_STATUS_UNSUPPORTED, "a Core ML model",
               "export what it was made from to ONNX");
  }
  if (has(f.bytes, 63) && has(f.bytes, 1)) {
    return say(&file, PESTLE_STATUS_UNSUPPORTED, "a Caffe model",
               "convert it to ONNX");
  }
  // GraphProto: nodes, and what goes in or out; ModelProto's field 1 is a number.
  if (has(f.bytes, 1) && (has(f.bytes, 11) || has(f.bytes, 12)) &&
      !(f.bytes & ~UINT64_C(0x1fc26))) {
    return say(&file, PESTLE_STATUS_MALFORMED, "an ONNX graph without a model",
               "onnx.helper.make_model(graph) says its opset, onnx.save() "
               "writes it");
  }
  // TensorProto: a data type, and a name or the data.
  if (has(f.varints, 2) && (has(f.bytes, 8) || has(f.bytes, 9))) {
    return say(&file, PESTLE_STATUS_INVALID_ARGUMENT,
               "an ONNX tensor, not a model",
               "tensors go with --inputs-pb FOLDER");
  }
  return NULL;
}
