#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site of the documentation: the pages of docs/ and their kin as they are,
and a page for each public header, from what its comments say.

usage: docs_site.py OUT     run by a Python that has tools/requirements-docs.txt;
                            doxygen is in PATH

The pages and what they link to are copied to OUT-src, in the same folders, so that the
links that GitHub follows are those of the site. Doxygen reads the headers, Breathe makes
pages of what it found, Sphinx (MyST, Furo) makes HTML with a search. Every warning of
Sphinx is an error.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "bench/**/*.md",
         "plugins/*/README.md"]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")

CONF = '''# Written by tools/docs_site.py.
project = "Pestle"
author = "the authors of Pestle"
copyright = "the authors of Pestle; Apache-2.0"
version = release = "{version}"
extensions = ["myst_parser", "breathe"]
root_doc = "docs/index"
exclude_patterns = ["xml"]
html_theme = "furo"
html_title = "Pestle {version}"
html_copy_source = False
smartquotes = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
breathe_projects = {{"pestle": "{xml}"}}
breathe_default_project = "pestle"
breathe_domain_by_extension = {{"h": "c", "def": "c"}}
primary_domain = "c"
highlight_language = "text"


def setup(app):
    """MLIR is shown as it is: Pygments has no lexer of it."""
    from pygments.lexers.special import TextLexer
    app.add_lexer("mlir", TextLexer)
'''

DOXYFILE = '''
PROJECT_NAME = Pestle
INPUT = {include}
FILE_PATTERNS = *.h
STRIP_FROM_PATH = {root}
STRIP_FROM_INC_PATH = {include}/..
OUTPUT_DIRECTORY = {out}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
HIDE_UNDOC_MEMBERS = NO
OPTIMIZE_OUTPUT_FOR_C = YES
MARKDOWN_SUPPORT = NO
AUTOLINK_SUPPORT = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = PESTLE_API= PESTLE_NODISCARD= PESTLE_EXTERN_C_BEGIN= PESTLE_EXTERN_C_END= "PESTLE_PRINTF(a,b)="
SKIP_FUNCTION_MACROS = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
WARNINGS = NO
INPUT_FILTER = "{python} {script} --filter"
'''


def documented(text, passing, told):
    """A header whose plain comments are Doxygen's: the one at its head is the file's,
    one before a declaration is that one's, one behind a member is that member's. Macros
    of the names |passing| and the handles |told| by another header are left out, and a
    struct is not its own typedef too."""
    for kind, name in re.findall(r"^typedef (struct|union) (\w+) \{", text, re.M):
        text = text.replace(f"typedef {kind} {name} {{", f"{kind} {name} {{")
        text = re.sub(rf"(?m)^\}} {name};", "};", text)
    text = re.sub(rf"(?m)^ *#\s*define ({'|'.join(passing)})\b(?:.*\\\n)*.*\n", "", text)
    text = re.sub(r"(?m)^ *#\s*undef .*\n", "", text)
    for name in told:
        text = re.sub(rf"(?m)^typedef struct \w+ {name};.*\n", "", text)
    out, at_head, code = [], True, False
    for line in text.split("\n"):
        if "SPDX-License-Identifier" in line:
            out.append("/// @file")
            continue
        comment = re.match(r"(\s*)//(.*)$", line)
        # Lines that are set in behind an empty one are code.
        sets_in = bool(comment) and comment[2].startswith("   ")
        if code and not sets_in:
            out.append("/// @endcode")
            code = False
        elif sets_in and not code and out and out[-1].strip() == "///":
            out.append("/// @code{.unparsed}")
            code = True
        if code:
            out.append(f"///{comment[2]}")
            continue
        if comment and comment[2].strip().startswith("---"):
            out.append("")  # a heading of a section
        elif comment:
            out.append(f"{comment[1]}///{escape(comment[2])}")
        else:
            if at_head:
                out.append("")
            behind = re.match(r"(.*[;,{}].*?)\s//\s?(.*)$", line)
            out.append(f"{behind[1]} ///< {escape(behind[2])}" if behind else line)
        at_head = at_head and bool(comment)
    return "\n".join(out)


def passing_macros():
    """Macros that a header defines for a table and takes back, or that several define."""
    names, undone = [], set()
    for file in [*(ROOT / "include/pestle").glob("*.h"), *(ROOT / "include/pestle").glob("*.def")]:
        text = file.read_text(encoding="utf-8")
        undone |= set(re.findall(r"#\s*undef (\w+)", text))
        names += set(re.findall(r"#\s*define (\w+)", text))
    return sorted(undone | {n for n in names if names.count(n) > 1})


def told_before(header):
    """The names of handles that |header| declares and an earlier header too."""
    handles = r"(?m)^typedef struct \w+ (\w+);"
    earlier = {name for other in headers() if other < header
               for name in re.findall(handles, other.read_text(encoding="utf-8"))}
    return earlier & set(re.findall(handles, header.read_text(encoding="utf-8")))


def escape(text):
    """Comments are plain text: what is between bars is a name, and Doxygen's own marks
    and HTML are none."""
    text = re.sub(r"([\\@<>&#%$])", r"\\\1", text)
    return re.sub(r"\|(\*?[\w.\->\[\]*]+)\|", r"\1", text)


def version():
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(pestle VERSION ([\d.]+)", cmake)[1]


def headers():
    return sorted((ROOT / "include/pestle").glob("*.h"))


def summary(header):
    """The first sentence of the comment at a header's head."""
    text = header.read_text(encoding="utf-8")
    comment = " ".join(line[2:].strip() for line in text.split("\n")[1:12]
                       if line.startswith("//"))
    return comment.split(". ")[0].rstrip(".") + "."


def stage(source):
    """Copies the pages, and the files that they link to, into |source|."""
    pages = sorted({p for pattern in PAGES for p in ROOT.glob(pattern)})
    for page in pages:
        text = page.read_text(encoding="utf-8")
        copy = source / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not re.search(r"^# ", text, re.M):  # a generated table
            text = f"# {page.parent.name.capitalize()} of {page.stem}\n\n{text}"
        copy.write_text(text, encoding="utf-8")
        for link in LINK.findall(text):
            target = (page.parent / link).resolve()
            if target.is_file() and target.suffix != ".md":
                to = source / target.relative_to(ROOT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, to)
    api = source / "docs/api"
    api.mkdir(parents=True, exist_ok=True)
    rows = []
    for header in headers():
        name = header.stem
        (api / f"{name}.md").write_text(
            f"# pestle/{header.name}\n\n```{{doxygenfile}} {header.name}\n```\n",
            encoding="utf-8")
        rows.append(f"| [pestle/{header.name}]({name}.md) | {summary(header)} |".replace(
            "|*", "*"))
    names = "\n".join(h.stem for h in headers())
    (api / "index.md").write_text(
        "# C interface\n\nWhat the headers in `include/pestle/` say.\n\n"
        "| Header | |\n|---|---|\n" + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n", encoding="utf-8")


def main(out):
    source = out.parent / f"{out.name}-src"
    for folder in (out, source):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    stage(source)
    doxyfile = source / "Doxyfile"
    doxyfile.write_text(DOXYFILE.format(include=ROOT / "include/pestle", root=ROOT,
                                        out=source, python=sys.executable,
                                        script=pathlib.Path(__file__).resolve()),
                        encoding="utf-8")
    subprocess.run(["doxygen", doxyfile], check=True)
    (source / "conf.py").write_text(CONF.format(version=version(), xml=source / "xml"),
                                    encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q",
                           "-b", "html", source, out], check=False)
    if not done.returncode:
        (out / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><title>Pestle</title>'
            '<meta http-equiv="refresh" content="0; url=docs/index.html">'
            '<a href="docs/index.html">Pestle</a>\n', encoding="utf-8")
        print(f"{out / 'index.html'}: {len(list(out.rglob('*.html')))} pages")
    return done.returncode


if __name__ == "__main__":
    if sys.argv[1:2] == ["--filter"]:
        read = pathlib.Path(sys.argv[2]).resolve()
        print(documented(read.read_text(encoding="utf-8"), passing_macros(),
                         told_before(read)))
        sys.exit(0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
