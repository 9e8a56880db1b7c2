#include "properties/invariants/stream_order.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

const std::string compute_writes = R"(
  {"kind":"launch","phase":"forward","microbatch":0,"stream":"compute","name":"mm","reads":[],"writes":[1]}
)";
const std::string compute_reads = R"(
  {"kind":"launch","phase":"forward","microbatch":0,"stream":"compute","name":"mm","reads":[1],"writes":[]}
)";
const std::string copy_writes = R"(
  {"kind":"launch","phase":"backward","microbatch":1,"stream":"copy","name":"H2D","reads":[],"writes":[1]}
)";
const std::string copy_reads = R"(
  {"kind":"launch","phase":"backward","microbatch":1,"stream":"copy","name":"D2H","reads":[1],"writes":[]}
)";

std::string record(const std::string& stream, const std::string& event) {
  return R"({"kind":"record","stream":")" + stream + R"(","event":")" + event + "\"}\n";
}
std::string wait(const std::string& stream, const std::string& event) {
  return R"({"kind":"wait","stream":")" + stream + R"(","event":")" + event + "\"}\n";
}

}  // namespace

TEST_CASE("stream_order names two accesses that no event orders, one of them a write",
          "[invariants][stream_order]") {
  SECTION("a read after a write") {
    CHECK(checked(compute_writes + copy_reads).findings ==
          Findings{{"stream_order",
                    2,
                    "'D2H' on stream copy in backward of micro-batch 1 reads storage 1, which "
                    "stream compute writes at event 1, and no event orders the two; expected a "
                    "record on compute and a wait for it on copy",
                    {1, 2}}});
  }
  SECTION("a write after a read") {
    CHECK(checked(compute_reads + copy_writes).findings ==
          Findings{{"stream_order",
                    2,
                    "'H2D' on stream copy in backward of micro-batch 1 writes storage 1, which "
                    "stream compute reads at event 1, and no event orders the two; expected a "
                    "record on compute and a wait for it on copy",
                    {1, 2}}});
  }
  SECTION("a write after a write") {
    CHECK(checked(compute_writes + copy_writes).findings ==
          Findings{{"stream_order",
                    2,
                    "'H2D' on stream copy in backward of micro-batch 1 writes storage 1, which "
                    "stream compute writes at event 1, and no event orders the two; expected a "
                    "record on compute and a wait for it on copy",
                    {1, 2}}});
  }
  SECTION("of a storage and a piece of work with names, or without") {
    CHECK(checked(
              R"({"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8,"name":"block 7"})"
              "\n" +
              compute_writes + R"(
      {"kind":"launch","stream":"copy","reads":[1]}
    )")
              .findings ==
          Findings{{"stream_order",
                    3,
                    "work on stream copy outside any phase reads storage 1 'block 7', which stream "
                    "compute writes at event 2, and no event orders the two; expected a record on "
                    "compute and a wait for it on copy",
                    {2, 3}}});
  }
}

TEST_CASE("stream_order lets reads and one stream's own work be unordered",
          "[invariants][stream_order]") {
  CHECK(checked(compute_reads + copy_reads).findings.empty());
  CHECK(checked(compute_writes + compute_reads + compute_writes).findings.empty());
  CHECK(checked(compute_writes + R"({"kind":"launch","stream":"copy","reads":[2],"writes":[3]})")
            .findings.empty());
}

TEST_CASE("stream_order takes a record and a wait for it for an order",
          "[invariants][stream_order]") {
  CHECK(checked(compute_writes + record("compute", "e") + wait("copy", "e") + copy_reads)
            .findings.empty());
  SECTION("through a third stream") {
    CHECK(checked(compute_writes + record("compute", "e") + wait("comm", "e") +
                  record("comm", "f") + wait("copy", "f") + copy_writes)
              .findings.empty());
  }
  SECTION("not the record alone") {
    CHECK(checked(compute_writes + record("compute", "e") + copy_reads).findings.size() == 1);
  }
  SECTION("not a wait for an event that was never recorded") {
    CHECK(checked(compute_writes + wait("copy", "e") + copy_reads).findings.size() == 1);
  }
  SECTION("not for what is launched after the record") {
    CHECK(checked(record("compute", "e") + compute_writes + wait("copy", "e") + copy_reads)
              .findings.size() == 1);
  }
  SECTION("not for what is launched before the wait") {
    CHECK(checked(compute_writes + record("compute", "e") + copy_reads + wait("copy", "e"))
              .findings.size() == 1);
  }
  SECTION("not the other way round") {
    CHECK(checked(compute_writes + record("copy", "e") + wait("compute", "e") + copy_reads)
              .findings.size() == 1);
  }
}

TEST_CASE("stream_order remembers every stream's last accesses", "[invariants][stream_order]") {
  // The write must wait for both readers; it waits for one.
  CHECK(checked(R"(
    {"kind":"launch","stream":"a","reads":[1]}
    {"kind":"launch","stream":"b","reads":[1]}
    {"kind":"record","stream":"b","event":"e"}
    {"kind":"wait","stream":"c","event":"e"}
    {"kind":"launch","stream":"c","writes":[1]}
  )")
            .findings ==
        Findings{
            {"stream_order",
             5,
             "work on stream c outside any phase writes storage 1, which stream a reads at event "
             "1, and no event orders the two; expected a record on a and a wait for it on c",
             {1, 5}}});
}

TEST_CASE("stream_order keeps equal names of different ranks apart", "[invariants][stream_order]") {
  CHECK(checked(R"(
    {"kind":"launch","rank":0,"stream":"compute","writes":[1]}
    {"kind":"record","rank":1,"stream":"compute","event":"e"}
    {"kind":"wait","rank":0,"stream":"copy","event":"e"}
    {"kind":"launch","rank":0,"phase":"forward","stream":"copy","reads":[1]}
  )")
            .findings ==
        Findings{{"stream_order",
                  4,
                  "work on stream copy in forward on rank 0 reads storage 1, which stream compute "
                  "writes at event 1, and no event orders the two; expected a record on compute "
                  "and a wait for it on copy",
                  {1, 4}}});
}

TEST_CASE("stream_order says that it needs two streams", "[invariants][stream_order]") {
  CHECK(needs(checked(compute_writes), "stream_order") == "launch events on two or more streams");
  CHECK(needs(checked(compute_reads + copy_reads), "stream_order").empty());
}
