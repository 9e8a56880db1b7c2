#include "properties/invariants/rng_position.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "properties/invariants/skipped_draws.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "rng_position";

/// A generator of one rank.
using Generator = std::pair<std::int64_t, std::uint32_t>;

/// What a draw of forward lies inside of: where a replay skips that, it skips the draw (N1).
struct Inside {
  enum class What : std::uint8_t { body, wrapper, region, op } what = What::body;
  std::uint32_t name = 0;
  std::int64_t number = 0;  // which run of it, counted in its call; the op's index in its cache
  std::int64_t frame = -1;  // whose call that is: a nested unit's wrappers are its own
  friend bool operator==(const Inside&, const Inside&) = default;
};

/// How often something was entered.
using Entered = std::map<std::tuple<std::int64_t, Inside::What, std::uint32_t>, std::int64_t>;

struct Draw {
  std::int64_t position = 0;
  std::int64_t seq = 0;
  Inside inside;
};

struct Call {
  Entered entered;
  std::map<Generator, std::vector<Draw>> draws;
  std::optional<std::int64_t> crc_at_body;
  std::int64_t body_seq = 0;
  bool forward_drew =
      false;  // the random state at the end of forward's body differs from that at its beginning
};

struct Replay {
  Entered entered;
  std::map<Generator, std::size_t> cursors;
  std::vector<Inside> skipped;
  bool told = false;
};

/// Where generators stood when a replay began.
struct Before {
  std::map<Generator, std::int64_t> positions;
  std::optional<std::int64_t> crc;
};

class RngPosition : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::rng:
        observe_draw(event, facts, report);
        break;
      case Kind::rng_set:
        observe_set(event);
        break;
      case Kind::op:
        if (skipped_.is_off(event, facts)) tell_off(event, facts, report);
        name_draws(event, facts);
        break;
      case Kind::sac_hit:
        skip(facts,
             {Inside::What::op, id(event, Field::op), event.integer(Field::idx).value_or(-1)});
        break;
      case Kind::sac_decide:
        keep_draws(event, facts);
        break;
      case Kind::wrapper_enter:
      case Kind::wrapper_exit:
        observe_wrapper(event, facts);
        break;
      case Kind::region_begin:
      case Kind::region_end:
        observe_region(event, facts);
        break;
      case Kind::unit_begin:
        observe_begin(event);
        break;
      case Kind::body_begin:
        observe_body(event, facts, report);
        break;
      case Kind::unit_end:
        observe_end(event, facts, report);
        break;
      case Kind::frame_free:
      case Kind::step_end:
        for (const std::int64_t frame : facts.frames_gone())
          calls_.erase(frame);
        if (facts.ends_the_step()) {
          replays_.clear();
          skipped_.end_step();
          before_.clear();
          inside_.clear();
        }
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (!any_position_)
      report.not_checked(invariant_name, "rng events, or rng_crc on body_begin and unit_end");
  }

 private:
  struct Unnamed {
    std::int64_t frame = 0;
    Generator generator;
    std::size_t index = 0;
  };
  /// Whose draws a rank's are: they come before their op.
  struct Naming {
    std::vector<Unnamed> unnamed;  // draws since the last op
    std::vector<Unnamed> named;    // draws of the last op that drew
    std::uint32_t op = 0;
  };
  Naming& naming_of(const EventView& event) {
    return naming_[event.integer(Field::rank).value_or(-1)];
  }

  static std::uint32_t id(const EventView& event, Field field) {
    const auto name = event.name(field);
    return name ? name->index() : 0xffffffff;
  }
  static Generator generator(const EventView& event) {
    return {event.integer(Field::rank).value_or(-1), id(event, Field::generator)};
  }

  void observe_draw(const EventView& event, const Facts& facts, Report& report) {
    any_position_ = true;
    const Generator of = generator(event);
    const std::int64_t position = positions_[of]++;
    bool in_a_replay = false;
    for (const Body& body : facts.bodies()) {
      if (body.replay) {
        in_a_replay = true;
        check_draw(event, facts, body, of, position, report);
      } else {
        Call& call = calls_[body.frame];
        call.draws[of].push_back({position, event.seq(), inside(event)});
        naming_of(event).unnamed.push_back({body.frame, of, call.draws[of].size() - 1});
      }
    }
    if (!in_a_replay) check_displaced(event, facts, of, position, report);
  }

  // N1: the n-th draw of the replay against the n-th of forward that the replay does not skip.
  void check_draw(const EventView& event, const Facts& facts, const Body& body, const Generator& of,
                  std::int64_t position, Report& report) {
    const Call* call = calls_.find(body.frame);
    if (call == nullptr) return;
    const auto forward = call->draws.find(of);
    if (forward == call->draws.end()) return;
    Replay& replay = replays_[body.scope];
    std::size_t& at = replay.cursors[of];
    while (at < forward->second.size() && is_skipped(replay, forward->second[at]))
      ++at;
    if (at == forward->second.size()) return;
    const Draw& drawn = forward->second[at++];
    if (drawn.position == position || replay.told) return;
    replay.told = true;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} draws{} at position {} {}, but forward drew at position {} (event "
                             "{}); expected the "
                             "generator to be put back to where it stood in forward",
                             event.text(Field::generator), tagged(event), position,
                             where(event, facts), drawn.position, drawn.seq),
                 {drawn.seq, event.seq()});
  }

  static bool is_skipped(const Replay& replay, const Draw& draw) {
    for (const Inside& skipped : replay.skipped)
      if (draw.inside == skipped) return true;
    return false;
  }

  static std::string tagged(const EventView& event) {
    return event.has(Field::tag) ? fmt::format(" for {}", event.text(Field::tag)) : std::string();
  }

  struct Displaced {
    std::int64_t expected = 0;
    std::int64_t begin_seq = 0;
    std::int64_t end_seq = 0;
  };

  // A replay left the generator elsewhere, and somebody draws from it.
  void check_displaced(const EventView& event, const Facts& facts, const Generator& of,
                       std::int64_t position, Report& report) {
    const auto found = displaced_.find(of);
    if (found == displaced_.end()) return;
    const Displaced moved = found->second;
    displaced_.erase(found);
    if (position == moved.expected) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} draws{} at position {} {}, but the replay that began at event {} "
                             "found it at position {} "
                             "and did not put it back",
                             event.text(Field::generator), tagged(event), position,
                             where(event, facts), moved.begin_seq, moved.expected),
                 {moved.begin_seq, moved.end_seq, event.seq()});
  }

  void observe_set(const EventView& event) {
    any_position_ = true;
    const auto to = event.integer(Field::to);
    if (!to) return;
    positions_[generator(event)] = *to;
    displaced_.erase(generator(event));
  }

  // The op event follows the draws that its kernel made: in a cache they go by the op's name and
  // index.
  void name_draws(const EventView& event, const Facts& facts) {
    Naming& naming = naming_of(event);
    if (facts.bodies().empty() || naming.unnamed.empty()) return;
    naming.named = std::exchange(naming.unnamed, {});
    naming.op = id(event, Field::name);
  }

  /// The region that the op is in keeps what it made; a region around that runs it again.
  void keep_draws(const EventView& event, const Facts& facts) {
    Naming& naming = naming_of(event);
    if (!event.is_true(Field::saved) || naming.op != id(event, Field::op)) return;
    const std::int64_t innermost = facts.bodies().empty() ? no_frame : facts.bodies().front().frame;
    const std::int64_t keeper = event.integer(Field::frame).value_or(innermost);
    for (const Unnamed& draw : naming.named) {
      if (keeper != no_frame && draw.frame != keeper) continue;
      Call* call = calls_.find(draw.frame);
      if (call != nullptr &&
          call->draws[draw.generator][draw.index].inside.what == Inside::What::body) {
        call->draws[draw.generator][draw.index].inside = {
            Inside::What::op, naming.op, event.integer(Field::idx).value_or(-1), -1};
      }
    }
    naming.named.clear();
  }

  void skip(const Facts& facts, const Inside& what) {
    if (facts.replay() != nullptr) replays_[facts.replay()->id].skipped.push_back(what);
  }

  void observe_wrapper(const EventView& event, const Facts& facts) {
    if (event.kind() == Kind::wrapper_exit) {
      leave(event);
      any_position_ = any_position_ || event.has(Field::rng_crc);
      skipped_.exit(event, facts);
    } else {
      skipped_.enter(facts);
      enter(event, facts, Inside::What::wrapper, id(event, Field::wrapper),
            event.is_true(Field::skipped));
    }
  }

  // N3
  void tell_off(const EventView& event, const Facts& facts, Report& report) {
    Replay& replay = replays_[facts.replay()->id];
    if (!std::exchange(replay.told, true)) skipped_.tell(event, facts, report);
  }

  void observe_region(const EventView& event, const Facts& facts) {
    if (event.kind() == Kind::region_end) {
      leave(event);
    } else {
      enter(event, facts, Inside::What::region, id(event, Field::region),
            event.text(Field::body) == "skipped");
    }
  }

  // The n-th run of a wrapper or a region in a replay stands for the n-th in forward: the trace's
  // own numbers go on over a call's replays.
  void enter(const EventView& event, const Facts& facts, Inside::What what, std::uint32_t name,
             bool skipped) {
    const std::int64_t frame = facts.enclosing_frame().value_or(-1);
    Inside run{what, name, 0, frame};
    if (facts.replay() != nullptr) {
      Replay& replay = replays_[facts.replay()->id];
      run.number = replay.entered[{frame, what, name}]++;
      if (skipped) replay.skipped.push_back(run);
    } else if (frame != -1) {
      run.number = calls_[frame].entered[{frame, what, name}]++;
    }
    inside_[place(event)].push_back(run);
  }

  void leave(const EventView& event) {
    std::vector<Inside>& runs = inside_[place(event)];
    if (!runs.empty()) runs.pop_back();
  }

  static std::pair<std::int64_t, std::int64_t> place(const EventView& event) {
    return {event.integer(Field::rank).value_or(-1), event.integer(Field::thread).value_or(-1)};
  }

  /// The innermost wrapper or region that the event lies in.
  Inside inside(const EventView& event) const {
    const auto found = inside_.find(place(event));
    return found == inside_.end() || found->second.empty() ? Inside{} : found->second.back();
  }

  void observe_begin(const EventView& event) {
    if (event.text(Field::exec) != "replay") return;
    before_[event.seq()] = {positions_, event.integer(Field::rng_crc)};
  }

  // N2: only where forward's body changes the state does it matter where the replay's begins.
  void observe_body(const EventView& event, const Facts& facts, Report& report) {
    const auto crc = event.integer(Field::rng_crc);
    if (!crc || !facts.frame()) return;
    any_position_ = true;
    if (event.text(Field::exec) != "replay") {
      Call& call = calls_[*facts.frame()];
      call.crc_at_body = crc;
      call.body_seq = event.seq();
      return;
    }
    const Call* call = calls_.find(*facts.frame());
    if (call == nullptr || !call->forward_drew || call->crc_at_body == crc) return;
    if (facts.replay() != nullptr) replays_[facts.replay()->id].told = true;
    report.found(invariant_name, event.seq(),
                 fmt::format("the random state at the beginning of the body (crc {}) {} is not "
                             "forward's (crc {}, event "
                             "{}), and the body draws from it",
                             *crc, where(event, facts), *call->crc_at_body, call->body_seq),
                 {call->body_seq, event.seq()});
  }

  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    const auto& scope = facts.ended_scope();
    if (!scope) return;
    const auto crc = event.integer(Field::rng_crc);
    if (!scope->replay) {
      Call* call = calls_.find(scope->frame);
      if (call != nullptr && crc && call->crc_at_body)
        call->forward_drew = crc != call->crc_at_body;
      return;
    }
    const bool told = replays_[scope->id].told;
    replays_.erase(scope->id);
    skipped_.end_replay(scope->id);
    const auto found = before_.find(scope->begin_seq);
    if (found == before_.end()) return;
    const Before before = found->second;
    before_.erase(found);
    if (told) return;
    const std::int64_t rank = event.integer(Field::rank).value_or(-1);
    for (const auto& [generator, position] : positions_) {
      const bool is_elsewhere = rank >= 0 && generator.first >= 0 && generator.first != rank;
      if (is_elsewhere) continue;  // another rank's, which goes on meanwhile
      const auto old = before.positions.find(generator);
      const std::int64_t expected = old == before.positions.end() ? 0 : old->second;
      if (position != expected) displaced_[generator] = {expected, scope->begin_seq, event.seq()};
    }
    if (!scope->framed || !crc || !before.crc || crc == before.crc) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("the replay of {} leaves the random state changed (crc {}, at its "
                             "beginning {}); expected it to "
                             "be put back",
                             shown_call(scope->frame, facts, event.trace()), *crc, *before.crc),
                 {scope->begin_seq, event.seq()});
  }

  std::map<Generator, std::int64_t> positions_;  // where the next draw is made
  std::map<Generator, Displaced> displaced_;
  FlatMap<Call> calls_;
  FlatMap<Replay> replays_;
  SkippedDraws skipped_;
  std::map<std::int64_t, Before> before_;  // unit_begin of a replay → the state then
  // (rank, thread) → the wrappers and regions that run there, the innermost last
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Inside>> inside_;
  std::map<std::int64_t, Naming> naming_;  // by rank
  bool any_position_ = false;
};

}  // namespace

std::unique_ptr<Invariant> rng_position() {
  return std::make_unique<RngPosition>();
}

}  // namespace remat
