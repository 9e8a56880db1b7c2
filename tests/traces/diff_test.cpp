#include "traces/diff.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

using Events = std::vector<std::string>;

/// The comparable events of a trace of these events, each without its `seq`: `"kind":"op",…`.
Events events_of(const std::vector<std::string>& events) {
  std::string lines;
  std::size_t seq = 0;
  for (const std::string& event : events)
    lines += "{\"seq\":" + std::to_string(++seq) + "," + event + "}\n";
  return comparable_events(trace_in(with_header(lines)));
}

std::string op(const std::string& name, const std::string& more = R"("phase":"replay")") {
  return R"("kind":"op","name":")" + name + R"(","inputs":[],"outputs":[],)" + more;
}

}  // namespace

TEST_CASE("a replay is compared from its begin to its end, a forward is not", "[traces]") {
  CHECK(events_of({R"("kind":"unit_begin","phase":"forward","unit":"a","inv":0,"exec":"forward")",
                   R"("kind":"unit_end","phase":"forward","unit":"a","inv":0,"exec":"forward")"})
            .empty());
  CHECK(events_of({R"("kind":"unit_begin","phase":"replay","unit":"a","inv":3,"exec":"replay")",
                   R"("kind":"unit_end","phase":"replay","unit":"a","inv":3,"exec":"replay")"}) ==
        Events{"replay a#3", "end"});
  CHECK(events_of(
            {R"("kind":"unit_begin","phase":"replay","unit":"a","inv":null,"exec":"replay")"}) ==
        Events{"replay a#None"});
}

TEST_CASE("ops count where they run in a replay and are the model's own", "[traces]") {
  CHECK(events_of({op("aten.mm.default")}) == Events{"op aten.mm.default"});
  CHECK(events_of({op("aten.mm.default", R"("phase":"forward")"),
                   op("aten.mm.default", R"("phase":"backward")"),
                   op("aten.mm.default", R"("phase":"setup")")})
            .empty());
  CHECK(events_of({op("aten.detach.default")}).empty());
  CHECK(events_of({op("aten.mm.default", R"("phase":"replay","internal":"repack")")}).empty());
  CHECK(events_of({op("aten.mm.default", R"("phase":"replay","internal":null)")}) ==
        Events{"op aten.mm.default"});
}

TEST_CASE("the bookkeeping ops of torch_remat count only in traces without its regions",
          "[traces]") {
  const Events ops = {op("aten.view.default"), op("aten.empty.memory_format"),
                      op("aten.set_.source_Storage_storage_offset"), op("aten.as_strided.default"),
                      op("aten.mm.default")};
  CHECK(events_of(ops) == Events{"op aten.view.default", "op aten.empty.memory_format",
                                 "op aten.set_.source_Storage_storage_offset",
                                 "op aten.as_strided.default", "op aten.mm.default"});
  Events with_region = ops;
  with_region.push_back(
      R"("kind":"region_begin","phase":"forward","region":"l1","policy":"save","body":"run")");
  CHECK(events_of(with_region) == Events{"op aten.mm.default"});
}

TEST_CASE("saves and an early stop of a replay are compared", "[traces]") {
  CHECK(events_of({R"("kind":"repack","phase":"replay","frame":2,"idx":0,"of":6)",
                   R"("kind":"repack","phase":"replay","frame":2,"idx":null,"of":6)",
                   R"("kind":"early_stop","phase":"replay","unit":"a","inv":0,"frame":2)"}) ==
        Events{"save f2.0", "save f2.None", "stop"});
}

TEST_CASE("a wrapper that is skipped in a replay is compared with the entry that it was served",
          "[traces]") {
  const std::string pop = R"("kind":"cache_pop","wrapper":"gemm1","call":4,"entry_call":2,)";
  CHECK(events_of({pop + R"("phase":"replay","ok":true)"}) == Events{"skip gemm1#2"});
  CHECK(events_of({pop + R"("phase":"replay","ok":false)", pop + R"("phase":"forward","ok":true)",
                   pop + R"("phase":"replay")"})
            .empty());
}

TEST_CASE("a slot that is filled is compared", "[traces]") {
  CHECK(events_of({R"("kind":"slot_fill","phase":"replay","slot":"x6","wrapper":"g")"}) ==
        Events{"fill x6"});
}

TEST_CASE("reads are compared of frames' slots, of excluded regions' and of rederived inputs",
          "[traces]") {
  const auto pack = [](const std::string& role) {
    return R"("kind":"pack","phase":"forward","slot":"x","role":")" + role + "\"";
  };
  const auto read = [](const std::string& more) {
    return R"("kind":"unpack","phase":"backward","slot":"x",)" + more;
  };
  CHECK(events_of({pack("checkpointed"), read(R"("frame":0,"from":"replay")")}) ==
        Events{"unpack x"});
  CHECK(events_of({pack("plain"), read(R"("frame":null,"from":"saved")")}).empty());
  CHECK(events_of({pack("plain"), read(R"("from":"saved")")}).empty());
  CHECK(events_of({pack("plain"), read(R"("from":"rederived")")}) == Events{"unpack x"});
  for (const std::string role : {"excl_saved", "excl_input"}) {
    CAPTURE(role);
    CHECK(events_of({pack(role), read(R"("from":"saved")")}) == Events{"unpack x"});
  }
}

TEST_CASE("nothing is compared behind an error", "[traces]") {
  CHECK(events_of({op("aten.mm.default"),
                   R"("kind":"error","phase":"backward","type":"builtins.RuntimeError")",
                   op("aten.mm.default"),
                   R"("kind":"error","phase":"backward","type":"builtins.ValueError")"}) ==
        Events{"op aten.mm.default", "error builtins.RuntimeError"});
}

TEST_CASE("a recording's comparable events stand in its order", "[traces]") {
  const Events events = comparable_events(
      read_trace(REMATSIM_SOURCE_DIR "/traces/recorded/02_nonreentrant_early_stop.jsonl.gz"));
  REQUIRE(events.size() == 63);  // 3 replays of 6 ops and 6 saves, begin, stop, end and 6 unpacks
  CHECK(events.front() == "replay layer2#0");
  CHECK(Events(events.begin() + 1, events.begin() + 5) ==
        Events{"op aten.t.default", "save f2.0", "save f2.1", "op aten.addmm.default"});
  CHECK(events.back() == "unpack f0.1");
}

TEST_CASE("equal lists have no first difference", "[traces]") {
  CHECK_FALSE(first_difference(Events{}, Events{}));
  CHECK_FALSE(first_difference(Events{"a", "b"}, Events{"a", "b"}));
}

TEST_CASE("the first difference is where two lists part", "[traces]") {
  const auto difference = [](const Events& predicted, const Events& recorded) {
    const auto found = first_difference(predicted, recorded);
    REQUIRE(found.has_value());
    return std::to_string(found->index) + ": " + found->predicted.value_or("(none)") + " / " +
           found->recorded.value_or("(none)");
  };
  CHECK(difference({"a", "b", "c"}, {"x", "b", "c"}) == "0: a / x");
  CHECK(difference({"a", "b", "c"}, {"a", "x", "y"}) == "1: b / x");
  CHECK(difference({"a", "b", "c"}, {"a", "b", "x"}) == "2: c / x");
  CHECK(difference({"a", "b"}, {"a", "b", "c"}) == "2: (none) / c");
  CHECK(difference({"a", "b", "c"}, {"a", "b"}) == "2: c / (none)");
  CHECK(difference({}, {"a"}) == "0: (none) / a");
  CHECK(difference({"a"}, {}) == "0: a / (none)");
  CHECK(difference({"b", "a"}, {"a", "b", "c"}) == "0: b / a");
}

}  // namespace remat
