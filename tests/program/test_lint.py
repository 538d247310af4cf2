"""tools/lint rejects what it should: each case is a small tree with one thing wrong, beside one
that is right."""
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.without_prony

LINT = Path(__file__).resolve().parents[2] / "tools" / "lint"

GOOD = {
    "src/base/README.md": "The ground.\n",
    "src/base/err.h": "#pragma once\n\nint err_set(void);\n",
    "src/base/err.c": '#include "base/err.h"\n\nint err_set(void)\n{\n    return -1;\n}\n',
    "src/load/README.md": "The load.\n",
    "src/load/load.c": '#include "base/err.h"\n#include "db/db.h"\n#include "watch/watch.h"\n',
    "tools/run": "#!/bin/sh\nset -e\n",
    "tools/count.py": "print(1)\n",
    ".clang-format": (LINT.parent.parent / ".clang-format").read_text(encoding="utf-8"),
}

# Words that lint looks for are put together, for this file is looked at too.
MARK = "TO" + "DO"


def run_lint(tmp_path, files):
    for name, text in {**GOOD, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return subprocess.run([LINT, "--root", tmp_path], capture_output=True, text=True, check=False)


def source(body):
    return f'#include "base/err.h"\n\nint f(char *a, const char *b)\n{{\n    {body}\n    return 0;\n}}\n'


def test_a_good_tree_passes(tmp_path):
    run = run_lint(tmp_path, {})
    assert run.stdout.endswith("0 findings\n"), run.stdout
    assert run.returncode == 0


REJECTED = {
    "layout": ({"src/base/a.c": "int  f(void);\n"}, "src/base/a.c:1: layout differs"),
    "layout of tests": ({"tests/unit/test_a.c": "int  f(void);\n"}, "test_a.c:1: layout differs"),
    "layout of benchmarks": ({"bench/a.c": "int  f(void);\n"}, "bench/a.c:1: layout differs"),
    "sprintf": ({"src/base/a.c": source('sprintf(a, "%s", b);')}, "a.c:5: sprintf is not used"),
    "strcpy": ({"src/base/a.c": source("strcpy(a, b);")}, "strcpy is not used"),
    "strcat in a header": (
        {"src/base/a.h": "#pragma once\n\n#define A(a, b) strcat(a, b)\n"}, "a.h:3: strcat is not"),
    "system": ({"src/base/a.c": source("(void)system(b);")}, "system is not used"),
    "gets": ({"src/base/a.c": source("gets(a);")}, "gets is not used"),
    "rand with a blank": ({"src/base/a.c": "int x = 0 + rand (); // clang-format off\n"}, "rand is"),
    "mark in C": ({"src/base/a.c": f"// {MARK}: later\n"}, f"a.c:1: leftover mark {MARK}"),
    "mark in text": ({"docs/a.md": f"a\nb {MARK}\n"}, f"docs/a.md:2: leftover mark {MARK}"),
    "upward include": (
        {"src/base/a.c": '#include "load/load.h"\n'}, "a.c:1: base may not use load"),
    "upward include with blanks": (
        {"src/base/a.c": '#  include   "cmd/cmd.h"\n'}, "base may not use cmd"),
    "sibling include": (
        {"src/watch/README.md": "\n", "src/watch/a.c": '#include "workload/workload.h"\n'},
        "watch may not use workload"),
    "include without its folder": ({"src/base/a.c": '#include "err.h"\n'}, 'src/: "base/err.h"'),
    "include by two dots": ({"src/base/a.c": '#include "../load/x.h"\n'}, "paths start at src/"),
    "unknown floor": (
        {"src/attic/README.md": "\n", "src/attic/a.c": "int a;\n"}, "src/attic is not among"),
    "header without pragma": ({"src/base/a.h": "int f(void);\n"}, "a.h:1: a header begins with"),
    "header with a late pragma": (
        {"src/base/a.h": "#include <stdio.h>\n#pragma once\n"}, "a.h:1: a header begins with"),
    "own header not first": (
        {"src/base/err.c": '#include <stdio.h>\n\n#include "base/err.h"\n'},
        'err.c:1: includes its own header first: "base/err.h"'),
    "folder without README": ({"src/db/a.c": "int a;\n"}, "src/db: has no README.md"),
    "bad Python": ({"tools/count.py": "print(1\n"}, "tools/count.py:1: "),
    "bad Python without suffix": ({"tools/count": "#!/usr/bin/python3\nx = = 1\n"}, "count:2: "),
    "bad shell": ({"tools/run": "#!/bin/sh\nif true; then\n"}, "tools/run:1: "),
    "blanks at the end": ({"docs/a.md": "a \n"}, "docs/a.md:1: blanks at the end"),
    "carriage return": ({"docs/a.md": "a\n\r\n"}, "docs/a.md:2: blanks at the end"),
    "last line without end": ({"docs/a.md": "a\nb"}, "docs/a.md:2: the last line has no end"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(tmp_path, name):
    files, message = REJECTED[name]
    run = run_lint(tmp_path, files)
    assert message in run.stdout
    assert run.returncode == 1


ACCEPTED = {
    "banned words in comments and strings": {
        "src/base/a.c": '// strcpy(a, b) is wrong\nconst char *a = "system(x)";\n/* gets(\n */\n'},
    "names that end like banned ones": {
        "src/base/a.c": source("return my_rand(a) + ops->system(b) + err.system(b);")},
    "snprintf": {"src/base/a.c": source('return snprintf(a, 1, "%s", b);')},
    "the own floor": {"src/load/a.c": '#include "load/load.h"\n'},
    "a lower floor": {"src/load/a.c": '#include "store/store.h"\n'},
    "system headers": {"src/base/a.c": "#include <load/load.h>\n"},
    "templates of temporary names": {"src/base/a.c": 'const char *a = "prony-XXXXXX";\n'},
    "a comment before the pragma": {"src/base/a.h": "// What it is.\n#pragma once\n"},
    "bytes of a corpus": {"tests/fuzz/corpus/script/a": f"{MARK} \t"},
    "build products": {"build/a.c": f"// {MARK}\n"},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(tmp_path, name):
    run = run_lint(tmp_path, ACCEPTED[name])
    assert run.stdout.endswith("0 findings\n"), run.stdout
    assert run.returncode == 0


def test_the_longest_functions_are_listed_without_failing(tmp_path):
    body = "\n".join("    a[0] = 0;" for _ in range(100))
    text = f"int first(void);\n\nstatic int longest(char *a)\n{{\n{body}\n    return 0;\n}}\n"
    run = run_lint(tmp_path, {"src/base/a.c": text})
    assert "103 src/base/a.c:3 longest (long)\n" in run.stdout
    assert run.returncode == 0


def test_an_empty_tree_is_an_error(tmp_path):
    run = subprocess.run([LINT, "--root", tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 1
