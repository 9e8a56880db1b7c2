#include "properties/invariants/offload_lifecycle.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

const std::string made = R"(
  {"kind":"op","phase":"forward","name":"sin","inputs":[],"outputs":[{"t":1,"s":1,"bytes":64}]}
  {"kind":"pack","phase":"forward","slot":"p0","role":"plain","held":"saved","tensor":{"t":1,"s":1}}
)";  // events 1 and 2

std::string copy(const std::string& end, const std::string& direction,
                 const std::string& phase = "backward") {
  return R"({"kind":"copy_)" + end + R"(","phase":")" + phase + R"(","storage":1,"direction":")" +
         direction + "\"}\n";
}
const std::string freed = "{\"kind\":\"storage_free\",\"storage\":1,\"bytes\":64}\n";
const std::string again = "{\"kind\":\"storage_alloc\",\"storage\":1,\"bytes\":64}\n";
const std::string out = copy("begin", "d2h") + copy("end", "d2h") + freed;
const std::string back = again + copy("begin", "h2d") + copy("end", "h2d");
const std::string read_slot = R"(
  {"kind":"unpack_begin","phase":"backward","slot":"p0"}
  {"kind":"unpack","phase":"backward","slot":"p0","from":"saved","tensor":{"t":1,"s":1}}
)";
const std::string refused = R"(
  {"kind":"unpack_begin","phase":"backward","slot":"p0"}
  {"kind":"unpack_error","phase":"backward","slot":"p0","code":"E-SWAP-STATE"}
)";
const std::string used = R"(
  {"kind":"op","phase":"backward","name":"mul","inputs":[1],"outputs":[{"t":2,"s":2,"bytes":64}]}
)";
const std::string replay_begins = R"(
  {"kind":"unit_begin","phase":"replay","unit":"r","exec":"replay","frame":0}
)";

/// What is wrong, without the events that prove it.
std::string only_message(const Verdict& verdict) {
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].invariant == "offload_lifecycle");
  return verdict.findings[0].message;
}

}  // namespace

TEST_CASE("what goes out, comes back and is read then is sound",
          "[invariants][offload_lifecycle]") {
  CHECK(checked(made + out + back + read_slot + used).findings == no_findings);
  CHECK(checked(made + out + back + read_slot + out + back + read_slot).findings == no_findings);
  CHECK(checked(made + out).findings == no_findings);  // nobody asks for it again
}

TEST_CASE("offload_lifecycle names a slot that is read before the copy back has ended",
          "[invariants][offload_lifecycle]") {
  CHECK(checked(made + out + read_slot).findings ==
        Findings{{"offload_lifecycle",
                  7,
                  "slot p0 is read in backward while storage 1 is on the host, since event 4; "
                  "expected the copy back to the device to end before the read",
                  {4, 7}}});
  CHECK(only_message(checked(made + out + again + copy("begin", "h2d") + read_slot)) ==
        "slot p0 is read in backward while storage 1 is on its way back, since event 7; expected "
        "the copy back to the device to end before the read");
  CHECK(only_message(checked(made + copy("begin", "d2h") + read_slot)) ==
        "slot p0 is read in backward while storage 1 is on its way out, since event 3; expected "
        "the copy back to the device to end before the read");
  // One that was refused the tensor has asked for it all the same; twice is one fault.
  only_message(checked(made + out + refused));
  only_message(checked(made + out + read_slot + read_slot));
}

TEST_CASE("another reader than a slot reads what has been released",
          "[invariants][offload_lifecycle]") {
  const Verdict verdict = checked(made + out + used);
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].invariant == "no_use_after_free");
  // Until the copy out has ended its bytes are there.
  CHECK(checked(made + copy("begin", "d2h") + used).findings == no_findings);
}

TEST_CASE("offload_lifecycle names copies that do not take turns",
          "[invariants][offload_lifecycle]") {
  const auto message = [](const std::string& copies) {
    return only_message(checked(made + copies));
  };
  CHECK(message(copy("end", "d2h")) ==
        "a copy to the host ends of storage 1 in backward, which is on the device; expected it on "
        "its way out");
  CHECK(message(copy("begin", "h2d")) ==
        "a copy back to the device begins of storage 1 in backward, which is on the device; "
        "expected it on the host");
  CHECK(message(out + copy("begin", "d2h")) ==
        "a copy to the host begins of storage 1 in backward, which is on the host; expected it on "
        "the device");
  CHECK(message(out + copy("end", "h2d")) ==
        "a copy back to the device ends of storage 1 in backward, which is on the host; expected "
        "it on its way back");
  CHECK(message(copy("begin", "d2h") + copy("begin", "h2d")) ==
        "a copy back to the device begins of storage 1 in backward, which is on its way out; "
        "expected it on the host");
}

TEST_CASE("a replay begins no copy of what is away", "[invariants][offload_lifecycle]") {
  CHECK(
      only_message(checked(made + out + replay_begins + again + copy("begin", "h2d", "replay"))) ==
      "a copy back to the device begins of storage 1 in the replay of r, though it is on the "
      "host; expected a replay to leave what is offloaded alone");
  // One that begins before may end in it; and what is on the device may go.
  CHECK(checked(made + out + again + copy("begin", "h2d") + replay_begins +
                copy("end", "h2d", "replay"))
            .findings == no_findings);
  CHECK(checked(made + replay_begins + copy("begin", "d2h", "replay")).findings == no_findings);
}

TEST_CASE("copies that tell too little are not judged", "[invariants][offload_lifecycle]") {
  CHECK(checked(made + R"({"kind":"copy_end","storage":1})" + "\n").findings == no_findings);
  CHECK(checked(made + R"({"kind":"copy_end","direction":"d2h"})" + "\n").findings == no_findings);
  CHECK(checked(made + copy("end", "sideways")).findings == no_findings);
  CHECK(needs(checked(made), "offload_lifecycle") == "copy_begin and copy_end events");
  CHECK(needs(checked(made + out), "offload_lifecycle").empty());
}
