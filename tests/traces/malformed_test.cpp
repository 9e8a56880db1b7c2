#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"

namespace remat {
namespace {

using namespace std::string_literals;

/// One line that is no event, and all that the reader says about it behind file and line.
struct Row {
  std::string line;
  std::string fault;
};

void check_second_line(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const std::string next = "{\"seq\":9,\"kind\":\"note\"}\n";
    CHECK(fault_in(with_header(row.line + "\n" + next)) == "t:2: " + row.fault);
    CHECK(fault_in(with_header(row.line)) == "t:2: " + row.fault);
  }
}

const std::string one_event = "; expected one event, a JSON object";
const std::string closing_bracket = "; expected a JSON object that ends in '}'";
const std::string not_cut_off_in = "the line is cut off: it ends inside ";
const std::string count = "; expected an integer of at least 0";
const std::string phases =
    "; expected one of setup, forward, replay, backward, backward_input, backward_weight, "
    "optimizer, pretrigger (at /phase)";

}  // namespace

TEST_CASE("a line that is cut off is named so, wherever it ends", "[traces]") {
  const std::string in_string = not_cut_off_in + "a string" + closing_bracket;
  const std::string in_event = not_cut_off_in + "the event" + closing_bracket;
  check_second_line({
      {R"({"seq":1,"kind":"note","msg":"half a)", in_string},
      {R"({"seq":1,"kind":"note","msg":"half \)", in_string},
      {"{\"seq\":1,\"kind\":\"note\",\"msg\":\"inside a character \xe2\x82", in_string},
      {R"({"seq":1,"kin)", in_string},
      {R"({"seq":1,"kind")", in_event},
      {R"({"seq":1,"kind":)", in_event},
      {R"({"seq":1,"kind":"op","dur_ns":12)", in_event},
      {R"({"seq":1,"kind":"op","inputs":[1,2)", in_event},
      {R"({"seq":1,"kind":"op","outputs":[{"t":1})", in_event},
      {R"({"seq":1,"kind":"op","attrs":{"a":1})", in_event},
      {R"({"seq":1,"kind":"note","x":)" + std::string(200000, '['), in_event},
      {"{", in_event},
      {R"({"seq":1,"kind:"note"})",
       "a quote is missing: the line ends inside a string" + one_event},
  });
}

TEST_CASE("a line that is not one JSON object is named so", "[traces]") {
  const std::string follows =
      "something follows the event on its line; expected one JSON object a line";
  const std::string bad = "the line is not valid JSON";
  check_second_line({
      {"[1,2]", "the line begins with '['" + one_event},
      {"5", "the line begins with '5'" + one_event},
      {"nul", "the line begins with 'n'" + one_event},
      {"\xc3\xa9{\"seq\":1,\"kind\":\"note\"}", "the line begins with 'é'" + one_event},
      {"\x01", "the line begins with '\\x01'" + one_event},
      {"\xef\xbb\xbf{\"seq\":1,\"kind\":\"note\"}",
       "the line begins with a byte-order mark; expected '{'"},
      {R"({"seq":1,"kind":"note"}{"seq":2,"kind":"note"})", follows},
      {R"({"seq":1,"kind":"note"} x)", follows},
      {R"({"seq":1,"kind":"note"}})", follows},
      {R"({"seq":1,"kind":"note"}]})", follows},
      {R"({"seq":1,"kind":"note",})",
       bad + " near /kind: a key is missing; expected one event, a JSON object"},
      {R"({"seq":1,"kind":"note" "rank":1})",
       bad + " near /kind: ',' or '}' is missing" + one_event},
      {R"({"seq":1,"kind":"note","rank"})",
       bad + " near /kind: ':' is missing after a key" + one_event},
      {R"({'seq':1,'kind':'note'})", bad + ": a key is missing" + one_event},
      {R"({"seq":1,"kind":"note","x":[1] [2]})",
       bad + " near /x: ',' or '}' is missing" + one_event},
      {R"({"seq":1,"kind":"note","x":"a"b})", bad + " near /x: ',' or '}' is missing" + one_event},
      {R"({"seq":1,"kind":"note"])", bad + ": ',' or '}' is missing" + one_event},
      {"{\"seq\":1,\0\"kind\":\"note\"}"s, bad + " near /seq: a key is missing" + one_event},
  });
}

TEST_CASE("an empty line is named so", "[traces]") {
  const std::string empty = "the line is empty" + one_event;
  check_second_line({{" ", empty}, {"\t\r", empty}});
  const std::string event = "{\"seq\":1,\"kind\":\"note\"}\n";
  CHECK(fault_in(with_header("\n" + event)) == "t:2: " + empty);
  CHECK(fault_in(with_header(event + "\n{\"seq\":2,\"kind\":\"note\"}\n")) == "t:3: " + empty);
  CHECK(fault_in(with_header(event + "\n")) == "t:3: " + empty);
  CHECK(fault_in(with_header(event + event + "\n")).starts_with("t:3: seq 1 does not increase"));
}

TEST_CASE("bytes that are not UTF-8 are named by their place in the line", "[traces]") {
  const auto row = [](const std::string& bytes, const std::string& hex) {
    return Row{R"({"seq":1,"kind":"note","msg":")" + bytes + R"("})",
               "byte 31 of the line (0x" + hex + ") is not valid UTF-8; expected JSON in UTF-8"};
  };
  check_second_line({
      row("\xff", "ff"),              // never occurs
      row("\x80", "80"),              // a continuation without a beginning
      row("\xe2\x82", "e2"),          // cut short
      row("\xc0\x80", "c0"),          // longer than need be
      row("\xe0\x80\xaf", "e0"),      // likewise
      row("\xed\xa0\x80", "ed"),      // a surrogate
      row("\xf4\x90\x80\x80", "f4"),  // past the last code point
      {"\xff\xfe{", "byte 1 of the line (0xff) is not valid UTF-8; expected JSON in UTF-8"},
      {"{\"\xff\":1,\"seq\":1,\"kind\":\"note\"}",
       "byte 3 of the line (0xff) is not valid UTF-8; expected JSON in UTF-8"},
  });
}

TEST_CASE("what a JSON string may not hold is named", "[traces]") {
  const auto escape = [](const std::string& escape_sequence, const std::string& what) {
    return Row{R"({"seq":1,"kind":"note","msg":"a)" + escape_sequence + R"("})",
               "msg cannot be read: " + what + "; expected a string (at /msg)"};
  };
  const auto control = [](char c, const std::string& hex) {
    return Row{
        std::string(R"({"seq":1,"kind":"note","msg":"a)").append(1, c).append(R"("})"),
        "byte 32 of the line (0x" + hex + ") is a control character; expected it as an escape"};
  };
  check_second_line({
      control('\x01', "01"),
      control('\t', "09"),
      control('\0', "00"),
      escape(R"(\q)", R"(\q is no escape of JSON)"),
      escape(R"(\u12g4)", R"(\u12g4 is no escape of JSON)"),
      escape(R"(\u12)", R"(\u12 is no escape of JSON)"),
      escape(R"(\ud800)", R"(\ud800 is half of a surrogate pair)"),
      escape(R"(\ud800\u0041)", R"(\ud800 is half of a surrogate pair)"),
      escape(R"(\udc00)", R"(\udc00 is half of a surrogate pair)"),
      {R"({"seq":1,"kind":"note","m\ud800":1})",
       R"(the name of a field cannot be read: \ud800 is half of a surrogate pair; )"
       "expected a string"},
      {R"({"seq":1,"kind":"note","x":{"a":["\ud800"]}})",
       R"(x cannot be read: \ud800 is half of a surrogate pair; expected a JSON value (at /x))"},
  });
}

TEST_CASE("a value that is no JSON is named with its field", "[traces]") {
  const auto unread = [](const std::string& value, const std::string& what) {
    return Row{R"({"seq":1,"kind":"note","x":)" + value + "}",
               "x cannot be read: " + what + "; expected a JSON value (at /x)"};
  };
  check_second_line({
      {R"({"seq":1,"kind":"note","rank":nul})", "rank is nul; expected a JSON value (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":nullx})",
       "rank is nullx; expected a JSON value (at /rank)"},
      {R"({"seq":1,"kind":"pack","view":tru})", "view is tru; expected a JSON value (at /view)"},
      {R"({"seq":1,"kind":"note","rank":NaN})", "rank is NaN; expected a JSON value (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":+1})", "rank is +1; expected a JSON value (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":01})",
       "rank is 01, which is no JSON" + count + " (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":-01})",
       "rank is -01, which is no JSON" + count + " (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":1.})",
       "rank is 1., which is no JSON" + count + " (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":-})",
       "rank is -, which is no JSON" + count + " (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":})", "rank has no value; expected one (at /rank)"},
      {R"({"seq":1,"kind":"note","phase":nul})", "phase is nul; expected a JSON value (at /phase)"},
      {R"({"seq":1,"kind":"note","":nul})", R"("" is nul; expected a JSON value (at /))"},
      {R"({"seq":1,"kind":"note","a/b~c":[01]})",
       "a/b~c cannot be read: 01 is no JSON value; expected a JSON value (at /a~1b~0c)"},
      unread("[nul]", "nul is no JSON value"),
      unread("[1e]", "1e is no JSON value"),
      unread("[1,]", "']' stands where a value is due"),
      unread("[1,2}", "',' or ']' is missing"),
      unread(R"({"a":1,})", "a key is missing"),
      unread(R"({"a":[}]})", "'}' stands where a value is due"),
      unread(std::string(101, '[') + std::string(101, ']'), "it nests over 100 levels deep"),
  });
}

TEST_CASE("a value of another type than the field's is named with both", "[traces]") {
  const auto note = [](const std::string& fields) {
    return R"({"seq":1,"kind":"note",)" + fields + "}";
  };
  const auto op = [](const std::string& fields) {
    return R"({"seq":1,"kind":"op",)" + fields + "}";
  };
  const std::string session = "; expected a pair [kind, number or name] (at /gid)";
  const std::string node = "; expected a name or a pair [name, number] (at /node)";
  check_second_line({
      {note(R"("ts_ns":"1")"), "ts_ns is a string; expected an integer (at /ts_ns)"},
      {note(R"("rank":1.5)"), "rank is a number (1.5)" + count + " (at /rank)"},
      {note(R"("rank":1.0)"), "rank is a number (1.0)" + count + " (at /rank)"},
      {note(R"("rank":1e3)"), "rank is a number (1e3)" + count + " (at /rank)"},
      {note(R"("rank":true)"), "rank is a boolean" + count + " (at /rank)"},
      {note(R"("msg":[])"), "msg is a list; expected a string (at /msg)"},
      {note(R"("phase":1)"), "phase is a number (1); expected a string (at /phase)"},
      {note(R"("phase":"nowhere")"), "unknown phase 'nowhere'" + phases},
      {note(R"("phase":"none")"), "unknown phase 'none'" + phases},
      {note(R"("gid":"group")"), "gid is a string" + session},
      {note(R"("gid":["group"])"), "gid has 1 item" + session},
      {note(R"("gid":["group",1,2])"), "gid has 3 items" + session},
      {note(R"("gid":[1,2])"), "an item of gid is a number (1); expected a string (at /gid/0)"},
      {note(R"("gid":["group",null])"), "an item of gid is null; expected an integer (at /gid/1)"},
      {note(R"("node":7)"), "node is a number (7)" + node},
      {note(R"("node":["n"])"), "node has 1 item" + node},
      {note(R"("node":["n",-1])"), "an item of node is a number (-1)" + count + " (at /node/1)"},
      {note(R"("node":["n",01])"),
       "an item of node is 01, which is no JSON" + count + " (at /node/1)"},
      {R"({"seq":1,"kind":"pack","view":1})",
       "view is a number (1); expected true or false (at /view)"},
      {R"({"seq":1,"kind":"pack","slot":1})", "slot is a number (1); expected a string (at /slot)"},
      {R"({"seq":1,"kind":"pack","tensor":[]})",
       "tensor is a list; expected a tensor object (at /tensor)"},
      {R"({"seq":1,"kind":"pack","tensor":{"s":"x"}})",
       "s is a string" + count + " (at /tensor/s)"},
      {op(R"("inputs":7)"), "inputs is a number (7); expected a list of integers (at /inputs)"},
      {op(R"("inputs":[1,[2]])"),
       "an item of inputs is a list; expected an integer (at /inputs/1)"},
      {op(R"("outputs":{})"),
       "outputs is an object; expected a list of tensor objects (at /outputs)"},
      {op(R"("outputs":[{},null])"),
       "an item of outputs is null; expected a tensor object (at /outputs/1)"},
      {op(R"("outputs":[{"t":null}])"), "t is null" + count + " (at /outputs/0/t)"},
      {op(R"("outputs":[{"shape":[1,"a"]}])"),
       "an item of shape is a string; expected an integer (at /outputs/0/shape/1)"},
      {R"({"seq":1,"kind":"inputs_save","tensors":[7,{"t":7}]})",
       "tensors mixes ids and objects; expected a list of tensor ids or of tensor objects "
       "(at /tensors)"},
      {R"({"seq":1,"kind":"inputs_save","tensors":["x"]})",
       "an item of tensors is a string" + count + " (at /tensors/0)"},
  });
}

TEST_CASE("a number past what its field can hold is named", "[traces]") {
  check_second_line({
      {R"({"seq":1,"kind":"note","rank":-1})", "rank is negative: -1" + count + " (at /rank)"},
      {R"({"seq":1,"kind":"note","rank":9223372036854775808})",
       "rank is out of range: 9223372036854775808; expected a 64-bit integer (at /rank)"},
      {R"({"seq":1,"kind":"note","ts_ns":-9223372036854775809})",
       "ts_ns is out of range: -9223372036854775809; expected a 64-bit integer (at /ts_ns)"},
      {R"({"seq":1,"kind":"note","rank":)" + std::string(60, '9') + "}",
       "rank is out of range: " + std::string(40, '9') + "…; expected a 64-bit integer (at /rank)"},
      {R"({"seq":1,"kind":"note","node":["n",18446744073709551616]})",
       "an item of node is out of range: 18446744073709551616; expected an unsigned 64-bit "
       "integer (at /node/1)"},
      {R"({"seq":1,"kind":"op","outputs":[{"t":1,"v":4294967296}]})",
       "v is out of range: 4294967296; expected at most 4294967295 (at /outputs/0/v)"},
  });
}

TEST_CASE("a field that is given twice is named", "[traces]") {
  const std::string twice = " is given twice; expected it once (at ";
  check_second_line({
      {R"({"seq":1,"kind":"note","seq":1})", "seq" + twice + "/seq)"},
      {R"({"seq":1,"kind":"note","kind":"op"})", "kind" + twice + "/kind)"},
      {R"({"seq":1,"kind":"note","msg":"a","msg":"a"})", "msg" + twice + "/msg)"},
      {R"({"seq":1,"kind":"note","msg":"a","m\u0073g":"a"})", "msg" + twice + "/msg)"},
      {R"({"seq":1,"kind":"note","x":1,"x":1})", "x" + twice + "/x)"},
      {R"({"seq":1,"kind":"op","outputs":[{"t":1,"t":2}]})", "t" + twice + "/outputs/0/t)"},
      {R"({"seq":1,"kind":"op","outputs":[{},{"q":1,"q":2}]})", "q" + twice + "/outputs/1/q)"},
  });
}

TEST_CASE("an event or a tensor with over 100 fields is refused", "[traces]") {
  const auto fields = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i)
      text += (i > 0 ? ",\"f" : "\"f") + std::to_string(i) + "\":1";
    return text;
  };
  const auto event = [&](int n) { return R"({"seq":1,"kind":"note",)" + fields(n - 2) + "}"; };
  const auto tensor = [&](int n) {
    return R"({"seq":1,"kind":"op","outputs":[{)" + fields(n) + "}]}";
  };
  CHECK(fault_in(with_header(event(100))).empty());
  CHECK(fault_in(with_header(tensor(100))).empty());
  check_second_line({
      {event(101), "the event has over 100 fields; expected fewer"},
      {tensor(101), "a tensor has over 100 fields; expected fewer (at /outputs/0)"},
  });
}

TEST_CASE("a list of over 100000 tensors is refused before it fills the memory", "[traces]") {
  const auto outputs = [](int n) {
    std::string text = "{}";
    for (int i = 1; i < n; ++i)
      text += ",{}";
    return R"({"seq":1,"kind":"op","outputs":[)" + text + "]}";
  };
  CHECK(fault_in(with_header(outputs(100000))).empty());
  CHECK(fault_in(with_header(outputs(100001))) ==
        "t:2: outputs has over 100000 tensors; expected fewer (at /outputs/100000)");
}

TEST_CASE("an event without kind or seq, or with a wrong one, is named", "[traces]") {
  check_second_line({
      {R"({})", "the event has no kind; expected a field \"kind\""},
      {R"({"seq":1})", "the event has no kind; expected a field \"kind\""},
      {R"({"seq":1,"slot":"x"})", "the event has no kind; expected a field \"kind\""},
      {R"({"seq":1,"kind":null})", "kind is null; expected a string (at /kind)"},
      {R"({"seq":1,"kind":5})", "kind is a number (5); expected a string (at /kind)"},
      {R"({"seq":1,"slot":"x","kind":["op"]})", "kind is a list; expected a string (at /kind)"},
      {R"({"kind":"note"})", "the event has no seq" + count + " (at /seq)"},
      {R"({"seq":null,"kind":"note"})", "seq is null" + count + " (at /seq)"},
      {R"({"seq":-5,"kind":"note"})", "seq is negative: -5" + count + " (at /seq)"},
      {R"({"seq":"1","kind":"note"})", "seq is a string" + count + " (at /seq)"},
      {R"({"seq":0,"kind":"note"})", "seq 0 does not increase (at /seq); expected more than 0"},
  });
  const std::string notes = "{\"seq\":7,\"kind\":\"note\"}\n{\"seq\":5,\"kind\":\"note\"}\n";
  CHECK(fault_in(with_header(notes)) ==
        "t:3: seq 5 does not increase (at /seq); expected more than 7");
}

TEST_CASE("an id that is used before an event describes it is named", "[traces]") {
  const std::string tensor =
      " is used before any event describes it (at /inputs/0); expected an earlier event that "
      "shows the tensor, or its description under /reads";
  const std::string slot =
      " is used before anything was packed in it (at /slot); expected an earlier pack of that slot";
  const std::string frame =
      "frame 3 is used before it was created (at /frame); expected an earlier frame_create";
  check_second_line({
      {R"({"seq":1,"kind":"op","inputs":[7],"outputs":[{"t":6}]})", "tensor 7" + tensor},
      {R"({"seq":1,"kind":"op_error","inputs":[-7]})", "tensor -7" + tensor},
      {R"({"seq":1,"kind":"unpack_begin","slot":"p"})", "slot 'p'" + slot},
      {R"({"seq":1,"kind":"unpack","slot":"p\n1"})", R"(slot 'p\x0a1')" + slot},
      {R"({"seq":1,"kind":"holder_free","slot":"p"})", "slot 'p'" + slot},
      {R"({"seq":1,"kind":"frame_free","frame":3})", frame},
      {R"({"seq":1,"kind":"inputs_unpack_begin","frame":3})", frame},
  });
}

}  // namespace remat
