// SPDX-License-Identifier: Apache-2.0
// The command with plugins in its folder that crash or hang: every verb works
// and says what was refused. A file that came back from its child is opened
// without one afterwards, until anything about it changes. Who opened what is
// counted by the plugins, which write a line in each process that they see.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"

static char temporary[256];
static char printed[1 << 16];

static const char* in(const char* folder, const char* file) {
  static char paths[8][512];
  static unsigned next;
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, file);
  return strcpy(paths[next++ % 8], path);
}

static int shell(const char* line) {
  FILE* pipe = popen(line, "r");
  assert_non_null(pipe);
  size_t size = fread(printed, 1, sizeof(printed) - 1, pipe);
  printed[size] = 0;
  return pclose(pipe);
}

// Runs "pestle |words|" with the test's folders, after |variables|.
static int pestle_with(const char* variables, const char* words) {
  char line[4096];
  snprintf(line, sizeof(line),
           "FAKE_NOTES='%s' PESTLE_CACHE_DIR='%s' PESTLE_BACKEND_PATH='%s' "
           "%s '%s/pestle' %s 2>&1",
           in(temporary, "notes"), in(temporary, "cache"),
           in(temporary, "plugins"), variables, getenv("PESTLE_BUILD_DIR"),
           words);
  return shell(line);
}

static void expect_ok(const char* variables, const char* words) {
  int end = pestle_with(variables, words);
  if (end) print_error("pestle %s: %d\n%s\n", words, end, printed);
  assert_int_equal(end, 0);
}

// "run" and the graph that it runs.
static const char* graph(const char* verb, const char* rest) {
  static char words[2048];
  snprintf(words, sizeof(words), "%s '%s' %s", verb,
           in(temporary, "graph.mlir"), rest);
  return words;
}

#define RUN graph("run", "--device ref --input x=random:1")

#define DUMP graph("dump", "--device ref --stage plan")

// The processes that have opened |name| since the last call.
static int openings(const char* name) {
  static char text[1 << 12];
  int count = 0;
  FILE* notes = fopen(in(temporary, "notes"), "r");
  while (notes && fgets(text, sizeof(text), notes)) {
    size_t size = strlen(name);
    count += !strncmp(text, name, size) && text[size] == ' ';
  }
  if (notes) fclose(notes);
  return count;
}

static int openings_of_run(const char* name, const char* words) {
  unlink(in(temporary, "notes"));
  expect_ok("", words);
  return openings(name);
}

// The path of a copy of |name| in the folder of plugins.
static const char* plugin_file(const char* name) {
  char file[128];
  snprintf(file, sizeof(file), "plugins/libpestle-%s.so", name);
  return in(temporary, file);
}

static void add_plugin(const char* name) {
  char line[1200];
  snprintf(line, sizeof(line), "cp '%s/libpestle-%s.so' '%s'", ZOO_FOLDER, name,
           plugin_file(name));
  assert_int_equal(shell(line), 0);
}

// --- One that is good ---

static void test_once(void** state) {
  (void)state;
  add_plugin("noter");
  assert_int_equal(openings_of_run("noter", RUN), 2);  // a child, and itself
  assert_int_equal(openings_of_run("noter", RUN), 1);
  assert_int_equal(openings_of_run("noter", DUMP), 1);
  expect_ok("", graph("run", "--device ref --input x=random:1 --log debug"));
  assert_null(strstr(printed, "tried in a child"));
}

static void test_changes(void** state) {
  (void)state;
  char line[1200];
  snprintf(line, sizeof(line), "touch '%s'", plugin_file("noter"));
  assert_int_equal(shell(line), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
  // The old time put back: the inode's own time tells.
  snprintf(line, sizeof(line), "touch -d '2001-01-01' '%s'",
           plugin_file("noter"));
  assert_int_equal(shell(line), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(shell(line), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
  // Another file of the same bytes in its place.
  snprintf(line, sizeof(line), "cp -p '%s' '%s' && mv '%s' '%s'",
           plugin_file("noter"), in(temporary, "plugins/new"),
           in(temporary, "plugins/new"), plugin_file("noter"));
  assert_int_equal(shell(line), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
}

static void test_always(void** state) {
  (void)state;
  assert_int_equal(
      openings_of_run(
          "noter", graph("run", "--device ref --input x=random:1 --no-cache")),
      2);
  assert_int_equal(openings_of_run("noter", "plugins"), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
  expect_ok("", "cache stats");
  expect_ok("", "cache clear");
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
}

// --- The record ---

static const char* record_path(void) {
  char line[600];
  static char path[512];
  snprintf(line, sizeof(line), "ls -d '%s'/t-*", in(temporary, "cache"));
  assert_int_equal(shell(line), 0);
  size_t size = strcspn(printed, "\n");
  assert_string_equal(printed + size, "\n");  // one alone
  snprintf(path, sizeof(path), "%.*s", (int)size, printed);
  return path;
}

static void write_record(pestle_str_t text) {
  const char* path = record_path();
  assert_ok(pestle_file_write(path, text));
  assert_int_equal(chmod(path, 0600), 0);
}

static void test_damage(void** state) {
  (void)state;
  pestle_allocator_t a = pestle_allocator_system();
  char* text;
  size_t size;
  assert_ok(pestle_file_read(record_path(), 1 << 16, a, &text, &size));
  for (size_t at = 0; at < size; at += 1 + size / 16) {
    text[at] ^= 1;
    write_record(pestle_str_make(text, size));
    text[at] ^= 1;
    assert_int_equal(openings_of_run("noter", RUN), 2);
    assert_int_equal(openings_of_run("noter", RUN), 1);  // it has healed
  }
  size_t cuts[] = {0, 1, size / 2, size - 1};
  for (size_t i = 0; i < 4; ++i) {
    write_record(pestle_str_make(text, cuts[i]));
    assert_int_equal(openings_of_run("noter", RUN), 2);
  }
  // One that others may write is not read, nor is a link.
  assert_int_equal(chmod(record_path(), 0622), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 1);
  pestle_dealloc(a, text, size + 1);
  const char* path = record_path();
  const char* moved = in(temporary, "record");
  assert_int_equal(rename(path, moved), 0);
  assert_int_equal(symlink(moved, path), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
}

// A forged record spares the child alone: the file is judged all the same.
static void test_forged(void** state) {
  (void)state;
  pestle_allocator_t a = pestle_allocator_system();
  char file[512];
  snprintf(file, sizeof(file), "%s", plugin_file("noter"));
  assert_int_equal(openings_of_run("noter", RUN), 1);
  assert_int_equal(chmod(file, 0646), 0);
  struct stat info;
  assert_int_equal(stat(file, &info), 0);
  char *text, forged[4096];
  size_t size;
  assert_ok(pestle_file_read(record_path(), 1 << 16, a, &text, &size));
  const char* line = strstr(text, "\nfile ");
  const char* after = strchr(line + 1, '\n');
  snprintf(forged, sizeof(forged), "%.*s\nfile %ju %ju %ju %jd %jd%s",
           (int)(line - text), text, (uintmax_t)info.st_dev,
           (uintmax_t)info.st_ino, (uintmax_t)info.st_size,
           (intmax_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
           (intmax_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec,
           after);
  write_record(pestle_str(forged));
  assert_int_equal(openings_of_run("noter", RUN), 0);
  assert_non_null(strstr(printed, "the file may be written by others"));
  pestle_dealloc(a, text, size + 1);
  assert_int_equal(chmod(file, 0644), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
}

// --- Those that do not come back ---

static void test_refused(void** state) {
  (void)state;
  static const char* const bad[] = {"initcrash", "ctorexit", "scorehang"};
  for (size_t i = 0; i < 3; ++i)
    add_plugin(bad[i]);
  static const char* const devices[] = {"ref", "llvm"};
  char line[1200];
  snprintf(line, sizeof(line),
           "ln -s '%s'/backends/libpestle-llvm*.so '%s' 2>&1",
           getenv("PESTLE_BUILD_DIR"), in(temporary, "plugins"));
  bool has_llvm = !shell(line);
  // A hang costs its time at each call: here once.
  for (size_t i = 0; i < (has_llvm ? 2 : 1); ++i) {
    char words[200];
    snprintf(words, sizeof(words), "--device %s --input x=random:1",
             devices[i]);
    expect_ok("", graph("run", words));
    assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
    assert_non_null(strstr(printed, "ended the process in its constructors"));
    const char* late = "did not come back from pestle_backend_score within 5";
    assert_int_equal(strstr(printed, late) != NULL, i == 0);
    unlink(plugin_file("scorehang"));
    snprintf(words, sizeof(words), "--device %s --stage plan", devices[i]);
    expect_ok("", graph("dump", words));
    assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  }
  snprintf(line, sizeof(line), "-o '%s'", in(temporary, "graph.plan"));
  expect_ok("", graph("compile", line));
  assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  // Never remembered.
  expect_ok("", RUN);
  assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  for (size_t i = 0; i < 2; ++i)
    unlink(plugin_file(bad[i]));
}

// Who asks for a cpu does not have a driver woken, not in a child either; who
// asks for a gpu then has the rest tried.
static void test_other_type(void** state) {
  (void)state;
  add_plugin("othertype");
  expect_ok("", RUN);
  assert_null(strstr(printed, "othertype"));
  assert_int_equal(openings_of_run("othertype", RUN), 1);
  assert_int_not_equal(
      pestle_with("", graph("run", "--device othertype --input x=random:1")),
      0);
  assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  // And now nothing good is known of it.
  unlink(in(temporary, "notes"));
  expect_ok("", RUN);
  assert_int_equal(openings("othertype"), 1);  // the child, which it put off
  assert_int_equal(openings_of_run("othertype", RUN), 1);
  unlink(plugin_file("othertype"));
}

// A score of 0 is no remembered refusal: it is asked for each time, without a
// child.
static void test_score(void** state) {
  (void)state;
  add_plugin("nohardware");
  assert_int_equal(openings_of_run("nohardware", RUN), 1);  // a child
  expect_ok("", graph("run", "--device ref --input x=random:1 --log debug"));
  assert_null(strstr(printed, "tried in a child"));
  assert_non_null(strstr(printed, "no flux capacitor"));
  add_plugin("justtarget");
  for (int i = 0; i < 2; ++i) {
    expect_ok("", graph("dump",
                        "--stage source --log debug "
                        "--target justtarget"));
    bool tried = strstr(printed, "tried in a child") != NULL;
    assert_int_equal(tried, i == 0);
    assert_non_null(strstr(printed, "compiles only"));
  }
  unlink(plugin_file("nohardware"));
  unlink(plugin_file("justtarget"));
}

// What has told its score alone is tried anew where it would start.
static void test_card(void** state) {
  (void)state;
  add_plugin("card");
  unlink(in(temporary, "notes"));
  for (int i = 1; i <= 2; ++i) {
    expect_ok("FAKE_NO_CARD=1", RUN);
    assert_int_equal(openings("card"), i);  // a child, and itself
  }
  for (int i = 0; i < 2; ++i) {
    expect_ok("", graph("run", "--device ref --input x=random:1 --log debug"));
    assert_int_equal(strstr(printed, "tried in a child") != NULL, i == 0);
    assert_non_null(strstr(printed, "backend card: score 3"));
  }
  unlink(plugin_file("card"));
}

// In a folder that others can write into nothing is remembered.
static void test_open_folder(void** state) {
  (void)state;
  add_plugin("noter");
  expect_ok("", RUN);
  assert_int_equal(openings_of_run("noter", RUN), 1);
  assert_int_equal(chmod(in(temporary, "cache"), 0777), 0);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(openings_of_run("noter", RUN), 2);
  assert_int_equal(chmod(in(temporary, "cache"), 0700), 0);
}

// What changes around a file is not seen; a child that does not come back makes
// it forgotten.
static void test_forgotten(void** state) {
  (void)state;
  add_plugin("moody");
  expect_ok("", RUN);
  assert_int_equal(openings_of_run("moody", RUN), 1);
  expect_ok("FAKE_CRASH=1", "plugins --why");
  assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  expect_ok("FAKE_CRASH=1", RUN);
  assert_non_null(strstr(printed, "crashed in pestle_backend_init"));
  unlink(plugin_file("moody"));
}

// --- All ---

static int make_folder(void** state) {
  (void)state;
  const char* base = getenv("TMPDIR");
  snprintf(temporary, sizeof(temporary), "%s/pestle-tried-XXXXXX",
           base && *base ? base : "/tmp");
  if (!mkdtemp(temporary) || chmod(temporary, 0755)) return -1;
  pestle_status_t status = pestle_file_write(
      in(temporary, "graph.mlir"),
      pestle_str("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                 "  %y = stablehlo.add %x, %x : tensor<4xf32>\n"
                 "  return %y : tensor<4xf32>\n}\n"));
  assert_ok(status);
  return mkdir(in(temporary, "plugins"), 0755);
}

static int remove_folder(void** state) {
  (void)state;
  char line[300];
  snprintf(line, sizeof(line), "rm -rf '%s'", temporary);
  return system(line);
}

int main(void) {
  if (!getenv("PESTLE_BUILD_DIR")) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_once),       cmocka_unit_test(test_changes),
      cmocka_unit_test(test_always),     cmocka_unit_test(test_damage),
      cmocka_unit_test(test_forged),     cmocka_unit_test(test_refused),
      cmocka_unit_test(test_other_type), cmocka_unit_test(test_score),
      cmocka_unit_test(test_card),       cmocka_unit_test(test_open_folder),
      cmocka_unit_test(test_forgotten),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
