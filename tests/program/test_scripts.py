"""Scripts of the user's own, on every engine and by every protocol: what they compute, what they
fetch, and what is said when they go wrong."""
import re

import pytest

from harness.claims import check_document
from harness.loops import LOOPS, each_loop
from harness.targets import ENGINES, ServerTarget

PROTOCOLS = ["simple", "extended", "prepared"]


def write(prony, text, name="my.sql"):
    prony.dir.joinpath(name).write_text(text, encoding="utf-8")
    return name


def make_out(target, key=False):
    target.rows(f"create table results (k varchar(20){' primary key' if key else ''}, "
                "v varchar(60))")


def out(target):
    return target.rows("select k, v from results order by k, v")


def run(prony, target, text, *args, status=0, **kwargs):
    """Runs the script; -t 1 -c 1 unless told."""
    load = [] if "-t" in args else ["-t", 1, "-c", 1]
    result = prony.measure(target.url(), "-f", write(prony, text), *load, "-q", *args,
                           status=status, **kwargs)
    check_document(result.json)
    return result


on_each_engine = each_loop("target", ENGINES, sanitize_all=False)
on_postgres = pytest.mark.parametrize("loop", LOOPS, indirect=True)

EXPRESSIONS = {
    "1 + 2 * 3": "7", "(1 + 2) * 3": "9", "7 / 2": "3", "-7 / 2": "-3", "7 % 3": "1", "-7 % 3": "-1",
    "9223372036854775807": "9223372036854775807", "abs(-5)": "5", "greatest(3, 9, 4)": "9",
    "least(3, 9, 4)": "3", "int(3.7)": "4", "1 << 10": "1024", "12 & 10": "8", "12 | 3": "15",
    "12 # 10": "6", "~0": "-1", "case when 2 > 1 then 10 else 20 end": "10",
    "case when null is null then 5 end": "5", "mod(17, 5)": "2", "sqrt(16) = 4 and 1 < 2": None,
    "permute(3, 10, 1)": None, "hash(5, 7)": None, "random(5, 5)": "5",
    "random_gaussian(3, 3, 2.5)": "3", "random_exponential(4, 4, 2.0)": "4",
    "random_zipfian(8, 8, 1.5)": "8", "null": "NULL",
}


def test_expressions_have_their_value_on_every_engine(prony, target):
    make_out(target)
    exact = {text: value for text, value in EXPRESSIONS.items() if value is not None}
    script = ""
    for i, text in enumerate(exact):
        script += f"\\set x {text}\nINSERT INTO results VALUES ('{i:02}', :x);\n"
    for protocol in PROTOCOLS:
        target.rows("delete from results")
        run(prony, target, script, "-M", protocol)
        got = {k: "NULL" if v is None else v for k, v in out(target)}
        assert got == {f"{i:02}": value for i, value in enumerate(exact.values())}, protocol


def test_conditions_choose_what_is_sent(prony, target):
    make_out(target)
    script = ("\\if :client_id = 0\nINSERT INTO results VALUES ('zero', :client_id);\n"
              "\\elif :client_id = 1\nINSERT INTO results VALUES ('one', :client_id);\n"
              "\\else\n\\if :n > 1\nINSERT INTO results VALUES ('many', :client_id);\n\\endif\n"
              "\\endif\n")
    for protocol in PROTOCOLS:
        target.rows("delete from results")
        run(prony, target, script, "-M", protocol, "-t", 2, "-c", 4, "-D", "n=2")
        assert out(target) == [[k, v] for k, v in
                               [("many", "2"), ("many", "2"), ("many", "3"), ("many", "3"),
                                ("one", "1"), ("one", "1"), ("zero", "0"), ("zero", "0")]]


@on_each_engine
def test_a_row_becomes_variables(prony, target, loop):
    make_out(target)
    target.rows("create table source (a int, b varchar(20))")
    target.rows("insert into source values (41, 'O''Brien; x'), (1, null)")
    script = ("SELECT a, b AS name FROM source WHERE a > 5 \\gset\n"
              "\\set a :a + 1\n"
              "SELECT count(*) AS n, max(b) AS none FROM source WHERE a = 1 \\gset p_\n"
              "INSERT INTO results VALUES ('a', :a);\n"
              "INSERT INTO results VALUES ('n', :p_n);\n"
              "INSERT INTO results VALUES ('name', :name);\n"
              "INSERT INTO results VALUES ('none', :p_none);\n")
    for protocol in PROTOCOLS[1:]:
        target.rows("delete from results")
        run(prony, target, script, "-M", protocol)
        assert out(target) == [["a", "42"], ["n", "1"], ["name", "O'Brien; x"], ["none", None]]


def test_a_name_survives_in_a_simple_statement(prony, target):
    """Text is put in as it is, so a script has to quote it; numbers need nothing."""
    make_out(target)
    script = ("SELECT 41 AS a \\gset\nINSERT INTO results VALUES ('a', :a);\n"
              "INSERT INTO results VALUES ('colon', ':a');\n")
    run(prony, target, script, "-M", "simple")
    assert out(target) == [["a", "41"], ["colon", ":a"]]


@on_each_engine
def test_statements_over_lines_with_comments_and_quotes(prony, target, loop):
    make_out(target)
    script = ("-- a comment; with a semicolon\nINSERT INTO results\n  VALUES ('a;b', -- more ;\n"
              "  'it''s :x') ;\n/* SELECT :nope; */ INSERT INTO results VALUES ('b', '--');"
              " INSERT INTO results VALUES ('c', '/set');\n")
    for protocol in PROTOCOLS:
        target.rows("delete from results")
        doc = run(prony, target, script, "-M", protocol).json
        assert out(target) == [["a;b", "it's :x"], ["b", "--"], ["c", "/set"]]
        assert [item["count"] for item in doc["statements"]] == [1, 1, 1]


@on_each_engine
def test_text_beyond_ascii_goes_through(prony, target, loop):
    make_out(target)
    script = "INSERT INTO results VALUES ('ключ', 'grüße 🐘');\nSELECT v AS größe FROM results \\gset\n" \
             "INSERT INTO results VALUES ('z', :größe);\n"
    for protocol in PROTOCOLS[1:]:
        target.rows("delete from results")
        doc = run(prony, target, script, "-M", protocol, "--label", "größer").json
        assert sorted(out(target)) == sorted([["ключ", "grüße 🐘"], ["z", "grüße 🐘"]])
        assert doc["label"] == "größer"
        assert "ключ" in doc["statements"][0]["sql"]


CAPABILITIES = {
    "sqlite": {"transactions": 1, "row_locks": 0, "lock_tables": 0, "prepared": 1},
    "sqlite-wal": {"transactions": 1, "row_locks": 0, "lock_tables": 0, "prepared": 1},
    "postgres": {"transactions": 1, "row_locks": 1, "lock_tables": 0, "prepared": 1},
    "innodb": {"transactions": 1, "row_locks": 1, "lock_tables": 1, "prepared": 1},
    "myisam": {"transactions": 0, "row_locks": 0, "lock_tables": 1, "prepared": 1},
    "aria": {"transactions": 0, "row_locks": 0, "lock_tables": 1, "prepared": 1},
}


def test_scripts_see_what_the_engine_can_do(prony, subject):
    make_out(subject)
    expected = CAPABILITIES[subject.kind]
    run(prony, subject, "".join(f"INSERT INTO results VALUES ('{name}', :cap_{name});\n"
                                for name in expected))
    got = {k: int(v) for k, v in out(subject)}
    if subject.kind == "innodb":  # whether it may be used instead of BEGIN is not the question
        got.pop("lock_tables")
        expected = {k: v for k, v in expected.items() if k != "lock_tables"}
    assert got == expected


def test_a_script_sees_the_scale_of_the_tables(prony, target):
    make_out(target)
    prony.good("init", target.url(), "tpcb", "-s", "2", "-q")
    run(prony, target, "INSERT INTO results VALUES ('scale', :scale);\n")
    run(prony, target, "INSERT INTO results VALUES ('told', :scale);\n", "-s", 7)
    run(prony, target, "INSERT INTO results VALUES ('x', :clients);\n", "-D", "clients=99")
    assert out(target) == [["scale", "2"], ["told", "7"], ["x", "99"]]


def test_a_script_from_standard_input(prony, target):
    make_out(target)
    prony.good("run", target.url(), "-f", "-", "-t", "2", "-c", "1", "-q",
               input_text="INSERT INTO results VALUES ('in', 1);\n")
    assert out(target) == [["in", "1"]] * 2


def test_a_script_of_three_hundred_parameters_is_refused(prony):
    names = ", ".join([":x"] * 300)
    write(prony, f"\\set x 1\nSELECT {names};\n")
    prony.refused("run", "null:", "-f", "my.sql", says=["my.sql:2", "255"])


@on_postgres
def test_casts_and_arrays_of_postgres_are_no_variables(prony, postgres, loop):
    target = ServerTarget("postgres", postgres)
    make_out(target)
    script = ("\\set x 3\nINSERT INTO results VALUES ('cast', (:x::int + 1)::text);\n"
              "INSERT INTO results VALUES ('slice', (array[5,6,7])[1\\:2]::text);\n"
              "INSERT INTO results VALUES ('dollar', $$a:x;b$$);\n")
    for protocol in PROTOCOLS:
        target.rows("delete from results")
        run(prony, target, script, "-M", protocol)
        assert out(target) == [["cast", "4"], ["dollar", "a:x;b"], ["slice", "{5,6}"]]


@on_postgres
def test_joined_statements_go_in_one_request(prony, postgres, loop):
    target = ServerTarget("postgres", postgres)
    make_out(target)
    script = "INSERT INTO results VALUES ('a', 1)\\; INSERT INTO results VALUES ('b', 2);\n"
    doc = run(prony, target, script, "-M", "simple").json
    assert out(target) == [["a", "1"], ["b", "2"]]
    assert len(doc["statements"]) == 1 and doc["statements"][0]["count"] == 1
    write(prony, script)
    prony.refused("run", target.url(), "-f", "my.sql", says="my.sql:1:")


# ---- going wrong

def failed(prony, target, text, *args):
    """A script that never succeeds: status 1, and the words of the failure."""
    load = args or ("-t", 5, "-c", 2)
    result = run(prony, target, text, *load, status=1)
    assert result.json["status"] == "failed"
    assert result.json["transactions"]["done"] == 0
    assert result.err.startswith("prony: ") and result.err.count("\n") == 1, result
    return result


WRONG = {
    "undefined": ("SELECT a FROM nosuchtable;\n", "nosuchtable"),
    "syntax": ("SELEC 1;\n", "(?i)syntax"),
    "constraint": ("INSERT INTO results VALUES ('k', 1);\nINSERT INTO results VALUES ('k', 2);\n",
                   "(?i)unique|duplicate"),
}


@pytest.mark.parametrize("kind", WRONG)
@on_each_engine
def test_what_the_server_refuses_has_its_class_and_its_words(prony, target, kind, loop):
    text, words = WRONG[kind]
    make_out(target, key=True)
    target.rows("insert into results values ('k', 0)")
    for protocol in PROTOCOLS:
        result = failed(prony, target, text, "-t", 5, "-c", 2, "-M", protocol)
        assert result.json["errors"] == {kind: 10}, protocol
        assert f": {kind}: " in result.err and re.search(words, result.err), result
        assert "my.sql:" in result.err, result
    assert out(target) == [["k", "0"]]


@on_each_engine
def test_a_script_that_goes_wrong_by_itself_says_where(prony, target, loop):
    make_out(target)
    for line, words in (("\\set x 1 / 0", "division by zero"),
                        ("\\set x 9223372036854775807 + 1", "out of range"),
                        ("\\set x random(5, 1)", "(?i)random|range|bound"),
                        ("SELECT 1 AS a WHERE 1 = 0 \\gset", "(?i)row"),
                        ("SELECT 1 AS a UNION ALL SELECT 2 \\gset", "(?i)row")):
        text = f"SELECT 1;\n{line}\nINSERT INTO results VALUES ('reached', 1);\n"
        result = failed(prony, target, text)
        assert result.json["errors"] == {"other": 10}, line
        assert "my.sql:2" in result.err and re.search(words, result.err), result
    assert out(target) == []


@on_each_engine
def test_what_began_is_rolled_back_after_an_error(prony, target, loop):
    make_out(target)
    failed(prony, target, "BEGIN;\nINSERT INTO results VALUES ('half', 1);\n"
           "SELECT a FROM nosuchtable;\nCOMMIT;\n")
    assert out(target) == []
    result = failed(prony, target, "BEGIN;\nINSERT INTO results VALUES ('open', 1);\n")
    assert "COMMIT" in result.err
    assert out(target) == []


@on_each_engine
def test_some_failures_do_not_spoil_the_rest(prony, target, loop):
    make_out(target)
    script = ("\\if :client_id = 1\nSELECT a FROM nosuchtable;\n\\endif\n"
              "INSERT INTO results VALUES ('good', 1);\n")
    result = run(prony, target, script, "-t", 5, "-c", 4)
    n = result.json["transactions"]
    assert (n["done"], n["failed"]) == (15, 5)
    assert result.json["errors"] == {"undefined": 5}
    assert len(out(target)) == 15
    text = prony.good("show").out
    assert "undefined 5" in text and "errors" in text
    assert "nosuchtable" in text, text  # why, not only how many


def test_a_retry_gets_the_same_random_values(prony):
    write(prony, "\\set x debug(random(1, 1000000000))\nSELECT :x;\n")
    result = prony.measure("null:?fail=0.4&fail_class=deadlock", "-f", "my.sql", "-t", 100, "-c", 1,
                           "--max-tries", 1000, "-q")
    n = result.json["transactions"]
    assert n["done"] == 100 and n["retries"] > 20
    values = re.findall(r"command=1\): int (\d+)$", result.err, re.M)
    assert len(values) == 100 + n["retries"]
    changes = sum(a != b for a, b in zip(values, values[1:]))
    assert changes == 99
    assert len(set(values)) == 100
