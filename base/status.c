// SPDX-License-Identifier: Apache-2.0
// Statuses (pestle/status.h): a code, a sentence, where it was made, and notes that
// callers add. Text from outside is escaped as it comes in.
#include "pestle/status.h"

#include "base/status_copy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct note_t {
  struct note_t* next;
  char text[];
} note_t;

struct pestle_status_s {
  pestle_status_code_t code;
  int line;
  const char* file;
  note_t* first_note;
  note_t* last_note;
  const char* message;  // behind the struct, in the same block
  bool is_constant;
  atomic_uint holders;  // one of several changes nothing: it takes a copy
};

// What pestle_status_make() returns when malloc fails: one row per code, since
// the code is still known. Never written to and never freed.
#define CONSTANT_ROW(name, value, text) \
  {.code = PESTLE_STATUS_##name,        \
   .file = "",                          \
   .message = text,                     \
   .is_constant = true},
static const struct pestle_status_s constants[] = {
    PESTLE_STATUS_CODES(CONSTANT_ROW)};
#undef CONSTANT_ROW

typedef struct code_info_t {
  const char* name;
  const char* text;
} code_info_t;

static const code_info_t codes[] = {
#define CODE_ROW(name, value, text) {#name, text},
    PESTLE_STATUS_CODES(CODE_ROW)
#undef CODE_ROW
};

#define CODE_COUNTED(name, value, text) \
  _Static_assert(value < PESTLE_STATUS_CODE_COUNT, "codes have no gaps");
PESTLE_STATUS_CODES(CODE_COUNTED)
#undef CODE_COUNTED

// Outside of the table only by a caller's mistake.
static pestle_status_code_t known_code(pestle_status_code_t code) {
  return (unsigned)code < PESTLE_STATUS_CODE_COUNT ? code
                                                   : PESTLE_STATUS_INTERNAL;
}

// --- Control bytes ---
//
// Names out of a file become part of sentences: what would move a terminal's
// cursor or change its colours is written as "\\x1b". Line breaks and tabs, which
// the logs of drivers have, stay.

// How many bytes at |c| are a control character; those of two bytes are U+0080 to
// U+009F.
static size_t control_size(const unsigned char* c) {
  if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) return 2;
  bool is_control = c[0] < 0x20 && c[0] != '\n' && c[0] != '\t';
  return c[0] && (is_control || c[0] == 0x7f);
}

static size_t escaped_size(const char* text) {
  size_t size = 0;
  const unsigned char* c = (const unsigned char*)text;
  while (*c) {
    size_t control = control_size(c);
    size += control ? 4 * control : 1;
    c += control ? control : 1;
  }
  return size;
}

// Escapes |text| in its place, which has room for escaped_size() bytes and the
// end: from the end on, so that nothing is overwritten before it is read.
static void escape(char* text, size_t size, size_t escaped) {
  static const char digits[] = "0123456789abcdef";
  text[escaped] = '\0';
  while (escaped > size) {
    unsigned char c = (unsigned char)text[--size];
    unsigned char before = size ? (unsigned char)text[size - 1] : 0;
    size_t control = c >= 0x80 && c < 0xa0 && before == 0xc2
                         ? 2
                         : control_size((unsigned char[]){c, 0});
    for (size_t i = 0; i < (control ? control : 1); ++i) {
      if (i) c = (unsigned char)text[--size];
      if (control) {
        text[--escaped] = digits[c & 15];
        text[--escaped] = digits[c >> 4];
        text[--escaped] = 'x';
        text[--escaped] = '\\';
      } else {
        text[--escaped] = (char)c;
      }
    }
  }
}

// A text in a block that malloc() gave, |head| bytes behind its beginning; NULL
// when out of memory, or when |format| and |args| make none.
static char* make_text(size_t head, const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  size_t size = length < 0 ? 0 : (size_t)length;
  char* block = malloc(head + size + 1);
  if (block) {
    block[head] = '\0';
    if (size) vsnprintf(block + head, size + 1, format, again);
    size_t escaped = escaped_size(block + head);
    char* wider = escaped > size ? realloc(block, head + escaped + 1) : block;
    if (!wider) free(block);
    block = wider;
    if (block && escaped > size) escape(block + head, size, escaped);
  }
  va_end(again);
  return block;
}

pestle_status_t pestle_status_make_v(pestle_status_code_t code,
                                     const char* file, int line,
                                     const char* format, va_list args) {
  code = known_code(code);
  // OK is not a failure; whoever makes a status with it has a bug.
  if (code == PESTLE_STATUS_OK) code = PESTLE_STATUS_INTERNAL;
  if (!format) return (pestle_status_t)(uintptr_t)&constants[code];
  char* block = make_text(sizeof(struct pestle_status_s), format, args);
  if (!block) {
    // The cast is sound: is_constant is looked at before any write.
    return (pestle_status_t)(uintptr_t)&constants[code];
  }
  struct pestle_status_s* status = (struct pestle_status_s*)(void*)block;
  char* message = block + sizeof(*status);
  *status = (struct pestle_status_s){
      .code = code, .line = line, .file = file ? file : "", .message = message};
  atomic_init(&status->holders, 1u);
  return status;
}

pestle_status_t pestle_status_make(pestle_status_code_t code, const char* file,
                                   int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_status_t status = pestle_status_make_v(code, file, line, format, args);
  va_end(args);
  return status;
}

static void append_note(pestle_status_t status, note_t* note) {
  if (status->last_note) {
    status->last_note->next = note;
  } else {
    status->first_note = note;
  }
  status->last_note = note;
}

pestle_status_t pestle_status_retain(pestle_status_t status) {
  if (status && !status->is_constant) {
    atomic_fetch_add_explicit(&status->holders, 1u, memory_order_relaxed);
  }
  return status;
}

// |status|, or a copy of one that others hold too.
static pestle_status_t own(pestle_status_t status) {
  if (status->is_constant ||
      atomic_load_explicit(&status->holders, memory_order_acquire) == 1) {
    return status;
  }
  pestle_status_t copy = pestle_status_copy(status, status->code);
  pestle_status_release(status);
  return copy;
}

pestle_status_t pestle_status_annotate(pestle_status_t status,
                                       const char* format, ...) {
  if (!status || !format) return status;
  status = own(status);
  if (status->is_constant) return status;
  va_list args;
  va_start(args, format);
  char* block = make_text(offsetof(note_t, text), format, args);
  va_end(args);
  note_t* note = (note_t*)(void*)block;
  if (!note) return status;  // The note is lost, the failure is not.
  note->next = NULL;
  append_note(status, note);
  return status;
}

pestle_status_t pestle_status_copy(pestle_status_t status,
                                   pestle_status_code_t code) {
  pestle_status_t copy = pestle_status_make(code, status->file, status->line,
                                            "%s", status->message);
  for (const note_t* note = status->first_note; note; note = note->next) {
    copy = pestle_status_annotate(copy, "%s", note->text);
  }
  return copy;
}

pestle_status_t pestle_status_join(pestle_status_t primary,
                                   pestle_status_t secondary) {
  if (!primary) return secondary;
  if (!secondary) return primary;
  secondary = own(secondary);
  primary = pestle_status_annotate(primary, "then: %s: %s",
                                   pestle_status_code_name(secondary->code),
                                   secondary->message);
  if (!primary->is_constant && secondary->first_note) {
    append_note(primary, secondary->first_note);
    primary->last_note = secondary->last_note;
    secondary->first_note = NULL;
  }
  pestle_status_release(secondary);
  return primary;
}

void pestle_status_release(pestle_status_t status) {
  if (!status || status->is_constant ||
      atomic_fetch_sub_explicit(&status->holders, 1u, memory_order_acq_rel) !=
          1) {
    return;
  }
  for (note_t* note = status->first_note; note;) {
    note_t* next = note->next;
    free(note);
    note = next;
  }
  free(status);
}

pestle_status_code_t pestle_status_code(pestle_status_t status) {
  return status ? status->code : PESTLE_STATUS_OK;
}

const char* pestle_status_message(pestle_status_t status) {
  return status ? status->message : "ok";
}

const char* pestle_status_file(pestle_status_t status) {
  return status ? status->file : "";
}

int pestle_status_line(pestle_status_t status) {
  return status ? status->line : 0;
}

const char* pestle_status_note(pestle_status_t status, size_t index) {
  const note_t* note = status ? status->first_note : NULL;
  while (note && index) {
    note = note->next;
    --index;
  }
  return note ? note->text : NULL;
}

const char* pestle_status_code_name(pestle_status_code_t code) {
  return codes[known_code(code)].name;
}

const char* pestle_status_code_text(pestle_status_code_t code) {
  return codes[known_code(code)].text;
}

// Appends |text| at |length| as far as it fits and returns the new length.
static size_t put(char* buffer, size_t capacity, size_t length,
                  const char* text) {
  size_t size = strlen(text);
  if (length < capacity) {
    size_t room = capacity - length;
    memcpy(buffer + length, text, size < room ? size : room);
  }
  return length + size;
}

size_t pestle_status_format(pestle_status_t status, char* buffer,
                            size_t capacity) {
  if (!buffer) capacity = 0;
  size_t length = put(buffer, capacity, 0,
                      pestle_status_code_name(pestle_status_code(status)));
  if (status) {
    length = put(buffer, capacity, length, ": ");
    length = put(buffer, capacity, length, pestle_status_message(status));
    for (const note_t* note = status->first_note; note; note = note->next) {
      length = put(buffer, capacity, length, "; ");
      length = put(buffer, capacity, length, note->text);
    }
  }
  if (capacity) buffer[length < capacity ? length : capacity - 1] = '\0';
  return length;
}
