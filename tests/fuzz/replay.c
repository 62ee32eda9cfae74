// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where it is not built: feeds the files named on the
// command line, and those in folders named there, to the fuzz target. With
// --mutations N before them each file is also changed N times by the target's own
// mutator, from seeds that are the same every time.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed);

enum { ROOM = 8192 };  // bytes that a change may add

static unsigned mutations;

// Each change is of what the last one made; 8 of them, and it begins anew.
static void replay_changed(const uint8_t* data, size_t size) {
  size_t room = size + ROOM, now = size;
  uint8_t* work = malloc(room);
  for (unsigned i = 0; work && i < mutations; ++i) {
    if (i % 8 == 0) {
      memcpy(work, data, size);
      now = size;
    }
    now = LLVMFuzzerCustomMutator(work, now, room, i);
    uint8_t* exact = malloc(now ? now : 1);
    if (!exact) break;
    memcpy(exact, work, now);
    LLVMFuzzerTestOneInput(exact, now);
    free(exact);
  }
  free(work);
}

static int replay_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return 1;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  // Its exact size, so that a sanitizer sees a read beyond the end.
  uint8_t* data = malloc(size > 0 ? (size_t)size : 1);
  if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
    fprintf(stderr, "cannot read %s\n", path);
    free(data);
    fclose(file);
    return 1;
  }
  fclose(file);
  LLVMFuzzerTestOneInput(data, (size_t)size);
  replay_changed(data, (size_t)size);
  free(data);
  return 0;
}

static int replay_folder(const char* path) {
  DIR* folder = opendir(path);
  if (!folder) return 1;
  int failures = 0, count = 0;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
    failures += replay_file(name);
    ++count;
  }
  closedir(folder);
  printf("%d inputs from %s\n", count, path);
  return failures;
}

int main(int argc, char** argv) {
  int failures = 0, first = 1;
  if (argc > 2 && !strcmp(argv[1], "--mutations")) {
    mutations = (unsigned)strtoul(argv[2], NULL, 10);
    first = 3;
  }
  for (int i = first; i < argc; ++i) {
    struct stat info;
    int is_folder = !stat(argv[i], &info) && S_ISDIR(info.st_mode);
    failures += is_folder ? replay_folder(argv[i]) : replay_file(argv[i]);
  }
  return failures != 0;
}
