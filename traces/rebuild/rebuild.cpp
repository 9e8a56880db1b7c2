#include "traces/rebuild/rebuild.hpp"

#include <algorithm>
#include <map>

#include "traces/rebuild/forward_builder.hpp"
#include "traces/rebuild/session_steps.hpp"

namespace remat {
namespace {

BufferRole role_of(std::string_view name) {
  if (name == "param") return BufferRole::param;
  if (name == "buffer") return BufferRole::buffer;
  if (name == "input") return BufferRole::input;
  return BufferRole::external;
}

/// Reads a recording once, phase by phase.
class Rebuilder {
 public:
  explicit Rebuilder(const Trace& trace)
      : trace_(&trace), tensors_(trace, run_.program), sessions_(trace, run_.order) {}

  RebuiltRun run() {
    find_last_packs();
    find_copies();
    for (std::size_t i = 0; i < trace_->size() && !run_.unsupported && !raises_; ++i)
      observe((*trace_)[i]);
    finish_forward();
    if (sessions_.unsupported() && !run_.unsupported) run_.unsupported = sessions_.unsupported();
    // One that is refused may have regions without an end.
    if (!run_.unsupported) finish_program(run_.program);
    if (tensors_.has_unknown_view() && !run_.unsupported)
      run_.unsupported = "a tensor of the forward shows a view that no recorded op made";
    if (tensors_.reads_another_forward() && !run_.unsupported)
      run_.unsupported = "a tensor that one forward made is read or written in another";
    if (run_.selects_ops && has_nested_regions() && !run_.unsupported)
      run_.unsupported = "a region inside a selective one: whose policy decides is not told";
    const bool leaves_out = run_.has_wrappers || run_.has_remat_regions;
    if (run_.selects_ops && leaves_out && !run_.unsupported)
      run_.unsupported = "excluded regions inside a selective one";
    if (run_.has_wrappers && run_.has_remat_regions && !run_.unsupported)
      run_.unsupported = "excluded regions beside those of torch_remat";
    if (loses_frames_ && !has_backward() && !run_.unsupported) {
      run_.unsupported =
          "a region's frame goes in forward and no backward follows: what was raised "
          "there is not recorded";
    }
    if (run_.order.empty() && !run_.unsupported)
      run_.unsupported = "the recording shows no phase: nothing says what the run did";
    return std::move(run_);
  }

 private:
  // A frame that no unit_begin tells of ends with its last pack.
  void find_last_packs() {
    for (std::size_t i = 0; i < trace_->size(); ++i) {
      const EventView event = (*trace_)[i];
      if (event.kind() != Kind::pack || event.phase() != Phase::forward) continue;
      const auto frame = event.integer(Field::frame);
      if (frame && event.has(Field::idx)) frames_.last_packs[*frame] = event.seq();
    }
    std::optional<std::int64_t> being_made;
    for (std::size_t i = 0; i < trace_->size(); ++i) {
      const EventView event = (*trace_)[i];
      if (event.kind() == Kind::frame_create) being_made = event.integer(Field::frame);
      if (event.kind() == Kind::inputs_save) being_made.reset();
      const auto parent = event.integer(Field::frame);
      if (event.kind() == Kind::pack && being_made && parent && parent != being_made)
        frames_.parents[*being_made] = *parent;
    }
  }

  // R14: a copy of what the next op overwrites, packed in between, is that op's own.
  void find_copies() {
    for (std::size_t i = 0; i < trace_->size(); ++i) {
      const EventView copy = (*trace_)[i];
      if (copy.kind() != Kind::op || plain_op_name(copy.text(Field::name)) != "clone" ||
          copy.list_size(Field::inputs) != 1 || copy.list_size(Field::outputs) != 1)
        continue;
      const auto made = copy.tensor_item(Field::outputs, 0).tensor;
      bool is_packed = false;
      for (std::size_t j = i + 1; j < trace_->size(); ++j) {
        const EventView next = (*trace_)[j];
        const auto packed = next.tensor(Field::tensor);
        is_packed |= next.kind() == Kind::pack && packed && packed->tensor == made;
        if (next.kind() != Kind::op || next.has(Field::internal)) continue;
        const bool overwrites =
            is_in_place_name(next.text(Field::name)) && next.list_size(Field::inputs) > 0 &&
            next.list_item(Field::inputs, 0) == copy.list_item(Field::inputs, 0);
        if (overwrites && is_packed) copies_.insert(copy.seq());
        break;
      }
    }
  }

  void observe(const EventView& event) {
    switch (event.kind()) {
      case Kind::header:
        run_.has_ambient_hooks = event.text(Field::plain_save_observation) == "hooks";
        return;
      case Kind::step_begin:
        add({.kind = PhaseStep::Kind::step_begin});
        return;
      case Kind::step_end:
        finish_forward();
        add({.kind = PhaseStep::Kind::step_end});
        return;
      case Kind::phase_begin:
        begin_phase(event);
        return;
      case Kind::session_open:
        sessions_.open(event, builder_ && builder_->has_regions());
        return;
      case Kind::session_close:
        sessions_.close(event);
        return;
      case Kind::session_clear:
        sessions_.clear(event);
        return;
      case Kind::phase_end:
        sessions_.end_phase();
        break;
      default:
        break;
    }
    if (event.phase() == Phase::forward) {
      observe_forward(event);
      // R23: the region raises, and after that nothing is foreseen.
      raises_ = event.kind() == Kind::inputs_save && sessions_.has_session_in_scope() && builder_ &&
                builder_->enters_region_with_sessions();
    } else if (event.phase() == Phase::setup && !is_later_) {
      observe_setup(event);
    } else if (event.phase() == Phase::optimizer && event.kind() == Kind::mutate) {
      observe_update(event);
    }
  }

  // What an optimizer's step writes; tensors of its own are nobody else's.
  void observe_update(const EventView& event) {
    if (run_.order.empty() || !run_.order.back().writes) return;
    const auto tensor = event.integer(Field::tensor);
    const auto value = tensor ? tensors_.value_of(*tensor) : std::nullopt;
    if (value) run_.order.back().writes->push_back(*value);
  }

  bool has_backward() const {
    return std::any_of(run_.order.begin(), run_.order.end(), [](const PhaseStep& step) {
      return step.kind == PhaseStep::Kind::backward || step.kind == PhaseStep::Kind::dx ||
             step.kind == PhaseStep::Kind::dw;
    });
  }

  bool has_nested_regions() const {
    for (const Forward& forward : run_.program.forwards) {
      std::size_t end = 0;
      for (std::size_t at = 0; at < forward.statements.size(); ++at) {
        const auto* region = std::get_if<RegionBegin>(&forward.statements[at]);
        if (region == nullptr || region->kind != RegionKind::checkpointed) continue;
        if (at < end) return true;
        end = region->end;
      }
    }
    return false;
  }

  void add(const PhaseStep& step) { run_.order.push_back(step); }

  void begin_phase(const EventView& event) {
    const auto microbatch = event.integer(Field::microbatch);
    PhaseStep step{.microbatch = microbatch, .retain = event.is_true(Field::retain)};
    switch (event.phase()) {
      case Phase::setup:
        return;
      case Phase::forward:
        finish_forward();
        name_parameters();
        step.kind = PhaseStep::Kind::forward;
        step.forward = run_.program.forwards.size();
        tensors_.begin_forward();
        builder_.emplace(*trace_, run_.program, tensors_, frames_, copies_, run_.has_ambient_hooks);
        add(step);
        sessions_.begin_phase();
        return;
      case Phase::backward:
        step.kind = PhaseStep::Kind::backward;
        break;
      case Phase::backward_input:
        step.kind = PhaseStep::Kind::dx;
        break;
      case Phase::backward_weight:
        step.kind = PhaseStep::Kind::dw;
        break;
      case Phase::optimizer:
        step.kind = PhaseStep::Kind::update;
        break;
      default:
        finish_forward();
        is_later_ = true;
        begin_prefire(event);
        return;
    }
    finish_forward();
    is_later_ = true;
    const std::optional<std::size_t> forward = require_forward(step);
    if (event.integer(Field::root) && forward) begin_elsewhere(event, step, *forward);
    if (run_.knows_sessions && step.kind == PhaseStep::Kind::update) step.writes.emplace();
    add(step);
    sessions_.begin_phase();
  }

  // A backward that starts from another tensor than the forward's last.
  void begin_elsewhere(const EventView& event, PhaseStep& step, std::size_t forward) {
    step.root = tensors_.value_of(*event.integer(Field::root));
    if (!step.root) {
      run_.unsupported = "a backward from a tensor that no event shows";
      return;
    }
    run_.program.forwards[forward].other_roots.push_back(*step.root);
  }

  // The forward that a phase of this micro-batch works on.
  std::optional<std::size_t> last_forward(std::optional<std::int64_t> microbatch) const {
    const auto runs_it = [&](const PhaseStep& step) {
      return step.kind == PhaseStep::Kind::forward && step.microbatch == microbatch;
    };
    const auto last = std::find_if(run_.order.rbegin(), run_.order.rend(), runs_it);
    return last == run_.order.rend() ? std::nullopt : std::optional(last->forward);
  }

  // R22: the frames that are named, or all of the forward's.
  void begin_prefire(const EventView& event) {
    if (!run_.knows_sessions) {
      run_.unsupported = "a pretrigger phase: what it reads is not visible in the forward part";
      return;
    }
    const auto microbatch = event.integer(Field::microbatch);
    std::vector<std::int64_t> frames;
    for (std::size_t i = 0; i < event.list_size(Field::prefire); ++i)
      frames.push_back(event.list_item(Field::prefire, i));
    auto forward = last_forward(microbatch);
    if (!forward) forward = last_forward(std::nullopt);
    if (!event.has(Field::prefire) && forward) {
      for (const Statement& statement : run_.program.forwards[*forward].statements) {
        const auto* region = std::get_if<RegionBegin>(&statement);
        if (region != nullptr && region->knows_sessions && region->frame)
          frames.push_back(*region->frame);
      }
    }
    sessions_.begin_prefire(microbatch, std::move(frames));
  }

  // What a backward runs on is the program of its micro-batch's forward.
  std::optional<std::size_t> require_forward(const PhaseStep& step) {
    if (step.kind == PhaseStep::Kind::update) return std::nullopt;
    const auto forward = last_forward(step.microbatch);
    if (!forward) {
      run_.unsupported = "a backward of a micro-batch whose forward is not recorded";
      return std::nullopt;
    }
    const std::vector<Statement>& statements = run_.program.forwards[*forward].statements;
    const bool runs_ops = std::any_of(statements.begin(), statements.end(), [](const Statement& s) {
      return std::holds_alternative<OpStatement>(s);
    });
    if (!runs_ops) run_.unsupported = "a backward of a forward that runs no op";
    return forward;
  }

  // Not when they are named: their roles are told after that.
  void name_parameters() {
    for (const std::int64_t tensor : pending_parameters_) {
      if (const auto value = tensors_.value_of(tensor)) run_.program.parameters.push_back(*value);
    }
    pending_parameters_.clear();
  }

  void finish_forward() {
    if (!builder_) return;
    run_.program.forwards.push_back(builder_->finish());
    if (builder_->unsupported()) run_.unsupported = builder_->unsupported();
    builder_.reset();
  }

  void observe_forward(const EventView& event) {
    run_.selects_ops |= event.kind() == Kind::sac_decide;
    if (event.kind() == Kind::frame_create) {
      run_.has_regions = true;
      run_.knows_sessions |= event.text(Field::impl) == "hyper_parallel";
    }
    // One under no_grad saves nothing and goes at once.
    const auto frame = event.integer(Field::frame);
    if (event.kind() == Kind::inputs_save && frame) saved_frames_.insert(*frame);
    loses_frames_ |= event.kind() == Kind::frame_free && frame && saved_frames_.contains(*frame);
    run_.has_state_hooks |= event.kind() == Kind::state_hook;
    run_.has_remat_regions |= event.kind() == Kind::region_begin;
    run_.has_wrappers |= event.kind() == Kind::wrapper_enter && event.text(Field::exec) != "plain";
    if (event.kind() == Kind::unit_begin && event.is_true(Field::reentrant))
      run_.has_regions = run_.has_reentrant_regions = true;
    observe_facts(event);
    if (builder_) builder_->observe(event);
  }

  void observe_setup(const EventView& event) {
    observe_facts(event);
    if (event.kind() == Kind::mutate && builder_) builder_->observe_write(event);
    if (event.kind() != Kind::op) return;
    for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i)
      tensors_.describe(event.tensor_item(Field::outputs, i));
  }

  void observe_facts(const EventView& event) {
    const auto storage = event.integer(Field::storage);
    if (event.kind() == Kind::storage_alloc && storage) {
      tensors_.set_bytes(*storage, event.integer(Field::bytes).value_or(0));
    } else if (event.kind() == Kind::role && storage) {
      tensors_.set_role(*storage, role_of(event.text(Field::role)));
    } else if (event.kind() == Kind::tensor) {
      observe_tensor(event);
    }
  }

  void observe_tensor(const EventView& event) {
    const auto tensor = event.integer(Field::t);
    if (!tensor) return;
    Layout layout;
    layout.dtype = event.name(Field::dtype);
    for (std::size_t i = 0; i < event.list_size(Field::shape); ++i)
      layout.shape.push_back(event.list_item(Field::shape, i));
    for (std::size_t i = 0; i < event.list_size(Field::stride); ++i)
      layout.stride.push_back(event.list_item(Field::stride, i));
    layout.has_shape = layout.has_stride = true;
    layout.offset = event.integer(Field::off);
    layout.bytes = event.integer(Field::bytes);
    if (const auto storage = event.integer(Field::s)) tensors_.describe(*tensor, *storage, layout);
    const std::string_view name = event.text(Field::name);
    if (name.empty()) return;
    const bool requires_grad = event.is_true(Field::requires_grad);
    tensors_.name_leaf(*tensor, name, requires_grad);
    if (!requires_grad || name == "input" || name == "grad_output") return;
    pending_parameters_.push_back(*tensor);
  }

  const Trace* trace_;
  RebuiltRun run_;
  TensorRegistry tensors_;
  ImplicitFrames frames_;
  IdSet copies_;  // by seq: copies that in-place ops make of what they overwrite
  std::optional<ForwardBuilder> builder_;
  std::vector<std::int64_t> pending_parameters_;
  SessionSteps sessions_;
  bool is_later_ = false;
  IdSet saved_frames_;         // that saved their inputs
  bool loses_frames_ = false;  // a forward lets one of them go
  bool raises_ = false;        // a forward does, as the program foresees
};

}  // namespace

RebuiltRun rebuild(const Trace& trace) {
  return Rebuilder(trace).run();
}

}  // namespace remat
