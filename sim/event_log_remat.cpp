#include <fmt/format.h>

#include "sim/event_log.hpp"

// What regions of torch_remat tell: what they save, keep for a replay and get from one.

namespace remat {

void EventLog::add_region(const ShownRegion& region) {
  trace_->add(Field::frame, region.frame);
  trace_->add_name(Field::region, region.name);
  add_unit();
}

void EventLog::region(bool begins, const ShownRegion& region, bool is_saved, bool in_replay) {
  if (!begin()) return;
  add_region(region);
  trace_->add_name(Field::policy, is_saved ? "save" : "recompute");
  trace_->add_name(Field::phase_remat, in_replay ? "recompute" : "forward");
  if (begins) trace_->add_name(Field::body, is_saved && in_replay ? "skipped" : "run");
  end(begins ? Kind::region_begin : Kind::region_end);
}

void EventLog::region_pack(const ShownRegion& region, const ShownPlace& place,
                           const ShownTensor& tensor) {
  if (!begin()) return;
  const bool is_input = !place.path.empty();
  trace_->add_name(Field::region, region.name);
  add_unit();
  trace_->add_name(Field::slot, place.slot);
  trace_->add_name(Field::role, is_input ? "remat_saved_input" : "remat_save");
  trace_->add_name(Field::held, is_input ? "placeholder" : "saved");
  if (is_input) {
    trace_->add_text(Field::path, fmt::format(R"("{}")", place.path));
    trace_->add(Field::view, place.is_view);
  }
  add_tensor(tensor);
  end(Kind::pack);
}

/// Which input is brought, and then the slot that it goes to.
void EventLog::remat_rederive(const ShownRegion& region, const ShownPlace& place,
                              const ReplayKey& key, const ShownTensor& tensor, bool refused) {
  if (!begin()) return;
  add_region(region);
  add_key(key);
  trace_->add_text(Field::recipes, fmt::format(R"([{{"path":"{}","view":{},"alive":true}}])",
                                               place.path, place.is_view));
  end(Kind::remat_rederive);
  begin();
  trace_->add_name(Field::slot, place.slot);
  add_key(key);
  add_tensor(tensor);
  if (refused) trace_->add(Field::refused, true);
  end(Kind::repack);
}

void EventLog::remat_persist(const ShownRegion& region, std::int64_t output,
                             const ShownTensor& tensor) {
  if (!begin()) return;
  add_region(region);
  trace_->add(Field::output, output);
  trace_->add(Field::stored, true);
  add_tensor(tensor);
  end(Kind::remat_persist);
}

void EventLog::remat_serve(const ShownRegion& region, std::int64_t output, bool popped,
                           const ShownTensor& tensor) {
  if (!begin()) return;
  add_region(region);
  trace_->add(Field::output, output);
  trace_->add(Field::popped, popped);
  add_tensor(tensor);
  end(Kind::remat_serve);
}

void EventLog::remat_placeholder(const ShownRegion& region, std::int64_t output,
                                 std::int64_t declared_bytes, const ShownTensor& tensor) {
  if (!begin()) return;
  add_region(region);
  trace_->add(Field::output, output);
  trace_->add(Field::declared_bytes, declared_bytes);
  add_tensor(tensor);
  end(Kind::remat_placeholder);
}

void EventLog::op_error(std::string_view name, std::string_view type,
                        std::span<const std::int64_t> inputs) {
  if (!begin()) return;
  trace_->add_name(Field::name, name);
  trace_->add_name(Field::type, type);
  trace_->add_list(Field::inputs, inputs);
  add_unit();
  end(Kind::op_error);
}

}  // namespace remat
