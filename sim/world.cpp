#include "sim/world.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "model/errors.hpp"
#include "model/random_bits.hpp"
#include "sim/fiber.hpp"

namespace remat {
namespace {

constexpr std::uint32_t main_stream = 0;
constexpr std::uint64_t rank_stream = 0x72616e6bULL;

bool is_of_every_second_rank(RankFault fault) {
  return fault == RankFault::collectives_kept_by_rank || fault == RankFault::collectives_left_out;
}

/// Each rank has parameters and inputs of its own; the first those of a rank alone.
RankOptions options_of(const RankOptions& common, std::uint32_t rank) {
  RankOptions options = common;
  if (rank % 2 == 0 && is_of_every_second_rank(common.fault)) options.fault = RankFault::none;
  if (rank > 0) options.seed = random_bits(common.seed, rank_stream, rank);
  return options;
}

}  // namespace

/// One rank, and the others as it sees them.
class World::Member : public Peers {
 public:
  Member(World& world, std::uint32_t rank, bool is_alone, const RankPlan& plan,
         const Protocol& protocol, const WorldOptions& options, Trace* trace)
      : log(trace, *plan.program,
            is_alone ? std::nullopt : std::optional(OneOfSeveral{rank, &world.book_, this})),
        loop(rank, plan, protocol, options_of(options.rank, rank), options.offload, log),
        world_(&world),
        rank_(rank) {
    loop.rank().port().meet_through(*this);
  }

  void pass_turn(Instant now) override {
    if (!world_->engine_.has_before(now, rank_)) return;
    world_->engine_.schedule(now, rank_, main_stream, 0);
    fiber_->suspend();
  }

  Meeting meet(const CollectiveRequest& call, Instant now) override {
    CollectiveBoard::Arrival arrival = world_->board_.arrive(rank_, call, now);
    if (!arrival.meeting.code.empty()) return std::move(arrival.meeting);
    if (arrival.is_last) {
      for (const std::uint32_t other : arrival.waiting)
        world_->members_[other]->answer(arrival.meeting);
      if (fiber_ != nullptr) pass_turn(arrival.meeting.end);
      return std::move(arrival.meeting);
    }
    waits_in_ = call.group;
    fiber_->suspend();
    return std::move(meeting_);
  }

  /// The rank's order of phases begins, at the time that its clock says.
  void begin() {
    if (log.rank()) fiber_ = std::make_unique<Fiber>([this] { run_all(); });
    if (loop.has_more()) world_->engine_.schedule(log.now(), rank_, main_stream, 0);
  }
  /// Goes on to where another rank's turn may come.
  void go_on() {
    if (fiber_ != nullptr) return fiber_->resume();
    if (run_next() && loop.has_more()) world_->engine_.schedule(log.now(), rank_, main_stream, 0);
  }
  std::optional<std::uint32_t> waits_in() const { return waits_in_; }
  bool is_at_step_end() const { return is_at_step_end_; }
  /// All have ended the step.
  void begin_step(Instant at) {
    is_at_step_end_ = false;
    step_waited_.ns = saturated_sum(step_waited_.ns, at.ns - log.now().ns);
    log.wait_until(at);
    world_->engine_.schedule(at, rank_, main_stream, 0);
  }
  /// What it spent on waits for others to end their steps.
  Duration step_waited() const { return step_waited_; }
  /// What it waits for will not come: that is an error, as soon as nothing else can happen.
  void refuse(std::string why, Instant at) {
    world_->board_.give_up(*std::exchange(waits_in_, std::nullopt), rank_);
    log.wait_until(at);
    meeting_ = {.elements = {}, .end = log.now(), .code = "E-DEADLOCK", .why = std::move(why)};
    fiber_->resume();
  }
  /// Nothing of it is told any more; what it was at is left.
  void leave() {
    log.stop();
    fiber_.reset();
  }

  EventLog log;
  RankLoop loop;

 private:
  bool run_next() {
    if (!world_->takes_a_phase()) return false;
    if (loop.run_next()) return true;
    world_->stop(*loop.rank().error());
    return false;
  }
  void run_all() {
    while (loop.has_more() && run_next()) {
      if (loop.is_at_step_end() && loop.has_more()) await_step_ends();
    }
  }
  /// A step ends for all ranks together.
  void await_step_ends() {
    is_at_step_end_ = true;
    world_->end_step_of_all();
    fiber_->suspend();
  }
  void answer(const Meeting& meeting) {
    REMAT_INVARIANT(waits_in_);
    waits_in_.reset();
    meeting_ = meeting;
    world_->engine_.schedule(meeting.end, rank_, main_stream, 0);
  }

  World* world_;
  std::uint32_t rank_;
  std::unique_ptr<Fiber> fiber_;           // none: the rank is alone
  std::optional<std::uint32_t> waits_in_;  // the group of the call
  bool is_at_step_end_ = false;            // waits for the others there
  Duration step_waited_;
  Meeting meeting_;
};

World::World(const std::vector<RankPlan>& plans, const Protocol& protocol,
             const WorldOptions& options, Trace* trace)
    : phases_max_(options.phases_max), board_(options.groups), engine_(*this, chooser_) {
  const bool is_alone = plans.size() == 1;
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    members_.push_back(
        std::make_unique<Member>(*this, rank, is_alone, plans[rank], protocol, options, trace));
  }
}

World::~World() {
  for (const std::unique_ptr<Member>& member : members_)
    member->leave();
}

EventLog& World::log(std::size_t rank) {
  return members_[rank]->log;
}

RankLoop& World::loop(std::size_t rank) {
  return members_[rank]->loop;
}

void World::set_up() {
  for (const std::unique_ptr<Member>& member : members_)
    member->loop.set_up();
}

void World::run() {
  for (const std::unique_ptr<Member>& member : members_)
    member->begin();
  do {
    engine_.run(UINT64_MAX);
  } while (ends_a_deadlock());
}

void World::handle(Engine&, const Event& event) {
  if (!is_over_) members_[event.rank]->go_on();
}

/// Ranks go by the time alone: nobody asks.
void World::footprint(const Event&, Footprint&) const {}

bool World::takes_a_phase() {
  is_over_ |= n_phases_ == phases_max_;
  was_cut_short_ |= n_phases_ == phases_max_;
  if (is_over_) return false;
  ++n_phases_;
  return true;
}

void World::stop(const SimulatedError& error) {
  if (!error_) error_ = error;
  is_over_ = true;
}

/// Whoever comes last to the end of the step lets all go on, at the time of the latest.
void World::end_step_of_all() {
  Instant latest;
  for (const std::unique_ptr<Member>& member : members_) {
    if (!member->is_at_step_end()) return;
    latest = std::max(latest, member->log.now());
  }
  for (const std::unique_ptr<Member>& member : members_)
    member->begin_step(latest);
}

Duration World::waited(std::size_t rank) const {
  const Member& member = *members_[rank];
  return {saturated_sum(member.loop.rank().collectives_waited().ns, member.step_waited().ns)};
}

/// Nothing is to come, and ranks wait: the first of them is told.
bool World::ends_a_deadlock() {
  if (is_over_) return false;
  std::string why;
  Member* first = nullptr;
  Instant latest;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    latest = std::max(latest, members_[rank]->log.now());
    const auto group = members_[rank]->waits_in();
    if (!group) continue;
    if (first == nullptr) first = members_[rank].get();
    why.append(why.empty() ? "" : "; ").append(board_.awaited(*group, rank));
  }
  if (first == nullptr) return false;
  first->refuse(std::move(why), latest);
  return true;
}

}  // namespace remat
