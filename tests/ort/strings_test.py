#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops on the letters of strings against ONNX Runtime, where it can be built against the
evaluator of onnx (StringSplit: an empty string between delimiters is a part) and Python's
tables of letters. --more runs a hundred times as many. Exits 77, "skipped", when a Python
package is missing."""

import sys

WORDS = ["", "a", "b", "ab", "aB", "Ab", "abc", "foo bar", " x  y ", "1", "12", "a1", "_x", "é", "ÉÀ", "色彩", "x\ny", "\n", "a,b,,c", "a-b_c.d", "end\n", "foo@example.com", "tab\tstop", "ünï", "ſ", "K", "0.5e3", "🙂a🙂", "a" * 40, "$^", "[x]", "a\\b"]


def patterns(r, count):
    """Expressions that RE2 takes, or not, from a grammar."""
    atoms = ["a", "b", "A", ".", "\\w", "\\d", "\\s", "\\W", "\\D", "\\S", "[ab]", "[^ab]", "[a-z]", "[^\\w]", "[[:alpha:]]", "[[:^digit:]_]", "é", "[à-ü]", "\\x{e9}", "\\n", "\\.", "\\\\", "(?i:ab)", "(?:a|b)", "(a|ab)(c|)", "\\Qa.\\E", "\\x61", "[\\]x-]", "[]a]", "^", "$", "\\b", "\\B", "\\A", "\\z", "(?P<n>x)", "色", "\\141", "[[:space:][:punct:]]", "(?i)É", "(?s).", "(?s:.)", "(?m:^a$)"]
    after = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}", "{0}"]

    def expression(depth):
        kind = r.integers(0, 6) if depth else 0
        if kind < 3:
            return atoms[r.integers(len(atoms))] + after[r.integers(len(after))]
        if kind == 3:
            return "(" + expression(depth - 1) + ")" + after[r.integers(len(after))]
        if kind == 4:
            return expression(depth - 1) + "|" + expression(depth - 1)
        return expression(depth - 1) + expression(depth - 1)

    for _ in range(count):
        yield expression(4)
    yield from ["(", ")", "*", "a**", "a{3,2}", "[b-a]", "[", "a\\", "\\q", "(?z)", "[[:no:]]", "a{1001}", "\\8", "(?P<n", "+a", "a|*"]


def all_cases(more):
    """(name, model, arrays, what comes out or None)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h
    from onnx.reference import ReferenceEvaluator

    r = np.random.default_rng(11)
    node, info = h.make_node, h.make_tensor_value_info
    texts = np.array(WORDS, object)

    def model(nodes, arrays, outputs, opset=20):
        kinds = {np.dtype(object): TP.STRING}
        inputs = [info(n, kinds.get(a.dtype) or h.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in arrays.items()]
        graph = h.make_graph(nodes, "g", inputs, [info(n, t, None) for n, t in outputs])
        opsets = [h.make_opsetid(d, v) for d, v in (("", opset), ("ai.onnx.ml", 3), ("com.microsoft", 1))]
        return h.make_model(graph, opset_imports=opsets, ir_version=9)

    def case(name, nodes, arrays, outputs, evaluate=False, want=None, opset=20):
        m = model(nodes, arrays, outputs, opset)
        if evaluate:
            want = ReferenceEvaluator(m).run(None, arrays)
        return name, m, arrays, want

    def pick(*shape):
        return texts[r.integers(0, len(texts), shape)] if np.prod(shape) else np.empty(shape, object)

    for pattern in patterns(r, 60 * more):
        yield case(f"match {pattern!r}", [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], {"x": texts}, [("y", TP.BOOL)])
    for shapes in (((2, 3), (3,)), ((), (4,)), ((2, 1), (1, 5)), ((0, 2), (2,)), ((), ())) * more:
        arrays = {"a": pick(*shapes[0]) if shapes[0] else np.array("q", object), "b": pick(*shapes[1]) if shapes[1] else np.array("é", object)}
        yield case(f"join {shapes}", [node("StringConcat", ["a", "b"], ["y"])], arrays, [("y", TP.STRING)])
    delimiters = [None, "", ",", " ", "  ", "é", "ab", "色", "\n"]
    for i in range(12 * more):
        attrs = {} if i % 3 == 0 else {"maxsplit": int(r.integers(0, 4))}
        delimiter = delimiters[i % len(delimiters)]
        if delimiter is not None:
            attrs["delimiter"] = delimiter
        shape = ((7,), (3, 4), (0,), (2, 0, 3))[i % 4]
        yield case(f"split {attrs} {shape}", [node("StringSplit", ["x"], ["y", "z"], **attrs)], {"x": pick(*shape)}, [("y", TP.STRING), ("z", TP.INT64)], evaluate=True)
    # Every letter of Unicode that has one other case there.
    letters = np.array([chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000], object)
    for change in ("LOWER", "UPPER"):
        turned = [getattr(x, change.lower())() for x in letters]
        want = np.array([t if len(t) == 1 else x for x, t in zip(letters, turned)], object)
        yield case(f"letters {change}", [node("StringNormalizer", ["x"], ["y"], case_change_action=change)], {"x": letters}, [("y", TP.STRING)], want=[want])
    stops = ["foo bar", "AB", "é", "abc"]
    for i in range(12 * more):
        attrs = dict(case_change_action=("NONE", "LOWER", "UPPER")[i % 3], is_case_sensitive=i // 3 % 2)
        if i // 6 % 2 == 0:
            attrs["stopwords"] = stops[:int(r.integers(1, 5))]
        shape = ((8,), (1, 6), (0,), (1, 0))[(i // 3 + i) % 4]
        yield case(f"normalise {attrs} {shape}", [node("StringNormalizer", ["x"], ["y"], locale="C.UTF-8", **attrs)], {"x": pick(*shape)}, [("y", TP.STRING)])
    for kind in (TP.FLOAT, TP.DOUBLE, TP.FLOAT16, TP.INT64, TP.INT32, TP.INT8, TP.UINT8, TP.UINT64, TP.BOOL):
        dtype = h.tensor_dtype_to_np_dtype(kind)
        numbers = np.array([0, 1, 2, 100, 77] if dtype.kind in "bui" else [0.0, -0.0, 1, 3.14, 1e-5, 1e20, np.nan, np.inf, -np.inf, 123456.789]).astype(dtype)
        yield case(f"cast {dtype} to strings", [node("Cast", ["x"], ["y"], to=TP.STRING)], {"x": numbers}, [("y", TP.STRING)])
        written = ["1", "0", "+7", "12", " 3", "4 "] + ([] if dtype.kind in "bui" else ["3.14", "1e-5", "1E8", "+INF", "-inf", "NaN", "0.1"])
        yield case(f"cast strings to {dtype}", [node("Cast", ["x"], ["y"], to=kind)], {"x": np.array(written, object)}, [("y", kind)])
    sets = [dict(tokenexp="[a-zA-Z0-9_]+"), dict(tokenexp="\\w\\w+"), dict(tokenexp="a|ab|é+"), dict(separators=[""]), dict(separators=[" "]), dict(separators=[",", "-", "\\s+"]), dict(separators=["[^a-z]"])]
    for i in range(21 * more):
        attrs = dict(sets[i % len(sets)], mark=int(r.integers(0, 2)), mincharnum=int(r.integers(1, 4)), pad_value=("", "#")[int(r.integers(0, 2))])
        shape = ((6,), (3, 2), (1,))[i % 3]
        yield case(f"tokens {attrs} {shape}", [node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **attrs)], {"x": pick(*shape)}, [("y", TP.STRING)])
    # What skl2onnx writes for CountVectorizer.
    pool = dict(pool_strings=["foo", "bar", "a", "foo", "bar"], ngram_counts=[0, 3], ngram_indexes=[0, 2, 1, 3], min_gram_length=1, max_gram_length=2, max_skip_count=0, mode="TF")
    rows = np.array(["foo bar foo", "bar", "", "a foo bar a foo bar " * 5], object)
    count = [node("Tokenizer", ["x"], ["t"], domain="com.microsoft", tokenexp="[a-z]+", mark=0, mincharnum=1, pad_value="#"), node("TfIdfVectorizer", ["t"], ["y"], **pool)]
    yield case("words are counted", count, {"x": rows}, [("y", TP.FLOAT)])
    split = [node("StringSplit", ["x"], ["t", "n"]), node("TfIdfVectorizer", ["t"], ["y"], **pool)]
    yield case("parts are counted", split, {"x": rows}, [("y", TP.FLOAT), ("n", TP.INT64)])
    # No string is taken or given: scikit-learn's categories that are numbers.
    inner = [node("Cast", ["x"], ["s"], to=TP.STRING), node("LabelEncoder", ["s"], ["y"], domain="ai.onnx.ml", keys_strings=["1", "2", "77"], values_int64s=[10, 20, 30])]
    yield case("strings inside alone", inner, {"x": np.array([77, 2, 5, 1])}, [("y", TP.INT64)])
    chain = [node("StringConcat", ["a", "b"], ["s"]), node("LabelEncoder", ["s"], ["y"], domain="ai.onnx.ml", keys_strings=["ab", "ba"], values_floats=[1.5, 2.5], default_float=-1.0)]
    yield case("looked up", chain, {"a": np.array(["a", "b", "x"], object), "b": np.array(["b", "a", "y"], object)}, [("y", TP.FLOAT)])


def maps():
    """(name, model, the map, what comes out or None): maps of strings and numbers."""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    def case(name, op, key, value, out, given, want=None, **attrs):
        kind = h.make_map_type_proto(key, h.make_tensor_type_proto(value, []))
        node = h.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attrs)
        graph = h.make_graph([node], "g", [h.make_value_info("x", kind)], [h.make_tensor_value_info("y", out, None)])
        return name, h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)], ir_version=8), given, want

    words, numbers = dict(string_vocabulary=["a", "b", "é", "c"]), dict(int64_vocabulary=[5, -7, 5, 0])
    for given in ({"b": 4.5, "a": 1.0, "z": 9.0}, {"é": -2.0}, {"q": 1.0}):
        yield case(f"words {given}", "DictVectorizer", TP.STRING, TP.FLOAT, TP.FLOAT, given, **words)
    yield case("counts of words", "DictVectorizer", TP.STRING, TP.INT64, TP.INT64, {"b": 4, "c": 3}, [np.array([[0, 4, 0, 3]])], **words)
    yield case("numbers", "DictVectorizer", TP.INT64, TP.FLOAT, TP.FLOAT, {5: 2.0, -7: 1.5, 11: 3.0}, **numbers)
    yield case("words of numbers", "DictVectorizer", TP.INT64, TP.STRING, TP.STRING, {5: "x", 0: "é"}, [np.array([["x", "", "x", "é"]])], **numbers)
    for to, out in (("TO_FLOAT", TP.FLOAT), ("TO_INT64", TP.INT64), ("TO_STRING", TP.STRING)):
        given = {3: 1.5, 0: 7.0, 2: -9.25}
        yield case(f"dense {to}", "CastMap", TP.INT64, TP.FLOAT, out, given, cast_to=to)
        yield case(f"sparse {to}", "CastMap", TP.INT64, TP.FLOAT, out, given, cast_to=to, map_form="SPARSE", max_map=6)
        written = {"TO_FLOAT": [7.0, -9.25, 1.5], "TO_INT64": [7, -9, 1], "TO_STRING": ["7", "-9.25", "1.5"]}[to]
        want = np.array([written], None if to != "TO_FLOAT" else np.float32)
        yield case(f"dense strings {to}", "CastMap", TP.INT64, TP.STRING, out, {3: "1.5", 0: "7", 2: "-9.25"}, [want], cast_to=to)


def map_refusals():
    """(what is wrong, model, arrays, what the sentence must hold)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    def one(op, key, value, keys, values, domain="ai.onnx.ml", **attrs):
        kind = h.make_map_type_proto(key, h.make_tensor_type_proto(value, []))
        node = h.make_node(op, ["x"], ["y"], domain=domain, **attrs)
        graph = h.make_graph([node], "g", [h.make_value_info("x", kind)], [h.make_tensor_value_info("y", TP.FLOAT, None)])
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
        return model, {"x.keys": np.array(keys), "x.values": np.array(values)}

    ones = np.ones(2, np.float32)
    yield "maps of two types", *one("DictVectorizer", TP.INT64, TP.FLOAT, [1, 2], ones, string_vocabulary=["a"]), "of another type than its keys"
    yield "words as places", *one("CastMap", TP.STRING, TP.FLOAT, ["a", "b"], ones), "its map are strings; it takes i64"
    yield "no vocabulary", *one("DictVectorizer", TP.STRING, TP.FLOAT, ["a", "b"], ones), "it has neither"
    yield "two lengths", *one("DictVectorizer", TP.STRING, TP.FLOAT, ["a", "b"], np.ones(3, np.float32), string_vocabulary=["a"]), "has 2 keys and 3 values"
    yield "a place outside", *one("CastMap", TP.INT64, TP.FLOAT, [1, 9], ones, map_form="SPARSE", max_map=4), "or an element is of no category"
    yield "no op on maps", *one("Identity", TP.INT64, TP.FLOAT, [1, 9], ones, ""), "maps are taken by CastMap and DictVectorizer alone"
    yield "another form", *one("CastMap", TP.INT64, TP.FLOAT, [1, 2], ones, map_form="THIN"), "known are DENSE and SPARSE"


def refusals():
    """(what is wrong, model, arrays, what the sentence must hold)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    def one(op, kind, out, x, domain="", **attrs):
        node = h.make_node(op, ["x"], ["y"], domain=domain, **attrs)
        graph = h.make_graph([node], "g", [h.make_tensor_value_info("x", kind, x.shape)], [h.make_tensor_value_info("y", out, None)])
        opsets = [h.make_opsetid(d, v) for d, v in (("", 20), ("com.microsoft", 1))]
        return h.make_model(graph, opset_imports=opsets, ir_version=9), {"x": x}

    words = np.array(["Hello", "a b " * 1000])
    yield "letters are no number", *one("Cast", TP.STRING, TP.FLOAT, words, to=TP.FLOAT), "'Hello', is no number"
    yield "numbers have no letters", *one("RegexFullMatch", TP.INT64, TP.BOOL, np.arange(3), pattern="a"), "it takes strings"
    yield "no expression", *one("RegexFullMatch", TP.STRING, TP.BOOL, words, pattern="(a"), "has a ( without its ), at byte 2"
    yield "a class of Unicode", *one("RegexFullMatch", TP.STRING, TP.BOOL, words, pattern="\\pL+"), "are not taken, at byte 1"
    yield "too large", *one("RegexFullMatch", TP.STRING, TP.BOOL, words, pattern="((a{100}){100}){100}"), "is too large"
    yield "too many parts", *one("StringSplit", TP.STRING, TP.STRING, words), "string 1 has more than 1024 parts"
    yield "another case", *one("StringNormalizer", TP.STRING, TP.STRING, words, case_change_action="TITLE"), "known are NONE, LOWER and UPPER"
    yield "rows of words", *one("StringNormalizer", TP.STRING, TP.STRING, np.array([["a"], ["b"]])), "not of the shape [C] or [1, C]"
    yield "no way to part", *one("Tokenizer", TP.STRING, TP.STRING, words, "com.microsoft", mark=0, mincharnum=1, pad_value="#"), "one of 'tokenexp' and 'separators'"


def differ(got, want):
    import contrib
    import numpy as np

    want = np.asarray(want)
    if want.dtype.kind not in "OU":
        return contrib.differ(got, want, None, type("Case", (), dict(rtol=0, atol=0, near=0, steps=0)))
    if got.shape != want.shape:
        return f"{list(got.shape)}, right is {list(want.shape)}"
    pairs = [(g, w) for g, w in zip(got.ravel().tolist(), want.ravel().tolist()) if g != w.rstrip("\0")]
    return f"{len(pairs)} of {want.size} differ, first {pairs[0]}" if pairs else None


def main():
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    import contrib
    import numpy as np

    wrong, ran, refused = 0, 0, 0
    devices = ("llvm",) if "--more" in sys.argv else ("ref", "llvm")
    for name, model, arrays, want in all_cases(100 if "--more" in sys.argv else 1):
        if want is None:
            want, why = contrib.run_peer(model, arrays)
        given = {n: a.astype(np.str_) if a.dtype == object else a for n, a in arrays.items()}
        for device in devices if want is not None else ("ref",):
            got, why = contrib.run_pestle(model, given, device)
            ran += 1
            if want is None:
                refused += 1
                # It has no rule for no strings at all.
                fine = got is None or 0 in arrays["x"].shape
                why = None if fine else "ONNX Runtime refuses it"
            for g, w in zip(got or (), want or ()):
                why = why or differ(g, w)
            if why:
                wrong += 1
                print(f"{name} on {device}: {why}")
    for name, model, given, want in maps():
        why = None
        if want is None:
            want, why = contrib.run_peer(model, {"x": given})
        values = np.array(list(given.values()))
        arrays = {"x.keys": np.array(list(given)), "x.values": values if values.dtype.kind != "f" else values.astype(np.float32)}
        for device in devices:
            got, why = contrib.run_pestle(model, arrays, device) if want is not None else (None, why)
            ran += 1
            for g, w in zip(got or (), want or ()):
                why = why or differ(g, w)
            if why:
                wrong += 1
                print(f"{name} on {device}: {why}")
    for name, model, arrays, sentence in (*refusals(), *map_refusals()):
        got, why = contrib.run_pestle(model, arrays, "ref")
        if got is not None or sentence not in why:
            wrong += 1
            print(f"{name}: not refused by '{sentence}': {why}")
    print(f"{ran} runs, {refused} that ONNX Runtime refuses too, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
