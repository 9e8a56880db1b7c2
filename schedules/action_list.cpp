#include "schedules/action_list.hpp"

namespace remat {

std::string name_of(const Action& action) {
  const std::string place = "0." + std::to_string(action.microbatch);
  switch (action.kind) {
    case ActionKind::forward:
      return "F" + place;
    case ActionKind::backward:
      return "B" + place;
    case ActionKind::dx:
      return "DX" + place;
    case ActionKind::dw:
      return "DW" + place;
    case ActionKind::update:
      return "UPDATE";
    case ActionKind::zero_grad:
      return "ZERO_GRAD";
  }
  return {};
}

ActionList all_forwards_first(std::int64_t microbatches, bool split, bool updates) {
  ActionList list;
  for (std::int64_t m = 0; m < microbatches; ++m)
    list.push_back({ActionKind::forward, m});
  for (std::int64_t m = 0; m < microbatches; ++m) {
    list.push_back({split ? ActionKind::dx : ActionKind::backward, m});
    if (split) list.push_back({ActionKind::dw, m});
  }
  if (updates) list.push_back({ActionKind::update, 0});
  return list;
}

}  // namespace remat
