#include "properties/invariants/facts.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// What is known at one event of a hand-made trace: the last one, or the one with this `seq`.
class FactsAt {
 public:
  explicit FactsAt(std::string_view lines, std::optional<std::size_t> seq = std::nullopt)
      : trace_(hand_made(lines)), event_(trace_[seq.value_or(trace_.size() - 1)]) {
    for (std::size_t i = 0; trace_[i].seq() < event_.seq(); ++i) {
      const EventView before = trace_[i];
      facts_.begin(before);
      facts_.end(before);
    }
    facts_.begin(event_);
  }
  const Facts* operator->() const { return &facts_; }
  const Facts& facts() const { return facts_; }
  const EventView& event() const { return event_; }
  std::string session() const {
    const auto session = facts_.session();
    if (!session) return "none";
    if (!session->named()) return "graph task " + std::to_string(session->graph_task());
    return std::string(trace_.names()[trace_.session(*session->named()).kind]);
  }
  /// Numbers of the storages that the event reads.
  std::vector<std::int64_t> reads() const {
    std::vector<std::int64_t> numbers;
    for (const Read& read : facts_.reads())
      numbers.push_back(read.storage.number());
    return numbers;
  }
  /// Numbers and bytes of the storages that the event brings to life.
  std::vector<std::pair<std::int64_t, std::int64_t>> births() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> births;
    for (const Facts::Birth& birth : facts_.births())
      births.push_back({birth.storage.number(), birth.bytes});
    return births;
  }

 private:
  Trace trace_;
  EventView event_;
  Facts facts_;
};

using Numbers = std::vector<std::int64_t>;

const std::string replay =
    R"({"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["group",3]})"
    "\n";

TraceHeader header_with(const std::string& fields) {
  return FactsAt(R"({"kind":"header","format":"ckpt-trace","version":1)" + fields + "}\n" +
                 R"({"kind":"note"})")
      ->header();
}

}  // namespace

TEST_CASE("the header says who wrote the trace and what it lacks", "[invariants]") {
  CHECK(header_with("").has_a_caller);
  CHECK_FALSE(header_with("").is_a_recording);
  CHECK(header_with(R"(,"producer":"recorder")").has_a_caller);
  CHECK(header_with(R"(,"producer":"recorder")").is_a_recording);
  CHECK(header_with(R"(,"torch":"2.9")").is_a_recording);
  for (const std::string producer : {"simulator", "executor", "hand"}) {
    CHECK_FALSE(header_with(R"(,"producer":")" + producer + "\"").has_a_caller);
    CHECK_FALSE(header_with(R"(,"ts_ns":1,"producer":")" + producer + "\"").is_a_recording);
  }
  CHECK(header_with(R"(,"not_recorded":["rng"])").storages_have_lifetimes);
  CHECK_FALSE(header_with(R"(,"not_recorded":["rng","storage_free"])").storages_have_lifetimes);
  CHECK_FALSE(header_with(R"(,"not_recorded":["storage_alloc"])").storages_have_lifetimes);
}

TEST_CASE("an event's session is its gid, else its graph task, else its replay's", "[invariants]") {
  CHECK(FactsAt(R"({"kind":"note","gid":["group",1],"graph_task":4})").session() == "group");
  CHECK(FactsAt(R"({"kind":"note","graph_task":4})").session() == "graph task 4");
  CHECK(FactsAt(R"({"kind":"note","gid":["graph_task",4]})").session() == "graph task 4");
  CHECK(FactsAt(R"({"kind":"note","graph_task":-1})").session() == "none");
  CHECK(FactsAt(R"({"kind":"note"})").session() == "none");
  CHECK(FactsAt(replay + R"({"kind":"op","name":"mm"})").session() == "group");
  CHECK(FactsAt(replay + R"({"kind":"op","name":"mm","graph_task":9})").session() ==
        "graph task 9");
}

TEST_CASE("a graph task is one session however it is written, and no other", "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"note","gid":["graph_task",0]}
    {"kind":"note","gid":["adhoc",0]}
    {"kind":"note","gid":["session","graph_task"]}
  )");
  const auto key = [&](std::size_t at) {
    return SessionKey::of(*trace[at].session(Field::gid), trace);
  };
  CHECK(key(1) == SessionKey::of_graph_task(0));
  CHECK_FALSE(key(2) == SessionKey::of_graph_task(0));
  CHECK_FALSE(key(2) == key(3));
}

TEST_CASE("an event in a replay is of phase replay whatever it says", "[invariants]") {
  const FactsAt inside(replay + R"({"kind":"op","name":"mm"})");
  CHECK(inside->in_replay());
  CHECK(inside->phase() == Phase::replay);
  CHECK(inside->replay()->frame == 1);
  const FactsAt outside(replay + R"({"kind":"op","phase":"backward","name":"mm"})");
  CHECK_FALSE(outside->in_replay());
  CHECK(outside->phase() == Phase::backward);
  // At its unit_end a replay is still there, and named as what ends.
  const FactsAt end(replay +
                    R"({"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay"})");
  CHECK(end->in_replay());
  REQUIRE(end->ended_scope().has_value());
  CHECK(end->ended_scope()->frame == 1);
}

TEST_CASE("what a hook runs belongs to no body, and reads all the same", "[invariants]") {
  const FactsAt hook(
      replay +
      R"({"kind":"op","name":"detach","internal":"repack","inputs":[1],"reads":[{"t":1,"s":1}]})");
  CHECK(hook->bodies().empty());
  CHECK(hook.reads() == Numbers{1});
  CHECK(FactsAt(replay + R"({"kind":"op","name":"mm"})")->bodies().size() == 1);
}

TEST_CASE("each kind of event reads its own storages, each once", "[invariants]") {
  const std::string tensors = R"(
    {"kind":"tensor","t":1,"s":1}
    {"kind":"tensor","t":2,"s":2}
    {"kind":"tensor","t":3,"s":1}
    {"kind":"frame_create","frame":1}
    {"kind":"pack","slot":"kept","held":"saved","tensor":{"t":1,"s":1}}
    {"kind":"pack","slot":"empty","held":"placeholder","tensor":{"t":1,"s":1}}
    {"kind":"pack","slot":"filled","held":"placeholder","tensor":{"t":1,"s":1}}
    {"kind":"repack","slot":"filled","gid":["group",1],"tensor":{"t":2,"s":2}}
  )";
  const auto reads = [&](const std::string& event) { return FactsAt(tensors + event).reads(); };
  CHECK(reads(R"({"kind":"op","name":"mm","inputs":[1,2,3]})") == Numbers{1, 2});
  CHECK(reads(R"({"kind":"op","name":"mm","inputs":[],"reads":[{"t":9,"s":9}]})") == Numbers{9});
  CHECK(reads(R"({"kind":"op","name":"mm","inputs":[],"outputs":[{"t":1,"s":1}]})").empty());
  CHECK(reads(R"({"kind":"unpack","slot":"kept"})") == Numbers{1});
  CHECK(reads(R"({"kind":"unpack","slot":"empty"})").empty());
  CHECK(reads(R"({"kind":"unpack","slot":"filled","gid":["group",1]})") == Numbers{2});
  CHECK(reads(R"({"kind":"unpack","slot":"filled","gid":["group",2]})").empty());
  CHECK(reads(R"({"kind":"unpack_begin","slot":"kept"})").empty());
  CHECK(reads(R"({"kind":"repack","slot":"empty","tensor":{"t":2,"s":2}})") == Numbers{2});
  CHECK(reads(R"({"kind":"slot_fill","slot":"empty","tensor":{"t":2,"s":2}})") == Numbers{2});
  CHECK(reads(R"({"kind":"sac_hit","op":"mm","tensors":[2]})") == Numbers{2});
  CHECK(reads(R"({"kind":"remat_serve","region":"R","tensor":{"t":2,"s":2}})") == Numbers{2});
  CHECK(reads(R"({"kind":"inputs_unpack","frame":1,"tensors":[1,2]})") == Numbers{1, 2});
  CHECK(reads(R"({"kind":"inputs_save","frame":1,"tensors":[1,2]})").empty());
  CHECK(reads(R"({"kind":"pack","slot":"new","held":"saved","tensor":{"t":2,"s":2}})").empty());
}

TEST_CASE("a storage is born by its allocation, or as an op's output where it is not alive",
          "[invariants]") {
  using Births = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(FactsAt(R"({"kind":"storage_alloc","storage":5,"bytes":8})").births() == Births{{5, 8}});
  CHECK(
      FactsAt(
          R"({"kind":"op","name":"f","inputs":[],"outputs":[{"t":1,"s":5,"bytes":8},{"t":2,"s":5,"bytes":4},{"t":3,"s":6}]})")
          .births() == Births{{5, 8}, {6, 0}});
  const std::string alive = R"({"kind":"storage_alloc","storage":5,"bytes":8})"
                            "\n";
  CHECK(FactsAt(alive +
                R"({"kind":"op","name":"view","inputs":[],"outputs":[{"t":1,"s":5,"bytes":8}]})")
            .births()
            .empty());
  CHECK(FactsAt(alive + R"({"kind":"storage_alloc","storage":5,"bytes":8})").births().empty());
  CHECK(FactsAt(alive + R"({"kind":"storage_free","storage":5})"
                        "\n"
                        R"({"kind":"storage_alloc","storage":5,"bytes":9})")
            .births() == Births{{5, 9}});
}

TEST_CASE("a storage that is seen without an allocation was there before, outside",
          "[invariants]") {
  const FactsAt at(R"(
    {"kind":"op","name":"mm","inputs":[4],"reads":[{"t":4,"s":7,"bytes":64,"name":"w"}],"outputs":[]}
    {"kind":"note"}
  )");
  const auto storage = at->storages().find(7);
  REQUIRE(storage.has_value());
  REQUIRE(at->storages().live(*storage) != nullptr);
  CHECK(at->storages().live(*storage)->role == Role::external);
  CHECK(at->storages().live_bytes() == 0);
  CHECK(at->storages().of_tensor(4) == storage);
}

TEST_CASE("a body made what was born since it began", "[invariants]") {
  const FactsAt at(R"(
    {"kind":"storage_alloc","storage":1,"bytes":8}
    {"kind":"unit_begin","unit":"A","frame":1,"exec":"forward"}
    {"kind":"storage_alloc","storage":2,"bytes":8}
    {"kind":"op","name":"mm"}
  )");
  REQUIRE(at->bodies().size() == 1);
  const Body& body = at->bodies().front();
  CHECK_FALSE(at->made_by(body, *at->storages().find(1)));
  CHECK(at->made_by(body, *at->storages().find(2)));
  SECTION("or, where no scope tells of it, what its events made") {
    const FactsAt unscoped(R"(
      {"kind":"storage_alloc","phase":"forward","storage":1,"bytes":8}
      {"kind":"storage_alloc","phase":"forward","unit":"A","storage":2,"bytes":8}
      {"kind":"op","phase":"forward","unit":"A","name":"mm"}
    )");
    REQUIRE(unscoped->bodies().size() == 1);
    CHECK_FALSE(unscoped->made_by(unscoped->bodies().front(), *unscoped->storages().find(1)));
    CHECK(unscoped->made_by(unscoped->bodies().front(), *unscoped->storages().find(2)));
  }
}

TEST_CASE("a region's inputs that were just packed are its caller's slots", "[invariants]") {
  const std::string packed = R"(
    {"kind":"tensor","t":1,"s":1}
    {"kind":"tensor","t":2,"s":2}
    {"kind":"pack","role":"checkpointed","slot":"old","tensor":{"t":2,"s":2}}
    {"kind":"frame_create","frame":2}
    {"kind":"pack","role":"unit_input","slot":"in","tensor":{"t":2,"s":2}}
    {"kind":"pack","role":"checkpointed","slot":"f1.0","tensor":{"t":1,"s":1}}
  )";
  const FactsAt at(packed + R"({"kind":"inputs_save","frame":2,"tensors":[1,2]})");
  CHECK(at->is_a_slot_of_the_caller(*at->storages().find(1)));
  CHECK_FALSE(at->is_a_slot_of_the_caller(*at->storages().find(2)));
}

TEST_CASE("a session retains from its opening on until it is closed without, or cleared",
          "[invariants]") {
  const SessionKey task = SessionKey::of_graph_task(1);
  const std::string open = R"({"kind":"session_open","gid":["graph_task",1],"retain":true})"
                           "\n";
  const std::string note = R"({"kind":"note"})";
  CHECK_FALSE(FactsAt(note)->retains(task));
  CHECK(FactsAt(open + note)->retains(task));
  CHECK_FALSE(FactsAt(open +
                      R"({"kind":"session_close","gid":["graph_task",1]})"
                      "\n" +
                      note)
                  ->retains(task));
  CHECK(FactsAt(open +
                R"({"kind":"session_close","gid":["graph_task",1],"retain":true})"
                "\n" +
                note)
            ->retains(task));
  CHECK_FALSE(FactsAt(open +
                      R"({"kind":"session_clear","gid":["graph_task",1]})"
                      "\n" +
                      note)
                  ->retains(task));
}

TEST_CASE("an error stops the step, not the next one", "[invariants]") {
  const std::string error = R"({"kind":"error"})"
                            "\n"
                            R"({"kind":"unpack_error"})"
                            "\n";
  CHECK(FactsAt(error + R"({"kind":"step_end"})")->stopped_at() == 1);
  CHECK_FALSE(FactsAt(error + R"({"kind":"step_end"})"
                              "\n"
                              R"({"kind":"note"})")
                  ->stopped_at()
                  .has_value());
  CHECK_FALSE(FactsAt(error + R"({"kind":"step_begin"})"
                              "\n"
                              R"({"kind":"note"})")
                  ->stopped_at()
                  .has_value());
}

TEST_CASE("a step begins at its step_begin, or where the one before ended", "[invariants]") {
  const FactsAt at(R"(
    {"kind":"step_end"}
    {"kind":"step_begin","rank":1}
    {"kind":"step_end","rank":0}
    {"kind":"note"}
  )");
  CHECK(at->step_begin_seq(std::nullopt) == 1);
  CHECK(at->step_begin_seq(1) == 2);
  CHECK(at->step_begin_seq(0) == 3);
  CHECK(at->step_begin_seq(2) == 1);
}

TEST_CASE("a replay that ends with an error has raised; an early stop has not", "[invariants]") {
  const auto raised = [](const std::string& how) {
    return FactsAt(
               replay +
               R"({"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":")" +
               how + "\"}\n" + R"({"kind":"note"})")
        ->replay_raised_since(1);
  };
  CHECK(raised("ValueError"));
  CHECK_FALSE(raised("return"));
  CHECK_FALSE(raised("end"));
  CHECK_FALSE(raised("_StopRecomputationError"));
}

TEST_CASE("a frame is gone with its frame_free, one without a number with its step",
          "[invariants]") {
  CHECK(FactsAt(R"(
    {"kind":"frame_create","unit":"A","frame":4}
    {"kind":"frame_free","frame":4}
  )")
            ->frames_gone() == Numbers{4});
  const FactsAt end(R"(
    {"kind":"frame_create","unit":"A","frame":4}
    {"kind":"unit_begin","unit":"B","exec":"forward"}
    {"kind":"step_end"}
  )");
  REQUIRE(end->frames_gone().size() == 1);
  CHECK(end->frames_gone().front() < 0);
}

TEST_CASE("saves of a frame are numbered as they come, where the trace does not number them",
          "[invariants]") {
  const FactsAt at(R"(
    {"kind":"pack","unit":"A","role":"checkpointed","slot":"a"}
    {"kind":"pack","unit":"A","role":"plain","slot":"b"}
    {"kind":"pack","unit":"A","role":"checkpointed","slot":"c"}
    {"kind":"unpack","slot":"c"}
  )");
  REQUIRE(at->slot() != nullptr);
  CHECK(at->slot()->index == 1);
  const Frame* frame = at->scopes().frame(*at->slot()->frame);
  REQUIRE(frame != nullptr);
  CHECK(frame->saves.size() == 2);
}
