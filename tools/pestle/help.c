// SPDX-License-Identifier: Apache-2.0
// --help and the manual page, as the tables of command.h say.
#include <string.h>

#include "command.h"
#include "pestle/version.h"

// --- Text that is broken into lines ---

// |text| from column |at| on, its lines indented by |indent|, at most |width| wide,
// with a newline at its end. A word that is longer has a line of its own.
static void print_wrapped(FILE* out, const char* text, int at, int indent,
                          int width) {
  bool is_first = true;
  while (*text) {
    int size = (int)strcspn(text, " ");
    if (!is_first && at + 1 + size > width) {
      fprintf(out, "\n%*s", indent, "");
      at = indent;
    } else if (!is_first) {
      fputc(' ', out);
      ++at;
    }
    fprintf(out, "%.*s", size, text);
    at += size;
    is_first = false;
    text += size;
    text += strspn(text, " ");
  }
  fputc('\n', out);
}

static void print_paragraph(FILE* out, const char* text, int indent,
                            int width) {
  fprintf(out, "%*s", indent, "");
  print_wrapped(out, text, indent, indent, width);
}

// --- Help ---

static const char* const exits[] = {"done",
                                    "a comparison or check failed",
                                    "usage",
                                    "unsupported",
                                    "bad input",
                                    "resources",
                                    "Pestle's own fault"};
enum { EXIT_COUNT = sizeof(exits) / sizeof(exits[0]) };

static void print_option(FILE* out, const cli_option_row_t* o, int width) {
  char text[1024];
  bool glued = o->kind == CLI_MAYBE || !o->argument[0];
  (void)snprintf(text, sizeof(text), "%s%s%s%s", cli_dashes(o), o->name,
                 glued ? "" : " ", o->argument);
  fprintf(out, "  %s%s%s\n", cli_colour(out, CLI_BOLD), text,
          cli_colour(out, CLI_PLAIN));
  (void)snprintf(text, sizeof(text), "%s%s%s%s", o->help,
                 o->environment[0] ? " (also " : "", o->environment,
                 o->environment[0] ? ")" : "");
  print_paragraph(out, text, 8, width);
}

// Of all verbs where |bits| is 0.
static void print_examples(FILE* out, unsigned bits, int width) {
  fprintf(out, "\nexamples:\n");
  for (const cli_example_row_t* e = cli_examples; e->command; ++e) {
    if (!(e->verb & bits)) continue;
    print_paragraph(out, e->help, 2, width);
    fprintf(out, "      %s%s%s\n", cli_colour(out, CLI_BOLD), e->command,
            cli_colour(out, CLI_PLAIN));
  }
}

static bool has_examples(unsigned bit) {
  for (const cli_example_row_t* e = cli_examples; e->command; ++e) {
    if (e->verb & bit) return true;
  }
  return false;
}

static void print_verb_help(FILE* out, const cli_verb_row_t* verb, int width) {
  fprintf(out, "usage: pestle %s %s%s[options]\n\n", verb->name,
          verb->arguments, verb->arguments[0] ? " " : "");
  print_paragraph(out, verb->help, 0, width);
  if (has_examples(verb->bit)) print_examples(out, verb->bit, width);
  fprintf(out, "\noptions:\n");
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (cli_options[i].verbs & verb->bit)
      print_option(out, &cli_options[i], width);
  }
}

enum { NAME_WIDTH = 10 };

static void print_row(FILE* out, const char* name, const char* help,
                      int width) {
  fprintf(out, "  %s%-*s%s ", cli_colour(out, CLI_BOLD), NAME_WIDTH, name,
          cli_colour(out, CLI_PLAIN));
  print_wrapped(out, help, NAME_WIDTH + 3, NAME_WIDTH + 3, width);
}

static void print_all_help(FILE* out, int width) {
  fprintf(out, "usage: pestle VERB ... [options]\n\n");
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb)
    print_row(out, verb->name, verb->help, width);
  for (const cli_word_row_t* word = cli_words; word->name; ++word)
    print_row(out, word->name, word->help, width);
  fputc('\n', out);
  print_paragraph(out,
                  "'pestle VERB --help' lists a verb's options with examples, "
                  "and the variables that stand for them.",
                  0, width);
  fprintf(out, "\nother variables:\n");
  for (const cli_variable_row_t* v = cli_variables; v->name; ++v) {
    fprintf(out, "  %s\n", v->name);
    print_paragraph(out, v->help, 8, width);
  }
  fprintf(out, "\nexit codes:\n");
  for (int i = 0; i < EXIT_COUNT; ++i)
    fprintf(out, "  %d %s\n", i, exits[i]);
}

void cli_print_help(FILE* out, const cli_verb_row_t* verb) {
  int width = cli_terminal_width(out);
  if (verb) {
    print_verb_help(out, verb, width);
  } else {
    print_all_help(out, width);
  }
}

// --- The manual page ---

// Text of the tables, in which a '-' is one that can be typed, and no line begins
// with what roff takes for a request.
static void print_roff(FILE* out, const char* text) {
  if (*text == '.' || *text == '\'') fputs("\\&", out);
  for (; *text; ++text) {
    if (*text == '-') fputc('\\', out);
    if (*text == '\\') fputs("\\e", out);
    if (*text != '\\') fputc(*text, out);
  }
}

static void print_man_option(FILE* out, const cli_option_row_t* o) {
  fprintf(out, ".TP\n.B ");
  print_roff(out, cli_dashes(o));
  print_roff(out, o->name);
  const char* space = o->argument[0] && o->kind != CLI_MAYBE ? " " : "";
  fprintf(out, "%s%s\n", space, o->argument);
  print_roff(out, o->help);
  fputc('\n', out);
}

static void print_man_verb(FILE* out, const cli_verb_row_t* verb) {
  fprintf(out, ".SH %s\n.B pestle %s %s\n.PP\n", verb->name, verb->name,
          verb->arguments);
  print_roff(out, verb->help);
  fputc('\n', out);
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (cli_options[i].verbs & verb->bit)
      print_man_option(out, &cli_options[i]);
  }
  for (const cli_example_row_t* e = cli_examples; e->command; ++e) {
    if (!(e->verb & verb->bit)) continue;
    fprintf(out, ".PP\n");
    print_roff(out, e->help);
    fprintf(out, "\n.PP\n.RS\n.nf\n");
    print_roff(out, e->command);
    fprintf(out, "\n.fi\n.RE\n");
  }
}

void cli_print_man(FILE* out) {
  fprintf(
      out,
      ".TH PESTLE 1 \"\" \"pestle %s\"\n.SH NAME\npestle \\- compile and run "
      "tensor graphs\n.SH SYNOPSIS\n.B pestle\nVERB [options]\n",
      pestle_version());
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb)
    print_man_verb(out, verb);
  fprintf(out, ".SH ENVIRONMENT\n");
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (!cli_options[i].environment[0]) continue;
    fprintf(out, ".TP\n.B %s\nas --%s\n", cli_options[i].environment,
            cli_options[i].name);
  }
  for (const cli_variable_row_t* v = cli_variables; v->name; ++v) {
    fprintf(out, ".TP\n.B %s\n", v->name);
    print_roff(out, v->help);
    fputc('\n', out);
  }
  fprintf(out, ".SH EXIT STATUS\n");
  for (int i = 0; i < EXIT_COUNT; ++i)
    fprintf(out, ".TP\n.B %d\n%s\n", i, exits[i]);
}
