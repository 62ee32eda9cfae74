// SPDX-License-Identifier: Apache-2.0
// Files that are no models are named as what they are.
#include "frontend/foreign.h"

#include <stdlib.h>
#include <unistd.h>

#include "pestle/import.h"
#include "test.h"

typedef struct foreign_t {
  const char* bytes;
  size_t size;
  pestle_status_code_t code;
  const char* text;
} foreign_t;
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ROW(bytes, code, text) \
  {bytes, sizeof(bytes) - 1, PESTLE_STATUS_##code, text}

static const foreign_t files[] = {
    ROW("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        MALFORMED, "Git LFS"),
    ROW("\xef\xbb\xbf\r\n <!DOCTYPE HTML><html>", MALFORMED, "a page of HTML"),
    ROW("<HTML>", MALFORMED, "a page of HTML"),
    ROW("\x18\0\0\0ORTM\0\0\0\0", UNSUPPORTED, "ORT format"),
    ROW("\x1c\0\0\0TFL3", UNSUPPORTED, "TensorFlow Lite"),
    ROW("\x89HDF\r\n\x1a\n", UNSUPPORTED, "HDF5"),
    ROW("PK\3\4\24\0m/code/x.py m/constants.pkl m/data.pkl", UNSUPPORTED,
        "TorchScript"),
    ROW("PK\3\4\24\0archive/data.pkl", UNSUPPORTED, "PyTorch checkpoint"),
    ROW("PK\3\4\24\0x.npy", UNSUPPORTED, "numpy arrays"),
    ROW("PK\3\4\24\0model.onnx", UNSUPPORTED, "holds an ONNX model"),
    ROW("PK\3\4\24\0readme", UNSUPPORTED, "a zip archive"),
    ROW("\x80\2}q\0.", UNSUPPORTED, "a Python pickle"),
    ROW("\14\0\0\0\0\0\0\0{\"w\":[1]}    data", UNSUPPORTED, "safetensors"),
    ROW("\x1f\x8b\x08", INVALID_ARGUMENT, "gzip"),
    ROW("\x93NUMPY\1\0", INVALID_ARGUMENT, "a numpy array"),
    ROW("\x7f"
        "ELF\2\1\1",
        MALFORMED, "shared library"),
    ROW("<\n  ir_version: 8,\n  opset_import: [\"\" : 18]\n>\ng () => () {}",
        UNSUPPORTED, "an ONNX model as text"),
    ROW("ir_version: 8\ngraph {\n}\n", UNSUPPORTED, "protobuf's text"),
    ROW("{\"irVersion\": \"8\"}", UNSUPPORTED, "an ONNX model as JSON"),
    ROW("{ \"model_type\": \"x\"}", MALFORMED, "JSON, not a model"),
    ROW("<?xml version=\"1.0\"?>\n<net name=\"x\">", UNSUPPORTED, "OpenVINO"),
    ROW("HloModule jit_f", UNSUPPORTED, "XLA's HLO"),
    ROW("version https://hawser.github.com/spec/v1\noid sha256:00\n", MALFORMED,
        "Git LFS"),
    ROW("/annex/objects/SHA256E-s9--00.onnx\n", MALFORMED, "git-annex"),
    ROW("404: Not Found", MALFORMED, "no such file"),
    ROW("Entry not found", MALFORMED, "no such file"),
    ROW("Invalid username or password.", MALFORMED, "wants a login"),
    ROW("<!-- saved from -->\n<html>", MALFORMED, "a page of HTML"),
    ROW("\n<head><title>x", MALFORMED, "a page of HTML"),
    ROW("\15\0\0\0\0\0\0\0{\n \"w\":[1,2]}", UNSUPPORTED, "safetensors"),
    ROW("PK\5\6\0\0", MALFORMED, "a zip archive without files"),
    ROW("Rar!\x1a\7\1\0", INVALID_ARGUMENT, "RAR"),
    ROW("\4\x22\x4d\x18", INVALID_ARGUMENT, "lz4"),
    ROW("\x89PNG\r\n\x1a\n", INVALID_ARGUMENT, "a picture"),
    ROW("\xff\xd8\xff\xe0", INVALID_ARGUMENT, "a picture"),
    ROW("%PDF-1.7\n", INVALID_ARGUMENT, "PDF"),
    ROW("\xff\xfem\0o\0", MALFORMED, "UTF-16"),
    ROW("BC\xc0\xde\x35", UNSUPPORTED, "LLVM bitcode"),
    ROW("\3\2\x23\7\0\0", UNSUPPORTED, "SPIR-V"),
    ROW("7767517\n75 83\n", UNSUPPORTED, "ncnn"),
};

static const foreign_t protobufs[] = {
    ROW("\x08\x01\x12\x02\x0a\x00", UNSUPPORTED, "SavedModel"),
    ROW("\x0a\x03\x0a\x01x\x22\x02\x08\x1b", UNSUPPORTED,
        "a frozen TensorFlow graph"),
    ROW("\x08\x04\x12\x02\x0a\x00\xa2\x1f\x00", UNSUPPORTED, "Core ML"),
    ROW("\x0a\x01x\xa2\x06\x00", UNSUPPORTED, "Caffe"),
    ROW("\x0a\x07\x0a\x01x\x22\x02RN\x12\x01g\x5a\x00", MALFORMED,
        "an ONNX graph without a model"),
    ROW("\x08\x01\x10\x01\x42\x01x\x4a\x04\0\0\0\0", INVALID_ARGUMENT,
        "an ONNX tensor"),
};

static void expect(pestle_status_t status, const foreign_t* file) {
  assert_int_equal(pestle_status_code(status), file->code);
  assert_non_null(strstr(pestle_status_message(status), "'f'"));
  assert_non_null(strstr(pestle_status_message(status), file->text));
  pestle_status_release(status);
}

static void names_files(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i)
    expect(pestle_foreign_check("f", files[i].bytes, files[i].size), &files[i]);
}

// Weights may be any bytes, but for what lies where a file was not fetched.
static void names_stand_ins(void** state) {
  (void)state;
  static const char* const texts[] = {"Git LFS", "git-annex", "HTML",
                                      "no such file", "wants a login"};
  size_t told = 0;
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
    const foreign_t* f = &files[i];
    pestle_status_t status = pestle_foreign_check_data("f", f->bytes, f->size);
    told += status != NULL;
    bool stand_in = false;
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); ++k)
      stand_in |= strstr(f->text, texts[k]) != NULL;
    assert_int_equal(status != NULL, stand_in);
    if (status) expect(status, f);
  }
  assert_int_equal(told, 10);
  assert_ok(pestle_foreign_check_data("f", "", 0));
}

static void names_protobufs(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(protobufs) / sizeof(protobufs[0]); ++i) {
    assert_ok(pestle_foreign_check("f", protobufs[i].bytes, protobufs[i].size));
    expect(pestle_foreign_check_protobuf("f", protobufs[i].bytes,
                                         protobufs[i].size),
           &protobufs[i]);
  }
}

static pestle_status_t no_input(void* user, const pestle_model_input_t* input) {
  (void)user, (void)input;
  return NULL;
}

// Who asks for a model's inputs first, as the command does that is given some, hears
// the same. What is text is asked when it is read.
static void names_files_by_their_inputs(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent"};
  pestle_context_t* context;
  size_t told = 0;
  char path[] = "/tmp/pestle_foreign_XXXXXX";
  assert_ok(pestle_context_create(&options, &context));
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  for (size_t i = 0; i < ROWS(files) + ROWS(protobufs); ++i) {
    const foreign_t* f =
        i < ROWS(files) ? &files[i] : &protobufs[i - ROWS(files)];
    FILE* out = fopen(path, "wb");
    assert_int_equal(fwrite(f->bytes, 1, f->size, out), f->size);
    fclose(out);
    pestle_status_t status =
        pestle_import_visit_inputs(context, path, no_input, NULL);
    if (!status) continue;
    ++told;
    assert_int_equal(pestle_status_code(status), f->code);
    assert_non_null(strstr(pestle_status_message(status), f->text));
    pestle_status_release(status);
  }
  assert_true(told >= ROWS(files) / 2);
  remove(path);
  pestle_context_release(context);
}

// Every beginning of them too, in memory that ends with it.
static void reads_no_further(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
    for (size_t size = 0; size < files[i].size; ++size) {
      char* copy = malloc(size + 1);
      memcpy(copy, files[i].bytes, size);
      char* exact = realloc(copy, size ? size : 1);
      pestle_status_release(pestle_foreign_check("f", exact, size));
      pestle_status_release(pestle_foreign_check_protobuf("f", exact, size));
      free(exact);
    }
  }
}

static void leaves_models_alone(void** state) {
  (void)state;
  static const char* const texts[] = {
      "module @m {\n}\n",
      "// a comment\nfunc.func @main() { return }",
      "#loc = loc(unknown)\nmodule {}",
      "\"builtin.module\"() ({\n}) : () -> ()",
      "",
      "{",
      "<",
      "PK"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
    assert_ok(pestle_foreign_check("f", texts[i], strlen(texts[i])));
  // ONNX: IR version 8, a producer, a graph.
  static const char onnx[] = "\x08\x08\x12\x01p\x3a\x00";
  assert_ok(pestle_foreign_check("f", onnx, sizeof(onnx) - 1));
  assert_ok(pestle_foreign_check_protobuf("f", onnx, sizeof(onnx) - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_files),
      cmocka_unit_test(names_stand_ins),
      cmocka_unit_test(names_protobufs),
      cmocka_unit_test(reads_no_further),
      cmocka_unit_test(leaves_models_alone),
      cmocka_unit_test(names_files_by_their_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
