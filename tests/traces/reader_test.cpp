#include "traces/reader.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/errors.hpp"
#include "tests/traces/shared_traces.hpp"
#include "tests/traces/trace_difference.hpp"
#include "tests/traces/trace_text.hpp"

namespace remat {
namespace {

/// Gives its bytes in pieces of one size, as a pipe may.
class Dripping : public ByteSource {
 public:
  Dripping(std::string bytes, std::size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t size = std::min({piece_, into.size(), bytes_.size() - given_});
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(given_), size, into.begin());
    given_ += size;
    return size;
  }

 private:
  std::string bytes_;
  std::size_t piece_;
  std::size_t given_ = 0;
};

Trace read_in_blocks(TraceReader reader, std::size_t events_max) {
  Trace trace;
  while (reader.read(trace, events_max) > 0) {
  }
  return trace;
}

const std::string some_events = with_header(
    R"({"seq":1,"kind":"tensor","t":4,"s":2,"shape":[2,3],"dtype":"f32"}
{"seq":2,"kind":"op","name":"mm","inputs":[4],"outputs":[{"t":5,"s":3}]}
{"seq":3,"kind":"pack","slot":"p1","tensor":{"t":5,"s":3},"role":"plain"}
{"seq":5,"kind":"unpack","slot":"p1","gid":["graph_task",0]}
)");

}  // namespace

TEST_CASE("reading in blocks gives what reading at once gives", "[traces]") {
  for (const std::string& path : traces_of_others()) {
    if (path.find("/cases/") == std::string::npos && path.find("/02") == std::string::npos)
      continue;
    CAPTURE(path);
    const Trace whole = read_trace(path);
    for (const std::size_t events_max : {1U, 7U, 100U})
      CHECK(first_difference(read_in_blocks(TraceReader(path), events_max), whole) == std::nullopt);
  }
}

TEST_CASE("a trace is the same however its bytes arrive", "[traces]") {
  const Trace whole = trace_in(some_events);
  for (const std::size_t piece : {1U, 2U, 3U, 50U}) {
    auto dripping = std::make_unique<Dripping>(some_events, piece);
    CHECK(first_difference(read_in_blocks(TraceReader(std::move(dripping), "t"), 100), whole) ==
          std::nullopt);
  }
  CHECK(first_difference(trace_in(gzipped(some_events)), whole) == std::nullopt);
  const std::string halves =
      gzipped(some_events.substr(0, 100)) + gzipped("") + gzipped(some_events.substr(100));
  CHECK(first_difference(trace_in(halves), whole) == std::nullopt);
}

TEST_CASE("read says how many events it appended, and 0 at the end", "[traces]") {
  TraceReader reader(bytes_in_memory(some_events), "t");
  Trace trace;
  CHECK(reader.read(trace, 3) == 3);
  CHECK(reader.read(trace, 3) == 2);
  CHECK(reader.read(trace, 3) == 0);
  CHECK(reader.read(trace, 3) == 0);
  CHECK(trace.size() == 5);
}

TEST_CASE("a block may be dropped before the next is read", "[traces]") {
  TraceReader reader(bytes_in_memory(some_events), "t");
  Trace trace;
  std::vector<std::int64_t> seqs;
  std::vector<std::string> slots;
  while (reader.read(trace, 2) > 0) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
      seqs.push_back(trace[i].seq());
      if (trace[i].has(Field::slot)) slots.emplace_back(trace[i].text(Field::slot));
    }
    trace.drop_events();
  }
  CHECK(seqs == std::vector<std::int64_t>{0, 1, 2, 3, 5});
  CHECK(slots == std::vector<std::string>{"p1", "p1"});
}

TEST_CASE("the last line needs no line end, and a line may end in CR LF", "[traces]") {
  const std::string open_end = some_events.substr(0, some_events.size() - 1);
  CHECK(first_difference(trace_in(open_end), trace_in(some_events)) == std::nullopt);
  std::string dos;
  for (const char c : some_events)
    dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(first_difference(trace_in(dos), trace_in(some_events)) == std::nullopt);
}

TEST_CASE("unknown kinds and fields are kept, and counted by name", "[traces]") {
  const std::string text = with_header(
      R"({"seq":1,"kind":"telepathy","depth":3,"rank":2}
{"seq":2,"kind":"note","msg":"a","mood": {"a": [1, 2.50, "x"]} }
{"seq":3,"kind":"note","mood":null}
{"seq":4,"kind":"op","slot":7,"outputs":[{"t":1,"colour":"red"}]}
{"seq":5,"kind":"unknown"}
)");
  TraceReader reader(bytes_in_memory(text), "t");
  Trace trace;
  REQUIRE(reader.read(trace, 100) == 6);
  using Counts = std::map<std::string, std::int64_t>;
  CHECK(reader.unknown().kinds == Counts{{"telepathy", 1}, {"unknown", 1}});
  CHECK(reader.unknown().fields ==
        Counts{{"telepathy.depth", 1}, {"note.mood", 2}, {"op.slot", 1}});
  CHECK(trace[1].kind() == Kind::unknown);
  CHECK(trace[1].kind_name() == "telepathy");
  CHECK(trace[1].integer(Field::rank) == 2);
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    trace[i].each_unknown([&](std::string_view name, std::string_view json) {
      kept.push_back(std::string(name) + " = " + std::string(json));
    });
  }
  CHECK(kept == std::vector<std::string>{"depth = 3", "mood = {\"a\": [1, 2.50, \"x\"]}",
                                         "mood = null", "slot = 7"});
  CHECK(trace[4].tensor_item(Field::outputs, 0).extra == "\"colour\":\"red\"");
}

TEST_CASE("null and absent stay apart, and neither has a value", "[traces]") {
  const Trace trace =
      trace_in(with_header("{\"seq\":1,\"kind\":\"op\",\"phase\":null,\"name\":null,\"inputs\":"
                           "null,\"outputs\":null,\"gid\":null}\n"));
  const EventView event = trace[1];
  for (const Field field : {Field::name, Field::inputs, Field::outputs, Field::gid}) {
    CHECK(event.given(field));
    CHECK_FALSE(event.has(field));
  }
  CHECK(event.given(Field::phase));
  CHECK(event.phase() == Phase::none);
  CHECK_FALSE(event.given(Field::reads));
  CHECK_FALSE(event.name(Field::name));
  CHECK(event.list_size(Field::inputs) == 0);
  CHECK_FALSE(event.session(Field::gid));
}

TEST_CASE("numbers use all their bits", "[traces]") {
  const Trace trace = trace_in(with_header(
      R"({"seq":9223372036854775807,"kind":"op","ts_ns":-9223372036854775808,"node":["n",)"
      R"(18446744073709551615],"dur_ns":4294967296,"inputs":[],"outputs":[{"t":)"
      R"(9223372036854775807,"s":2147483648,"v":4294967295,"shape":[-9223372036854775808]}]})"));
  const EventView event = trace[1];
  CHECK(event.seq() == INT64_MAX);
  CHECK(event.integer(Field::ts_ns) == INT64_MIN);
  CHECK(event.integer(Field::dur_ns) == 4294967296);
  CHECK(event.node(Field::node)->number == UINT64_MAX);
  const TensorView tensor = event.tensor_item(Field::outputs, 0);
  CHECK(tensor.tensor == INT64_MAX);
  CHECK(tensor.storage == 2147483648);
  CHECK(tensor.version == 4294967295);
  CHECK(trace.layout(tensor.layout).shape == std::vector<std::int64_t>{INT64_MIN});
}

TEST_CASE("the fields of an event may come in any order, its kind last", "[traces]") {
  const std::string usual =
      R"({"seq":1,"kind":"pack","why":"because","slot":"p1","idx":0,"path":[1, 2]})";
  const std::string turned =
      R"({"path":[1, 2],"idx":0,"why":"because","slot":"p1","k\u0069nd":"pack","seq":1})";
  CHECK(first_difference(trace_in(with_header(usual)), trace_in(with_header(turned))) ==
        std::nullopt);
}

TEST_CASE("a long text before the kind does not overrun the parser's buffer", "[traces]") {
  const std::string text(3000000, 'x');
  const Trace trace =
      trace_in(with_header(R"({"seq":1,"why":")" + text + R"(","msg":"late","kind":"note"})"));
  CHECK(trace[1].text(Field::why) == text);
  CHECK(trace[1].text(Field::msg) == "late");
}

TEST_CASE("a string holds what its escapes stand for", "[traces]") {
  const Trace trace = trace_in(
      with_header(R"({"seq":1,"kind":"note","msg":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"})"));
  CHECK(trace[1].text(Field::msg) == std::string("\"\\/\b\f\n\r\té😀\0", 15));
}

TEST_CASE("an event that is refused leaves those before it in the trace", "[traces]") {
  const std::string text = with_header("{\"seq\":1,\"kind\":\"note\"}\n{\"seq\":");
  TraceReader reader(bytes_in_memory(text), "t");
  Trace trace;
  CHECK_THROWS_AS(reader.read(trace, 100), InputError);
  REQUIRE(trace.size() == 2);
  CHECK(trace[1].kind() == Kind::note);
}

TEST_CASE("a storage that is first seen in use was there before the trace began", "[traces]") {
  const std::string lines =
      R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1}
{"seq":1,"kind":"mutate","storage":3}
{"seq":2,"kind":"storage_free","storage":4}
)";
  TraceReader reader(bytes_in_memory(lines), "t");
  Trace trace;
  CHECK(reader.read(trace, 10) == 3);
}

TEST_CASE("nested_in may name a region or number a frame", "[traces]") {
  const std::string lines =
      R"({"seq":0,"kind":"header","format":"ckpt-trace","version":1}
{"seq":1,"kind":"unit_begin","unit":"a","exec":"replay","nested_in":"fn"}
{"seq":2,"kind":"unit_begin","unit":"b","exec":"replay","nested_in":3}
)";
  TraceReader reader(bytes_in_memory(lines), "t");
  Trace trace;
  REQUIRE(reader.read(trace, 10) == 3);
  CHECK(trace[1].text(Field::nested_in) == "\"fn\"");
  CHECK(trace[2].text(Field::nested_in) == "3");
}

}  // namespace remat
