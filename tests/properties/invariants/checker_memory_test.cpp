#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "properties/invariants/checker.hpp"
#include "traces/byte_source.hpp"
#include "traces/reader.hpp"

using namespace remat;

namespace {

/// A trace that is made up as it is read, step by step.
class MadeUpTrace : public ByteSource {
 public:
  explicit MadeUpTrace(std::int64_t n_steps) : n_steps_(n_steps) {}

  std::size_t read(std::span<char> into) override {
    while (buffer_.empty() && step_ < n_steps_)
      next_step(step_++);
    const std::size_t n = std::min(into.size(), buffer_.size());
    std::memcpy(into.data(), buffer_.data(), n);
    buffer_.erase(0, n);
    return n;
  }

 protected:
  bool is_at_the_start() const { return seq_ == 0; }
  void add(const std::string& event) {
    buffer_ += fmt::format("{{\"seq\":{},{}}}\n", seq_++, event);
  }

 private:
  virtual void next_step(std::int64_t step) = 0;

  std::int64_t n_steps_;
  std::int64_t step_ = 0;
  std::int64_t seq_ = 0;
  std::string buffer_;
};

/// A long run, made up as it is read: every step of it is the same but for its numbers of graph
/// tasks.
class LongRun : public MadeUpTrace {
 public:
  using MadeUpTrace::MadeUpTrace;

 private:
  void next_step(std::int64_t step) override {
    if (is_at_the_start())
      add(R"("kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"mm":2},"gradients":{"w":["g"]},"peak_bytes":64})");
    const std::string task = std::to_string(step);
    const std::string unit = R"("unit":"A","inv":0,"microbatch":0,"frame":1)";
    add(R"("kind":"step_begin","phase":"setup")");
    add(R"("kind":"frame_create","phase":"forward",)" + unit);
    add(R"("kind":"unit_begin","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"rng","phase":"forward","generator":"cuda")");
    add(R"("kind":"storage_alloc","phase":"forward","storage":1,"bytes":8,"op":"mm")");
    add(R"("kind":"op","phase":"forward","unit":"A","inv":0,"name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}])");
    add(R"("kind":"sac_decide","phase":"forward","op":"softmax","idx":0,"saved":true,"tensors":[1])");
    add(R"("kind":"side_effect","phase":"forward","name":"log")");
    add(R"("kind":"pack","phase":"forward","idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":1,"s":1},)" +
        unit);
    add(R"("kind":"pack","phase":"forward","slot":"R.in","role":"remat_saved_input","region":"R")");
    add(R"("kind":"unit_end","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"phase_end","phase":"forward")");
    add_a_call_without_a_frame();
    for (const char* rank : {"0", "1"}) {
      add(R"("kind":"collective","phase":"forward","group":"dp","name":"all_reduce","rank":)" +
          std::string(rank));
    }
    add(R"("kind":"send","phase":"forward","rank":0,"peer":1)");
    add(R"("kind":"recv","phase":"forward","rank":1,"peer":0)");
    add(R"("kind":"session_open","retain":true,"graph_task":)" + task);
    add(R"("kind":"unit_begin","phase":"replay","exec":"replay","graph_task":)" + task + "," +
        unit);
    add(R"("kind":"rng_set","phase":"replay","generator":"cuda","to":)" + std::to_string(draws_));
    add(R"("kind":"rng","phase":"replay","generator":"cuda")");
    add(R"("kind":"storage_alloc","phase":"replay","storage":2,"bytes":8,"op":"mm")");
    add(R"("kind":"op","phase":"replay","unit":"A","inv":0,"name":"mm","inputs":[1],"outputs":[{"t":2,"s":2,"bytes":8}])");
    add(R"("kind":"mutate","phase":"replay","tensor":2,"storage":2)");
    add(R"("kind":"remat_rederive","phase":"replay","region":"R","graph_task":)" + task);
    add(R"("kind":"repack","phase":"replay","frame":1,"idx":0,"tensor":{"t":2,"s":2},"graph_task":)" +
        task);
    add(R"("kind":"unit_end","phase":"replay","exec":"replay","ended_by":"return",)" + unit);
    add(R"("kind":"unpack","phase":"backward","slot":"A.0","tensor":{"t":2,"s":2},"graph_task":)" +
        task);
    add(R"("kind":"unpack","phase":"backward","slot":"R.in","graph_task":)" + task);
    add(R"("kind":"grad","phase":"backward","param":"w","value":"g")");
    add(R"("kind":"holder_free","phase":"backward","slot":"A.0","frame":1)");
    add(R"("kind":"frame_free","phase":"backward","frame":1)");
    add(R"("kind":"session_close","retain":false,"graph_task":)" + task);
    for (const char* storage : {"1", "2"})
      add(R"("kind":"storage_free","phase":"backward","storage":)" + std::string(storage));
    for (const char* stream : {"compute", "copy"}) {
      add(R"("kind":"launch","phase":"backward","reads":[1],"stream":")" + std::string(stream) +
          "\"");
    }
    add(R"("kind":"step_end","phase":"setup")");
    ++draws_;
  }

  void add_a_call_without_a_frame() {
    const std::string unit = R"("unit":"B","inv":0,"thread":0)";
    add(R"("kind":"unit_begin","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"rng","phase":"forward","thread":0,"generator":"cpu")");
    add(R"("kind":"op","phase":"forward","name":"f","inputs":[1],"outputs":[{"t":3,"s":3,"bytes":8}],)" +
        unit);
    add(R"("kind":"side_effect","phase":"forward","name":"log",)" + unit);
    add(R"("kind":"unit_end","phase":"forward","exec":"forward",)" + unit);
    add(R"("kind":"storage_free","phase":"forward","storage":3)");
    // Nothing says where this replay ends.
    add(R"("kind":"unit_begin","phase":"replay","exec":"replay",)" + unit);
    add(R"("kind":"op","phase":"replay","name":"f","inputs":[1],"outputs":[{"t":3,"s":3,"bytes":8}],)" +
        unit);
    add(R"("kind":"storage_free","phase":"replay","thread":0,"storage":3)");
  }

  std::int64_t draws_ = 0;
};

/// A storage, its tensor and a slot a step, all new, written and released at once.
class ShortLives : public MadeUpTrace {
 public:
  using MadeUpTrace::MadeUpTrace;

 private:
  void next_step(std::int64_t step) override {
    if (is_at_the_start()) add(R"("kind":"header","format":"ckpt-trace","version":1)");
    add(fmt::format(
        R"("kind":"op","name":"f","inputs":[],"outputs":[{{"t":{0},"s":{0},"bytes":4}}])", step));
    add(fmt::format(R"("kind":"mutate","storage":{})", step));
    add(fmt::format(R"("kind":"pack","slot":"f{0}.0","held":"saved","tensor":{{"t":{0},"s":{0}}})",
                    step));
    add(fmt::format(R"("kind":"holder_free","slot":"f{}.0")", step));
    add(fmt::format(R"("kind":"storage_free","storage":{})", step));
    if (step % 1000 == 999) add(R"("kind":"step_end")");
  }
};

/// Bytes that the allocator has handed out when half of a trace's steps are over and at its end; a
/// sanitizer's allocator says 0 at both times.
std::pair<std::size_t, std::size_t> bytes_halfway_and_at_the_end(
    std::unique_ptr<MadeUpTrace> source, std::int64_t n_step_ends) {
  TraceReader reader(std::move(source), "t");
  Trace trace;
  Checker checker;
  std::int64_t steps_ended = 0;
  std::size_t halfway = 0;
  while (reader.read(trace, 1) > 0) {
    checker.observe(trace[0]);
    if (trace[0].kind() == Kind::step_end && ++steps_ended == n_step_ends / 2)
      halfway = mallinfo2().uordblks;
    trace.drop_events();
  }
  CHECK(steps_ended == n_step_ends);
  const std::size_t at_the_end = mallinfo2().uordblks;
  CHECK(checker.finish().findings.empty());
  return {halfway, at_the_end};
}

}  // namespace

TEST_CASE("Checker keeps what is alive, not the run: twice the steps take no more memory",
          "[invariants]") {
  constexpr std::int64_t n_steps = 10000;
  const auto [halfway, at_the_end] =
      bytes_halfway_and_at_the_end(std::make_unique<LongRun>(n_steps), n_steps);
  CHECK(at_the_end <= halfway + 4096);
}

TEST_CASE("Checker keeps of what is dead a few bytes, however much of it a trace has",
          "[invariants]") {
  constexpr std::int64_t n = 400000;
  const auto [halfway, at_the_end] =
      bytes_halfway_and_at_the_end(std::make_unique<ShortLives>(n), n / 1000);
  // The tensor, the storage and its writes about five bytes each, and the slot its name.
  CHECK(at_the_end <= halfway + n / 2 * 64);
}
